// 16 asynchronous copies: what is needed next is fetched ahead, at every level of memory.
//
// Before:   15_warp_tiles. There a work-item loads a vector into registers, waits for it, and
//           stores it in local memory. Here it only starts copies: STAGES - 1 tiles are on their
//           way while one is multiplied, and the factors of step k + 1 on theirs to registers.
// Costs:    STAGES*TSK*(TSM + TSN) floats of local memory, WPTM*8 accumulators, 2*(WPTM + 8)
//           registers; 1/TSM + 1/TSN global and 1/WPTM + 1/8 local loads per multiply-add.
// Requires: M, N and K multiples of TSM, TSN and TSK (padded to them). B transposed, N x K.
//
//    multiplied          tile 0    tile 1    tile 2       STAGES = 3: each copy has the
//    on its way   0, 1   1, 2      2, 3      3, 4         time of two tiles
//
// Compile:  -DTSM=256   rows of the tile of C [64, 128, 256]
//           -DTSN=128   columns of the tile of C [32, 64, 128]
//           -DTSK=8     depth of the tiles of A and B, in steps of k [8, 16, 32]
//           -DWPTM=16   rows of C a work-item computes [8, 16]
//           -DSTAGES=3  tiles in local memory: one in use, the others being filled [2, 3, 4]
//           -DASYNC=1   1: copy asynchronously where the device can [0, 1]

#define WPTN 8                      // columns of C a work-item computes
#define WARPM (64/WPTM)             // rows of work-items in a warp, whose block has 64 rows
#define WARPN (32/WARPM)            // columns of work-items in a warp
#define ITEMS (TSM/WPTM*(TSN/WPTN)) // work-items in a work-group
#include "parts/async_copy.cl"      // start_copy, end_batch, AWAIT, BEYOND
static inline void load(__local float* to, const __global float* from, int ld, int side);
static inline float4 fragment(const volatile __local float* from);
static inline int after(int stage);
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers; blocks are those of 15_warp_tiles: a work-item has 4 neighbouring rows from tm
    // on, 4 more from tm + 4*WARPM on, and so on, and likewise its columns
    const int id = 4*get_local_id(0);        // first float that this work-item copies
    const int lane = get_local_id(0)%32;     // number of the work-item in its warp
    const int warp = get_local_id(0)/32;     // number of the warp
    const int tm = warp%(TSM/64)*64 + lane%WARPM*4;         // first row in the tile of C
    const int tn = warp/(TSM/64)*WARPN*WPTN + lane/WARPM*4; // first column in the tile of C
    const int m0 = get_group_id(0)*TSM;      // first row of the tile of C
    const int n0 = get_group_id(1)*TSN;      // first column of the tile of C

    // local memory: a pair of tiles for each stage, one to compute from and the others to fill
    __local float Atile[STAGES][TSK][TSM] __attribute__((aligned(16))); // [stage][k][m]
    __local float Btile[STAGES][TSK][TSN] __attribute__((aligned(16))); // [stage][k][n]

    // accumulators
    float acc[WPTN][WPTM] __attribute__((aligned(16)));
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i++) {
            acc[j][i] = 0.0f;
        }
    }

    // fragments, the factors of a step: those of this step, and those of the next one
    float a[2][WPTM] __attribute__((aligned(16))); // [k%2][m]
    float b[2][WPTN] __attribute__((aligned(16))); // [k%2][n]

    // load: start the copies of the first STAGES - 1 pairs of tiles, of A and of B. Each pair is a
    // batch, which is closed even if it is empty because K has ended: so the pair to multiply next
    // is always in the oldest batch. Step k of A is a column, the M floats from A + k*M on, and
    // step k of B the N floats from B + k*N on
    const __global float* a_from = A + id/TSM*M + m0 + id%TSM; // what this work-item copies next
    const __global float* b_from = B + id/TSN*N + n0 + id%TSN;
    int filled = 0;                          // the stage to fill next
    int left = K;                            // steps of k that are left to multiply
    for (int ahead = 0; ahead < STAGES - 1; ahead++) {
        if (left > ahead*TSK) {
            load(Atile[filled][0] + id, a_from, M, TSM);
            load(Btile[filled][0] + id, b_from, N, TSN);
            a_from += TSK*M;
            b_from += TSK*N;
            filled = after(filled);
        }
        end_batch();
    }

    // barrier: the first pair of tiles is complete, since of STAGES - 1 batches all but STAGES - 2
    // are. AWAIT waits for this work-item's copies, the barrier for those of all
    AWAIT(STAGES - 2);
    barrier(CLK_LOCAL_MEM_FENCE);

    // fragments of the first step
    int now = 0;                             // the stage to compute from
    for (int i = 0; i < WPTM; i += 4) {
        *(float4*)&a[0][i] = fragment(&Atile[now][0][tm + i*WARPM]);
    }
    for (int j = 0; j < WPTN; j += 4) {
        *(float4*)&b[0][j] = fragment(&Btile[now][0][tn + j*WARPN]);
    }

    for (; left > 0; left -= TSK) {

        // load: start the copies of one more pair of tiles, if there is one beyond this one and the
        // STAGES - 2 on their way, in the stage that the last barrier has released
        if (left > (STAGES - 1)*TSK) {
            load(Atile[filled][0] + id, a_from, M, TSM);
            load(Btile[filled][0] + id, b_from, N, TSN);
            a_from += TSK*M;
            b_from += TSK*N;
            filled = after(filled);
        }
        end_batch();

        // compute, and load the next fragments; unrolled, so that k%2 is a constant, and a and b
        // are registers
        #pragma unroll
        for (int k = 0; k < TSK; k++) {
            if (k == TSK - 1) {
                // barrier: the next tiles are complete, and all work-items have read these: the
                // factors of the last step are in registers already
                AWAIT(STAGES - 2);
                barrier(CLK_LOCAL_MEM_FENCE);
                now = BEYOND || left > TSK ? after(now) : now; // the last tile has no next one
            }
            for (int i = 0; i < WPTM; i += 4) {
                *(float4*)&a[(k + 1)%2][i] = fragment(&Atile[now][(k + 1)%TSK][tm + i*WARPM]);
            }
            for (int j = 0; j < WPTN; j += 4) {
                *(float4*)&b[(k + 1)%2][j] = fragment(&Btile[now][(k + 1)%TSK][tn + j*WARPN]);
            }
            for (int j = 0; j < WPTN; j++) {
                for (int i = 0; i < WPTM; i++) {
                    acc[j][i] += a[k%2][i] * b[k%2][j];
                }
            }
        }
    }

    // store: four rows at a time
    for (int j = 0; j < WPTN; j++) {
        const int n = n0 + tn + j/4*4*WARPN + j%4;
        for (int i = 0; i < WPTM; i += 4) {
            *(__global float4*)&C[n*M + m0 + tm + i*WARPM] = *(const float4*)&acc[j][i];
        }
    }
}

