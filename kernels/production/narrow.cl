// narrow: a product with few rows or few columns, such as a matrix times a vector, at the speed of memory.
//
// Idea:     one operand is long, and each of its elements is used a few times only: it goes straight from global
//           memory into registers, in an order in which neighbouring work-items read neighbouring elements. What it
//           is multiplied with, a few lines of the other operand, waits in local memory.
// Costs:    LINES*TSK floats of local memory, and some for the sums; every element of the long operand is loaded once.
//           With GROUPS also a workspace of 2*GROUPS partial tiles and GROUPS counters, which must be zero before
//           the first launch and are zero after each.
// Requires: any M, N and K. Leading dimensions: for A, M rounded up to a multiple of WIDTH if ROWS is 0, else M; for
//           B, K rounded up likewise if ROWS is 1, else K, where what is added is zero; for C, M.
//
//    ROWS = 0: C has few columns, and A is the long operand. A warp reads down a column of A; the eight warps of a
//    work-group go through every eighth column and add up their sums at the end:
//
//             k  0 1 2 ... 8 9            B: TSK x LINES in local memory
//    m 0 to 127  0 1 2     0 1            each number is a warp: 32 work-items with WPT vectors of WIDTH rows each
//
//    ROWS = 1: C has few rows, and B is the long operand. A warp reads down WPT columns of B at a time, each lane
//    keeps its own sums, and the lanes' sums are added up at the end.
//
//    As in warp tiling the steps of k of all tiles form one line, which is cut into GROUPS pieces of equal length; the
//    last work-group to finish its part of a tile adds up all parts.

#ifndef LINES
#define LINES 4 // columns of C that a tile has, or rows if ROWS is 1 [1, 2, 4, 8, 16]
#endif
#ifndef ROWS
#define ROWS 0 // 1: C has few rows; 0: C has few columns [0, 1]
#endif
#ifndef TSK
#define TSK 256 // steps of k for which the lines of the short operand wait in local memory [128, 256, 512]
#endif
#ifndef WPT
#define WPT 1 // loads of the long operand that a work-item makes at a time: of its rows, or of columns if ROWS is 1 [1, 2, 4]
#endif
#ifndef WIDTH
#define WIDTH 4 // floats of the long operand in a load [1, 4]
#endif
#ifndef GROUPS
#define GROUPS 0 // work-groups that share all tiles equally; 0: one work-group per tile [0, 16, 264]
#endif

#if !(ROWS < 2)
#error ROWS is neither 0 nor 1
#endif
#if !((WIDTH - 1) * (WIDTH - 4) == 0)
#error WIDTH is neither 1 nor 4
#endif
#if !(TSK % (8 + ROWS * (32 * WIDTH - 8)) == 0)
#error TSK is not a multiple of 8, or with ROWS of 32 times WIDTH
#endif
#if !(LINES < 33)
#error LINES is more than 32
#endif
#if !(GROUPS < 65536)
#error GROUPS is not below 65536
#endif

#define ITEMS 256                             // work-items of a work-group
#define WARPS (ITEMS/32)
#define LONG (ROWS ? WARPS*WPT : 32*WIDTH*WPT) // rows of A, or columns of B, in a tile
#define SUMS (LONG*LINES)                     // elements of a tile
#define OWN (WPT*LINES*(ROWS ? 1 : WIDTH))    // sums that a work-item keeps
#define AT_ONCE (OWN < 8 ? OWN : 8)           // how many of these are added up at once
#if WIDTH == 4
#define vector float4
#else
#define vector float
#endif

// memory fence: other work-groups see what this work-item stored before it no later than what it stores after it
#if defined(__NV_CL_C_VERSION)
#define IN_ORDER() asm volatile("membar.gl;" ::: "memory")
#else
#define IN_ORDER() mem_fence(CLK_GLOBAL_MEM_FENCE)
#endif

// multiply: step k, for which the lines of the short operand are in local memory. Each work-item has rows of its own
// (ROWS = 0), or steps of its own (ROWS = 1). Where the compiler knows how long a loop is, it starts the loads of
// several steps at once, and this makes the kernel fast
#if ROWS
#define EACH (32*WIDTH)                       // from one step of a work-item to its next
#define FIRST (lane*WIDTH)
#define ELEMENT(k, r) *(const __global vector*)(from + (size_t)min(WARPS*(r), most)*ld + (k))
#define FACTOR(k, j) *(const __local vector*)&lines[(j)*TSK + (k)]
#define factor vector
#else
#define EACH WARPS
#define FIRST warp
#define ELEMENT(k, r) *(const __global vector*)(from + (size_t)(k)*ld + min(32*WIDTH*(r), most))
#define FACTOR(k, j) lines[(k)*LINES + (j)]
#define factor float
#endif
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
            // fix-up: the last work-group to finish its part adds up all parts, in the order of their steps
            cut++;
            const long begin = step - step%steps;
            const int first = ((begin + 1)*groups - 1)/line;     // the work-groups of the first step
            const int last = ((begin + steps)*groups - 1)/line;  // and the last step of the tile
            __global int* come = (__global int*)(pieces + (size_t)2*groups*SUMS) + first;
            IN_ORDER();
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
            if (tid == 0) {
                come_before = atomic_inc(come);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            whole = come_before == min(last - first, steps - 1); // there are at most as many parts as steps
            barrier(CLK_LOCAL_MEM_FENCE);
            if (whole) {
                IN_ORDER();
                if (tid == 0) {
                    *come = 0;
                }
            }
            // a work-group that shared the tile before, too, has stored this part as its second
            const long start = line*first/groups;
            const int second = start < begin && start%steps != 0;
            // if a tile has fewer elements than there are work-items, several share the parts of an element
            const int shares = SUMS < ITEMS ? ITEMS/SUMS : 1;
            const int share = SUMS < ITEMS ? tid/SUMS : 0;
            for (int e0 = 0; e0 < SUMS; e0 += ITEMS) {
                const int e = SUMS < ITEMS ? tid%SUMS : e0 + tid;
                const int until = whole && e < SUMS && share < shares ? last : -1;
                float total = 0.0f;
                #pragma unroll 8
                for (int source = first + share; source <= until; source += shares) {
                    // if there are few steps, some work-groups have none
                    if (groups <= line || line*source/groups < line*(source + 1)/groups) {
                        total += pieces[(size_t)(2*source + (source == first ? second : 0))*SUMS + e];
                    }
                }
                shared[tid] = total;
                barrier(CLK_LOCAL_MEM_FENCE);
                for (int other = 1; other < shares && tid < SUMS; other++) {
                    total += shared[other*SUMS + tid];
                }
                const int l = l0 + e%LONG;
                const int j = j0 + e/LONG;
                if (whole && share == 0 && e < SUMS && l < side && j < few) {
                    C[ROWS ? (size_t)l*M + j : (size_t)j*M + l] = total;
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
        }
        step += count;
    }
}
