__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tid = get_local_id(0);                         // number of the work-item
    const int lane = tid%32;                                 // its number in the warp
    const int warp = tid/32;                                 // number of the warp
    const int g = lane/4;                                    // its row in the instruction
    const int t = lane%4;                                    // its step of k, and half of its column
    const int wm = warp%(TSM/WM)*WM;                         // first row of the warp's block
    const int wn = warp/(TSM/WM)*WN;                         // first column
    const int ia = tid%(TSM/4)*4;                            // first row of A's tile that it copies
    const int ka = tid/(TSM/4);                              // and its first step of k
    const int ib = tid%(TSN/4)*4;                            // the same for B's tile
    const int kb = tid/(TSN/4);
    const int lda = (M - 1)/4*4 + 4;                         // leading dimensions of A and B
    const int ldb = (N - 1)/4*4 + 4;

    // which tile
    const int tiles_m = (M - 1)/TSM + 1;
    const int tiles_n = (N - 1)/TSN + 1;
    const int tile = get_group_id(0);
#include "../tile_order.cl"
    const int inside = m0 + TSM <= M && n0 + TSN <= N;
    const __global float* a_from = A + (size_t)ka*lda + m0 + ia;
    const __global float* b_from = B + (size_t)kb*ldb + n0 + ib;
    int k0 = 0;                                              // first step of k to load
    int filled = 0;
    int now = 0;

    // local memory
    __local float Atile[STAGES][TSK][TSM + PAD] __attribute__((aligned(128))); // [stage][k][m]
    __local float Btile[STAGES][TSK][TSN + PAD] __attribute__((aligned(128))); // [stage][k][n]

    // accumulators, each for two rows and two columns, and the sums that are still in the tensor cores
    float4 acc[WM/16][WN/8];
    float4 sum[WM/16][WN/8];
    for (int i = 0; i < WM/16; i++) {
        for (int j = 0; j < WN/8; j++) {
            acc[i][j] = (float4)(0.0f);
            sum[i][j] = (float4)(0.0f);
        }
    }

    // load: the first tiles
    for (int stage = 1; stage < STAGES; stage++) {
        NEXT();
    }

    for (int first = 0; first < K; first += TSK) {
        // barrier: this tile has arrived, and nobody needs the one before any more
        AWAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);

        // load: one more tile
        NEXT();

        // compute: 8 steps of k with each instruction
        #pragma unroll
        for (int k = 0; k < TSK; k += 8) {
#if TENSOR * NVIDIA
#include "fragments.cl"
#endif
            for (int j = 0; j < WN/8; j++) {
                for (int i = 0; i < WM/16; i++) {
#if TENSOR * NVIDIA
#include "multiply_mma.cl"
#endif
#if TENSOR * NVIDIA == 0
#include "multiply_plain.cl"
#endif
#if EVERY
                    if ((uint)(first + k)/8%EVERY == EVERY - 1) {
                        acc[i][j] += sum[i][j];
                        sum[i][j] = (float4)(0.0f);
                    }
#endif
                }
            }
        }
        now = now + 1 < STAGES ? now + 1 : 0;
    }

    // store
    for (int i = 0; i < WM/16; i++) {
        for (int j = 0; j < WN/8; j++) {
            acc[i][j] += sum[i][j];
        }
    }
    for (int i = 0; i < WM/16; i += 2) {
        for (int j = 0; j < WN/8; j++) {
            for (int h = 0; h < 2; h++) {
                const int m = m0 + wm + i*16 + 4*g;
                const int n = n0 + wn + j/4*32 + j%4 + 8*t + 4*h;
                const float4 p = acc[i][j];
                const float4 q = acc[i + 1][j];
                float4 x = (float4)(p.x, p.z, q.x, q.z);
                if (h) {
                    x = (float4)(p.y, p.w, q.y, q.w);
                }
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
    }
}
