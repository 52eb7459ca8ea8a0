// join: add up the pieces of the tiles that 15_warp_tiling.cl has cut.
//
// Launch:   as many work-groups in dimension 0 as tiles of C (a GPU may take no more than
//           65,535 in the others), of any size there and 1 in dimension 1; all those in
//           dimension 1 go through the elements of their tile.
// Requires: the parameters of kernel 15 that made the pieces, and its number of groups.
//           Of a tile that one work-group did alone there is nothing to add.

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
#define ORDER 8 // rows of tiles that neighbouring work-groups go through together
#endif

#define PIECE (TSM*TSN) // floats of a piece

__kernel void join(const int M, const int N, const int K,
                   const int groups,
                   const __global float* restrict pieces,
                   __global float* restrict C)
{
    const int tiles_m = (M - 1)/TSM + 1;
    const int tiles_n = (N - 1)/TSN + 1;
    const int steps = (K - 1)/TSK + 1;
    const long line = (long)tiles_m*tiles_n*steps;

    // this tile's part of the line of all steps, and the first work-group that has some of it
    const int tile = get_group_id(0);
    const long begin = (long)tile*steps;
    const long end = begin + steps;
    int first = (int)((begin + 1)*groups/line);
    while (line*first/groups > begin) {
        first--;
    }
    while (line*(first + 1)/groups <= begin) {
        first++;
    }
    if (line*(first + 1)/groups >= end) {
        return;
    }

    // where it lies in C: down ORDER rows of tiles, then on to the next column
    const int band = tile/(ORDER*tiles_n)*ORDER;
    const int rows = min(ORDER, tiles_m - band);
    const int m0 = (band + tile%(ORDER*tiles_n)%rows)*TSM;
    const int n0 = tile%(ORDER*tiles_n)/rows*TSN;

    const int items = get_local_size(0);
    for (int id = get_group_id(1)*items + get_local_id(0); id < PIECE; id += get_num_groups(1)*items) {
        const int m = m0 + id%TSM;
        const int n = n0 + id/TSM;
        if (m < M && n < N) {
            float sum = 0.0f;
            for (int group = first; group < groups && line*group/groups < end; group++) {
                const long start = line*group/groups;
                if (line*(group + 1)/groups > start) { // with few steps some groups have none
                    // one that has cut a tile before has stored this piece as its second
                    const int second = start < begin && start%steps != 0;
                    sum += pieces[(size_t)(2*group + second)*PIECE + id];
                }
            }
            C[(size_t)n*M + m] = sum;
        }
    }
}
