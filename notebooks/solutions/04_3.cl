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
    const int tm = get_local_id(0);          // vector of rows in the tile of C
    const int tn = get_local_id(1);          // column in the tile of C
    const int m0 = get_group_id(0)*TS;       // first row of the tile of C
    const int n0 = get_group_id(1)*TS;       // first column of the tile of C

    // local memory
    __local floatX Atile[TS][TSV];           // [k][m]
    __local floatX Btile[TS][TSV];           // [n][k]

    // accumulators
    floatX acc = (floatX)(0.0f);

    for (int k0 = 0; k0 < K; k0 += TS) {

        // load: one vector of each tile per work-item
        Atile[tn][tm] = A[(k0 + tn)*(M/WIDTH) + m0/WIDTH + tm];
        Btile[tn][tm] = B[(n0 + tn)*(K/WIDTH) + k0/WIDTH + tm];

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        for (int k = 0; k < TSV; k++) {
            const floatX b = Btile[tn][k];   // WIDTH steps of k
            for (int w = 0; w < WIDTH; w++) {
                acc = fma(Atile[k*WIDTH + w][tm], (floatX)(LANE(b, w)), acc);
            }
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    C[(n0 + tn)*(M/WIDTH) + m0/WIDTH + tm] = acc;
}
