#ifndef TSM
#define TSM 128 // rows of the tile of C
#endif
#ifndef TSN
#define TSN 128 // columns of the tile of C
#endif
#ifndef TSK
#define TSK 16 // depth of the tiles of A and B, in steps of k
#endif
#ifndef WPTM
#define WPTM 8 // rows of C a work-item computes
#endif
#ifndef WPTN
#define WPTN 8 // columns of C a work-item computes
#endif
#ifndef UNROLL
#define UNROLL 4 // steps of k that the compiler lays out in one turn of the loop
#endif

#if !(TSM % WPTM == 0)
#error TSM must be a multiple of WPTM
#endif
#if !(TSN % WPTN == 0)
#error TSN must be a multiple of WPTN
#endif
#if !((TSK * WPTM * WPTN) % TSN == 0)
#error TSK*WPTM*WPTN must be a multiple of TSN
#endif
#if !((TSK * WPTM * WPTN) % TSM == 0)
#error TSK*WPTM*WPTN must be a multiple of TSM
#endif
#if !(TSK % UNROLL == 0)
#error TSK must be a multiple of UNROLL
#endif

#define RTSM (TSM/WPTM)               // rows of work-items in a work-group
#define RTSN (TSN/WPTN)               // columns of work-items
#define LPTA (TSK*TSM/(RTSM*RTSN))    // elements of A's tile a work-item loads
#define LPTB (TSK*TSN/(RTSM*RTSN))    // elements of B's tile

__kernel __attribute__((reqd_work_group_size(RTSM, RTSN, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tm = get_local_id(0);               // first row inside the tile
    const int tn = get_local_id(1);               // first column inside the tile
    const int tid = tn*RTSM + tm;                 // number of the work-item
    const int own_m = get_group_id(0)*TSM;        // first row that this tile owns
    const int own_n = get_group_id(1)*TSN;        // first column that it owns
    const int m0 = min(own_m, M - TSM);           // first row of the tile, moved up where it must be
    const int n0 = min(own_n, N - TSN);           // first column, moved left

    // local memory: two buffers, one to compute from and one to fill
    __local float Asub[2][TSK][TSM];         // [buffer][k][m]
    __local float Bsub[2][TSK][TSN];         // [buffer][k][n]

    // accumulators
    float acc[WPTN][WPTM];
    for (int wn = 0; wn < WPTN; wn++) {
        for (int wm = 0; wm < WPTM; wm++) {
            acc[wn][wm] = 0.0f;
        }
    }

    // load: the first tiles, zero beyond K
    for (int l = 0; l < LPTA; l++) {
        const int id = l*RTSM*RTSN + tid;
        const int i = id % TSM;
        const int k = id / TSM;
        Asub[0][k][i] = k < K ? A[k*M + m0 + i] : 0.0f;
    }
    for (int l = 0; l < LPTB; l++) {
        const int id = l*RTSM*RTSN + tid;
        const int i = id % TSN;
        const int k = id / TSN;
        Bsub[0][k][i] = k < K ? B[k*N + n0 + i] : 0.0f;
    }

    for (int t = 0; t*TSK < K; t++) {
        const int now = t % 2;
        const int next = 1 - now;
        const int k1 = (t + 1)*TSK;          // first step of the next tile
        const int left = K - k1;             // steps that are left from there

        // barrier: this tile is complete, and nobody needs the other buffer any more
        barrier(CLK_LOCAL_MEM_FENCE);

        // load: the next tiles into the other buffer, while we compute
        if (k1 < K) {
            for (int l = 0; l < LPTA; l++) {
                const int id = l*RTSM*RTSN + tid;
                const int i = id % TSM;
                const int k = id / TSM;
                Asub[next][k][i] = k < left ? A[(k1 + k)*M + m0 + i] : 0.0f;
            }
            for (int l = 0; l < LPTB; l++) {
                const int id = l*RTSM*RTSN + tid;
                const int i = id % TSN;
                const int k = id / TSN;
                Bsub[next][k][i] = k < left ? B[(k1 + k)*N + n0 + i] : 0.0f;
            }
        }

        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float b[WPTN];                   // loaded once, used WPTM times
            for (int wn = 0; wn < WPTN; wn++) {
                b[wn] = Bsub[now][k][tn + wn*RTSN];
            }
            for (int wm = 0; wm < WPTM; wm++) {
                const float a = Asub[now][k][tm + wm*RTSM]; // loaded once, used WPTN times
                for (int wn = 0; wn < WPTN; wn++) {
                    acc[wn][wm] += a * b[wn];
                }
            }
        }
    }

    // store what this tile owns
    for (int wn = 0; wn < WPTN; wn++) {
        for (int wm = 0; wm < WPTM; wm++) {
            const int m = m0 + tm + wm*RTSM;
            const int n = n0 + tn + wn*RTSN;
            if (m >= own_m && n >= own_n) {
                C[n*M + m] = acc[wn][wm];
            }
        }
    }
}
