// 16 asynchronous copies: tiles come to local memory by themselves, several of them at a time.
//
// Before:   15_warp_tiles. There a work-item loads a vector into registers, waits until it is
//           there, and stores it. Here it only starts a copy, which the device carries out
//           meanwhile (cp.async on NVIDIA's GPUs since Ampere; elsewhere as before), and
//           STAGES - 1 tiles are on their way while one is multiplied. Warps have the shape
//           that was best in kernel 15.
// Costs:    STAGES*TSK*(TSM + TSN) floats of local memory, 64 accumulators and 16 registers;
//           1/TSM + 1/TSN global and 1/8 + 1/8 local loads per multiply-add.
// Requires: M, N and K multiples of TSM, TSN and TSK (padded to them); TSM a multiple of 64 and
//           TSN of 32, the block of a warp; the vectors shared out evenly.
//
//    compute           tile 0    tile 1    tile 2    tile 3      STAGES = 3: what is copied
//    on their way 0 1  1 2       2 3       3 4       4 5         has two tiles' time for it

#ifndef TSM
#define TSM 128 // rows of the tile of C
#endif
#ifndef TSN
#define TSN 128 // columns of the tile of C
#endif
#ifndef TSK
#define TSK 16 // depth of the tiles of A and B, in steps of k
#endif
#ifndef STAGES
#define STAGES 3 // tiles of A and B in local memory: one in use, the others being filled
#endif
#ifndef ASYNC
#define ASYNC 1 // 1: copy to local memory asynchronously where the device can
#endif
#ifndef UNROLL
#define UNROLL 16 // steps of k that the compiler lays out in one turn of the loop
#endif

#if !(TSM % 64 + TSN % 32 == 0)
#error TSM must be a multiple of 64 and TSN of 32
#endif
#if !(TSK * 16 % TSM + TSK * 16 % TSN == 0)
#error TSK*16 must be a multiple of TSM and of TSN
#endif
#if !((STAGES > 1) * (ASYNC < 2) == 1)
#error STAGES must be at least 2, and ASYNC 0 or 1
#endif

#define WPTM 8                      // rows of C a work-item computes
#define WPTN 8                      // columns of C a work-item computes
#define WARPM 8                     // rows of work-items in a warp of 32
#define WARPN 4                     // columns of work-items in a warp
#define WARPS (TSM/64)              // warps in a column of the tile
#define ITEMS (TSM/WPTM*(TSN/WPTN)) // work-items in a work-group

// copy: 4 floats from global to local memory
#if ASYNC && defined(__NV_CL_C_VERSION)
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
          __global float* restrict C)
{
    // identifiers
    const int lane = get_local_id(0)%32;     // number of the work-item in its warp
    const int warp = get_local_id(0)/32;     // number of the warp
    const int tm = warp%WARPS*WARPM*WPTM + lane%WARPM*4; // first row in the tile of C
    const int tn = warp/WARPS*WARPN*WPTN + lane/WARPM*4; // first column in the tile of C
    const int m0 = get_group_id(0)*TSM;      // first row of the tile of C
    const int n0 = get_group_id(1)*TSN;      // first column of the tile of C

    // local memory: a stage to compute from, and the others to fill
    __local float Atile[STAGES][TSK][TSM] __attribute__((aligned(16))); // [stage][k][m]
    __local float Btile[STAGES][TSK][TSN] __attribute__((aligned(16))); // [stage][k][n]

    // accumulators
    float acc[WPTN][WPTM] __attribute__((aligned(16)));
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i++) {
            acc[j][i] = 0.0f;
        }
    }

    // one turn starts copies of a tile, and multiplies the tile of STAGES - 1 turns before
    for (int k1 = 0; k1 < K + (STAGES - 1)*TSK; k1 += TSK) {
        const int next = k1/TSK%STAGES;      // the stage to fill
        const int now = (next + 1)%STAGES;   // the stage to compute from, filled longest ago

        // barrier: tile `now` has arrived for all, and nobody needs tile `next` any more
        AWAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);

        // load: start copies, while we compute
        if (k1 < K) {
            load(Atile[next][0], A + k1*M + m0, M, TSM);
            load(Btile[next][0], B + k1*N + n0, N, TSN);
        }
        COPIED();
        if (k1 < (STAGES - 1)*TSK) continue; // nothing has arrived yet

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

    // store: four rows at a time
    for (int j = 0; j < WPTN; j++) {
        for (int i = 0; i < WPTM; i += 4) {
            __global float* c = &C[(n0 + tn + j/4*4*WARPN + j%4)*M + m0 + tm + i*WARPM];
            *(__global float4*)c = *(const float4*)&acc[j][i];
        }
    }
}
