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
            Bsub[tn + w*RTS][tm] = B[(n + w*RTS)*K + t*TS + tm];
        }

        event_t copied = 0;
        for (int k = 0; k < TS; k++) {
            copied = async_work_group_copy(&Asub[k][0], &A[(t*TS + k)*M + get_group_id(0)*TS], TS, copied);
        }
        wait_group_events(1, &copied);

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
