// 15 warp tiles: each warp computes a compact block of C, and reads its factors as vectors.
//
// Before:   10_any_size. There the elements of a work-item are scattered over the tile, so that a
//           warp reads most of it in every step of k, float by float. Here the 32 work-items of a
//           warp share one block of C, and load LWIDTH neighbouring floats by one instruction.
// Costs:    as 10_any_size: 2*TSK*(TSM + TSN) floats of local memory, WPTM*WPTN + WPTM + WPTN
//           registers; 1/TSM + 1/TSN global and 1/WPTM + 1/WPTN local loads per multiply-add.
// Requires: M, N and K multiples of TSM, TSN and TSK (padded to them). B transposed.
//
//     0  8 16 24 |  0  8 16 24    a warp's block, WARPM = 8, WPTM = WPTN = 8, LWIDTH = 4:
//     1  9 17 25 |  1  9 17 25    a number is 4 x 4 elements of that work-item, which has
//     ... to 31, and once more    four such parts; neighbours read neighbouring vectors
//
// Compile:  -DTSM=128   rows of the tile of C [32, 64, 128, 256]
//           -DTSN=128   columns of the tile of C [32, 64, 128]
//           -DTSK=16    depth of the tiles of A and B, in steps of k [8, 16, 32]
//           -DWPTM=8    rows of C a work-item computes [4, 8, 16]
//           -DWPTN=8    columns of C a work-item computes [4, 8]
//           -DWARPM=8   rows of work-items in a warp of 32 [4, 8, 16, 32]
//           -DLWIDTH=4  floats in a vector loaded from local memory [1, 4]
//           -DUNROLL=4  steps of k in one iteration of the unrolled loop [1, 4, 16]

#define WARPN (32/WARPM)            // columns of work-items in a warp
#define WARPS (TSM/(WPTM*WARPM))    // warps in a column of the tile
#define ITEMS (TSM/WPTM*(TSN/WPTN)) // work-items in a work-group
#define WIDTH LWIDTH
#include "parts/floatX.cl"          // a vector of LWIDTH floats
static inline void load(__local float* tile, const __global float* from, int ld, int side);

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int lane = get_local_id(0)%32;     // number of the work-item in its warp
    const int warp = get_local_id(0)/32;     // number of the warp
    const int tm = warp%WARPS*WARPM*WPTM + lane%WARPM*LWIDTH; // first row in the tile of C
    const int tn = warp/WARPS*WARPN*WPTN + lane/WARPM*LWIDTH; // first column in the tile of C
    const int m0 = get_group_id(0)*TSM;      // first row of the tile of C
    const int n0 = get_group_id(1)*TSN;      // first column of the tile of C

    // local memory: two buffers, one to compute from and one to fill
    __local float Atile[2][TSK][TSM] __attribute__((aligned(16))); // [buffer][k][m]
    __local float Btile[2][TSK][TSN] __attribute__((aligned(16))); // [buffer][k][n]

    // accumulators
    float acc[WPTN][WPTM] __attribute__((aligned(16)));
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i++) {
            acc[j][i] = 0.0f;
        }
    }

    // load: the first tiles
    load(Atile[0][0], A + m0, M, TSM);
    load(Btile[0][0], B + n0, N, TSN);

    for (int k0 = 0; k0 < K; k0 += TSK) {
        const int now = k0/TSK%2;            // the buffer to compute from
        const int next = 1 - now;            // the buffer to fill

        // barrier: this tile is complete, and nobody needs the other buffer any more
        barrier(CLK_LOCAL_MEM_FENCE);

        // load: the next tiles into the other buffer, while we compute
        if (k0 + TSK < K) {
            load(Atile[next][0], A + (k0 + TSK)*M + m0, M, TSM);
            load(Btile[next][0], B + (k0 + TSK)*N + n0, N, TSN);
        }

        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float a[WPTM] __attribute__((aligned(16))); // each loaded once, used WPTN times
            for (int i = 0; i < WPTM; i += LWIDTH) {
                *(floatX*)&a[i] = *(const __local floatX*)&Atile[now][k][tm + i*WARPM];
            }
            float b[WPTN] __attribute__((aligned(16))); // each loaded once, used WPTM times
            for (int j = 0; j < WPTN; j += LWIDTH) {
                *(floatX*)&b[j] = *(const __local floatX*)&Btile[now][k][tn + j*WARPN];
            }
            for (int j = 0; j < WPTN; j++) {
                for (int i = 0; i < WPTM; i++) {
                    acc[j][i] += a[i] * b[j];
                }
            }
        }
    }

    // store: LWIDTH rows at a time
    for (int j = 0; j < WPTN; j++) {
        const int n = n0 + tn + j/LWIDTH*LWIDTH*WARPN + j%LWIDTH;
        for (int i = 0; i < WPTM; i += LWIDTH) {
            *(__global floatX*)&C[n*M + m0 + tm + i*WARPM] = *(const floatX*)&acc[j][i];
        }
    }
}

// load a tile, whose columns have `side` floats, ITEMS vectors of 4 at a time
void load(__local float* tile, const __global float* from, int ld, int side)
{
    for (int e0 = 0; e0 < TSK*side; e0 += 4*ITEMS) {
        const int e = e0 + 4*get_local_id(0);
        *(__local float4*)&tile[e] = *(const __global float4*)&from[e/side*ld + e%side];
    }
}

#if !(32 % WARPM == 0)
#error WARPM does not divide 32
#endif
#if !(TSM % (WPTM * WARPM) == 0)
#error TSM is not a multiple of WPTM*WARPM
#endif
#if !(TSN * WARPM % (WPTN * 32) == 0)
#error TSN is not a multiple of WPTN times 32 over WARPM
#endif
#if !(WPTM % 4 + WPTN % 4 == 0)
#error WPTM and WPTN are not both multiples of 4
#endif
#if !(TSK * WPTM * WPTN % (TSM * 4) == 0)
#error uneven shares of a tile: TSK times WPTM times WPTN is not a multiple of TSM times 4
#endif
#if !(TSK * WPTM * WPTN % (TSN * 4) == 0)
#error uneven shares of a tile: TSK times WPTM times WPTN is not a multiple of TSN times 4
#endif
#if !((LWIDTH - 1) * (LWIDTH - 4) == 0)
#error LWIDTH is neither 1 nor 4
#endif
