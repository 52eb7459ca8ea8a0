__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C,
          __global float* restrict pieces)
{
    // identifiers
    const int tid = get_local_id(0);                         // number of the work-item
    const int lane = tid%32;                                 // its number in the warp
    const int warp = tid/32;                                 // number of the warp
    const int tm = (warp%WARPS*WARPM*WPTM) + lane%WARPM*4;   // first row inside the tile
    const int tn = (warp/WARPS*WARPN*WPTN) + lane/WARPM*4;   // first column inside the tile
    const int ia = tid%(TSM/WIDTH)*WIDTH;                    // first row of A's tile that it copies
    const int ka = tid/(TSM/WIDTH);                          // and its first step of k
    const int ib = TRANSPOSED ? tid%(TSN/WIDTH)*WIDTH : tid/KB;   // the same for B's tile
    const int kb = TRANSPOSED ? tid/(TSN/WIDTH) : tid%KB;
    const int lda = (M - 1)/WIDTH*WIDTH + WIDTH;             // leading dimensions of A and B
    const int ldb = TRANSPOSED ? (N - 1)/WIDTH*WIDTH + WIDTH : K;
    const int tiles_m = (M - 1)/TSM + 1;                     // rows of tiles
    const int tiles_n = (N - 1)/TSN + 1;                     // columns of tiles
    const int steps = (K - 1)/TSK + 1;                       // tiles of A that a tile of C needs

    // this work-group's piece of the line of all steps
    const int group = get_group_id(0);
    const int groups = GROUPS ? GROUPS : tiles_m*tiles_n;    // work-groups for the tiles
    const long line = (long)tiles_m*tiles_n*steps;
    long step = line*group/groups;
    const long end = line*(group + 1)/groups;
    int cut = 0;                                             // partial tiles that it has stored

    // local memory
    __local float Atile[STAGES][TSK][TSM] __attribute__((aligned(128))); // [stage][k][m]
    __local float Btile[STAGES][TSK][TSN + PAD] __attribute__((aligned(128))); // [stage][k][n]

    while (step < end) {
        const int tile = step/steps;
#include "../tile_order.cl"
        const int count = (int)min(end - step, (long)steps - step%steps);
        const int k0 = (int)(step%steps)*TSK;                // first step of k of this part
        const int depth = min(count*TSK, K - k0);            // and number of steps
        int left_a = depth - ka;                             // steps left to load for this work-item
        int left_b = depth - kb;
        const __global float* a_from = A + (size_t)(k0 + ka)*lda + m0 + ia;
        const __global float* b_from = &B_AT(k0 + kb, n0 + ib);
        int filled = 0;
        int now = 0;

        // accumulators
        float acc[WPTN][WPTM] __attribute__((aligned(16)));
        for (int wn = 0; wn < WPTN; wn++) {
            for (int wm = 0; wm < WPTM; wm++) {
                acc[wn][wm] = 0.0f;
            }
        }
        float a[2][WPTM] __attribute__((aligned(16)));
        float b[2][WPTN] __attribute__((aligned(16)));

        // load: the first tiles
        for (int stage = 1; stage < STAGES; stage++) {
            #pragma unroll
            for (int k = 0; k < TSK - 1; k++) {
                NEXT(k)
            }
        }
        AWAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);
        FRAGMENT(0, 0)

        for (int t = 0; t < (TAIL ? depth/TSK : count); t++) {
            // compute, fetch the fragments of the next step, and load one more tile
            #pragma unroll
            for (int k = 0; k < TSK; k++) {
                if (k == TSK - 1) {
                    // barrier: the next tile has arrived, and nobody needs this one any more
                    AWAIT(STAGES - 2);
                    barrier(CLK_LOCAL_MEM_FENCE);
                    now = now + 1 < STAGES ? now + 1 : 0;
                }
                FRAGMENT((k + 1)%TSK, (k + 1)%2)
                NEXT(k)
                MULTIPLY(k%2)
            }
        }
#if TAIL
#include "tail.cl"
#endif
        // barrier: nobody needs the last tile any more, and no copy of zeroes is still under way
        AWAIT(0);
        barrier(CLK_LOCAL_MEM_FENCE);

        // store: a partial tile
        int whole = count == steps;
        if (!whole) {
            for (int wn = 0; wn < WPTN; wn++) {
                for (int wm = 0; wm < WPTM; wm += 4) {
                    *(__global float4*)&PIECE(2*group + cut, wm, wn) = *(const float4*)&acc[wn][wm];
                }
            }
            cut++;
#if NVIDIA
#include "fix_up.cl"
#endif
        }

        // store: a whole tile
        if (whole) {
#if TURNED
#include "store_turned.cl"
#endif
#if TURNED == 0
#include "store.cl"
#endif
        }
        step += count;
    }
}
