// 06 register blocking: a work-item computes a WPTM x WPTN block of C.
//
// Before:   05_rectangular_tiles. There one element of A in a register served WPT
//           columns; here WPTM elements of A meet WPTN elements of B, all of them
//           in registers: tiles once more, one level up.
// Costs:    TSK*TSM + TSN*(TSK + PAD) floats of local memory, WPTM*WPTN + WPTM + WPTN
//           registers; 1/TSM + 1/TSN global and 1/WPTM + 1/WPTN local loads per multiply-add.
// Requires: M, N and K multiples of TSM, TSN and TSK. B transposed, N x K.
//
//    tile of C, TSM = TSN = 8, WPTM = WPTN = 2: 4 x 4 work-items
//
//    a b c d a b c d      a: the block of work-item (0, 0): rows 0 and 4 of
//    . . . . . . . .         columns 0 and 4. Its rows lie RTSM apart, its
//    . . . . . . . .         columns RTSN, so that neighbours stay neighbours.
//    . . . . . . . .
//    a b c d a b c d
//
// Compile:  -DTSM=128   rows of the tile of C [32, 64, 128, 160]
//           -DTSN=128   columns of the tile of C [32, 64, 128, 160]
//           -DTSK=16    depth of the tiles of A and B, in steps of k [8, 16, 32]
//           -DWPTM=8    rows of C a work-item computes [2, 4, 8, 10]
//           -DWPTN=8    columns of C a work-item computes [2, 4, 8, 10]
//           -DPAD=2     floats added to each row of Btile against bank conflicts [0, 1, 2]
//           -DUNROLL=4  steps of k in one iteration of the unrolled loop [1, 4, 16]

#define RTSM (TSM/WPTM)   // rows of work-items in a work-group
#define RTSN (TSN/WPTN)   // columns of work-items in a work-group
#define ITEMS (RTSM*RTSN) // work-items in a work-group

__kernel __attribute__((reqd_work_group_size(RTSM, RTSN, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tm = get_local_id(0);          // first row in the tile of C
    const int tn = get_local_id(1);          // first column in the tile of C
    const int tid = tn*RTSM + tm;            // number of the work-item
    const int m0 = get_group_id(0)*TSM;      // first row of the tile of C
    const int n0 = get_group_id(1)*TSN;      // first column of the tile of C

    // local memory, not aligned as in 05: on an H200 that made this kernel 2 % slower
    __local float Atile[TSK][TSM];           // [k][m]
    __local float Btile[TSN][TSK + PAD];     // [n][k]

    // accumulators
    float acc[WPTN][WPTM];
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i++) {
            acc[j][i] = 0.0f;
        }
    }

    for (int k0 = 0; k0 < K; k0 += TSK) {

        // load: ITEMS elements of each tile at a time, in the order of memory
        for (int e0 = 0; e0 < TSK*TSM; e0 += ITEMS) {
            const int i = (e0 + tid) % TSM;  // row of the tile
            const int j = (e0 + tid) / TSM;  // column of the tile
            Atile[j][i] = A[(k0 + j)*M + m0 + i];
            Btile[i][j] = B[(k0 + j)*N + n0 + i];
        }

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float a[WPTM];                   // each loaded once, used WPTN times
            for (int i = 0; i < WPTM; i++) {
                a[i] = Atile[k][tm + i*RTSM];
            }
            float b[WPTN];                   // each loaded once, used WPTM times
            for (int j = 0; j < WPTN; j++) {
                b[j] = Btile[tn + j*RTSN][k];
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
#if !(TSM % WPTM == 0)
#error TSM is not a multiple of WPTM
#endif
#if !(TSN % WPTN == 0)
#error TSN is not a multiple of WPTN
#endif
#if !((TSK * WPTM * WPTN) % TSN == 0)
#error uneven shares of a tile: TSK times WPTM times WPTN is not a multiple of TSN
#endif
#if !(TSK % UNROLL == 0)
#error TSK is not a multiple of UNROLL
#endif
