__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tid = get_local_id(0);                         // number of the work-item
    const int g = tid%32/4;                                  // which 4 rows of the warp's block
    const int t = tid%4;                                     // its step of k, and its columns
    const int row = tid/32*32 + 4*g;                         // its first row inside the tile
    const int ib = tid/(TSK/4);                              // column of B's tile that it copies
    const int kb = tid%(TSK/4);                              // and which 4 steps of k
    const int lda = (M - 1)/4*4 + 4;                         // leading dimensions of A and B
    const int ldb = (K - 1)/4*4 + 4;

    // which tile
    const int tiles_m = (M - 1)/TSM + 1;
    const int tiles_n = (N - 1)/TSN + 1;
    const int tile = get_group_id(0);
#include "../tile_order.cl"
    const int inside = m0 + TSM <= M;
    const __global float* a_from = A + (size_t)t*lda + m0 + row;
    const __global float* b_from = B + (size_t)(n0 + ib)*ldb + 4*kb;
    int k0 = 0;                                              // first step of k to load
    int filled = 0;
    int now = 0;
    int odd = 0;                                             // which tile of small parts is in use

    // local memory
    __local float Btile[STAGES][TSK/4][ROW][4] __attribute__((aligned(128)));  // [stage][k/4][n][k%4]
    __local float Bsmall[2][TSK/4][ROW][4] __attribute__((aligned(128)));

    // accumulators, and the sums that are still in the tensor cores
    float acc[2][64];
    float sum[64];
    for (int j = 0; j < 64; j++) {
        acc[0][j] = 0.0f;
        acc[1][j] = 0.0f;
        sum[j] = 0.0f;
    }

    // load: the first tiles
    float4 raw[TSK/4];
    FETCH(0)
    for (int stage = 1; stage < STAGES; stage++) {
        NEXT();
    }
    AWAIT(STAGES - 2);
    barrier(CLK_LOCAL_MEM_FENCE);
    CUT_B(0, 0);
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int first = 0; first < K; first += TSK) {
        const int next = now + 1 < STAGES ? now + 1 : 0;
#if TENSOR * NVIDIA
#include "cut_a.cl"
#endif

        // load: one more tile of B
        NEXT();

        for (int i = 0; i < 2; i++) {
            // compute: two of the work-item's four rows
#if TENSOR * NVIDIA
#include "multiply_wgmma.cl"
#endif
#if TENSOR * NVIDIA == 0
#include "multiply_plain.cl"
#endif
            if (i == 0) {
                // cut: meanwhile split the next tile of B, once all of it has arrived
                AWAIT(STAGES - 2);
                barrier(CLK_LOCAL_MEM_FENCE);
                CUT_B(next, 1 - odd);
            } else {
                // fetch: meanwhile the next tile of A
                a_from += (size_t)TSK*lda;
                FETCH(first + TSK)
            }
#if TENSOR * NVIDIA
            FINISH();
#endif
            for (int j = 0; j < 64; j++) {
                acc[i][j] += sum[j];
            }
        }

        // barrier: the next tile has been split, and nobody needs this one any more
        barrier(CLK_LOCAL_MEM_FENCE);
        now = next;
        odd = 1 - odd;
    }

#if TENSOR * NVIDIA
    // have the hidden instructions been revealed?
    int told = 0;
    asm volatile("//@ mov.u32 %0, 1;" : "+r"(told));
    const float nothing = told ? 0.0f : NAN;
#else
    const float nothing = 0.0f;
#endif

    // store
    for (int j = 0; j < 32; j++) {
        const int l = j/2*4 + j%2;
        const int m = m0 + row;
        const int n = n0 + j/2*8 + 2*t + j%2;
        const float4 x = (float4)(acc[0][l], acc[0][l + 2], acc[1][l], acc[1][l + 2]) + nothing;
        __global float* c = C + (size_t)n*M + m;
        if (n < N && M%4 == 0 && m < M) {
            *(__global float4*)c = x;
        } else if (n < N) {
            if (m < M) c[0] = x.x;
            if (m + 1 < M) c[1] = x.y;
            if (m + 2 < M) c[2] = x.z;
            if (m + 3 < M) c[3] = x.w;
        }
    }
}
