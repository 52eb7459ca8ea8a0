// 05 rectangular tiles: B transposed beforehand, tiles of depth TSK, padded rows.
//
// Before:   03_work_per_thread. There the tiles were square, so that a deeper one
//           needed a wider one as well; here the depth TSK is free. B comes as its
//           transpose, N x K, so that its tile is loaded down columns as A's is.
// Costs:    TS*TSK + TS*(TSK + PAD) floats of local memory, WPT accumulators;
//           2/TS global and 1 + 1/WPT local loads per multiply-add.
// Requires: M and N multiples of TS, K of TSK. B transposed, N x K.
//
//    Btile, [n][k], TSK = 4, PAD = 1      Neighbours load neighbouring n: they
//                                         store down a column of this picture,
//    n = 0   k0 k1 k2 k3 --               TSK + PAD floats apart. With PAD = 0
//        1   k0 k1 k2 k3 --               and TSK = 16 half a warp of them falls
//        2   k0 k1 k2 k3 --               into the same bank of local memory.
//
// Compile:  -DTS=32   side of the square tile of C, in elements [8, 16, 32, 64]
//           -DTSK=16  depth of the tiles of A and B, in steps of k [8, 16, 32]
//           -DWPT=8   elements of C a work-item computes, all in one row [1, 2, 4, 8, 16]
//           -DPAD=2   floats added to each row of Btile against bank conflicts [0, 1, 2]

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

    // local memory; the compiler may load neighbouring steps of k of Btile at once, as far as its
    // rows are aligned: four with PAD = 0, two with PAD = 2, none with PAD = 1
    __local float Atile[TSK][TS] __attribute__((aligned(16))); // [k][m]
    __local float Btile[TS][TSK + PAD] __attribute__((aligned(16))); // [n][k]

    // accumulators
    float acc[WPT];
    for (int j = 0; j < WPT; j++) {
        acc[j] = 0.0f;
    }

    for (int k0 = 0; k0 < K; k0 += TSK) {

        // load: RTS columns of each tile at a time
        for (int j0 = 0; j0 < TSK; j0 += RTS) {
            const int j = j0 + tn;           // column of the tile
            Atile[j][tm] = A[(k0 + j)*M + m0 + tm];
            Btile[tm][j] = B[(k0 + j)*N + n0 + tm];
        }

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        for (int k = 0; k < TSK; k++) {
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
#if !(TSK % (TS / WPT) == 0)
#error TSK is not a multiple of the columns of work-items, TS over WPT
#endif
