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
#ifndef WIDTH
#define WIDTH 4 // floats in a vector loaded from global memory: 1, 2, 4 or 8
#endif
#ifndef UNROLL
#define UNROLL 4 // steps of k that the compiler lays out in one turn of the loop
#endif

#if !(TSM == TSN)
#error TSM must equal TSN
#endif
#if !(8 % WIDTH == 0)
#error WIDTH must be 1, 2, 4 or 8
#endif
#if !(TSM % WPTM == 0)
#error TSM must be a multiple of WPTM
#endif
#if !(TSN % WPTN == 0)
#error TSN must be a multiple of WPTN
#endif
#if !(TSM % WIDTH == 0)
#error TSM must be a multiple of WIDTH
#endif
#if !(TSN % WIDTH == 0)
#error TSN must be a multiple of WIDTH
#endif
#if !((TSK * WPTM * WPTN) % (TSN * WIDTH) == 0)
#error TSK*WPTM*WPTN must be a multiple of TSN*WIDTH
#endif
#if !(TSK % UNROLL == 0)
#error TSK must be a multiple of UNROLL
#endif

#if WIDTH == 1
#define floatX float
#elif WIDTH == 2
#define floatX float2
#elif WIDTH == 4
#define floatX float4
#elif WIDTH == 8
#define floatX float8
#endif

#define RTSM (TSM/WPTM)                      // rows of work-items in a work-group
#define RTSN (TSN/WPTN)                      // columns of work-items
#define LPTA (TSK*TSM/(RTSM*RTSN*WIDTH))     // vectors of each tile a work-item loads

__kernel __attribute__((reqd_work_group_size(RTSM, RTSN, 1)))
void gemm(const int M, const int N, const int K,
          const __global floatX* restrict A,
          const __global floatX* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tm = get_local_id(0);          // first row inside the tile
    const int tn = get_local_id(1);          // first column inside the tile
    const int tid = tn*RTSM + tm;            // number of the work-item
    const int m0 = get_group_id(0)*TSM;      // first row of the tile
    const int n0 = get_group_id(1)*TSN;      // first column of the tile

    // local memory
    __local floatX Asub[TSK][TSM/WIDTH];     // [k][m]
    __local floatX Bsub[TSK][TSN/WIDTH];     // [k][n]
    const __local float* Af = (const __local float*)Asub; // the same, float by float
    const __local float* Bf = (const __local float*)Bsub;

    // accumulators
    float acc[WPTN][WPTM];
    for (int wn = 0; wn < WPTN; wn++) {
        for (int wm = 0; wm < WPTM; wm++) {
            acc[wn][wm] = 0.0f;
        }
    }

    for (int t = 0; t < K/TSK; t++) {

        // load: LPTA vectors of each tile a work-item, in the order of memory
        for (int l = 0; l < LPTA; l++) {
            const int id = l*RTSM*RTSN + tid;
            const int i = id % (TSM/WIDTH);  // vector of m for A, of n for B
            const int k = id / (TSM/WIDTH);
            Asub[k][i] = A[(t*TSK + k)*(M/WIDTH) + m0/WIDTH + i];
            Bsub[k][i] = B[(t*TSK + k)*(N/WIDTH) + n0/WIDTH + i];
        }

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float b[WPTN];                   // loaded once, used WPTM times
            for (int wn = 0; wn < WPTN; wn++) {
                b[wn] = Bf[k*TSN + tn + wn*RTSN];
            }
            for (int wm = 0; wm < WPTM; wm++) {
                const float a = Af[k*TSM + tm*WPTM + wm]; // loaded once, used WPTN times
                for (int wn = 0; wn < WPTN; wn++) {
                    acc[wn][wm] += a * b[wn];
                }
            }
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    for (int wn = 0; wn < WPTN; wn++) {
        for (int wm = 0; wm < WPTM; wm++) {
            C[(n0 + tn + wn*RTSN)*M + m0 + tm*WPTM + wm] = acc[wn][wm];
        }
    }
}
