// 19 warpgroups: four warps multiply with one instruction, and go on while it runs.
//
// Before:   18_tensor_cores. Its instruction makes the warp wait. This one (wgmma, on Hopper) adds
//           64 x 8 times 8 x 128 to the sums of the 128 work-items of a warpgroup, reads B from
//           local memory by itself, and lets them go on: they split the next tile of B, once for
//           the work-group, and load what follows. A goes straight into registers.
// Costs:    4*TSK*130 floats of local memory, 128 accumulators, 64 sums;
//           1/TSM + 1/128 global loads per multiply-add.
// Requires: M, N and K multiples of TSM, 128 and TSK (padded to them). B as it is, K x N.
//
//    Work-item 4g + t of warp w has rows 32w + 4g ... 32w + 4g + 3, a batch of instructions for the
//    first two and one for the others, and columns 2t and 2t + 1 of every 8. In B's tile 4 steps of
//    k are neighbours: [k/4][n][k%4].
//
// Compile:  -DTSM=256   rows of the tile of C: 128 for each warpgroup [128, 256]
//           -DTSK=16    depth of the tiles of A and B, in steps of k [8, 16]
//           -DPARTS=2   TF32 numbers for a float: 1 (plain TF32) or 2 (3xTF32) [1, 2]
//           -DTENSOR=1  1: tensor cores where the device has them; 0: ordinary arithmetic [0, 1]