// start to copy this work-item's share of a tile: 4 neighbours of every 4*ITEMS floats, which are
// whole columns of `side` floats. In global memory the columns are `ld` floats apart
void load(__local float* to, const __global float* from, int ld, int side)
{
    for (int e = 0; e < TSK*side; e += 4*ITEMS) {
        start_copy(to + e, from + e/side*ld);
    }
}

// four neighbouring factors of a step; `volatile` keeps the compiler from loading them later, right
// before they are used, when the multiply-adds would have to wait for them
float4 fragment(const volatile __local float* from)
{
    return *(const volatile __local float4*)from;
}

// the stage after this one; behind the last one comes the first one
int after(int stage)
{
    return stage + 1 < STAGES ? stage + 1 : 0;
}

#if !(TSM % 64 + TSN % (4 * WPTM) == 0)
#error TSM is not a multiple of 64, or TSN is not one of 4 times WPTM
#endif
#if !(TSK % 2 == 0)
#error TSK is odd
#endif
#if !(TSK * WPTM * 2 % TSM + TSK * WPTM * 2 % TSN == 0)
#error uneven shares of a tile: TSK times WPTM times 2 is not a multiple of TSM and of TSN
#endif
#if !((WPTM - 8) * (WPTM - 16) == 0)
#error WPTM is neither 8 nor 16
#endif
#if !(STAGES > 1)
#error STAGES is less than 2
#endif
#if !(ASYNC < 2)
#error ASYNC is neither 0 nor 1
#endif
