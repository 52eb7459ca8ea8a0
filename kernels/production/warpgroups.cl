// warpgroups: four warps multiply with one instruction, and go on while it runs.
//
// Before:   tensor_cores. Its instruction makes the warp wait and needs both matrices in
//           registers. This one (wgmma, on Hopper) multiplies 64 x 8 by 8 x 128 for the 128
//           work-items of a warpgroup, reads B from local memory by itself and does not make
//           them wait. So B is split into its parts once for the whole work-group, while the
//           tile before is multiplied, and each work-item loads what it needs of A from
//           global memory directly into registers. The sums move into ordinary floats once
//           per tile, after TSK/8 steps of the instruction.
// Costs:    (STAGES + 2)*TSK*(TSN + 2) floats of local memory; 128 accumulators, and 64
//           registers for the sums that are still in the tensor cores; 1/TSM + 1/TSN global
//           loads per multiply-add, and hardly any local ones, since the instruction reads
//           local memory by itself.
// Requires: any M, N and K: elements outside the matrices count as zero, and nothing is
//           stored there. Leading dimensions: for A (M x K) and B (K x N, not transposed), M
//           and K rounded up to a multiple of 4; for C, M. TSK must be a multiple of 8.
//           OpenCL's compiler does not know the instruction, so each one is hidden in a
//           comment that starts with "//@". gemmlab/opencl/build.py removes these marks from
//           the PTX that the compiler returns and declares Hopper as its target. Where this
//           has not been done, C becomes NaN.
//           Between an instruction and FINISH there must be no loop that the compiler does
//           not unroll: it would then wait after every instruction, which takes four times as
//           long. Without such tensor cores the kernel computes the same products in ordinary
//           arithmetic, which is very slow.
//
//    Which elements of the tile of C a work-item holds (warp w, g = lane/4, t = lane%4):
//
//                    n = 8j + 2t    8j + 2t + 1     for j = 0 ... 15
//    m = 32w + 4g         x              x          first instruction
//        32w + 4g + 1     x              x          first
//        32w + 4g + 2     x              x          second
//        32w + 4g + 3     x              x          second
//
//    B's tile is stored in the order that the instruction needs, with 4 steps of k side by
//    side: [k/4][n][k%4].

#ifndef TSK
#define TSK 16 // depth of the tiles of A and B, in steps of k [8, 16]
#endif
#ifndef STAGES
#define STAGES 3 // tiles of B in local memory: one in use, the others being filled [3, 4]
#endif
#ifndef ORDER
#define ORDER 8 // rows of tiles in a band that neighbouring work-groups go through together (swizzle) [1, 8]
#endif
#ifndef PARTS
#define PARTS 2 // TF32 numbers that stand for a float: 1 (plain TF32) or 2 (3xTF32) [1, 2]
#endif
#ifndef TENSOR
#define TENSOR 1 // 1: tensor cores where the device has them; 0: the same products in ordinary arithmetic [0, 1]
#endif

#if !(TSK % 8 == 0)
#error TSK is not a multiple of 8
#endif
#if !(STAGES > 2)
#error STAGES is less than 3
#endif
#if !((PARTS - 1) * (PARTS - 2) == 0)
#error PARTS is neither 1 nor 2
#endif
#if !(TENSOR < 2)
#error TENSOR is neither 0 nor 1
#endif

#define TSM (64*2*2)                         // rows of the tile of C: 64 for each of 2 instructions of 2 warpgroups
#define TSN (128)                            // columns of the tile of C
#define ITEMS (128*2)                        // work-items of a work-group
#define NB (4*ITEMS/TSK)                     // columns of B's tile that a work-group copies at once
#define LPTB (TSN/NB)                        // vectors of B's tile a work-item copies
#define ROW (TSN + 2)                        // vectors in a row of B's tile; 2 more against bank conflicts

// the two parts of a float: big is x rounded to 10 bits after the point, small is the rest
#define BIG(x) as_float((as_uint(x) + 0x1000u) & 0xffffe000u)
#define CUT(x) as_float(as_uint(x) & 0xffffe000u) // what a tensor core reads of a float

#if TENSOR && defined(__NV_CL_C_VERSION)
#define INSTRUCTION 1
// asynchronous: start a copy of `bytes` bytes, filled up with zeroes to 4 floats; COPIED() ends a batch, AWAIT(n) waits
// until all but the last n have arrived
#define COPY(to, from, bytes) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" \
                 :: "r"((uint)(size_t)(to)), "l"(from), "r"(bytes) : "memory")
#define COPIED() asm volatile("cp.async.commit_group;" ::: "memory")
#define AWAIT(batches) asm volatile("cp.async.wait_group %0;" :: "n"(batches) : "memory")
// make what was stored in local memory visible to the tensor cores
#define SHOW() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
// FENCE() comes before the first instruction of a batch, DONE() ends the batch, FINISH() waits for it
#define FENCE() asm volatile("//@ wgmma.fence.sync.aligned;" ::: "memory")
#define DONE() asm volatile("//@ wgmma.commit_group.sync.aligned;" ::: "memory")
#define FINISH() asm volatile("//@ wgmma.wait_group.sync.aligned 0;" ::: "memory")

