// 04 vector types: a work-item loads, computes and stores WIDTH elements at once.
//
// Before:   03_work_per_thread. There the WPT elements of a work-item lay in one
//           row, columns apart; here they lie in one column, side by side in
//           memory, so that one vector instruction moves them all.
// Costs:    2*TS*TS floats of local memory, WIDTH accumulators; 2/TS global and
//           1 + 1/WIDTH local loads per multiply-add; 2 barriers per tile.
// Requires: M, N and K multiples of TS.
//
//    tile of C, TS = 8, WIDTH = 4: a work-group is TS/WIDTH x TS = 2 x 8 work-items
//
//    row 0  a . . .       a: the elements of work-item (0, 0), one float4
//        1  a . . .       b: the elements of work-item (1, 0)
//        2  a . . .       A and C are read and written as vectors down a column,
//        3  a . . .       B as well: there WIDTH steps of k lie side by side.
//        4  b . . .
//
// Compile:  -DTS=32    side of the square tiles of A, B and C [8, 16, 24, 32, 64]
//           -DWIDTH=4  floats in a vector [1, 2, 4, 8]

#define TSV (TS/WIDTH)     // vectors along a side of the tile
#include "parts/floatX.cl" // a vector of WIDTH floats

__kernel __attribute__((reqd_work_group_size(TSV, TS, 1)))
void gemm(const int M, const int N, const int K,
          const __global floatX* restrict A,
          const __global floatX* restrict B,
          __global floatX* restrict C)
{
    // identifiers
    const int tm = get_local_id(0);          // vector of rows in the tile of C
    const int tn = get_local_id(1);          // column in the tile of C
    const int m0 = get_group_id(0)*TS;       // first row of the tile of C
    const int n0 = get_group_id(1)*TS;       // first column of the tile of C

    // local memory
    __local floatX Atile[TS][TSV];           // [k][m]
    __local floatX Btile[TS][TSV];           // [n][k]
    const __local float* Bf = (const __local float*)Btile; // the same, float by float

    // accumulators
    floatX acc = (floatX)(0.0f);

    for (int k0 = 0; k0 < K; k0 += TS) {

        // load: one vector of each tile per work-item
        Atile[tn][tm] = A[(k0 + tn)*(M/WIDTH) + m0/WIDTH + tm];
        Btile[tn][tm] = B[(n0 + tn)*(K/WIDTH) + k0/WIDTH + tm];

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        for (int k = 0; k < TS; k++) {
            acc += Atile[k][tm] * Bf[tn*TS + k]; // a vector by a float
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    C[(n0 + tn)*(M/WIDTH) + m0/WIDTH + tm] = acc;
}

#if !(8 % WIDTH == 0)
#error WIDTH is none of 1, 2, 4 and 8
#endif
#if !(TS % WIDTH == 0)
#error TS is not a multiple of WIDTH
#endif
