// warp tiling: a tile for the work-group, a block of it for each warp, a part of that for
// each work-item.
//
// Before:   17_stream_k. Its ideas and those below it, for any size. In 09_prefetch the elements
//           of a work-item are scattered over the tile, and each float takes a load from local
//           memory. Here, as in 15_warp_tiles, the 32 work-items of a warp share one compact
//           block and read it as vectors of 4. While one step of k is multiplied, the vectors
//           for the next step are loaded into registers, and the next tiles are copied to local
//           memory.
// Costs:    STAGES*TSK*(TSM + TSN + PAD) floats of local memory, WPTM*WPTN accumulators and
//           2*(WPTM + WPTN) further registers; 1/TSM + 1/TSN global and 1/WPTM + 1/WPTN local
//           loads per multiply-add, the local ones 4 at a time. With GROUPS also a workspace
//           of 2*GROUPS*TSM*TSN floats, which are written once and read once, and of GROUPS
//           counters, which must be zero before the first launch and are zero after each.
//           With SPLIT, where there is an edge strip, A and B are read once more.
// Requires: any M, N and K: elements outside the matrices count as zero, and nothing is
//           stored there. Leading dimensions: for A, M rounded up to a multiple of WIDTH; for
//           B, N rounded up likewise if it is transposed (N x K), else K; for C, M. TSM must
//           be a multiple of WPTM*WARPM, TSN of WPTN*32/WARPM, WPTM and WPTN of 4; all
//           work-items copy equal shares of the tiles.
//
//    Which work-item of warp 0 holds an element of C (WARPM = 8, WPTM = WPTN = 8):
//
//        n    0   4   8  12 |16  20  24  28
//    m   0    0   8  16  24 | 0   8  16  24    each number is a block of 4 x 4;
//        4    1   9  17  25 | 1   9  17  25    a work-item holds four of them,
//      ...                  |                  so that neighbouring work-items
//       28    7  15  23  31 | 7  15  23  31    read neighbouring vectors
//       32    0   8  16  24 | 0   8  16  24
//      ...
//
//    With GROUPS = 0 a work-group computes one tile. Otherwise the work is divided as in
//    Stream-K: the steps of k of all tiles form one line, which is cut into GROUPS pieces of
//    equal length. A fix-up adds up the parts of a tile that was cut; fixup.cl does it or,
//    with LAST, the last work-group to finish its part of the tile:
//
//    tile   |      0      |      1      |      2      |
//    group  |    0    |    1    |    2    |    3    |
//
//    With SPLIT, up to SPLIT rows or columns beyond the last whole tiles are edge strips.
//    Tiles for them would mostly multiply zeroes. Instead, further work-groups, numbered after
//    those of the tiles, sum each element of the strips separately. They run wherever the
//    tiles leave a place on the chip free.

#ifndef TSM
#define TSM 128 // rows of the tile of C [32, 64, 128]
#endif
#ifndef TSN
#define TSN 64 // columns of the tile of C [32, 64, 128]
#endif
#ifndef TSK
#define TSK 16 // depth of the tiles of A and B, in steps of k [8, 16]
#endif
#ifndef WPTM
#define WPTM 8 // rows of C a work-item computes [4, 8]
#endif
#ifndef WPTN
#define WPTN 8 // columns of C a work-item computes [4, 8]
#endif
#ifndef WARPM
#define WARPM 8 // rows of work-items in a warp of 32 [4, 8]
#endif
#ifndef WIDTH
#define WIDTH 4 // floats copied at once from global memory [1, 4]
#endif
#ifndef STAGES
#define STAGES 2 // tiles of A and B in local memory: one in use, the others being filled [2, 3]
#endif
#ifndef ORDER
#define ORDER 8 // rows of tiles in a band that neighbouring work-groups go through together (swizzle) [1, 8]
#endif
#ifndef GROUPS
#define GROUPS 0 // work-groups that share all tiles equally (Stream-K); 0: one work-group per tile [0, 16, 264]
#endif
#ifndef LAST
#define LAST 1 // 1: the last work-group to finish its part of a tile does the fix-up, where it can; 0: fixup.cl [0, 1]
#endif
#ifndef TRANSPOSED
#define TRANSPOSED 1 // 1: B is N x K; 0: B is K x N [0, 1]
#endif
#ifndef BATCHES
#define BATCHES 1 // batches in which the copies of a tile are issued, spread over the multiply-adds [1, 3, 7]
#endif
#ifndef SPLIT
#define SPLIT 0 // most rows or columns of an edge strip, whose elements are summed without tiles [0, 8]
#endif
#ifndef DOWN
#define DOWN 1 // vectors that a work-item copies per column of A's tile [1, 4]
#endif
#ifndef TAIL
#define TAIL 0 // 1: a separate loop for the steps of k after the last whole tiles of A and B; 0: zeroes fill them up [0, 1]
#endif
#ifndef ASYNC
#define ASYNC 1 // 1: copy to local memory asynchronously where the device can [0, 1]
#endif

