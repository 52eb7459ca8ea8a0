// 02 tiled: a work-group fetches TS x TS tiles of A and B once, and shares them.
//
// Before:   01_naive. There every work-item fetched a whole row of A and a column of B
//           for itself; here it fetches one element of each tile, and uses those that
//           its neighbours fetched.
// Costs:    2*TS*TS floats of local memory, one accumulator; 2/TS global loads
//           and 2 local loads per multiply-add; 2 barriers per tile.
// Requires: M, N and K multiples of TS.
//
//                       n0
//                     +-----+        The work-group keeps its tile of C and walks
//                  k0 |Btile|        along k with one tile of A and one of B:
//                     +-----+        fetch both, wait until they are complete,
//            k0       |  |  |        multiply, wait until nobody needs them any
//        +--+-----+   |  v  |        more, and on to the next two.
//        |  |     |   +-----+
//     m0 |  |Atile|-> |  C  |  TS x TS
//        +--+-----+   +-----+
//
// Compile:  -DTS=32  side of the square tiles of A, B and C [4, 8, 12, 16, 20, 24, 32]

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

    // local memory, aligned to 16 bytes: the compiler may then load four floats at once
    __local float Atile[TS][TS] __attribute__((aligned(16))); // [k][m]
    __local float Btile[TS][TS] __attribute__((aligned(16))); // [n][k]

    // accumulators
    float acc = 0.0f;

    for (int k0 = 0; k0 < K; k0 += TS) {

        // load: one element of each tile per work-item
        Atile[tn][tm] = A[(k0 + tn)*M + m0 + tm];
        Btile[tn][tm] = B[(n0 + tn)*K + k0 + tm];

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        for (int k = 0; k < TS; k++) {
            acc += Atile[k][tm] * Btile[tn][k];
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    C[(n0 + tn)*M + m0 + tm] = acc;
}
