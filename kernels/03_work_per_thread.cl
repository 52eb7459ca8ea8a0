// 03 work per thread: a work-item computes WPT elements of C instead of one.
//
// Before:   02_tiled. There each multiply-add cost two local loads; here one
//           element of A, once in a register, serves WPT columns.
// Costs:    2*TS*TS floats of local memory, WPT accumulators; 2/TS global loads
//           and 1 + 1/WPT local loads per multiply-add; 2 barriers per tile.
// Requires: M, N and K multiples of TS; TS a multiple of WPT.
//
//    tile of C, TS = 8, WPT = 4: a work-group is TS x TS/WPT = 8 x 2 work-items
//
//    column  0 1 2 3 4 5 6 7
//    row 0   a b a b a b a b     a: the columns of work-item (0, 0)
//        1   . . . . . . . .     b: the columns of work-item (0, 1)
//    They lie RTS = TS/WPT apart, so that in every step neighbouring
//    work-items still touch neighbouring elements.

#ifndef TS
#define TS 32 // side of the square tiles of A, B and C, in elements
#endif
#ifndef WPT
#define WPT 8 // elements of C a work-item computes, all in one row
#endif

#if !(TS % WPT == 0)
#error TS must be a multiple of WPT
#endif

#define RTS (TS/WPT) // columns of work-items in a work-group

__kernel __attribute__((reqd_work_group_size(TS, RTS, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tm = get_local_id(0);          // row inside the tile
    const int tn = get_local_id(1);          // first column inside the tile
    const int m = get_group_id(0)*TS + tm;   // row of C
    const int n = get_group_id(1)*TS + tn;   // first column of C

    // local memory
    __local float Asub[TS][TS];              // [k][m]
    __local float Bsub[TS][TS];              // [n][k]

    // accumulators
    float acc[WPT];
    for (int w = 0; w < WPT; w++) {
        acc[w] = 0.0f;
    }

    for (int t = 0; t < K/TS; t++) {

        // load: WPT elements of each tile a work-item
        for (int w = 0; w < WPT; w++) {
            Asub[tn + w*RTS][tm] = A[(t*TS + tn + w*RTS)*M + m];
            Bsub[tn + w*RTS][tm] = B[(n + w*RTS)*K + t*TS + tm];
        }

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        for (int k = 0; k < TS; k++) {
            const float a = Asub[k][tm];     // loaded once, used WPT times
            for (int w = 0; w < WPT; w++) {
                acc[w] += a * Bsub[tn + w*RTS][k];
            }
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    for (int w = 0; w < WPT; w++) {
        C[(n + w*RTS)*M + m] = acc[w];
    }
}