#if !(TSM % (WPTM * WARPM) == 0)
#error TSM is not a multiple of WPTM*WARPM
#endif
#if !(32 % WARPM == 0)
#error WARPM does not divide 32
#endif
#if !(TSN * WARPM % (WPTN * 32) == 0)
#error TSN is not a multiple of WPTN times 32 over WARPM
#endif
#if !(WPTM % 4 == 0)
#error WPTM is not a multiple of 4
#endif
#if !(WPTN % 4 == 0)
#error WPTN is not a multiple of 4
#endif
#if !((WIDTH - 1) * (WIDTH - 4) == 0)
#error WIDTH is neither 1 nor 4
#endif
#if !(TSN * WIDTH % (WPTM * WPTN) == 0)
#error TSN times WIDTH is not a multiple of WPTM times WPTN
#endif
#if !(TSM * WIDTH % (WPTM * WPTN) == 0)
#error TSM times WIDTH is not a multiple of WPTM times WPTN
#endif
#if !((TSK * WPTM * WPTN) % (TSN * WIDTH * DOWN) == 0)
#error TSK times WPTM times WPTN is not a multiple of TSN times WIDTH times DOWN
#endif
#if !(TSM % (WIDTH * DOWN) == 0)
#error TSM is not a multiple of WIDTH times DOWN
#endif
#if !((TSK * WPTM * WPTN) % (TSM * WIDTH) == 0)
#error uneven shares of a tile: TSK times WPTM times WPTN is not a multiple of TSM times WIDTH
#endif
#if !(STAGES > 1)
#error STAGES is less than 2
#endif
#if !(TSK % 2 == 0)
#error TSK is odd
#endif
#if !((TSM * TSN) % (TSK * WPTM * WPTN) == 0)
#error TSM times TSN is not a multiple of TSK times WPTM times WPTN
#endif
#if !((8 * WPTM * WPTN) % TSM == 0)
#error 8 times WPTM times WPTN is not a multiple of TSM
#endif
#if !((BATCHES > 0) * (BATCHES < TSK) == 1)
#error BATCHES is not between 1 and TSK minus 1
#endif
#if !((SPLIT < TSM) * (SPLIT < TSN) == 1)
#error SPLIT is not below TSM and TSN
#endif
#if !(STAGES * TSK * WPTM * WPTN >= SPLIT * TSN)
#error STAGES times TSK times WPTM times WPTN is less than SPLIT times TSN
#endif
#if !(TAIL < 2)
#error TAIL is neither 0 nor 1
#endif
#if !(TRANSPOSED < 2)
#error TRANSPOSED is neither 0 nor 1
#endif
#if !(GROUPS < 65536)
#error GROUPS is not below 65536
#endif
#if !(LAST < 2)
#error LAST is neither 0 nor 1
#endif
#if !(ASYNC < 2)
#error ASYNC is neither 0 nor 1
#endif

#define WARPN (32/WARPM)                     // columns of work-items in a warp
#define WARPS (TSM/(WPTM*WARPM))             // warps in a column of the tile
#define ITEMS (TSM/WPTM*(TSN/WPTN))          // work-items of a work-group
#define MA (TSM/DOWN)                        // rows of A's tile that a work-group copies at once
#define KA (ITEMS*WIDTH/MA)                  // and how many steps of k
#if TRANSPOSED
#define KB (ITEMS*WIDTH/TSN)                 // steps of k of B's tile
#elif TSK % 8 == 0
#define KB 8                                 // 8 floats from each of 4 columns: a warp's stores have no bank conflicts
#else
#define KB TSK
#endif
#define NB (ITEMS/KB)                        // and how many columns, if B is not transposed
#define LPTA (TSK/KA*DOWN)                   // vectors of A's tile a work-item copies
#define PAD (4*(1 - TRANSPOSED))             // floats added to each row of Btile against bank conflicts