#define TSN 128                // columns of the tile of C
#define ROW (TSN + 2)          // vectors in a row of B's tile; 2 more against bank conflicts
#define ITEMS TSM              // work-items in a work-group
#define LPTB (TSK*TSN/4/ITEMS) // vectors of B's tile that a work-item loads
#define NB (ITEMS*4/TSK)       // columns of B's tile that a work-group loads at once
#include "parts/tf32.cl"       // BIG, SMALL, part
#include "parts/wgmma_tf32.cl" // WGMMA, begin_batch, end_batch, await_batch, show_stores
static inline void split(__local float* to_big, __local float* to_small, float4 b);
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int t = get_local_id(0)%4;         // which steps of k of A, and which columns of C
    const int row = get_local_id(0)/4*4;     // first of its four rows in the tile of C
    const int kb = get_local_id(0)%(TSK/4);  // which 4 steps of k of B's tile it loads
    const int column = get_local_id(0)/(TSK/4); // and the first column that it loads
    const int m0 = get_group_id(0)*TSM;      // first row of the tile of C
    const int n0 = get_group_id(1)*TSN;      // first column of the tile of C
    const __global float* a_from = &A[t*M + m0 + row];       // its first vector of A
    const __global float* b_from = &B[(n0 + column)*K + 4*kb];   // and of B

    // local memory: two buffers, one to compute from and one to fill
    __local float Bbig[2][TSK/4][ROW][4] __attribute__((aligned(128)));   // [buffer][k/4][n][k%4]
    __local float Bsmall[2][TSK/4][ROW][4] __attribute__((aligned(128)));

    // accumulators for two pairs of rows, and the sums of a pair that are in the tensor cores
    const float zero = zero_if_revealed();   // NaN if the instructions do not run, see the part
    float acc[2][64];
    float sum[64];
    for (int j = 0; j < 64; j++) {
        acc[0][j] = zero;
        acc[1][j] = zero;
        sum[j] = zero;
    }

    // load: the first tile of B, and split it
    float4 b[LPTB];                          // four steps of k of LPTB columns of B
    for (int l = 0; l < LPTB; l++) {
        b[l] = *(const __global float4*)&b_from[l*NB*K];
    }
    for (int l = 0; l < LPTB; l++) {
        split(Bbig[0][kb][column + l*NB], Bsmall[0][kb][column + l*NB], b[l]);
    }
    show_stores();

    // load: the first tile of A, and the second one of B, or the first once more if there is none
    float4 a[TSK/4];                         // four rows of A at steps t, t + 4, ...
    for (int l = 0; l < TSK/4; l++) {
        a[l] = *(const __global float4*)&a_from[4*l*M];
    }
    for (int l = 0; l < LPTB; l++) {
        b[l] = *(const __global float4*)&b_from[l*NB*K + min(TSK, K - TSK)];
    }

    for (int k0 = 0; k0 < K; k0 += TSK) {
        const int now = k0/TSK%2;            // the buffer to compute from
        const int next = 1 - now;            // the buffer to fill

        // barrier: this tile has been split, and no instruction reads the other buffer any more
        barrier(CLK_LOCAL_MEM_FENCE);

        #pragma unroll
        for (int i = 0; i < 2; i++) {        // the first and the second pair of its four rows

            // compute: start the instructions for this pair of rows, the smallest products first
            begin_batch();
            for (int k = 0; k < TSK/4; k += 2) {
                const float2 first = i == 0 ? a[k].xy : a[k].zw;          // steps 4*k + t
                const float2 second = i == 0 ? a[k + 1].xy : a[k + 1].zw; // and 4 steps later
                const float4 x = (float4)(first, second);
                const __global float* at_a = &A[(k0 + 4*k)*M + m0 + row + 2*i];
                if (PARTS == 2) {
                    WGMMA(sum, x, SMALL, Bbig[now][k][0], k > 0, at_a);
                    WGMMA(sum, x, BIG, Bsmall[now][k][0], 1, at_a);
                }
                WGMMA(sum, x, BIG, Bbig[now][k][0], PARTS == 2 || k > 0, at_a);
            }
            end_batch();

            // load, while the tensor cores work. Behind the last tile it loads that one once more
            if (i == 0) {
                // split the next tile of B, and load the one after it
                for (int l = 0; l < LPTB; l++) {
                    split(Bbig[next][kb][column + l*NB], Bsmall[next][kb][column + l*NB], b[l]);
                }
                show_stores();
                for (int l = 0; l < LPTB; l++) {
                    const int k = min(k0 + 2*TSK, K - TSK);
                    b[l] = *(const __global float4*)&b_from[l*NB*K + k];
                }
            } else {
                // load the next tile of A; the instructions have parts of it in other registers
                for (int l = 0; l < TSK/4; l++) {
                    const int k = min(k0 + TSK, K - TSK) + 4*l;
                    a[l] = *(const __global float4*)&a_from[k*M];
                }
            }

            // wait for the sums, and add them to floats, which rounds; tensor cores truncate
            await_batch();
            for (int j = 0; j < 64; j++) {
                acc[i][j] += sum[j];
            }
        }
    }

    // store: four rows at a time. Sums j and j + 1 are two columns of a row, j + 2 and j + 3 those
    // of the row below
    for (int j = 0; j < 64; j += 4) {
        for (int h = 0; h < 2; h++) {
            const int n = n0 + 2*j + 2*t + h;
            const float4 rows = (float4)(acc[0][j + h], acc[0][j + h + 2],
                                         acc[1][j + h], acc[1][j + h + 2]);
            *(__global float4*)&C[n*M + m0 + row] = rows;
        }
    }
}

// split four floats of B into their parts, and store both; an instruction reads only the first 10
// bits of the small ones
void split(__local float* to_big, __local float* to_small, float4 b)
{
    const float4 big = (float4)(part(b.x, BIG), part(b.y, BIG), part(b.z, BIG), part(b.w, BIG));
    *(__local float4*)to_big = big;
    if (PARTS == 2) {                        // else nothing reads the small parts
        *(__local float4*)to_small = b - big;
    }
}

#if !(TSM % 128 + TSK % 8 == 0)
#error TSM is not a multiple of 128, or TSK is not a multiple of 8
#endif
#if !(TSK * 32 % TSM == 0)
#error TSK times 32 is not a multiple of TSM
#endif
#if !((PARTS - 1) * (PARTS - 2) == 0)
#error PARTS is neither 1 nor 2
#endif
#if !(TENSOR < 2)
#error TENSOR is neither 0 nor 1
#endif
