#ifndef TS
#define TS 32 // side of the square tiles of A, B and C, in elements
#endif
#ifndef WIDTH
#define WIDTH 4 // floats in a vector: 1, 2, 4 or 8
#endif

#if !(8 % WIDTH == 0)
#error WIDTH must be 1, 2, 4 or 8
#endif
#if !(TS % WIDTH == 0)
#error TS must be a multiple of WIDTH
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

#define TSV (TS/WIDTH)                             // vectors along a side of the tile
#define LANE(vector, i) (((const float*)&(vector))[i])

__kernel __attribute__((reqd_work_group_size(TSV, TS, 1)))
void gemm(const int M, const int N, const int K,
          const __global floatX* restrict A,
          const __global floatX* restrict B,
          __global floatX* restrict C)
{
    // identifiers
    const int tm = get_local_id(0);          // vector of rows inside the tile
    const int tn = get_local_id(1);          // column inside the tile
    const int m = get_group_id(0)*TSV + tm;  // vector of rows of C
    const int n = get_group_id(1)*TS + tn;   // column of C

    // local memory
    __local floatX Asub[TS][TSV];            // [k][m]
    __local floatX Bsub[TS][TSV];            // [n][k]

    // accumulators
    floatX acc = (floatX)(0.0f);

    for (int t = 0; t < K/TS; t++) {

        // load: one vector of each tile a work-item
        Asub[tn][tm] = A[(t*TS + tn)*(M/WIDTH) + m];
        Bsub[tn][tm] = B[n*(K/WIDTH) + t*TSV + tm];

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        for (int k = 0; k < TSV; k++) {
            const floatX b = Bsub[tn][k];    // WIDTH steps of k
            for (int w = 0; w < WIDTH; w++) {
                acc = fma(Asub[k*WIDTH + w][tm], (floatX)(LANE(b, w)), acc);
            }
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    C[n*(M/WIDTH) + m] = acc;
}
