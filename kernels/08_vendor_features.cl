// 08 vendor features: read-only loads, and shuffles instead of local loads.
//
// Before:   07_wide_loads. With both switches off this is that kernel. READONLY: A and B come
//           through the read-only path of the cache. SHUFFLE: an element of B is read from local
//           memory by one work-item and passed to its neighbours from register to register.
// Costs:    as 07_wide_loads; with SHUFFLE 1/(WPTM*WPTN) + 1/WPTN local loads per multiply-add.
// Requires: as 07_wide_loads. Without a feature the plain path runs: both are PTX on NVIDIA's GPUs,
//           and SHUFFLE runs on sub-groups of 16 where the extensions of OpenCL for them exist.
//
//    SHUFFLE, WPTN = 4:     lane      0   1   2   3   4 ...   of one row of work-items
//                           reads    b0  b1  b2  b3  b0 ...   one local load per lane
//                           asks lane 0, 1, 2, 3 in turn, and has b0 b1 b2 b3.
//
// Compile:  -DTSM=128     rows of the tile of C [32, 64, 128, 160]
//           -DTSN=128     columns of the tile of C [32, 64, 128, 160]
//           -DTSK=16      depth of the tiles of A and B, in steps of k [8, 16, 32]
//           -DWPTM=8      rows of C a work-item computes [2, 4, 8, 10]
//           -DWPTN=8      columns of C a work-item computes [2, 4, 8, 10]
//           -DWIDTH=4     floats in a vector loaded from global memory [1, 2, 4, 8]
//           -DREADONLY=0  1: load A and B through the read-only cache if there is one [0, 1]
//           -DSHUFFLE=0   1: share B among neighbours if the device has shuffles [0, 1]
//           -DUNROLL=4    steps of k in one iteration of the unrolled loop [1, 4, 16]

#define RTSM (TSM/WPTM)       // rows of work-items in a work-group
#define RTSN (TSN/WPTN)       // columns of work-items in a work-group
#define ITEMS (RTSM*RTSN)     // work-items in a work-group
#include "parts/floatX.cl"    // a vector of WIDTH floats
#include "parts/read_only.cl" // load
#include "parts/shuffle.cl"   // SHARE, shuffle, LANES, lane_id
__kernel __attribute__((reqd_work_group_size(RTSM, RTSN, 1))) SUB_GROUPS
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
    const int first = lane_id() - tm % min(RTSM, LANES); // the lane with the first of its row

    // local memory
    __local floatX Atile[TSK][TSM/WIDTH];    // [k][m]
    __local floatX Btile[TSK][TSN/WIDTH];    // [k][n]
    const __local float* Af = (const __local float*)Atile; // the same, float by float
    const __local float* Bf = (const __local float*)Btile;

    // accumulators
    float acc[WPTN][WPTM];
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i++) {
            acc[j][i] = 0.0f;
        }
    }

    for (int k0 = 0; k0 < K; k0 += TSK) {

        // load: ITEMS vectors of each tile at a time, in the order of memory
        for (int e0 = 0; e0 < TSK*TSM/WIDTH; e0 += ITEMS) {
            const int i = (e0 + tid) % (TSM/WIDTH); // row of the tile, in vectors
            const int j = (e0 + tid) / (TSM/WIDTH); // column of the tile
            Atile[j][i] = load(&A[(k0 + j)*(M/WIDTH) + m0/WIDTH + i]);
            Btile[j][i] = load(&B[(k0 + j)*(N/WIDTH) + n0/WIDTH + i]);
        }

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float a[WPTM];                   // each loaded once, used WPTN times
            for (int i = 0; i < WPTM; i++) {
                a[i] = Af[k*TSM + tm + i*RTSM];
            }
            float b[WPTN];                   // each loaded once, used WPTM times
            if (SHARE) {
                const float mine = Bf[k*TSN + tn + (tm % WPTN)*RTSN];
                for (int j = 0; j < WPTN; j++) {
                    b[j] = shuffle(mine, first + j);
                }
            } else {
                for (int j = 0; j < WPTN; j++) {
                    b[j] = Bf[k*TSN + tn + j*RTSN];
                }
            }
            for (int j = 0; j < WPTN; j++) {
                for (int i = 0; i < WPTM; i++) {
                    acc[j][i] += a[i] * b[j];
                }
            }
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i++) {
            C[(n0 + tn + j*RTSN)*M + m0 + tm + i*RTSM] = acc[j][i];
        }
    }
}

#if !(TSM == TSN)
#error TSM and TSN differ; this kernel fills both tiles with one loop (10 does not)
#endif
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
#if !(TSK % UNROLL == 0)
#error TSK is not a multiple of UNROLL
#endif
#if !(READONLY < 2)
#error READONLY is neither 0 nor 1
#endif
#if !(SHUFFLE < 2)
#error SHUFFLE is neither 0 nor 1
#endif
#if !(SHUFFLE * WPTN <= TSM / WPTM)
#error SHUFFLE needs WPTN to be at most TSM over WPTM
#endif
#if !(SHUFFLE * 32 % (TSM / WPTM) == 0)
#error SHUFFLE needs TSM over WPTM to divide 32
#endif
