// 17 Stream-K: equal work for all work-groups, and tiles in an order that suits the L2 cache.
//
// Before:   16_async_copies. There the last tiles leave most of the chip idle. Here GROUPS work-groups, as many as it
//           holds, share the steps of all tiles equally (Stream-K, Osama et al. 2023), and support/fixup.cl adds up the
//           parts of tiles. They are numbered down the columns of bands of ORDER rows: neighbours load the same data.
// Costs:    as before; and a workspace of 2*GROUPS*TSM*TSN floats for parts of tiles.
// Requires: M, N and K multiples of TSM, TSN and 8 (padded to them).
//
//    tile   |     0     |     1     |     2     |     the steps of k of three tiles,
//    group  |   0    |   1    |   2    |   3    |     shared by four work-groups
//
// Compile:  -DTSM=256     rows of the tile of C [64, 128, 256]
//           -DTSN=128     columns of the tile of C [64, 128]
//           -DORDER=16    rows of tiles in a band that neighbouring work-groups go through together (swizzle) [1, 4, 8, 16]
//           -DGROUPS=132  work-groups that share all tiles equally (Stream-K); 0: one work-group per tile [0, 5, 16, 132, 264]
//           -DASYNC=1     1: copy to local memory asynchronously where the device can [0, 1]

#define TSK (8)                     // depth of the tiles of A and B, in steps of k
#define STAGES (3)                  // tiles of A and B in local memory
#define WPTM (16)                   // rows of C a work-item computes
#define WPTN (8)                    // columns of C a work-item computes
#define WARPM (64/WPTM)             // rows of work-items in a warp of 32
#define WARPN (32/WARPM)            // columns of work-items in a warp
#define ITEMS (TSM/WPTM*(TSN/WPTN)) // work-items in a work-group

// copy: 4 floats to local memory, only started; COPIED() closes a batch, AWAIT(n) waits for all batches but the last n
#if ASYNC && defined(__NV_CL_C_VERSION)
#define COPY(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((uint)(size_t)(to)), "l"(from) : "memory")
#define COPIED() asm volatile("cp.async.commit_group;" ::: "memory")
#define AWAIT(batches) asm volatile("cp.async.wait_group %0;" :: "n"(batches) : "memory")
#define BEYOND 1 // a fragment may come from behind the last tile: nobody uses it
#else
#define COPY(to, from) *(__local float4*)(to) = *(const __global float4*)(from)
#define COPIED()
#define AWAIT(batches)
#define BEYOND 0
#endif

// load: the part of a tile that a work-item copies; the tile's columns have `side` floats
static inline void load(__local float* to, const __global float* from, const int ld, const int side)
{
    for (int e = 0; e < TSK*side; e += 4*ITEMS) { COPY(to + e, from + e/side*ld); }
}
#define NEXT(ahead) \
    if (left > (ahead)*TSK) { \
        load(Atile[filled][0] + id, a_from, M, TSM); \
        load(Btile[filled][0] + id, b_from, N, TSN); \
        a_from += TSK*M, b_from += TSK*N; \
        filled = filled + 1 < STAGES ? filled + 1 : 0; \
    } \
    COPIED()

