// 17 Stream-K: tiles in an order that suits the L2 cache, and equal work for all work-groups.
//
// Before:   16_async_copies. There a work-group computes one tile, and the last tiles leave most
//           of the chip idle. Here GROUPS work-groups, as many as fit on it, share the steps of
//           k of all tiles equally (Stream-K, Osama et al. 2023). Of a tile that was cut they
//           store parts, which a fix-up adds up (support/fixup.cl). And ORDER rows of tiles make
//           a band, which is gone through column by column: neighbours share what they load.
// Costs:    as before, with TSK = 16 and STAGES = 3; and a workspace of 2*GROUPS*TSM*TSN floats,
//           of which every part of a tile is written once and read once.
// Requires: M, N and K multiples of TSM, TSN and 16 (padded to them); TSM = 64, 128 or 256, and
//           TSN one of these or 32.
//
//    tile   |     0     |     1     |     2     |     the steps of k of three tiles,
//    group  |   0    |   1    |   2    |   3    |     shared equally by four work-groups

#ifndef TSM
#define TSM 128 // rows of the tile of C
#endif
#ifndef TSN
#define TSN 128 // columns of the tile of C
#endif
#ifndef ORDER
#define ORDER 8 // rows of tiles in a band that neighbouring work-groups go through together (swizzle)
#endif
#ifndef GROUPS
#define GROUPS 264 // work-groups that share all tiles equally (Stream-K); 0: one work-group per tile
#endif
#ifndef UNROLL
#define UNROLL 16 // steps of k that the compiler lays out in one turn of the loop
#endif

#if !(TSM % 64 + TSN % 32 + 256 % TSM + 256 % TSN == 0)
#error TSM must be 64, 128 or 256, and TSN one of these or 32
#endif

#define TSK 16                      // depth of the tiles of A and B, in steps of k
#define STAGES 3                    // tiles of A and B in local memory
#define WPTM 8                      // rows of C a work-item computes
#define WPTN 8                      // columns of C a work-item computes
#define WARPM 8                     // rows of work-items in a warp of 32
#define WARPN 4                     // columns of work-items in a warp
#define WARPS (TSM/64)              // warps in a column of the tile
#define ITEMS (TSM/WPTM*(TSN/WPTN)) // work-items in a work-group

// copy: 4 floats from global to local memory
#if defined(__NV_CL_C_VERSION)
// only started here; COPIED() closes a batch, AWAIT(n) waits for all batches but the last n
#define COPY(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((uint)(size_t)(to)), "l"(from) : "memory")
#define COPIED() asm volatile("cp.async.commit_group;" ::: "memory")
#define AWAIT(batches) asm volatile("cp.async.wait_group %0;" :: "n"(batches) : "memory")
#else
#define COPY(to, from) *(__local float4*)(to) = *(const __global float4*)(from)
#define COPIED()
#define AWAIT(batches)
#endif

// load: a tile, whose columns have `side` floats, ITEMS vectors of 4 at a time
static inline void load(__local float* tile, const __global float* from, const int ld, const int side)
{
    for (int e0 = 0; e0 < TSK*side; e0 += 4*ITEMS) {
        const int e = e0 + 4*get_local_id(0);
        COPY(&tile[e], &from[e/side*ld + e%side]);
    }
}

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C,
          __global float* restrict pieces)
{
    // identifiers
    const int lane = get_local_id(0)%32;     // number of the work-item in its warp
    const int warp = get_local_id(0)/32;     // number of the warp
    const int tm = warp%WARPS*WARPM*WPTM + lane%WARPM*4; // first row in the tile of C
    const int tn = warp/WARPS*WARPN*WPTN + lane/WARPM*4; // first column in the tile of C

    // this work-group's share of all steps: one for each tile of A that a tile of C needs
    const int band = ORDER*(N/TSN);          // tiles in a band
    const int steps = K/TSK;                 // steps of one tile
    const long line = (long)(M/TSM)*(N/TSN)*steps;
    const int group = get_group_id(0);
    const int end = line*(group + 1)/get_num_groups(0);
    int piece = 2*group;                     // where the next part of a tile goes

    // local memory: a stage to compute from, and the others to fill
    __local float Atile[STAGES][TSK][TSM] __attribute__((aligned(16))); // [stage][k][m]
    __local float Btile[STAGES][TSK][TSN] __attribute__((aligned(16))); // [stage][k][n]

    for (int step = line*group/get_num_groups(0); step < end; ) {
        // which tile, and which of its steps
        const int tile = step/steps;
        const int top = tile/band*ORDER;     // the first row of tiles in the band
        const int rows = min(ORDER, M/TSM - top);
        const int m0 = (top + tile%band%rows)*TSM;
        const int n0 = tile%band/rows*TSN;
        const int first = step%steps*TSK;
        const int last = min(K, first + (end - step)*TSK);

        // accumulators
        float acc[WPTN][WPTM] __attribute__((aligned(16))) = {{0.0f}};

        // one turn starts copies of a tile, and multiplies the tile of STAGES - 1 turns before
        for (int k1 = first; k1 < last + (STAGES - 1)*TSK; k1 += TSK) {
            const int next = k1/TSK%STAGES;      // the stage to fill
            const int now = (next + 1)%STAGES;   // the stage to compute from, filled longest ago

            // barrier: tile `now` has arrived for all, and nobody needs tile `next` any more
            AWAIT(STAGES - 2);
            barrier(CLK_LOCAL_MEM_FENCE);

            // load: start copies, while we compute
            if (k1 < last) {
                load(Atile[next][0], A + k1*M + m0, M, TSM);
                load(Btile[next][0], B + k1*N + n0, N, TSN);
            }
            COPIED();
            if (k1 < first + (STAGES - 1)*TSK) continue; // nothing has arrived yet

            // compute
            #pragma unroll UNROLL
            for (int k = 0; k < TSK; k++) {
                float a[WPTM] __attribute__((aligned(16))); // each loaded once, used WPTN times
                for (int i = 0; i < WPTM; i += 4) {
                    *(float4*)&a[i] = *(const __local float4*)&Atile[now][k][tm + i*WARPM];
                }
                float b[WPTN] __attribute__((aligned(16))); // each loaded once, used WPTM times
                for (int j = 0; j < WPTN; j += 4) {
                    *(float4*)&b[j] = *(const __local float4*)&Btile[now][k][tn + j*WARPN];
                }
                for (int j = 0; j < WPTN; j++) {
                    for (int i = 0; i < WPTM; i++) {
                        acc[j][i] += a[i] * b[j];
                    }
                }
            }
        }

        // store: a whole tile into C, a part of one into the workspace, four rows at a time
        const int whole = last - first == K;
        const int ld = whole ? M : TSM;
        __global float* to = whole ? C + n0*M + m0 : pieces + (size_t)piece++*TSM*TSN;
        for (int j = 0; j < WPTN; j++) {
            for (int i = 0; i < WPTM; i += 4) {
                __global float* c = &to[(tn + j/4*4*WARPN + j%4)*ld + tm + i*WARPM];
                *(__global float4*)c = *(const float4*)&acc[j][i];
            }
        }
        step += (last - first)/TSK;
    }
}
