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
#ifndef PAD
#define PAD 2 // floats added to each row of Bsub against bank conflicts
#endif
#ifndef UNROLL
#define UNROLL 4 // steps of k that the compiler lays out in one turn of the loop
#endif

#if !(TSM == TSN)
#error TSM must equal TSN
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
#if !(TSK % UNROLL == 0)
#error TSK must be a multiple of UNROLL
#endif

#define RTSM (TSM/WPTM)               // rows of work-items in a work-group
#define RTSN (TSN/WPTN)               // columns of work-items
#define LPTA (TSK*TSM/(RTSM*RTSN))    // loads of each tile a work-item

__kernel __attribute__((reqd_work_group_size(RTSM, RTSN, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tm = get_local_id(0);          // first row inside the tile
    const int tn = get_local_id(1);          // first column inside the tile
    const int tid = tn*RTSM + tm;            // number of the work-item
    const int m0 = get_group_id(0)*TSM;      // first row of the tile
    const int n0 = get_group_id(1)*TSN;      // first column of the tile

    // local memory
    __local float Asub[TSK][TSM];            // [k][m]
    __local float Bsub[TSN][TSK + PAD];      // [n][k]

    // accumulators
    float acc[WPTN][WPTM];
    for (int wn = 0; wn < WPTN; wn++) {
        for (int wm = 0; wm < WPTM; wm++) {
            acc[wn][wm] = 0.0f;
        }
    }

    for (int t = 0; t < K/TSK; t++) {

        // load: LPTA elements of each tile a work-item, in the order of memory
        for (int l = 0; l < LPTA; l++) {
            const int id = l*RTSM*RTSN + tid;
            const int i = id % TSM;          // m for A, n for B
            const int k = id / TSM;
            Asub[k][i] = A[(t*TSK + k)*M + m0 + i];
            Bsub[i][k] = B[(t*TSK + k)*N + n0 + i];
        }

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float a[WPTM];                   // loaded once, used WPTN times
            for (int wm = 0; wm < WPTM; wm++) {
                a[wm] = Asub[k][tm + wm*RTSM];
            }
            for (int wn = 0; wn < WPTN; wn++) {
                const float b = Bsub[tn + wn*RTSN][k]; // loaded once, used WPTM times
                for (int wm = 0; wm < WPTM; wm++) {
                    acc[wn][wm] += a[wm] * b;
                }
            }
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    for (int wn = 0; wn < WPTN; wn++) {
        for (int wm = 0; wm < WPTM; wm++) {
            C[(n0 + tn + wn*RTSN)*M + m0 + tm + wm*RTSM] = acc[wn][wm];
        }
    }
}