// copy 4 floats or 1 from global to local memory; store zeroes if they are outside the matrix
#if ASYNC && defined(__NV_CL_C_VERSION)
// asynchronous: a copy is only started; COPIED() ends the copies of a tile, AWAIT(n) waits until all but the last n
// tiles have arrived; where the predicate p is true, zeroes are stored instead
#define COPY_4(to, from, there) \
    asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, p; }" \
                 :: "r"((uint)(size_t)(to)), "l"(from), "r"((int)(there)) : "memory")
#define COPY_1(to, from, there) \
    asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 4, p; }" \
                 :: "r"((uint)(size_t)(to)), "l"(from), "r"((int)(there)) : "memory")
#define COPIED() asm volatile("cp.async.commit_group;" ::: "memory")
#define AWAIT(tiles) asm volatile("cp.async.wait_group %0;" :: "n"(tiles) : "memory")
#else
#define COPY_4(to, from, there) *(__local float4*)(to) = (there) ? *(const __global float4*)(from) : (float4)(0.0f)
#define COPY_1(to, from, there) *(to) = (there) ? *(from) : 0.0f
#define COPIED()
#define AWAIT(tiles)
#endif

// A's tile: DOWN vectors from a column, then those from the next column
#if WIDTH == 4
#define COPY COPY_4
#else
#define COPY COPY_1
#endif
#define MA_OF(l) ((l)%DOWN*MA)
#define KA_OF(l) ((l)/DOWN*KA)
#define COPY_A(l) COPY(&Atile[filled][ka][ia] + KA_OF(l)*TSM + MA_OF(l), a_from + KA_OF(l)*lda + MA_OF(l), \
                       m0 + ia + MA_OF(l) < M && left_a > KA_OF(l))
// B's tile: vectors down a column of the transposed B, or single floats down a column of B
#if TRANSPOSED
#define LPTB (TSK/KB)
#define B_AT(k, n) B[(size_t)(k)*ldb + (n)]
#define COPY_B(l) COPY(&Btile[filled][kb + (l)*KB][ib], b_from + (l)*KB*ldb, \
                       n0 + ib < N && left_b > (l)*KB)
#define B_STEP (size_t)TSK*ldb
#else
#define LPTB (TSK/KB*(TSN/NB))
#define B_AT(k, n) B[(size_t)(n)*ldb + (k)]
#define K_OF(l) ((l)%(TSK/KB)*KB)
#define N_OF(l) ((l)/(TSK/KB)*NB)
#define COPY_B(l) COPY_1(&Btile[filled][kb][ib] + K_OF(l)*(TSN + PAD) + N_OF(l), \
                         b_from + (size_t)N_OF(l)*ldb + K_OF(l), n0 + ib + N_OF(l) < N && left_b > K_OF(l))
#define B_STEP TSK
#endif

// load: the next tiles of A and B into stage `filled`, or zeroes where there are none; of all these copies, NEXT(k)
// starts those that belong beside the multiply-adds of step k
#define STEP_OF(l, count) ((l)*BATCHES/(count)*((TSK - 1)/BATCHES))
#define NEXT(k) \
    _Pragma("unroll") \
    for (int l = 0; l < LPTA; l++) { \
        if (STEP_OF(l, LPTA) == (k)) \
            COPY_A(l); \
    } \
    _Pragma("unroll") \
    for (int l = 0; l < LPTB; l++) { \
        if (STEP_OF(l, LPTB) == (k)) \
            COPY_B(l); \
    } \
    if ((k) == TSK - 2) { \
        COPIED(); \
        left_a -= TSK; \
        left_b -= TSK; \
        a_from += (size_t)TSK*lda; \
        b_from += B_STEP; \
        filled = filled + 1 < STAGES ? filled + 1 : 0; \
    }

