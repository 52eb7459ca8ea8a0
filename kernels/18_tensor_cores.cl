// 18 tensor cores: a warp multiplies small matrices with one instruction.
//
// Before:   16_async_copies. Tiles are copied as there, but a warp's block of 64 x 64 consists of
//           pieces of 16 x 8, and one instruction (mma.sync) adds a 16 x 8 times an 8 x 8 matrix
//           to a piece. It reads TF32 numbers, which keep 10 of a float's 23 bits after the point.
//           PARTS = 2 recovers the rest (3xTF32, Ootomo and Yokota 2022): a float is split into a
//           big and a small part, and three products of parts replace one.
// Costs:    STAGES*TSK*(TSM + TSN + 16) floats of local memory, 128 accumulators;
//           1/TSM + 1/TSN global and 1/64 + 1/64 local loads per multiply-add.
// Requires: M, N and K multiples of TSM, TSN and TSK (padded to them). B transposed, N x K.
//
//    Which rows and columns of C a piece consists of is for us to choose. Of 32 rows and columns,
//    work-item 4g + t loads rows 4g ... 4g + 3 of A and columns 4g ... 4g + 3 of B, and sums and
//    stores rows 4g ... 4g + 3 and columns 8t ... 8t + 7 of C: neighbours, for wide accesses.
//
// Compile:  -DTSM=128   rows of the tile of C [64, 128]
//           -DTSN=128   columns of the tile of C [64, 128]
//           -DTSK=8     depth of the tiles of A and B, in steps of k [8, 16]
//           -DSTAGES=3  tiles in local memory: one in use, the others being filled [2, 3, 4]
//           -DPARTS=2   TF32 numbers for a float: 1 (plain TF32) or 2 (3xTF32) [1, 2]
//           -DTENSOR=1  1: tensor cores where the device has them; 0: ordinary arithmetic [0, 1]

