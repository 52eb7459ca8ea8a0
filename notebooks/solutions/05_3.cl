#ifndef TS
#define TS 32 // side of the square tile of C, in elements
#endif
#ifndef TSK
#define TSK 16 // depth of the tiles of A and B, in steps of k
#endif
#ifndef WPT
#define WPT 8 // elements of C a work-item computes, all in one row
#endif
#ifndef PAD
#define PAD 2 // floats added to each row of Bsub against bank conflicts
#endif

#if !(TS % WPT == 0)
#error TS must be a multiple of WPT
#endif
#if !(TSK % (TS / WPT) == 0)
#error TSK must be a multiple of TS/WPT
#endif

#define RTS (TS/WPT)  // columns of work-items in a work-group
#define LPT (TSK/RTS) // loads of each tile a work-item

__kernel __attribute__((reqd_work_group_size(TS, RTS, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tm = get_local_id(0);          // row inside the tile
    const int tn = get_local_id(1);          // first column inside the tile
    const int m0 = get_group_id(0)*TS;       // first row of the tile
    const int n0 = get_group_id(1)*TS;       // first column of the tile

    // local memory
    __local float Asub[TSK][TS];             // [k][m]
    __local float Bsub[TSK][TS];             // [k][n]

    // accumulators
    float acc[WPT];
    for (int w = 0; w < WPT; w++) {
        acc[w] = 0.0f;
    }

    for (int t = 0; t < K/TSK; t++) {

        // load: LPT elements of each tile a work-item; tm runs along m and along n
        for (int l = 0; l < LPT; l++) {
            const int k = tn + l*RTS;
            Asub[k][tm] = A[(t*TSK + k)*M + m0 + tm];
            Bsub[k][tm] = B[(t*TSK + k)*N + n0 + tm];
        }

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        for (int k = 0; k < TSK; k++) {
            const float a = Asub[k][tm];     // loaded once, used WPT times
            for (int w = 0; w < WPT; w++) {
                acc[w] += a * Bsub[k][tn + w*RTS];
            }
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    for (int w = 0; w < WPT; w++) {
        C[(n0 + tn + w*RTS)*M + m0 + tm] = acc[w];
    }
}
