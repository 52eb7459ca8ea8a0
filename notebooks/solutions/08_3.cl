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
    const int tm = get_local_id(0);          // row in the tile of C
    const int tn = get_local_id(1);          // first column in the tile of C
    const int m0 = get_group_id(0)*TS;       // first row of the tile of C
    const int n0 = get_group_id(1)*TS;       // first column of the tile of C

    // local memory
    __local float Atile[TS][TS];             // [k][m]
    __local float Btile[TS][TS];             // [n][k]

    // accumulators
    float acc[WPT];
    for (int j = 0; j < WPT; j++) {
        acc[j] = 0.0f;
    }

    for (int k0 = 0; k0 < K; k0 += TS) {

        // load: RTS columns of B's tile at a time; A's tile as a copy
        for (int j0 = 0; j0 < TS; j0 += RTS) {
            const int j = j0 + tn;           // column of the tile
            Btile[j][tm] = B[(n0 + j)*K + k0 + tm];
        }

        event_t copied = 0;
        for (int k = 0; k < TS; k++) {
            copied = async_work_group_copy(&Atile[k][0], &A[(k0 + k)*M + m0], TS, copied);
        }
        wait_group_events(1, &copied);

        // barrier: the tiles are complete
        barrier(CLK_LOCAL_MEM_FENCE);

        // compute
        for (int k = 0; k < TS; k++) {
            const float a = Atile[k][tm];    // loaded once, used WPT times
            for (int j = 0; j < WPT; j++) {
                acc[j] += a * Btile[tn + j*RTS][k];
            }
        }

        // barrier: nobody needs the tiles any more
        barrier(CLK_LOCAL_MEM_FENCE);
    }

    // store
    for (int j = 0; j < WPT; j++) {
        C[(n0 + tn + j*RTS)*M + m0 + tm] = acc[j];
    }
}
