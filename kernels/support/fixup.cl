// fixup: add up the parts of each tile that several work-groups have shared (Stream-K).
//
// After:    17_stream_k.cl, and production/warp_tiling.cl where that does not do so itself. As a
//           second launch it sees everything that the first one has stored.
// Compile:  with TSM, TSN, TSK and ORDER of the first launch.
// Launch:   in dimension 0, one work-group per tile (by_tile) or one per cut, whichever are fewer.
//           There is one cut fewer than the first launch has work-groups, but at least one. In
//           dimension 1, in which a work-group has size 1, enough work-groups for each work-item
//           to sum 4 elements.

#include "../parts/tile_order.cl"

__kernel void fixup(const int M, const int N, const int K,
                    const int groups, const int by_tile,
                    const __global float* restrict pieces,
                    __global float* restrict C)
{
    // the line of all steps, of which work-group g of the first launch had line*g/groups and so on
    const int tiles_m = (M - 1)/TSM + 1;
    const int tiles_n = (N - 1)/TSN + 1;
    const int steps = (K - 1)/TSK + 1;       // steps of a tile
    const long line = (long)tiles_m*tiles_n*steps;

    // the tile, by its own number or by that of a cut, and the work-groups that computed its first
    // and its last step. A tile of one work-group is complete; one with several cuts belongs to the
    // first of them
    const int number = get_group_id(0);
    const int tile = by_tile ? number : line*(number + 1)/groups/steps;
    const long begin = (long)tile*steps;
    const int first = ((begin + 1)*groups - 1)/line;
    const int last = ((begin + steps)*groups - 1)/line;
    if (first == last || (!by_tile && first != number)) {
        return;
    }

    // four elements of the tile, and their place in C
    const int id = 4*(get_group_id(1)*get_local_size(0) + get_local_id(0));
    const int2 place = place_of(tile, tiles_m, tiles_n);
    const int m = place.x*TSM + id%TSM;
    const int n = place.y*TSN + id/TSM;
    if (id >= TSM*TSN || m >= M || n >= N) {
        return;
    }

    // add up: the tile is the first that a work-group had a part of, and its part in the first of
    // two pieces; but work-group `first` may have had a part of the tile before
    const long from = line*first/groups;
    const int second = from < begin && from%steps != 0;
    float4 sum = *(const __global float4*)&pieces[(size_t)(2*first + second)*TSM*TSN + id];
    #pragma unroll 8
    for (int group = first + 1; group <= last; group++) {
        // where work-groups outnumber steps, some had none
        if (line >= groups || line*group/groups < line*(group + 1)/groups) {
            sum += *(const __global float4*)&pieces[(size_t)(2*group)*TSM*TSN + id];
        }
    }

    // store
    __global float* c = C + (size_t)n*M + m;
    c[0] = sum.x;
    if (m + 1 < M) c[1] = sum.y;
    if (m + 2 < M) c[2] = sum.z;
    if (m + 3 < M) c[3] = sum.w;
}