#define PAD 8                      // floats added to each column of a tile against bank conflicts
#define ITEMS (TSM/64*(TSN/64)*32) // work-items in a work-group
#define ASYNC TENSOR
#include "parts/async_copy.cl"     // start_copy, end_batch, AWAIT
#include "parts/tf32.cl"           // BIG, SMALL, part
#include "parts/mma_tf32.cl"       // mma
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
    const int g = lane/4;                    // which 4 rows of A, and columns of B, of 32
    const int t = lane%4;                    // which steps of k, and which 8 columns of C, of 32
    const int tm = warp%(TSM/64)*64;         // first row of the warp's block in the tile of C
    const int tn = warp/(TSM/64)*64;         // first column of it
    const int m0 = get_group_id(0)*TSM;      // first row of the tile of C
    const int n0 = get_group_id(1)*TSN;      // first column of the tile of C

    // local memory: a pair of tiles for each stage, one to compute from and the others to fill
    __local float Atile[STAGES][TSK][TSM + PAD] __attribute__((aligned(16))); // [stage][k][m]
    __local float Btile[STAGES][TSK][TSN + PAD] __attribute__((aligned(16))); // [stage][k][n]

    // accumulators: of each of the 4 x 8 pieces of the warp's block, 4 elements
    //
    //    piece (i, j)                     column tn + j/4*32 + 8t + j%4     and the fourth after it
    //    row tm + i/2*32 + 4g + i%2*2                   .x                           .y
    //    and the next row                               .z                           .w
    float4 acc[4][8];
    for (int i = 0; i < 4; i++) {
        for (int j = 0; j < 8; j++) {
            acc[i][j] = (float4)(0.0f);
        }
    }

    // an iteration starts copies of a tile, and multiplies the tile of STAGES - 1 iterations before
    for (int k1 = 0; k1 < K + (STAGES - 1)*TSK; k1 += TSK) {
        const int next = k1/TSK%STAGES;      // the stage to fill
        const int now = (next + 1)%STAGES;   // the stage to compute from, filled longest ago

        // barrier: stage `now` is complete, and nobody reads stage `next` any more
        AWAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);

        // load: start copies, which go on while we compute
        if (k1 < K) {
            load(Atile[next][0], A + k1*M + m0, M, TSM);
            load(Btile[next][0], B + k1*N + n0, N, TSN);
        }
        end_batch();
        if (k1 < (STAGES - 1)*TSK) {
            continue;                        // no tile is complete yet
        }

        // compute: 8 steps of k with each instruction
        for (int k = 0; k < TSK; k += 8) {

            // load its share of these steps, t and t + 4: four rows of A and four columns of B, in
            // both halves of the warp's block
            float4 rows[2][2];               // [step][half]
            float4 columns[2][2];
            for (int s = 0; s < 2; s++) {
                for (int h = 0; h < 2; h++) {
                    rows[s][h] = *(__local float4*)&Atile[now][k + t + 4*s][tm + 32*h + 4*g];
                    columns[s][h] = *(__local float4*)&Btile[now][k + t + 4*s][tn + 32*h + 4*g];
                }
            }

            // fragments, its share of the factors of an instruction: two rows of A, a column of B
            float4 a[4];
            float2 b[8];
            for (int h = 0; h < 2; h++) {
                a[2*h] = (float4)(rows[0][h].xy, rows[1][h].xy);
                a[2*h + 1] = (float4)(rows[0][h].zw, rows[1][h].zw);
                b[4*h] = (float2)(columns[0][h].x, columns[1][h].x);
                b[4*h + 1] = (float2)(columns[0][h].y, columns[1][h].y);
                b[4*h + 2] = (float2)(columns[0][h].z, columns[1][h].z);
                b[4*h + 3] = (float2)(columns[0][h].w, columns[1][h].w);
            }

            // multiply, piece by piece
            for (int i = 0; i < 4; i++) {
                const __local float* at_a = &Atile[now][k][tm + i/2*32 + 4*g + i%2*2];
                for (int j = 0; j < 8; j++) {
                    const __local float* at_b = &Btile[now][k][tn + j/4*32 + 8*t + j%4];
                    if (PARTS == 1) {
                        acc[i][j] = mma(acc[i][j], a[i], BIG, b[j], BIG, at_a, at_b);
                    } else {
                        // the smallest products first; SMALL times SMALL is too small to matter
                        float4 sum = (float4)(0.0f);
                        sum = mma(sum, a[i], SMALL, b[j], BIG, at_a, at_b);
                        sum = mma(sum, a[i], BIG, b[j], SMALL, at_a, at_b);
                        sum = mma(sum, a[i], BIG, b[j], BIG, at_a, at_b);
                        acc[i][j] += sum;    // tensor cores truncate their sums, this rounds
                    }
                }
            }
        }
    }

    // store: four rows at a time, from two pieces
    for (int i = 0; i < 4; i += 2) {
        const int m = m0 + tm + 16*i + 4*g;
        for (int j = 0; j < 8; j++) {
            const int n = n0 + tn + j/4*32 + 8*t + j%4;
            const float4 upper = acc[i][j];
            const float4 lower = acc[i + 1][j];
            *(__global float4*)&C[n*M + m] = (float4)(upper.x, upper.z, lower.x, lower.z);
            *(__global float4*)&C[(n + 4)*M + m] = (float4)(upper.y, upper.w, lower.y, lower.w);
        }
    }
}

// start to copy this work-item's share of a tile: 4 neighbours of every 4*ITEMS floats. The columns
// of the tile, of `side` floats, are `ld` floats apart in global memory, and side + PAD in local
void load(__local float* tile, const __global float* from, int ld, int side)
{
    const int id = 4*get_local_id(0);        // first float of the tile that it copies
    for (int k = 0; k < TSK; k += 4*ITEMS/side) {
        start_copy(&tile[(k + id/side)*(side + PAD) + id%side], &from[(k + id/side)*ld + id%side]);
    }
}

#if !(TSM % 64 + TSN % 64 + TSK % 8 == 0)
#error TSM or TSN is not a multiple of 64, or TSK is not a multiple of 8
#endif
#if !(TSK * 32 % TSM + TSK * 32 % TSN == 0)
#error uneven shares of a tile: TSK times 32 is not a multiple of TSM and of TSN
#endif
#if !(STAGES > 1)
#error STAGES is less than 2
#endif
#if !((PARTS - 1) * (PARTS - 2) == 0)
#error PARTS is neither 1 nor 2
#endif
#if !(TENSOR < 2)
#error TENSOR is neither 0 nor 1
#endif
