#ifndef TS
#define TS 32 // side of the square tiles of A, B and C, in elements
#endif

__kernel __attribute__((reqd_work_group_size(TS, TS, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tm = get_local_id(0);          // row inside the tile
    const int tn = get_local_id(1);          // column inside the tile
    const int m = get_group_id(0)*TS + tm;   // row of C
    const int n = get_group_id(1)*TS + tn;   // column of C

    // local memory
    __local float Asub[TS][TS];              // [k][m]
    __local float Bsub[TS][TS];              // [n][k]

    // accumulators
    float acc = 0.0f;

    for (int t = 0; t < K/TS; t++) {

        // load: one element of each tile a work-item
        Asub[tn][tm] = A[(t*TS + tn)*M + m];
        Bsub[tm][tn] = B[n*K + t*TS + tm];

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        for (int k = 0; k < TS; k++) {
            acc += Asub[k][tm] * Bsub[k][tn];
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    C[n*M + m] = acc;
}
