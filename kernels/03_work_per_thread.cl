// 03 work per thread: a work-item computes WPT elements of C instead of one.
//
// Before:   02_tiled. There each multiply-add cost two local loads; here one
//           element of A, once in a register, serves WPT columns. With fewer
//           work-items than elements in a tile, the loads become a loop.
// Costs:    2*TS*TS floats of local memory, WPT accumulators; 2/TS global loads
//           and 1 + 1/WPT local loads per multiply-add; 2 barriers per tile.
// Requires: M, N and K multiples of TS.
//
//    tile of C, TS = 8, WPT = 4: a work-group is TS x TS/WPT = 8 x 2 work-items
//
//    column  0 1 2 3 4 5 6 7
//    row 0   a b a b a b a b     a: the columns of work-item (0, 0)
//        1   . . . . . . . .     b: the columns of work-item (0, 1)
//    They lie RTS = TS/WPT apart, so that in every step neighbouring
//    work-items still touch neighbouring elements.
//
// Compile:  -DTS=32  side of the square tiles of A, B and C [4, 8, 12, 16, 20, 24, 32, 64]
//           -DWPT=8  elements of C a work-item computes, all in one row [1, 2, 4, 8, 16]

#define RTS (TS/WPT) // columns of work-items in a work-group

__kernel __attribute__((reqd_work_group_size(TS, RTS, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tm = get_local_id(0);          // row in the tile of C
    const int tn = get_local_id(1);          // first column in the tile of C
    const int m0 = get_group_id(0)*TS;       // first row of the tile of C
    const int n0 = get_group_id(1)*TS;       // first column of the tile of C

    // local memory, aligned to 16 bytes: the compiler may then load four floats at once
    __local float Atile[TS][TS] __attribute__((aligned(16))); // [k][m]
    __local float Btile[TS][TS] __attribute__((aligned(16))); // [n][k]

    // accumulators
    float acc[WPT];
    for (int j = 0; j < WPT; j++) {
        acc[j] = 0.0f;
    }

    for (int k0 = 0; k0 < K; k0 += TS) {

        // load: RTS columns of each tile at a time
        for (int j0 = 0; j0 < TS; j0 += RTS) {
            const int j = j0 + tn;           // column of the tile
            Atile[j][tm] = A[(k0 + j)*M + m0 + tm];
            Btile[j][tm] = B[(n0 + j)*K + k0 + tm];
        }

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        for (int k = 0; k < TS; k++) {
            const float a = Atile[k][tm];    // loaded once, used WPT times
            for (int j = 0; j < WPT; j++) {
                acc[j] += a * Btile[tn + j*RTS][k];
            }
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    for (int j = 0; j < WPT; j++) {
        C[(n0 + tn + j*RTS)*M + m0 + tm] = acc[j];
    }
}

#if !(TS % WPT == 0)
#error TS is not a multiple of WPT
#endif