// the descriptor that tells the instruction where 8 steps of k of B's tile are: the address, and the distances to the
// next 4 steps and to the next 8 columns, all in units of 16 bytes
#define WHERE(b) ((ulong)(((uint)(size_t)(b)) >> 4 & 0x3fff) | (ulong)ROW << 16 | (ulong)8 << 32)

// multiply: sum = (more ? sum : 0) + a b, for 64 x 128 elements per warpgroup; a work-item holds 4 of a, 64 of the sum
#define EIGHT(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), \
                 "+f"(sum[i + 4]), "+f"(sum[i + 5]), "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define WGMMA(a, where, more) \
    asm volatile("//@ {.reg .pred p; setp.ne.b32 p, %69, 0; " \
        "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 " \
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
        "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, " \
        "%43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, " \
        "{%64, %65, %66, %67}, %68, p, 1, 1;}" \
        : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48), EIGHT(56) \
        : "r"(as_uint(a[0])), "r"(as_uint(a[1])), "r"(as_uint(a[2])), "r"(as_uint(a[3])), "l"(where), "r"(more))
#else
#define INSTRUCTION 0
#define COPY(to, from, bytes) copy(to, from, bytes)
#define COPIED()
#define AWAIT(batches)
#define SHOW()

static inline void copy(__local float* to, const __global float* from, const int bytes)
{
    for (int i = 0; i < 4; i++) {
        to[i] = 4*i < bytes ? from[i] : 0.0f;
    }
}
#endif

// load: the next tile of B into stage `filled`
#define NEXT() \
    for (int l = 0; l < LPTB; l++) { \
        COPY(&Btile[filled][kb][ib + l*NB][0], b_from + (size_t)l*NB*ldb, \
             n0 + ib + l*NB < N ? clamp(4*(K - k0 - 4*kb), 0, 16) : 0); \
    } \
    k0 += TSK; \
    b_from += TSK; \
    filled = filled + 1 < STAGES ? filled + 1 : 0; \
    COPIED()

// fetch: this work-item's 4 rows of A's tile, at steps t, t + 4, ...
#define FETCH(first) \
    if (inside && (first) + TSK <= K) { \
        for (int l = 0; l < TSK/4; l++) { \
            raw[l] = *(const __global float4*)(a_from + (size_t)(4*l)*lda); \
        } \
    } else { \
        for (int l = 0; l < TSK/4; l++) { \
            const int there = m0 + row < M && (first) + t + 4*l < K; \
            raw[l] = there ? *(const __global float4*)(a_from + (size_t)(4*l)*lda) : (float4)(0.0f); \
        } \
    }

// cut: split an element of A into its parts; split a tile of B, whose big parts take its place
#define CUT_A(x, big, small) \
    big = BIG(x); \
    small = (x) - big;
