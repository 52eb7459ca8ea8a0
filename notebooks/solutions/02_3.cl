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
    const int tm = get_local_id(0);          // row in the tile of C
    const int tn = get_local_id(1);          // column in the tile of C
    const int m0 = get_group_id(0)*TS;       // first row of the tile of C
    const int n0 = get_group_id(1)*TS;       // first column of the tile of C

    // local memory
    __local float Atile[2][TS][TS];          // two places in turn, each [k][m]
    __local float Btile[2][TS][TS];          // two places in turn, each [n][k]

    // accumulators
    float acc = 0.0f;

    for (int k0 = 0; k0 < K; k0 += TS) {

        const int now = k0/TS % 2;           // the place of these tiles

        // load: one element of each tile per work-item
        Atile[now][tn][tm] = A[(k0 + tn)*M + m0 + tm];
        Btile[now][tn][tm] = B[(n0 + tn)*K + k0 + tm];

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        for (int k = 0; k < TS; k++) {
            acc += Atile[now][k][tm] * Btile[now][tn][k];
        }
    }

    // store
    C[(n0 + tn)*M + m0 + tm] = acc;
}
