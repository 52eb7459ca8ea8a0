#define LINES 4     // lines of C that a work-item sums at once; the number of work-groups in a launch depends on it
#if !defined(COUNT)
#define COUNT SPLIT // elements of a line; a launch sets it lower if there are fewer
#endif

// strip: some lines of an edge strip of C, either of its rows below the tiles or of its columns beside them. A line
// crosses the strip: below the tiles it is a part of one column of C, beside them a part of one row. The sum of each
// element is shared by several work-items, and neighbours read neighbouring floats: down a column of B if it is not
// transposed, and across the lines otherwise
void strip(const int M, const int N, const int K, const size_t lda, const size_t ldb,
           const __global float* restrict A,
           const __global float* restrict B,
           __global float* restrict C,
           const int group, __local float* shared)
{
    // where the tiles end, which lines this work-group sums, and which of them and what part of it this work-item does
    const int m_end = min(M, TILES(M, TSM)*TSM);
    const int n_end = min(N, TILES(N, TSN)*TSN);
    const int beside = n_end < N ? (m_end - 1)/(8*LINES) + 1 : 0;    // work-groups for the columns of the strip
    const bool rows = group >= beside;                              // those after them are for the rows
    const bool down = rows && !TRANSPOSED;
    const int tid = get_local_id(0);
    const int across = down ? ITEMS/32 : 8;                         // lines that are summed side by side
    const int parts = ITEMS/across;                                 // parts of each sum
    const int part = down ? tid%32 : tid/8;
    const int first = (rows ? group - beside : group)*across*LINES;
    const int line = first + (down ? tid/32 : tid%8);
    const int lines = rows ? N : m_end;
    const int count = rows ? M - m_end : N - n_end;                 // elements of each line

    // strides in memory: from one step of k to the next along a line and along what it is multiplied with
    const size_t b_k = TRANSPOSED ? ldb : 1;
    const size_t b_n = TRANSPOSED ? 1 : ldb;
    const size_t along_k = rows ? b_k : lda;
    const size_t other_k = rows ? lda : b_k;
    const size_t other_e = rows ? 1 : b_n;
    const __global float* other = (rows ? A + m_end : B + n_end*b_n) + part*other_k;
    const __global float* along[LINES];
    float sum[LINES][COUNT];
    #pragma unroll
    for (int j = 0; j < LINES; j++) {
        along[j] = (rows ? B : A) + min(line + j*across, lines - 1)*(rows ? b_n : 1) + part*along_k;
        #pragma unroll
        for (int e = 0; e < COUNT; e++) {
            sum[j][e] = 0.0f;
        }
    }
    #pragma unroll 8
    for (int k = part; k < K; k += parts) {
        float x[LINES];
        #pragma unroll
        for (int j = 0; j < LINES; j++) {
            x[j] = *along[j];
            along[j] += parts*along_k;
        }
        #pragma unroll
        for (int e = 0; e < COUNT; e++) {
            const float y = other[min(e, count - 1)*other_e];
            #pragma unroll
            for (int j = 0; j < LINES; j++) {
                sum[j][e] += x[j]*y;
            }
        }
        other += parts*other_k;
    }

    // one work-item adds up the parts of each sum
    #pragma unroll
    for (int j = 0; j < LINES; j++) {
        #pragma unroll
        for (int e = 0; e < COUNT; e++) {
            shared[e*ITEMS + tid] = sum[j][e];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int i = tid; i < across*count; i += ITEMS) {
            const int e = i/across;
            const int at = first + j*across + i%across;
            float all = 0.0f;
            for (int p = 0; p < parts; p++) {
                all += shared[e*ITEMS + (down ? i%across*32 + p : p*8 + i%across)];
            }
            if (at < lines && rows) C_AT(m_end + e, at) = all;
            if (at < lines && !rows) C_AT(at, n_end + e) = all;
        }
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
