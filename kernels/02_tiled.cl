// 02 tiled: a work-group fetches TS x TS tiles of A and B once, and shares them.
//
// Before:   01_naive. There every work-item fetched its own row and column from
//           global memory; here neighbours fetch one element each and use all.
// Costs:    2*TS*TS floats of local memory, one accumulator; 2/TS global loads
//           and 2 local loads per multiply-add; 2 barriers per tile.
// Requires: M, N and K multiples of TS.
//
//                 +----+
//                 |Bsub|  tile t of B       The work-group walks over the tiles
//                 +----+                    t = 0, 1, ... K/TS - 1 in step:
//                 |    |                    fetch both tiles, wait, multiply,
//   +----+-----+  +----+                    wait, next tile.
//   |Asub|  -> |  | C  |  TS x TS
//   +----+-----+  +----+

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
        Bsub[tn][tm] = B[n*K + t*TS + tm];

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        for (int k = 0; k < TS; k++) {
            acc += Asub[k][tm] * Bsub[tn][k];
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    C[n*M + m] = acc;
}
