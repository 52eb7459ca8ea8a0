// fixup: add up the parts of each tile that several work-groups have shared (Stream-K).
//
// After:    17_stream_k.cl, and production/warp_tiling.cl where that does not do so itself. As a
//           second launch it sees everything that the first one has stored.
// Compile:  with TSM, TSN, TSK and ORDER of the first launch.
// Launch:   in dimension 0 a number per tile (by_tile) or per cut, whichever are fewer; a cut is
//           the border between the shares of two work-groups, and there is at least one. In
//           dimension 1, in which a work-group has size 1, as many work-groups per number as it
//           takes for each work-item to sum 4 elements of the tile.

#include "../parts/tile_order.cl"

__kernel void fixup(const int M, const int N, const int K,
                    const int groups, const int by_tile,
                    const __global float* restrict pieces,
                    __global float* restrict C)
{
    // the line of the slices of all tiles. Work-group g of the first launch had those from
    // line*g/groups on, to the one before line*(g + 1)/groups
    const int tiles_m = (M - 1)/TSM + 1;
    const int tiles_n = (N - 1)/TSN + 1;
    const int slices = (K - 1)/TSK + 1;      // slices of a tile, of TSK steps of k
    const long line = (long)tiles_m*tiles_n*slices;

    // the tile, by its own number or by that of a cut, and the work-groups that computed its first
    // and its last slice: for slice s the last g with line*g/groups <= s. A tile of one work-group
    // is complete; one with several cuts belongs to the first of them
    const int number = get_group_id(0);
    const int tile = by_tile ? number : line*(number + 1)/groups/slices;
    const long begin = (long)tile*slices;
    const int first = ((begin + 1)*groups - 1)/line;
    const int last = ((begin + slices)*groups - 1)/line;
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

    // add up. Work-groups after `first` began inside this tile: their part is their first piece.
    // That of work-group `first` is its second one if it began inside a tile before
    const long from = line*first/groups;
    const int second = from < begin && from%slices != 0;
    float4 sum = *(const __global float4*)&pieces[(size_t)(2*first + second)*TSM*TSN + id];
    #pragma unroll 8
    for (int group = first + 1; group <= last; group++) {
        // if work-groups outnumber all slices, some had none
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