// fragment: what this work-item needs of step k; `volatile` keeps the compiler from loading it later
#define FRAGMENT(k, to) \
    for (int i = 0; i < WPTM; i += 4) { \
        *(float4*)&a[to][i] = *(const volatile __local float4*)&Atile[now][k][tm + i*WARPM]; \
    } \
    for (int j = 0; j < WPTN; j += 4) { \
        *(float4*)&b[to][j] = *(const volatile __local float4*)&Btile[now][k][tn + j*WARPN]; \
    }

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C, __global float* restrict pieces)
{
    // identifiers
    const int id = 4*get_local_id(0);        // first float of each tile that it copies
    const int lane = get_local_id(0)%32, warp = get_local_id(0)/32; // number in the warp, and of it
    const int tm = warp%(TSM/64)*64 + lane%WARPM*4;              // first row in the tile of C
    const int tn = warp/(TSM/64)*WARPN*WPTN + lane/WARPM*4;      // first column in the tile of C

    // this work-group's share of the steps of all tiles; each tile has K/TSK of them
    const int tiles_n = N/TSN;
    const long steps = (long)(M/TSM)*tiles_n*(K/TSK);
    const int end = steps*(get_group_id(0) + 1)/get_num_groups(0);
    int piece = 2*get_group_id(0);           // where it stores its next part of a tile

    // local memory: a stage to compute from, and the others to fill
    __local float Atile[STAGES][TSK][TSM] __attribute__((aligned(16))); // [stage][k][m]
    __local float Btile[STAGES][TSK][TSN] __attribute__((aligned(16))); // [stage][k][n]

    for (int step = steps*get_group_id(0)/get_num_groups(0); step < end; ) {
        // which tile, and which of its steps
        const int tile = step/(K/TSK);
        const int band = tile/(ORDER*tiles_n)*ORDER;             // its first row of tiles
        const int rows = min(ORDER, M/TSM - band);
        const int m0 = (band + tile%(ORDER*tiles_n)%rows)*TSM;
        const int n0 = tile%(ORDER*tiles_n)/rows*TSN;
        const int first = step%(K/TSK);
        const int count = min(K/TSK - first, end - step);
        const __global float* a_from = A + (first*TSK + id/TSM)*M + m0 + id%TSM;
        const __global float* b_from = B + (first*TSK + id/TSN)*N + n0 + id%TSN;
        int left = count*TSK;                // steps of k that are left to multiply
        int filled = 0, now = 0;             // the stages to fill and to compute from

        // accumulators, and two fragments of A and B: one to multiply, one to fill
        float acc[WPTN][WPTM] __attribute__((aligned(16))) = {{0.0f}};
        float a[2][WPTM] __attribute__((aligned(16))); float b[2][WPTN] __attribute__((aligned(16)));

        // load: the first tiles, and the first fragments
        for (int stage = 0; stage < STAGES - 1; stage++) { NEXT(stage); }
        AWAIT(STAGES - 2); barrier(CLK_LOCAL_MEM_FENCE);
        FRAGMENT(0, 0)
        for (; left > 0; left -= TSK) {
            NEXT(STAGES - 1);                    // load: one more tile
            // compute, and load the next fragments
            #pragma unroll
            for (int k = 0; k < TSK; k++) {
                if (k == TSK - 1) {
                    // barrier: the next tile is there for all, and nobody needs this one any more
                    AWAIT(STAGES - 2); barrier(CLK_LOCAL_MEM_FENCE);
                    now = !BEYOND && left == TSK ? now : now + 1 < STAGES ? now + 1 : 0;
                }
                FRAGMENT((k + 1)%TSK, (k + 1)%2)
                for (int j = 0; j < WPTN; j++) {
                    for (int i = 0; i < WPTM; i++) { acc[j][i] += a[k%2][i] * b[k%2][j]; }
                }
            }
        }

        // store: a whole tile into C, a part of one into the workspace
        const int whole = count == K/TSK;
        const int ld = whole ? M : TSM;
        __global float* to = whole ? C + n0*M + m0 : pieces + (size_t)TSM*TSN*piece++;
        for (int j = 0; j < WPTN; j++) {
            for (int i = 0; i < WPTM; i += 4) {
                *(__global float4*)&to[(tn + j/4*4*WARPN + j%4)*ld + tm + i*WARPM] = *(float4*)&acc[j][i];
            }
        }
        step += count;
        barrier(CLK_LOCAL_MEM_FENCE);        // nobody reads the stages any more
    }
}

#if !((TSM % 64 + TSN % 64 + 256 % TSM + 256 % TSN == 0) * (ASYNC < 2) == 1)
#error TSM or TSN is none of 64, 128 and 256, or ASYNC is neither 0 nor 1
#endif