#define CUT_B(from, to) \
    for (int l = 0; l < LPTB; l++) { \
        __local float4* place = (__local float4*)&Btile[from][tid/TSN + l*(ITEMS/TSN)][tid%TSN][0]; \
        const float4 x = *place; \
        const float4 big = (float4)(BIG(x.x), BIG(x.y), BIG(x.z), BIG(x.w)); \
        *place = big; \
        *(__local float4*)&Bsmall[to][tid/TSN + l*(ITEMS/TSN)][tid%TSN][0] = x - big; \
    } \
    SHOW()

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tid = get_local_id(0);                         // number of the work-item
    const int g = tid%32/4;                                  // which 4 rows of the warp's block
    const int t = tid%4;                                     // its step of k, and its columns
    const int row = tid/32*32 + 4*g;                         // its first row inside the tile
    const int ib = tid/(TSK/4);                              // column of B's tile that it copies
    const int kb = tid%(TSK/4);                              // and which 4 steps of k
    const int lda = (M - 1)/4*4 + 4;                         // leading dimensions of A and B
    const int ldb = (K - 1)/4*4 + 4;

    // which tile: down a band of ORDER rows of tiles, then on to the next column of the band
    const int tiles_m = (M - 1)/TSM + 1;
    const int tiles_n = (N - 1)/TSN + 1;
    const int tile = get_group_id(0);
    const int band = tile/(ORDER*tiles_n)*ORDER;
    const int rows = min(ORDER, tiles_m - band);
    const int m0 = (band + tile%(ORDER*tiles_n)%rows)*TSM;
    const int n0 = tile%(ORDER*tiles_n)/rows*TSN;
    const int inside = m0 + TSM <= M;
    const __global float* a_from = A + (size_t)t*lda + m0 + row;
    const __global float* b_from = B + (size_t)(n0 + ib)*ldb + 4*kb;
    int k0 = 0;                                              // first step of k to load
    int filled = 0;
    int now = 0;
    int odd = 0;                                             // which tile of small parts is in use

    // local memory
    __local float Btile[STAGES][TSK/4][ROW][4] __attribute__((aligned(128)));  // [stage][k/4][n][k%4]
    __local float Bsmall[2][TSK/4][ROW][4] __attribute__((aligned(128)));

    // accumulators, and the sums that are still in the tensor cores
    float acc[2][64];
    float sum[64];
    for (int j = 0; j < 64; j++) {
        acc[0][j] = 0.0f;
        acc[1][j] = 0.0f;
        sum[j] = 0.0f;
    }

    // load: the first tiles
    float4 raw[TSK/4];
    FETCH(0)
    for (int stage = 1; stage < STAGES; stage++) {
        NEXT();
    }
    AWAIT(STAGES - 2);
    barrier(CLK_LOCAL_MEM_FENCE);
    CUT_B(0, 0);
    barrier(CLK_LOCAL_MEM_FENCE);

    for (int first = 0; first < K; first += TSK) {
        const int next = now + 1 < STAGES ? now + 1 : 0;
#if INSTRUCTION
        // cut: split this tile of A, for the first and for the second instruction
        float a[TSK/8][2][4], a_small[TSK/8][2][4];
        for (int l = 0; l < TSK/4; l++) {
            CUT_A(raw[l].x, a[l/2][0][l%2*2], a_small[l/2][0][l%2*2])
            CUT_A(raw[l].y, a[l/2][0][l%2*2 + 1], a_small[l/2][0][l%2*2 + 1])
            CUT_A(raw[l].z, a[l/2][1][l%2*2], a_small[l/2][1][l%2*2])
            CUT_A(raw[l].w, a[l/2][1][l%2*2 + 1], a_small[l/2][1][l%2*2 + 1])
        }
#endif

        // load: one more tile of B
        NEXT();

        for (int i = 0; i < 2; i++) {
            // compute: two of the work-item's four rows
#if INSTRUCTION
            FENCE();
            for (int k = 0; k < TSK/8; k++) {
#if PARTS == 2
                WGMMA(a_small[k][i], WHERE(&Btile[now][2*k][0][0]), k > 0);
                WGMMA(a[k][i], WHERE(&Bsmall[odd][2*k][0][0]), 1);
                WGMMA(a[k][i], WHERE(&Btile[now][2*k][0][0]), 1);
#else
                WGMMA(a[k][i], WHERE(&Btile[now][2*k][0][0]), k > 0);
#endif
            }
            DONE();
#else
            for (int j = 0; j < 64; j++) {
                const int m = row + 2*i + j/2%2;
                const int n = j/4*8 + 2*t + j%2;
                sum[j] = 0.0f;
                for (int k = 0; k < TSK; k++) {
                    const int there = m0 + m < M && first + k < K;
                    const float x = there ? A[(size_t)(first + k)*lda + m0 + m] : 0.0f;
                    const float big = BIG(x);
#if PARTS == 2
                    sum[j] += CUT(x - big)*Btile[now][k/4][n][k%4] + big*CUT(Bsmall[odd][k/4][n][k%4]);
#endif
                    sum[j] += big*Btile[now][k/4][n][k%4];
                }
            }
#endif
            if (i == 0) {
                // cut: meanwhile split the next tile of B, once all of it has arrived
                AWAIT(STAGES - 2);
                barrier(CLK_LOCAL_MEM_FENCE);
                CUT_B(next, 1 - odd);
            } else {
                // fetch: meanwhile the next tile of A
                a_from += (size_t)TSK*lda;
                FETCH(first + TSK)
            }
#if INSTRUCTION
            FINISH();
#endif
            for (int j = 0; j < 64; j++) {
                acc[i][j] += sum[j];
            }
        }

        // barrier: the next tile has been split, and nobody needs this one any more
        barrier(CLK_LOCAL_MEM_FENCE);
        now = next;
        odd = 1 - odd;
    }

#if INSTRUCTION
    // have the hidden instructions been revealed?
    int told = 0;
    asm volatile("//@ mov.u32 %0, 1;" : "+r"(told));
    const float nothing = told ? 0.0f : NAN;
#else
    const float nothing = 0.0f;
#endif

    // store
    for (int j = 0; j < 32; j++) {
        const int l = j/2*4 + j%2;
        const int m = m0 + row;
        const int n = n0 + j/2*8 + 2*t + j%2;
        const float4 x = (float4)(acc[0][l], acc[0][l + 2], acc[1][l], acc[1][l + 2]) + nothing;
        __global float* c = C + (size_t)n*M + m;
        if (n < N && M%4 == 0 && m < M) {
            *(__global float4*)c = x;
        } else if (n < N) {
            if (m < M) c[0] = x.x;
            if (m + 1 < M) c[1] = x.y;
            if (m + 2 < M) c[2] = x.z;
            if (m + 3 < M) c[3] = x.w;
        }
    }
}
