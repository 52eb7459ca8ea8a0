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

#define RTSM (TSM/WPTM)   // rows of work-items in a work-group
#define RTSN (TSN/WPTN)   // columns of work-items in a work-group
#define ITEMS (RTSM*RTSN) // work-items in a work-group

__kernel __attribute__((reqd_work_group_size(RTSM, RTSN, 1)))
void gemm(const int M, const int N, const int K,
          const __global floatX* restrict A,
          const __global floatX* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tm = get_local_id(0);          // first row in the tile of C
    const int tn = get_local_id(1);          // first column in the tile of C
    const int tid = tn*RTSM + tm;            // number of the work-item
    const int m0 = get_group_id(0)*TSM;      // first row of the tile of C
    const int n0 = get_group_id(1)*TSN;      // first column of the tile of C

    // local memory
    __local floatX Atile[TSK][TSM/WIDTH];    // [k][m]
    __local floatX Btile[TSK][TSN/WIDTH];    // [k][n]
    const __local float* Af = (const __local float*)Atile; // the same, float by float
    const __local float* Bf = (const __local float*)Btile;

    // accumulators
    float acc[WPTN][WPTM];
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i++) {
            acc[j][i] = 0.0f;
        }
    }

    for (int k0 = 0; k0 < K; k0 += TSK) {

        // load: ITEMS vectors of each tile at a time, in the order of memory
        for (int e0 = 0; e0 < TSK*TSM/WIDTH; e0 += ITEMS) {
            const int i = (e0 + tid) % (TSM/WIDTH); // row of the tile, in vectors
            const int j = (e0 + tid) / (TSM/WIDTH); // column of the tile
            Atile[j][i] = A[(k0 + j)*(M/WIDTH) + m0/WIDTH + i];
            Btile[j][i] = B[(k0 + j)*(N/WIDTH) + n0/WIDTH + i];
        }

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        #pragma unroll UNROLL
        for (int k = 0; k < TSK; k++) {
            float a[WPTM];                   // each loaded once, used WPTN times
            for (int i = 0; i < WPTM; i++) {
                a[i] = Af[k*TSM + tm*WPTM + i];
            }
            float b[WPTN];                   // each loaded once, used WPTM times
            for (int j = 0; j < WPTN; j++) {
                b[j] = Bf[k*TSN + tn + j*RTSN];
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
            C[(n0 + tn + j*RTSN)*M + m0 + tm*WPTM + i] = acc[j][i];
        }
    }
}
