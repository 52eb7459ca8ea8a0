// strip: the rows and columns of C behind its last whole tiles, each element a sum of its own. Where there are only a
// few, 15_warp_tiling.cl leaves them (SPLIT): a tile for one row would multiply zeroes for all its others.
//
// Launch:   in dimension 0 work-groups of 512 work-items: if there are rows behind the tiles, one for every 16
//           columns of C; then, if there are columns behind the tiles, one for every 16 rows of the tiles.
// Requires: the parameters of kernel 15, and A and B as it wants them.
//
//    A work-group has 16 lines, and reads A and B along them; 32 work-items share the steps of a line.
//    Neighbours read neighbours: down a column of B for the rows, across a row of A for the columns.

#ifndef TSM
#define TSM 128 // rows of the tile of C
#endif
#ifndef TSN
#define TSN 64 // columns of the tile of C
#endif
#ifndef WIDTH
#define WIDTH 4 // columns of A begin at multiples of so many floats, and so do those of B if it is transposed
#endif
#ifndef TRANSPOSED
#define TRANSPOSED 1 // 1: B is N x K; 0: B is K x N
#endif
#ifndef SPLIT
#define SPLIT 8 // so many rows or columns behind the last whole tile have no tile
#endif
#ifndef COUNT
#define COUNT SPLIT // as many of them as there are, or more
#endif

#define LINES 16 // of a work-group
#define PARTS 32 // of each sum

__kernel __attribute__((reqd_work_group_size(LINES*PARTS, 1, 1)))
void strip(const int M, const int N, const int K,
           const __global float* restrict A,
           const __global float* restrict B,
           __global float* restrict C)
{
    // from one step of k to the next, and from one row or column to the next
    const size_t lda = (M - 1)/WIDTH*WIDTH + WIDTH;
    const size_t ldb = TRANSPOSED ? (N - 1)/WIDTH*WIDTH + WIDTH : K;
    const size_t b_k = TRANSPOSED ? ldb : 1;
    const size_t b_n = TRANSPOSED ? 1 : ldb;

    // where the tiles end
    const int m_end = min(M, ((M - 1 - SPLIT)/TSM + 1)*TSM);
    const int n_end = min(N, ((N - 1 - SPLIT)/TSN + 1)*TSN);
    const int across = m_end < M ? (N - 1)/LINES + 1 : 0; // work-groups for the rows behind them

    // this work-item's line, and which steps of it
    const int group = get_group_id(0);
    const int id = get_local_id(0);
    const bool rows = group < across;
    const int part = id/LINES;
    const int i = id%LINES;
    const int line = (rows ? group : group - across)*LINES + i;
    const int lines = rows ? N : m_end;
    const int count = rows ? M - m_end : N - n_end; // elements of each line

    float sum[COUNT];
    for (int e = 0; e < COUNT; e++) {
        sum[e] = 0.0f;
    }
    if (line < lines) {
        const size_t along_k = rows ? b_k : lda;
        const size_t other_k = rows ? lda : b_k;
        const __global float* along = rows ? B + line*b_n : A + line;
        const __global float* other = rows ? A + m_end : B + n_end*b_n;
        size_t at[COUNT];
        for (int e = 0; e < COUNT; e++) {
            at[e] = min(e, count - 1)*(rows ? 1 : b_n);
        }
        along += part*along_k;
        other += part*other_k;
        #pragma unroll 8
        for (int k = part; k < K; k += PARTS) {
            const float x = *along;
            #pragma unroll
            for (int e = 0; e < COUNT; e++) {
                sum[e] += x*other[at[e]];
            }
            along += PARTS*along_k;
            other += PARTS*other_k;
        }
    }

    // the parts of a sum, added up by one work-item
    __local float parts[PARTS][LINES];
    #pragma unroll
    for (int e = 0; e < COUNT; e++) {
        parts[part][i] = sum[e];
        barrier(CLK_LOCAL_MEM_FENCE);
        if (e < count && part == 0 && line < lines) {
            float all = 0.0f;
            for (int p = 0; p < PARTS; p++) {
                all += parts[p][i];
            }
            C[rows ? (size_t)line*M + m_end + e : (size_t)(n_end + e)*M + line] = all;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
