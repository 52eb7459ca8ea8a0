// 13 shifted: the last tiles move back until they lie inside C.
//
// Before:   10_any_size. There the matrices were padded to whole tiles; here they
//           stay as they are. A tile that would reach beyond C is moved up or left,
//           overlaps its neighbour, and writes only what the neighbour does not own.
//           The last steps of k are filled up with zeroes in local memory.
// Costs:    as 10_any_size without copies of matrices; but floats are loaded one by one: a
//           shifted tile begins anywhere, and a vector may not.
// Requires: M >= TSM, N >= TSN, any K. B transposed, N x K.
//
//    M = 5, TSM = 2:   row  0 | tile 0        The last tile would own row 4 and one
//                           1 |               that does not exist. It moves up by
//                           2 | tile 1        one, computes row 3 once more, and
//                           3 |   | tile 2    writes row 4 only.
//                           4     |
//
// Compile:  -DTSM=128   rows of the tile of C [32, 64, 128, 160]
//           -DTSN=128   columns of the tile of C [32, 64, 128, 160]
//           -DTSK=16    depth of the tiles of A and B, in steps of k [8, 16, 32]
//           -DWPTM=8    rows of C a work-item computes [2, 4, 8, 10]
//           -DWPTN=8    columns of C a work-item computes [2, 4, 8, 10]
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
    const int own_m = get_group_id(0)*TSM;   // first row that this tile owns
    const int own_n = get_group_id(1)*TSN;   // first column that it owns
    const int m0 = min(own_m, M - TSM);      // first row of the tile of C, moved up if it must be
    const int n0 = min(own_n, N - TSN);      // first column of the tile of C, moved left

    // local memory: two buffers, one to compute from and one to fill
    __local float Atile[2][TSK][TSM];        // [buffer][k][m]
    __local float Btile[2][TSK][TSN];        // [buffer][k][n]

    // accumulators
    float acc[WPTN][WPTM];
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i++) {
            acc[j][i] = 0.0f;
        }
    }

    // load: the first tiles, zero beyond K
    for (int e0 = 0; e0 < TSK*TSM; e0 += ITEMS) {
        const int i = (e0 + tid) % TSM; // row of the tile
        const int j = (e0 + tid) / TSM; // column of the tile
        Atile[0][j][i] = j < K ? A[j*M + m0 + i] : 0.0f;
    }
    for (int e0 = 0; e0 < TSK*TSN; e0 += ITEMS) {
        const int i = (e0 + tid) % TSN;
        const int j = (e0 + tid) / TSN;
        Btile[0][j][i] = j < K ? B[j*N + n0 + i] : 0.0f;
    }

    int now = 0;                             // the buffer to compute from
    for (int k0 = 0; k0 < K; k0 += TSK) {
        const int next = 1 - now;            // the buffer to fill
        const int k1 = k0 + TSK;             // first step of the next tiles

        // barrier: this tile is complete, and nobody needs the other buffer any more
        barrier(CLK_LOCAL_MEM_FENCE);

        // load: the next tiles into the other buffer, while we compute
        if (k1 < K) {
            for (int e0 = 0; e0 < TSK*TSM; e0 += ITEMS) {
                const int i = (e0 + tid) % TSM; // row of the tile
                const int j = (e0 + tid) / TSM; // column of the tile
                Atile[next][j][i] = k1 + j < K ? A[(k1 + j)*M + m0 + i] : 0.0f;
            }
            for (int e0 = 0; e0 < TSK*TSN; e0 += ITEMS) {
                const int i = (e0 + tid) % TSN;
                const int j = (e0 + tid) / TSN;
                Btile[next][j][i] = k1 + j < K ? B[(k1 + j)*N + n0 + i] : 0.0f;
            }
        }

        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float a[WPTM];                   // each loaded once, used WPTN times
            for (int i = 0; i < WPTM; i++) {
                a[i] = Atile[now][k][tm + i*RTSM];
            }
            float b[WPTN];                   // each loaded once, used WPTM times
            for (int j = 0; j < WPTN; j++) {
                b[j] = Btile[now][k][tn + j*RTSN];
            }
            for (int j = 0; j < WPTN; j++) {
                for (int i = 0; i < WPTM; i++) {
                    acc[j][i] += a[i] * b[j];
                }
            }
        }

        now = next;
    }

    // store what this tile owns
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i++) {
            const int m = m0 + tm + i*RTSM;
            const int n = n0 + tn + j*RTSN;
            if (m >= own_m && n >= own_n) {
                C[n*M + m] = acc[j][i];
            }
        }
    }
}

#if !(TSM % WPTM == 0)
#error TSM is not a multiple of WPTM
#endif
#if !(TSN % WPTN == 0)
#error TSN is not a multiple of WPTN
#endif
#if !((TSK * WPTM * WPTN) % TSN == 0)
#error uneven shares of a tile: TSK times WPTM times WPTN is not a multiple of TSN
#endif
#if !((TSK * WPTM * WPTN) % TSM == 0)
#error uneven shares of a tile: TSK times WPTM times WPTN is not a multiple of TSM
#endif
#if !(TSK % UNROLL == 0)
#error TSK is not a multiple of UNROLL
#endif
