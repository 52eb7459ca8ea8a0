// multiply: step k, for which the lines of the short operand are in local memory. Where the compiler knows how long a
// loop is, it starts the loads of several steps at once, and this makes the kernel fast
#define MULTIPLY(k) \
    vector w[WPT]; \
    _Pragma("unroll") \
    for (int r = 0; r < WPT; r++) { \
        w[r] = ELEMENT(k, r); \
    } \
    _Pragma("unroll") \
    for (int j = 0; j < LINES; j++) { \
        const factor v = FACTOR(k, j); \
        _Pragma("unroll") \
        for (int r = 0; r < WPT; r++) { \
            sum[r*LINES + j] += w[r]*v; \
        } \
    }

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C,
          __global float* restrict pieces)
{
    // identifiers
    const int tid = get_local_id(0);
    const int lane = tid%32;
    const int warp = tid/32;
    const __global float* restrict along = ROWS ? B : A;     // the long operand
    const int ld = ROWS ? (K - 1)/WIDTH*WIDTH + WIDTH : (M - 1)/WIDTH*WIDTH + WIDTH;
    const int side = ROWS ? N : M;                           // its columns, or rows
    const int few = ROWS ? M : N;                            // lines of the short operand
    const int tiles_long = (side - 1)/LONG + 1;
    const int tiles_few = (few - 1)/LINES + 1;
    const int steps = (K - 1)/TSK + 1;

    // this work-group's piece of the line of all steps
    const int group = get_group_id(0);
    const int groups = GROUPS ? GROUPS : tiles_long*tiles_few;
    const long line = (long)tiles_long*tiles_few*steps;
    long step = line*group/groups;
    const long end = line*(group + 1)/groups;
    int cut = 0;                                             // partial tiles that it has stored

    __local float lines[LINES*TSK] __attribute__((aligned(16)));
    __local float shared[AT_ONCE*ITEMS];
    __local int come_before;

    while (step < end) {
        const int tile = step/steps;
        const int l0 = tile%tiles_long*LONG;                 // first row of A, or column of B
        const int j0 = tile/tiles_long*LINES;                // first line of the short operand
        const int count = (int)min(end - step, (long)steps - step%steps);
        const int k0 = (int)(step%steps)*TSK;
        const int k1 = min(K, k0 + count*TSK);

        // accumulators
        vector sum[WPT*LINES];
        for (int i = 0; i < WPT*LINES; i++) {
            sum[i] = (vector)(0.0f);
        }

        // where this work-item reads; instead of what is outside, it reads the last column of B, or row of A
#if ROWS
        const int most = max(0, side - 1 - l0 - warp);
        const __global float* from = along + (size_t)min(l0 + warp, side - 1)*ld + k0;
#else
        const int most = max(0, ld - WIDTH - l0 - lane*WIDTH);
        const __global float* from = along + (size_t)k0*ld + min(l0 + lane*WIDTH, ld - WIDTH);
#endif

        for (int k = k0; k < k1; k += TSK) {
            // load: TSK steps of the lines, or zeroes where there are none
            const int depth = min(TSK, k1 - k);
            for (int e = tid; e < LINES*TSK; e += ITEMS) {
                const int kk = e%TSK;
                const int j = e/TSK;
                const size_t index = ROWS ? (size_t)(k + kk)*M + j0 + j : (size_t)(j0 + j)*K + k + kk;
                const float value = kk < depth && j0 + j < few ? (ROWS ? A : B)[index] : 0.0f;
                lines[ROWS ? e : kk*LINES + j] = value;
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            if (depth == TSK) {
                #pragma unroll 8
                for (int i = 0; i < TSK/EACH; i++) {
                    MULTIPLY(FIRST + i*EACH)
                }
                from += ROWS ? TSK : (size_t)TSK*ld;
            } else {
                #pragma unroll 8
                for (int kk = FIRST; kk < depth; kk += EACH) {
                    MULTIPLY(kk)
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }

        // add up the sums of the warps (ROWS = 0) or of the lanes (ROWS = 1), and store them: as elements of C, or as
        // those of a partial tile
        int whole = count == steps;
        const int piece = 2*group + cut;
        for (int first = 0; first < OWN; first += AT_ONCE) {
            #pragma unroll
            for (int i = 0; i < OWN; i++) {
                if (i >= first && i < first + AT_ONCE) {
#if ROWS && WIDTH == 4
                    shared[(i - first)*ITEMS + tid] = (sum[i].x + sum[i].y) + (sum[i].z + sum[i].w);
#elif WIDTH == 4
                    const float mine[4] = {sum[i/4].x, sum[i/4].y, sum[i/4].z, sum[i/4].w};
                    shared[(i - first)*ITEMS + tid] = mine[i%4];
#else
                    shared[(i - first)*ITEMS + tid] = sum[i];
#endif
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            const int parts = ROWS ? 32 : WARPS;
            for (int e = tid; e < AT_ONCE*ITEMS/parts; e += ITEMS) {
                const int i = first + e/(ITEMS/parts);       // which of a work-item's sums
                const int of = e%(ITEMS/parts);              // whose: the warp, or the lane
                float total = 0.0f;
                if (i < OWN) {
                    for (int p = 0; p < parts; p++) {
                        total += shared[(i - first)*ITEMS + (ROWS ? of*32 + (p + of)%32 : p*32 + of)];
                    }
                    const int sum_of = ROWS ? i : i/WIDTH;   // its index in `sum`
                    const int l = ROWS ? of + i/LINES*WARPS : i/WIDTH/LINES*32*WIDTH + of*WIDTH + i%WIDTH;
                    const int j = sum_of%LINES;
                    if (!whole) {
                        pieces[(size_t)piece*SUMS + j*LONG + l] = total;
                    } else if (l0 + l < side && j0 + j < few) {
                        C[ROWS ? (size_t)(l0 + l)*M + j0 + j : (size_t)(j0 + j)*M + l0 + l] = total;
                    }
                }
            }
            barrier(CLK_LOCAL_MEM_FENCE);
        }

        if (!whole) {
#include "fix_up.cl"
        }
        step += count;
    }
}
