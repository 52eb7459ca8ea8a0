// 17 Stream-K: equal work for all work-groups, and tiles in an order that suits the L2 cache.
//
// Before:   16_async_copies. There the last tiles can leave most of the chip idle. Here GROUPS
//           work-groups, as many as it holds, share the slices of all tiles equally (Stream-K,
//           Osama et al. 2023). A second launch, the fix-up below, adds up the parts of tiles.
// Costs:    as before, and a workspace of 2*GROUPS*TSM*TSN floats for parts of tiles.
// Requires: M, N and K multiples of TSM, TSN and 8 (padded to them). B transposed, N x K.
//
//    tile   |     0     |     1     |     2     |     the slices of three tiles of C, each TSK
//    group  |   0    |   1    |   2    |   3    |     steps of k, shared by four work-groups
//
// Compile:  -DTSM=256     rows of the tile of C [64, 128, 256]
//           -DTSN=128     columns of the tile of C [64, 128]
//           -DORDER=16    rows of tiles in a band whose tiles are computed together [1, 4, 8, 16]
//           -DGROUPS=132  work-groups that share all tiles; 0: one per tile [0, 5, 16, 132, 264]
//           -DASYNC=1     1: copy asynchronously where the device can [0, 1]

#define TSK 8                       // depth of the tiles of A and B, in steps of k
#define STAGES 3                    // tiles in local memory: one in use, the others being filled
#define WPTM 16                     // rows of C a work-item computes
#define WPTN 8                      // columns of C a work-item computes
#define WARPM (64/WPTM)             // rows of work-items in a warp, whose block has 64 rows
#define WARPN (32/WARPM)            // columns of work-items in a warp
#define ITEMS (TSM/WPTM*(TSN/WPTN)) // work-items in a work-group
#include "parts/async_copy.cl"      // start_copy, end_batch, AWAIT, BEYOND
static inline void load(__local float* to, const __global float* from, int ld, int side);
static inline float4 fragment(const volatile __local float* from);
static inline int after(int stage);
static inline int2 place_of(int tile, int tiles_m, int tiles_n);
__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C,
          __global float* restrict pieces)
{
    // identifiers; blocks are those of 15_warp_tiles: a work-item has 4 neighbouring rows from tm
    // on, 4 more from tm + 4*WARPM on, and so on, and likewise its columns
    const int id = 4*get_local_id(0);        // first float that this work-item copies
    const int lane = get_local_id(0)%32;     // number of the work-item in its warp
    const int warp = get_local_id(0)/32;     // number of the warp
    const int tm = warp%(TSM/64)*64 + lane%WARPM*4;         // first row in the tile of C
    const int tn = warp/(TSM/64)*WARPN*WPTN + lane/WARPM*4; // first column in the tile of C

    // this work-group's share of the slices of all tiles of C, each of which has K/TSK
    const long slices = (long)(M/TSM)*(N/TSN)*(K/TSK);
    const int begin = slices*get_group_id(0)/get_num_groups(0);
    const int end = slices*(get_group_id(0) + 1)/get_num_groups(0);
    int piece = 2*get_group_id(0);           // where its next part of a tile goes: only its first
                                             // tile and its last one can be parts

    // local memory: a pair of tiles for each stage, one to compute from and the others to fill
    __local float Atile[STAGES][TSK][TSM] __attribute__((aligned(16))); // [stage][k][m]
    __local float Btile[STAGES][TSK][TSN] __attribute__((aligned(16))); // [stage][k][n]

    for (int slice = begin; slice < end; ) {

        // which tile, and which of its slices
        const int tile = slice/(K/TSK);
        const int2 place = place_of(tile, M/TSM, N/TSN); // its row and column of tiles
        const int m0 = place.x*TSM;          // first row of the tile of C
        const int n0 = place.y*TSN;          // first column of the tile of C
        const int first = slice%(K/TSK);     // its first slice here
        const int count = min(K/TSK - first, end - slice); // and how many there are

        // from here to the store, this is kernel 16, for `count` slices from `first` on

        // accumulators
        float acc[WPTN][WPTM] __attribute__((aligned(16)));
        for (int j = 0; j < WPTN; j++) {
            for (int i = 0; i < WPTM; i++) {
                acc[j][i] = 0.0f;
            }
        }

        // fragments, the factors of a step: those of this step, and those of the next one
        float a[2][WPTM] __attribute__((aligned(16))); // [k%2][m]
        float b[2][WPTN] __attribute__((aligned(16))); // [k%2][n]

        // load: start the copies of the first STAGES - 1 pairs of tiles, a batch for each pair
        const __global float* a_from = A + (first*TSK + id/TSM)*M + m0 + id%TSM;
        const __global float* b_from = B + (first*TSK + id/TSN)*N + n0 + id%TSN;
        int filled = 0;                      // the stage to fill next
        int left = count*TSK;                // steps of k that are left to multiply
        for (int ahead = 0; ahead < STAGES - 1; ahead++) {
            if (left > ahead*TSK) {
                load(Atile[filled][0] + id, a_from, M, TSM);
                load(Btile[filled][0] + id, b_from, N, TSN);
                a_from += TSK*M;
                b_from += TSK*N;
                filled = after(filled);
            }
            end_batch();
        }

        // barrier: the first pair of tiles is complete
        AWAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);

        // fragments of the first step
        int now = 0;                         // the stage to compute from
        for (int i = 0; i < WPTM; i += 4) {
            *(float4*)&a[0][i] = fragment(&Atile[now][0][tm + i*WARPM]);
        }
        for (int j = 0; j < WPTN; j += 4) {
            *(float4*)&b[0][j] = fragment(&Btile[now][0][tn + j*WARPN]);
        }

        for (; left > 0; left -= TSK) {

            // load: start the copies of one more pair of tiles
            if (left > (STAGES - 1)*TSK) {
                load(Atile[filled][0] + id, a_from, M, TSM);
                load(Btile[filled][0] + id, b_from, N, TSN);
                a_from += TSK*M;
                b_from += TSK*N;
                filled = after(filled);
            }
            end_batch();

            // compute, and load the next fragments
            #pragma unroll
            for (int k = 0; k < TSK; k++) {
                if (k == TSK - 1) {
                    // barrier: the next tiles are complete, and all work-items have read these
                    AWAIT(STAGES - 2);
                    barrier(CLK_LOCAL_MEM_FENCE);
                    now = BEYOND || left > TSK ? after(now) : now; // the last one has no next
                }
                for (int i = 0; i < WPTM; i += 4) {
                    *(float4*)&a[(k + 1)%2][i] = fragment(&Atile[now][(k + 1)%TSK][tm + i*WARPM]);
                }
                for (int j = 0; j < WPTN; j += 4) {
                    *(float4*)&b[(k + 1)%2][j] = fragment(&Btile[now][(k + 1)%TSK][tn + j*WARPN]);
                }
                for (int j = 0; j < WPTN; j++) {
                    for (int i = 0; i < WPTM; i++) {
                        acc[j][i] += a[k%2][i] * b[k%2][j];
                    }
                }
            }
        }

        // store: a whole tile to C, a part of one to the workspace
        const int whole = count == K/TSK;
        __global float* to = whole ? C + n0*M + m0 : pieces + (size_t)TSM*TSN*piece;
        const int ld = whole ? M : TSM;
        for (int j = 0; j < WPTN; j++) {
            const int n = tn + j/4*4*WARPN + j%4;
            for (int i = 0; i < WPTM; i += 4) {
                *(__global float4*)&to[n*ld + tm + i*WARPM] = *(const float4*)&acc[j][i];
            }
        }
        piece += !whole;
        slice += count;

        // barrier: all work-items have read the last fragments; the next tile fills these stages
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}

// start to copy this work-item's share of a tile: 4 neighbours of every 4*ITEMS floats, which are
// whole columns of `side` floats. In global memory the columns are `ld` floats apart
void load(__local float* to, const __global float* from, int ld, int side)
{
    for (int e = 0; e < TSK*side; e += 4*ITEMS) {
        start_copy(to + e, from + e/side*ld);
    }
}

// four neighbouring factors of a step; `volatile` keeps the compiler from loading them later, right
// before they are used, when the multiply-adds would have to wait for them
float4 fragment(const volatile __local float* from)
{
    return *(const volatile __local float4*)from;
}

// the stage after this one; behind the last one comes the first one
int after(int stage)
{
    return stage + 1 < STAGES ? stage + 1 : 0;
}

// the fix-up: a launch of its own, which sees all that the first one has stored; and place_of
#include "support/fixup.cl"

#if !(TSM % 64 + TSN % 64 + 256 % TSM + 256 % TSN == 0)
#error TSM or TSN is none of 64, 128 and 256
#endif
#if !(ASYNC < 2)
#error ASYNC is neither 0 nor 1
#endif