// fragment: load what a work-item needs for step k from local memory into registers. Without `volatile` the compiler
// would move these loads to where their values are needed, and the work-item would wait
#define FRAGMENT(k, to) \
    for (int wm = 0; wm < WPTM; wm += 4) { \
        *(float4*)&a[to][wm] = *(const volatile __local float4*)&Atile[now][k][tm + wm*WARPM]; \
    } \
    for (int wn = 0; wn < WPTN; wn += 4) { \
        *(float4*)&b[to][wn] = *(const volatile __local float4*)&Btile[now][k][tn + wn*WARPN]; \
    }

// multiply: the fragments of a step. Two columns at a time, down the first two and up the next two, so that each
// multiply-add shares a factor with the one before
#define MULTIPLY(of) \
    _Pragma("unroll") \
    for (int wn = 0; wn < WPTN; wn += 2) { \
        _Pragma("unroll") \
        for (int i = 0; i < WPTM; i++) { \
            const int wm = wn%4 ? WPTM - 1 - i : i; \
            acc[wn + i%2][wm] += a[of][wm]*b[of][wn + i%2]; \
            acc[wn + 1 - i%2][wm] += a[of][wm]*b[of][wn + 1 - i%2]; \
        } \
    }

// where a work-item's elements are: the row of acc[][wm] and the column of acc[wn] inside the tile, and the first of 4
// elements in a partial tile of the workspace
#define ROW(wm) (tm + (wm)*WARPM)
#define COLUMN(wn) (tn + (wn)/4*4*WARPN + (wn)%4)
#define PIECE(piece, wm, wn) pieces[((size_t)(piece)*TSN + COLUMN(wn))*TSM + ROW(wm)]

// where an element of C is. A launch that wants the transpose of C, N x M, sets TURNED; fixup.cl cannot store that
#if TURNED
#define C_AT(m, n) C[(size_t)(m)*N + (n)]
#else
#define C_AT(m, n) C[(size_t)(n)*M + (m)]
#endif

#if LAST && defined(__NV_CL_C_VERSION)
// memory fence: other work-groups see what this work-item stored before it no later than what it stores after it;
// OpenCL 1.2 has no such guarantee between work-groups
#define IN_ORDER() asm volatile("membar.gl;" ::: "memory")
#endif

// how many tiles there are along `size` rows or columns, if a tile has `side` of them
#define TILES(size, side) (((size) - 1 - SPLIT)/(side) + 1)

