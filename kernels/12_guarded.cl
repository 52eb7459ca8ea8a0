// 12 guarded: any M, N, K without a copy; what lies outside the matrix is taken as zero.
//
// Before:   03_work_per_thread. There the sizes had to be whole tiles; here every
//           access asks first whether its element exists. The walk along k needs no
//           rounding up: it goes on as long as k0 lies inside.
// Costs:    as 03, and a comparison or two for each load and store; work-items of
//           one warp that answer differently go separate ways for a moment. In
//           the last tiles, multiply-adds with zero.
// Requires: nothing of M, N and K.
//
//    3 x 3 with tiles of 2:    1 2 | 3 .     The guards of A and of B differ: A's
//                              4 5 | 6 .     row and B's column stay the same all
//                              ----+----     the way along k, A's column and B's
//                              7 8 | 9 .     row walk. Only the last step of k can
//                              . . | . .     leave the matrix in that direction.
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

        // load: RTS columns of each tile at a time, zero for what does not exist
        for (int j0 = 0; j0 < TS; j0 += RTS) {
            const int j = j0 + tn;           // column of the tile
            Atile[j][tm] = m0 + tm < M && k0 + j < K ? A[(k0 + j)*M + m0 + tm] : 0.0f;
            Btile[j][tm] = k0 + tm < K && n0 + j < N ? B[(n0 + j)*K + k0 + tm] : 0.0f;
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

    // store what exists
    for (int j = 0; j < WPT; j++) {
        if (m0 + tm < M && n0 + tn + j*RTS < N) {
            C[(n0 + tn + j*RTS)*M + m0 + tm] = acc[j];
        }
    }
}

#if !(TS % WPT == 0)
#error TS is not a multiple of WPT
#endif
