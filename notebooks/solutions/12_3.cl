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

    for (int t = 0; t < (K + TS - 1)/TS; t++) {

        // load: WPT elements of each tile a work-item, zero for what does not exist
        for (int w = 0; w < WPT; w++) {
            const int ka = t*TS + tn + w*RTS;    // column of A
            const int kb = t*TS + tm;            // row of B
            const float inside = (m < M && ka < K) ? 1.0f : 0.0f;
            Asub[tn + w*RTS][tm] = A[min(ka, K - 1)*M + min(m, M - 1)] * inside;
            Bsub[tn + w*RTS][tm] = (n + w*RTS < N && kb < K) ? B[(n + w*RTS)*K + kb] : 0.0f;
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

    // store what exists
    for (int w = 0; w < WPT; w++) {
        if (m < M && n + w*RTS < N) {
            C[(n + w*RTS)*M + m] = acc[w];
        }
    }
}
