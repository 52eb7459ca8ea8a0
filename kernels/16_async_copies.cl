// 16 asynchronous copies: what is needed next is fetched ahead, at every level of memory.
//
// Before:   15_warp_tiles. There a work-item loads a vector into registers, waits for it, and
//           stores it in local memory. Here it only starts a copy, which the device carries out
//           (cp.async on NVIDIA's GPUs since Ampere): STAGES - 1 tiles are on their way while one
//           is multiplied, and so are the fragments of step k + 1 into registers. This leaves
//           registers for a block of 16 x 8.
// Costs:    STAGES*TSK*(TSM + TSN) floats of local memory, WPTM*8 accumulators and 2*(WPTM + 8)
//           registers; 1/TSM + 1/TSN global and 1/WPTM + 1/8 local loads per multiply-add.
// Requires: M, N and K multiples of TSM, TSN and TSK (padded to them). B transposed.
//
//    multiplied          tile 0    tile 1    tile 2       STAGES = 3: each copy has the
//    on its way   0, 1   1, 2      2, 3      3, 4         time of two tiles
//
// Compile:  -DTSM=256   rows of the tile of C [64, 128, 256]
//           -DTSN=128   columns of the tile of C [32, 64, 128]
//           -DTSK=8     depth of the tiles of A and B, in steps of k [8, 16, 32]
//           -DWPTM=16   rows of C a work-item computes [8, 16]
//           -DSTAGES=3  tiles of A and B in local memory: one in use, the others being filled [2, 3, 4]
//           -DASYNC=1   1: copy to local memory asynchronously where the device can [0, 1]

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
          __global float* restrict C)
{
    // identifiers
    const int id = 4*get_local_id(0);        // first float of each tile that it copies
    const int lane = get_local_id(0)%32, warp = get_local_id(0)/32; // number in the warp, and of it
    const int tm = warp%(TSM/64)*64 + lane%WARPM*4;              // first row in the tile of C
    const int tn = warp/(TSM/64)*WARPN*WPTN + lane/WARPM*4;      // first column in the tile of C
    const int m0 = get_group_id(0)*TSM, n0 = get_group_id(1)*TSN;    // first row and column of the tile
    const __global float* a_from = A + id/TSM*M + m0 + id%TSM;
    const __global float* b_from = B + id/TSN*N + n0 + id%TSN;
    int left = K;                            // steps of k that are left to multiply
    int filled = 0, now = 0;                 // the stages to fill and to compute from

    // local memory: a stage to compute from, and the others to fill
    __local float Atile[STAGES][TSK][TSM] __attribute__((aligned(16))); // [stage][k][m]
    __local float Btile[STAGES][TSK][TSN] __attribute__((aligned(16))); // [stage][k][n]

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

    // store: four rows at a time
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i += 4) {
            *(__global float4*)&C[(n0 + tn + j/4*4*WARPN + j%4)*M + m0 + tm + i*WARPM] = *(float4*)&acc[j][i];
        }
    }
}

#if !(TSM % 64 + TSN % (4 * WPTM) == 0)
#error TSM is not a multiple of 64, or TSN is not one of 4 times WPTM
#endif
#if !(TSK % 2 + TSK * WPTM * 2 % TSM + TSK * WPTM * 2 % TSN == 0)
#error TSK is odd, or shares of a tile are uneven: TSK times WPTM times 2 is not a multiple of TSM and of TSN
#endif
#if !(((WPTM - 8) * (WPTM - 16) == 0) * (STAGES > 1) * (ASYNC < 2) == 1)
#error WPTM is neither 8 nor 16, STAGES is less than 2, or ASYNC neither 0 nor 1
#endif
