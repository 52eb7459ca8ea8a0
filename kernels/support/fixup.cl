// fixup: the fix-up of Stream-K. It adds up the partial sums of each tile that several work-groups
// share, after 17_stream_k.cl, or after production/warp_tiling.cl where that does not do so itself.
// Because it is a second launch, everything that the first one has stored is visible.
//
// Launch:   in dimension 0, one work-group per tile or one per cut, whichever are fewer. There is
//           one cut fewer than the first launch has work-groups, but at least one. In dimension 1,
//           in which a work-group has size 1, enough work-groups for each work-item to sum 4
//           elements.
// Requires: the parameters of the first launch, and its number of work-groups, below 65,536. A tile
//           that one work-group computed alone needs no fix-up; if a tile has several cuts, the
//           work-group of the first cut adds up all parts.

#ifndef TSM
#define TSM 128 // rows of the tile of C
#endif
#ifndef TSN
#define TSN 64 // columns of the tile of C
#endif
#ifndef TSK
#define TSK 16 // depth of the tiles of A and B, in steps of k
#endif
#ifndef ORDER
#define ORDER 8 // rows of tiles in a band that neighbouring work-groups compute together (swizzle)
#endif

#define PIECE (TSM*TSN) // floats of a partial tile
// line*group/groups, the step at which a work-group of the first launch starts, without a 64-bit
// division
#define START(group) (share*(group) + rest*(uint)(group)/(uint)groups)

__kernel void fixup(const int M, const int N, const int K,
                    const int groups, const int by_tile,
                    const __global float* restrict pieces,
                    __global float* restrict C)
{
    const int tiles_m = (M - 1)/TSM + 1;
    const int tiles_n = (N - 1)/TSN + 1;
    const int steps = (K - 1)/TSK + 1;
    const long line = (long)tiles_m*tiles_n*steps;
    const long share = line/groups;
    const uint rest = line%groups;

    // the tile: given by its number, or by the cut between two work-groups of the first launch
    const int number = get_group_id(0);
    const int tile = by_tile ? number : START(number + 1)/steps;
    const long begin = (long)tile*steps;
    const int first = ((begin + 1)*groups - 1)/line; // the work-groups that computed its first step
    const int last = ((begin + steps)*groups - 1)/line; // and its last step
    if (first == last || (!by_tile && first != number)) {
        return;
    }

#include "../production/tile_order.cl"

    // four elements of it
    const int id = (get_group_id(1)*get_local_size(0) + get_local_id(0))*4;
    const int m = m0 + id%TSM;
    const int n = n0 + id/TSM;
    if (id >= PIECE || m >= M || n >= N) {
        return;
    }
    // a work-group that also shared the tile before has stored this partial tile as its second one
    const long from = START(first);
    const int second = from < begin && from%steps != 0;
    float4 sum = *(const __global float4*)&pieces[(size_t)(2*first + second)*PIECE + id];
    #pragma unroll 8
    for (int group = first + 1; group <= last; group++) {
        if (share > 0 || START(group) < START(group + 1)) { // with few steps, some groups have none
            sum += *(const __global float4*)&pieces[(size_t)(2*group)*PIECE + id];
        }
    }
    __global float* c = C + (size_t)n*M + m;
    c[0] = sum.x;
    if (m + 1 < M) c[1] = sum.y;
    if (m + 2 < M) c[2] = sum.z;
    if (m + 3 < M) c[3] = sum.w;
}