#if SPLIT
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
#endif

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C,
          __global float* restrict pieces)
{
    // identifiers
    const int tid = get_local_id(0);                         // number of the work-item
    const int lane = tid%32;                                 // its number in the warp
    const int warp = tid/32;                                 // number of the warp
    const int tm = (warp%WARPS*WARPM*WPTM) + lane%WARPM*4;   // first row inside the tile
    const int tn = (warp/WARPS*WARPN*WPTN) + lane/WARPM*4;   // first column inside the tile
    const int ia = tid%(MA/WIDTH)*WIDTH;                     // first row of A's tile that it copies
    const int ka = tid/(MA/WIDTH);                           // and its first step of k
    const int ib = TRANSPOSED ? tid%(TSN/WIDTH)*WIDTH : tid/KB;   // the same for B's tile
    const int kb = TRANSPOSED ? tid/(TSN/WIDTH) : tid%KB;
    const int lda = (M - 1)/WIDTH*WIDTH + WIDTH;             // leading dimensions of A and B
    const int ldb = TRANSPOSED ? (N - 1)/WIDTH*WIDTH + WIDTH : K;
    const int tiles_m = TILES(M, TSM);                       // rows of tiles
    const int tiles_n = TILES(N, TSN);                       // columns of tiles
    const int steps = (K - 1)/TSK + 1;                       // tiles of A that a tile of C needs

    // this work-group's piece of the line of all steps
    const int group = get_group_id(0);
    const int groups = GROUPS ? GROUPS : tiles_m*tiles_n;    // work-groups for the tiles
    const long line = (long)tiles_m*tiles_n*steps;
    long step = line*group/groups;
    const long end = line*(group + 1)/groups;
    int cut = 0;                                             // partial tiles that it has stored

    // local memory
    __local float Atile[STAGES][TSK][TSM] __attribute__((aligned(128))); // [stage][k][m]
    __local float Btile[STAGES][TSK][TSN + PAD] __attribute__((aligned(128))); // [stage][k][n]

#if SPLIT
    if (group >= groups) {
        strip(M, N, K, lda, ldb, A, B, C, group - groups, &Atile[0][0][0]);
        return;
    }
#endif

    while (step < end) {
        // which tile: down a band of ORDER rows of tiles, then on to the next column of the band
        const int tile = step/steps;
        const int band = tile/(ORDER*tiles_n)*ORDER;
        const int rows = min(ORDER, tiles_m - band);
        const int m0 = (band + tile%(ORDER*tiles_n)%rows)*TSM;
        const int n0 = tile%(ORDER*tiles_n)/rows*TSN;
        const int count = (int)min(end - step, (long)steps - step%steps);
        const int k0 = (int)(step%steps)*TSK;                // first step of k of this part
        const int depth = min(count*TSK, K - k0);            // and number of steps
        int left_a = depth - ka;                             // steps left to load for this work-item
        int left_b = depth - kb;
        const __global float* a_from = A + (size_t)(k0 + ka)*lda + m0 + ia;
        const __global float* b_from = &B_AT(k0 + kb, n0 + ib);
        int filled = 0;
        int now = 0;

        // accumulators
        float acc[WPTN][WPTM] __attribute__((aligned(16)));
        for (int wn = 0; wn < WPTN; wn++) {
            for (int wm = 0; wm < WPTM; wm++) {
                acc[wn][wm] = 0.0f;
            }
        }
        float a[2][WPTM] __attribute__((aligned(16)));
        float b[2][WPTN] __attribute__((aligned(16)));

        // load: the first tiles
        for (int stage = 1; stage < STAGES; stage++) {
            #pragma unroll
            for (int k = 0; k < TSK - 1; k++) {
                NEXT(k)
            }
        }
        AWAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);
        FRAGMENT(0, 0)

        for (int t = 0; t < (TAIL ? depth/TSK : count); t++) {
            // compute, fetch the fragments of the next step, and load one more tile
            #pragma unroll
            for (int k = 0; k < TSK; k++) {
                if (k == TSK - 1) {
                    // barrier: the next tile has arrived, and nobody needs this one any more
                    AWAIT(STAGES - 2);
                    barrier(CLK_LOCAL_MEM_FENCE);
                    now = now + 1 < STAGES ? now + 1 : 0;
                }
                FRAGMENT((k + 1)%TSK, (k + 1)%2)
                NEXT(k)
                MULTIPLY(k%2)
            }
        }
#if TAIL
        #pragma unroll 1
        for (int k = 0; k < depth%TSK; k++) {
            FRAGMENT(k, 0)
            MULTIPLY(0)
        }
#endif
        // barrier: nobody needs the last tile any more, and no copy of zeroes is still under way
        AWAIT(0);
        barrier(CLK_LOCAL_MEM_FENCE);

        // store: a partial tile
        int whole = count == steps;
        if (!whole) {
            for (int wn = 0; wn < WPTN; wn++) {
                for (int wm = 0; wm < WPTM; wm += 4) {
                    *(__global float4*)&PIECE(2*group + cut, wm, wn) = *(const float4*)&acc[wn][wm];
                }
            }
            cut++;
#ifdef IN_ORDER
            // fix-up: the last work-group to finish its part adds up all parts, in the order of their steps
            const long begin = step - step%steps;
            const int first = ((begin + 1)*groups - 1)/line;     // the work-groups of the first step
            const int last = ((begin + steps)*groups - 1)/line;  // and the last step of the tile
            __global int* come = (__global int*)(pieces + (size_t)2*groups*TSM*TSN) + first;
            __local int* before = (__local int*)Atile;            // nobody needs the floats in it any more
            IN_ORDER();
            barrier(CLK_LOCAL_MEM_FENCE);
            if (tid == 0) {
                *before = atomic_inc(come);
            }
            barrier(CLK_LOCAL_MEM_FENCE);
            whole = *before == min(last - first, steps - 1);     // there are at most as many parts as steps
            barrier(CLK_LOCAL_MEM_FENCE);
            if (whole) {
                IN_ORDER();
                if (tid == 0) {
                    *come = 0;
                }
                for (int wn = 0; wn < WPTN; wn++) {
                    for (int wm = 0; wm < WPTM; wm++) {
                        acc[wn][wm] = 0.0f;
                    }
                }
                // a work-group that shared the tile before, too, has stored this part as its second
                const long start = line*first/groups;
                const int second = start < begin && start%steps != 0;
#if WPTM*WPTN <= 32
                #pragma unroll 4                             // the loads of several parts at once, if registers allow
#endif
                for (int from = first; from <= last; from++) {
                    // if there are few steps, some work-groups have none
                    if (groups <= line || line*from/groups < line*(from + 1)/groups) {
                        const int piece = 2*from + (from == first ? second : 0);
                        #pragma unroll
                        for (int wn = 0; wn < WPTN; wn++) {
                            #pragma unroll
                            for (int wm = 0; wm < WPTM; wm += 4) {
                                *(float4*)&acc[wn][wm] += *(const __global float4*)&PIECE(piece, wm, wn);
                            }
                        }
                    }
                }
            }
#endif
        }

        // store: a whole tile
        if (whole) {
#if TURNED
            // a work-item's columns of a row are neighbours now
            for (int wm = 0; wm < WPTM; wm++) {
                for (int wn = 0; wn < WPTN; wn += 4) {
                    const int m = m0 + ROW(wm/4*4) + wm%4;
                    const int n = n0 + COLUMN(wn);
                    const float4 sum = (float4)(acc[wn][wm], acc[wn + 1][wm], acc[wn + 2][wm], acc[wn + 3][wm]);
                    __global float* c = &C_AT(m, n);
                    if (N%4 == 0) {
                        if (m < M && n < N) *(__global float4*)c = sum;
                    } else if (m < M) {
                        if (n < N) c[0] = sum.x;
                        if (n + 1 < N) c[1] = sum.y;
                        if (n + 2 < N) c[2] = sum.z;
                        if (n + 3 < N) c[3] = sum.w;
                    }
                }
            }
#elif WIDTH == 1 && WARPM*WPTM % 32 == 0 && STAGES*TSK*WPTN >= TSN
            // in local memory the work-items of a warp exchange elements, so that neighbours store neighbours
            __local float* block = &Atile[0][0][0] + warp*32*WPTM;    // [columns of the warp][its rows]
            const int m1 = m0 + tm - lane%WARPM*4;                   // the warp's first row and column of C
            const int n1 = n0 + tn - lane/WARPM*4;
            __global float* c = C + (size_t)n1*M + m1;
            const bool inside = m0 + TSM <= M && n0 + TSN <= N;
            #pragma unroll
            for (int wn = 0; wn < WPTN; wn++) {
                #pragma unroll
                for (int wm = 0; wm < WPTM; wm += 4) {
                    const int at = (lane/WARPM*WPTM + wm)*WARPM + lane%WARPM*4;
                    *(__local float4*)&block[at] = *(const float4*)&acc[wn][wm];
                }
                barrier(CLK_LOCAL_MEM_FENCE);
                #pragma unroll
                for (int n = 0; n < WARPN; n++) {
                    __global float* column = c + (size_t)(wn/4*4*WARPN + wn%4 + n*4)*M + lane;
                    #pragma unroll
                    for (int m = 0; m < WARPM*WPTM; m += 32) {
                        if (inside) {
                            column[m] = block[n*WARPM*WPTM + m + lane];
                        } else if (n1 + wn/4*4*WARPN + wn%4 + n*4 < N && m1 + m + lane < M) {
                            column[m] = block[n*WARPM*WPTM + m + lane];
                        }
                    }
                }
                barrier(CLK_LOCAL_MEM_FENCE);
            }
#else
            for (int wn = 0; wn < WPTN; wn++) {
                for (int wm = 0; wm < WPTM; wm += 4) {
                    const int m = m0 + ROW(wm);
                    const int n = n0 + COLUMN(wn);
                    const float4 sum = *(const float4*)&acc[wn][wm];
                    __global float* c = &C_AT(m, n);
                    if (M%4 == 0) {
                        if (n < N && m < M) *(__global float4*)c = sum;
                    } else if (n < N) {
                        if (m < M) c[0] = sum.x;
                        if (m + 1 < M) c[1] = sum.y;
                        if (m + 2 < M) c[2] = sum.z;
                        if (m + 3 < M) c[3] = sum.w;
                    }
                }
            }
#endif
        }
        step += count;
    }
}
