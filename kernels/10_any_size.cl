// 10 any size: TSM and TSN are free of each other, and padding brings any M, N, K.
//
// Before:   09_prefetch. There one loop filled both tiles, so that they had to be
//           alike; here each tile has a loop of its own. Sizes that are no multiples
//           of the tile are padded with zeroes beforehand (pad.cl), and cut afterwards.
// Costs:    as 09_prefetch; around it, a pass over each padded matrix.
// Requires: M, N and K multiples of TSM, TSN and TSK (padded to them). B transposed.
//
//    +-----------+--+     five launches: pad A, pad B, (transpose B,) multiply, unpad C
//    |     A     |0 |
//    +-----------+0 |     A zero row of A meets a zero column of B in C's padding only;
//    | 0 0 0 0 0 0 0|     a zero column of A adds nothing.
//    +--------------+
//
// Compile:  -DTSM=128   rows of the tile of C [32, 64, 128, 160]
//           -DTSN=128   columns of the tile of C [32, 64, 128, 160]
//           -DTSK=16    depth of the tiles of A and B, in steps of k [8, 16, 32]
//           -DWPTM=8    rows of C a work-item computes [2, 4, 8, 10]
//           -DWPTN=8    columns of C a work-item computes [2, 4, 8, 10]
//           -DWIDTH=4   floats in a vector loaded from global memory [1, 2, 4, 8]
//           -DUNROLL=4  steps of k in one iteration of the unrolled loop [1, 4, 16]

#define RTSM (TSM/WPTM)    // rows of work-items in a work-group
#define RTSN (TSN/WPTN)    // columns of work-items in a work-group
#define ITEMS (RTSM*RTSN)  // work-items in a work-group
#include "parts/floatX.cl" // a vector of WIDTH floats

__kernel __attribute__((reqd_work_group_size(RTSM, RTSN, 1)))
void gemm(const int M, const int N, const int K,
          const __global floatX* restrict A,
          const __global floatX* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tm = get_local_id(0);          // first row in the tile of C
    const int tn = get_local_id(1);          // first column in the tile of C
    const int tid = tn*RTSM + tm;            // number of the work-item
    const int m0 = get_group_id(0)*TSM;      // first row of the tile of C
    const int n0 = get_group_id(1)*TSN;      // first column of the tile of C

    // local memory: two buffers, one to compute from and one to fill
    __local floatX Atile[2][TSK][TSM/WIDTH]; // [buffer][k][m]
    __local floatX Btile[2][TSK][TSN/WIDTH]; // [buffer][k][n]

    // accumulators
    float acc[WPTN][WPTM];
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i++) {
            acc[j][i] = 0.0f;
        }
    }

    // load: the first tiles
    for (int e0 = 0; e0 < TSK*TSM/WIDTH; e0 += ITEMS) {
        const int i = (e0 + tid) % (TSM/WIDTH); // row of the tile, in vectors
        const int j = (e0 + tid) / (TSM/WIDTH); // column of the tile
        Atile[0][j][i] = A[j*(M/WIDTH) + m0/WIDTH + i];
    }
    for (int e0 = 0; e0 < TSK*TSN/WIDTH; e0 += ITEMS) {
        const int i = (e0 + tid) % (TSN/WIDTH);
        const int j = (e0 + tid) / (TSN/WIDTH);
        Btile[0][j][i] = B[j*(N/WIDTH) + n0/WIDTH + i];
    }

    int now = 0;                             // the buffer to compute from
    for (int k0 = 0; k0 < K; k0 += TSK) {
        const int next = 1 - now;            // the buffer to fill
        const int k1 = k0 + TSK;             // first step of the next tiles

        // barrier: this tile is complete, and nobody needs the other buffer any more
        barrier(CLK_LOCAL_MEM_FENCE);

        // load: the next tiles into the other buffer, while we compute
        if (k1 < K) {
            for (int e0 = 0; e0 < TSK*TSM/WIDTH; e0 += ITEMS) {
                const int i = (e0 + tid) % (TSM/WIDTH); // row of the tile, in vectors
                const int j = (e0 + tid) / (TSM/WIDTH); // column of the tile
                Atile[next][j][i] = A[(k1 + j)*(M/WIDTH) + m0/WIDTH + i];
            }
            for (int e0 = 0; e0 < TSK*TSN/WIDTH; e0 += ITEMS) {
                const int i = (e0 + tid) % (TSN/WIDTH);
                const int j = (e0 + tid) / (TSN/WIDTH);
                Btile[next][j][i] = B[(k1 + j)*(N/WIDTH) + n0/WIDTH + i];
            }
        }

        // compute
        const __local float* Af = (const __local float*)Atile[now]; // float by float
        const __local float* Bf = (const __local float*)Btile[now];
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float a[WPTM];                   // each loaded once, used WPTN times
            for (int i = 0; i < WPTM; i++) {
                a[i] = Af[k*TSM + tm + i*RTSM];
            }
            float b[WPTN];                   // each loaded once, used WPTM times
            for (int j = 0; j < WPTN; j++) {
                b[j] = Bf[k*TSN + tn + j*RTSN];
            }
            for (int j = 0; j < WPTN; j++) {
                for (int i = 0; i < WPTM; i++) {
                    acc[j][i] += a[i] * b[j];
                }
            }
        }

        now = next;
    }

    // store
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i++) {
            C[(n0 + tn + j*RTSN)*M + m0 + tm + i*RTSM] = acc[j][i];
        }
    }
}

#if !(8 % WIDTH == 0)
#error WIDTH is none of 1, 2, 4 and 8
#endif
#if !(TSM % WPTM == 0)
#error TSM is not a multiple of WPTM
#endif
#if !(TSN % WPTN == 0)
#error TSN is not a multiple of WPTN
#endif
#if !(TSM % WIDTH == 0)
#error TSM is not a multiple of WIDTH
#endif
#if !(TSN % WIDTH == 0)
#error TSN is not a multiple of WIDTH
#endif
#if !((TSK * WPTM * WPTN) % (TSN * WIDTH) == 0)
#error uneven shares of a tile: TSK times WPTM times WPTN is not a multiple of TSN times WIDTH
#endif
#if !((TSK * WPTM * WPTN) % (TSM * WIDTH) == 0)
#error uneven shares of a tile: TSK times WPTM times WPTN is not a multiple of TSM times WIDTH
#endif
#if !(TSK % UNROLL == 0)
#error TSK is not a multiple of UNROLL
#endif
