// tensor cores: a warp multiplies small matrices with one instruction.
//
// Before:   warp_tiling. The tiles are copied as there, but a warp's block is cut into
//           blocks of 16 x 8, and one instruction (mma.sync) adds to each the product of a
//           16 x 8 and an 8 x 8 matrix. It takes TF32 numbers, which keep 10 of a float's 23
//           bits after the point. PARTS = 2 recovers the rest (3xTF32): a float is split into
//           a big and a small part, and three products of such parts stand for one (Ootomo
//           and Yokota 2022). The sums of tensor cores are truncated; EVERY, the promotion
//           interval, says how often they move into ordinary floats.
// Costs:    STAGES*TSK*(TSM + TSN + 2*PAD) floats of local memory; WM*WN/32 accumulators, and
//           as many again if EVERY > 1; 1/TSM + 1/TSN global and 1/WM + 1/WN local loads per
//           multiply-add, the local ones 4 at a time.
// Requires: any M, N and K: elements outside the matrices count as zero, and nothing is
//           stored there. B is transposed (N x K). Leading dimensions: for A and B, M and N
//           rounded up to a multiple of 4; for C, M. TSM must be a multiple of WM, TSN of WN,
//           WM and WN of 32, TSK of 8. Without tensor cores the kernel computes the same
//           products in ordinary arithmetic, which is very slow.
//
//    Which elements of a 32 x 32 block of C a work-item holds (g = lane/4, t = lane%4):
//
//              n = 8t + j     8t + 4 + j     for j = 0 ... 3, one instruction each
//    m = 4g         x             x          first instruction, its "row g"
//        4g + 1     x             x          first instruction, its "row g + 8"
//        4g + 2     x             x          second
//        4g + 3     x             x          second
//
//    The instruction numbers rows and columns in its own way. We assign them to the rows and
//    columns of C in a different order, so that the floats that a work-item loads for a step
//    of k, and those that it stores, are 4 neighbours.

#ifndef TSM
#define TSM 128 // rows of the tile of C [32, 64, 128]
#endif
#ifndef TSN
#define TSN 128 // columns of the tile of C [32, 64, 128]
#endif
#ifndef TSK
#define TSK 8 // depth of the tiles of A and B, in steps of k [8, 16, 32]
#endif
#ifndef WM
#define WM 64 // rows of a warp's block of C [32, 64]
#endif
#ifndef WN
#define WN 64 // columns of a warp's block of C [32, 64]
#endif
#ifndef STAGES
#define STAGES 3 // tiles of A and B in local memory: one in use, the others being filled [2, 3]
#endif
#ifndef PAD
#define PAD 8 // floats added to each row of Atile and Btile against bank conflicts [0, 8]
#endif
#ifndef ORDER
#define ORDER 8 // rows of tiles in a band that neighbouring work-groups go through together (swizzle) [1, 8]
#endif
#ifndef PARTS
#define PARTS 2 // TF32 numbers that stand for a float: 1 (plain TF32) or 2 (3xTF32) [1, 2]
#endif
#ifndef EVERY
#define EVERY 1 // promotion interval, in units of 8 steps of k: when a sum moves into a float; 0: only at the end [0, 1, 2, 8]
#endif
#ifndef TENSOR
#define TENSOR 1 // 1: tensor cores where the device has them; 0: the same products in ordinary arithmetic [0, 1]
#endif

#if !(TSM % WM == 0)
#error TSM is not a multiple of WM
#endif
#if !(TSN % WN == 0)
#error TSN is not a multiple of WN
#endif
#if !(WM % 32 == 0)
#error WM is not a multiple of 32
#endif
#if !(WN % 32 == 0)
#error WN is not a multiple of 32
#endif
#if !(TSK % 8 == 0)
#error TSK is not a multiple of 8
#endif
#if !(128 * TSN % (WM * WN) == 0)
#error 128 times TSN is not a multiple of WM times WN
#endif
#if !(128 * TSM % (WM * WN) == 0)
#error 128 times TSM is not a multiple of WM times WN
#endif
#if !((TSK * WM * WN) % (128 * TSN) == 0)
#error TSK times WM times WN is not a multiple of 128 times TSN
#endif
#if !((TSK * WM * WN) % (128 * TSM) == 0)
#error TSK times WM times WN is not a multiple of 128 times TSM
#endif
#if !(STAGES > 1)
#error STAGES is less than 2
#endif
#if !(PAD % 4 == 0)
#error PAD is not a multiple of 4
#endif
#if !((PARTS - 1) * (PARTS - 2) == 0)
#error PARTS is neither 1 nor 2
#endif
#if !(TENSOR < 2)
#error TENSOR is neither 0 nor 1
#endif

#define ITEMS (TSM/WM*(TSN/WN)*32)           // work-items of a work-group
#define KA (ITEMS*4/TSM)                     // rows of A's tile that a work-group copies at once
#define KB (ITEMS*4/TSN)                     // rows of B's tile
#define LPTA (TSK/KA)                        // vectors of A's tile a work-item copies
#define LPTB (TSK/KB)                        // vectors of B's tile
#if TENSOR && defined(__NV_CL_C_VERSION)
#define INSTRUCTION 1
#else
#define INSTRUCTION 0
#endif

// copy 4 floats from global to local memory; store zeroes if they are outside the matrix
#if INSTRUCTION
// asynchronous: a copy is only started; COPIED() ends a batch, AWAIT(n) waits until all but the last n have arrived
#define COPY(to, from, there) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" \
                 :: "r"((uint)(size_t)(to)), "l"(from), "r"((there) ? 16 : 0) : "memory")
#define COPIED() asm volatile("cp.async.commit_group;" ::: "memory")
#define AWAIT(batches) asm volatile("cp.async.wait_group %0;" :: "n"(batches) : "memory")
#else
#define COPY(to, from, there) *(__local float4*)(to) = (there) ? *(const __global float4*)(from) : (float4)(0.0f)
#define COPIED()
#define AWAIT(batches)
#endif

// load: the next tiles of A and B into stage `filled`
#define LOAD(A_THERE, B_THERE) \
    for (int l = 0; l < LPTA; l++) { \
        COPY(&Atile[filled][ka + l*KA][ia], a_from + l*KA*lda, A_THERE); \
    } \
    for (int l = 0; l < LPTB; l++) { \
        COPY(&Btile[filled][kb + l*KB][ib], b_from + l*KB*ldb, B_THERE); \
    }
#define NEXT() \
    if (k0 < K) { \
        if (inside && k0 + TSK <= K) { \
            LOAD(1, 1) \
        } else { \
            LOAD(m0 + ia < M && k0 + ka + l*KA < K, n0 + ib < N && k0 + kb + l*KB < K) \
        } \
        k0 += TSK; \
        a_from += TSK*(size_t)lda; \
        b_from += TSK*(size_t)ldb; \
        filled = filled + 1 < STAGES ? filled + 1 : 0; \
    } \
    COPIED()

// the two parts of a float: big is x rounded to 10 bits after the point, small is the rest
#define BIG(x) as_float((as_uint(x) + 0x1000u) & 0xffffe000u)
#define SMALL(x, big) ((x) - (big))
#define CUT(x) as_float(as_uint(x) & 0xffffe000u) // what a tensor core reads of a float

#if INSTRUCTION
// multiply: sum + a b, for 16 x 8 elements per warp; a work-item holds 4 elements of a, 2 of b and 4 of the sum
static inline float4 mma(const float* a, const float* b, const float4 sum)
{
    float4 d;
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
        "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%10, %11, %12, %13};"
        : "=f"(d.x), "=f"(d.y), "=f"(d.z), "=f"(d.w)
        : "r"(as_uint(a[0])), "r"(as_uint(a[1])), "r"(as_uint(a[2])), "r"(as_uint(a[3])),
          "r"(as_uint(b[0])), "r"(as_uint(b[1])),
          "f"(sum.x), "f"(sum.y), "f"(sum.z), "f"(sum.w));
    return d;
}
#else
// the product of two floats as the tensor cores compute it
static inline float product(const float a, const float b)
{
    const float a_big = BIG(a);
    const float b_big = BIG(b);
#if PARTS == 1
    return a_big*b_big;
#else
    return CUT(SMALL(a, a_big))*b_big + a_big*CUT(SMALL(b, b_big)) + a_big*b_big;
#endif
}
#endif

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int tid = get_local_id(0);                         // number of the work-item
    const int lane = tid%32;                                 // its number in the warp
    const int warp = tid/32;                                 // number of the warp
    const int g = lane/4;                                    // its row in the instruction
    const int t = lane%4;                                    // its step of k, and half of its column
    const int wm = warp%(TSM/WM)*WM;                         // first row of the warp's block
    const int wn = warp/(TSM/WM)*WN;                         // first column
    const int ia = tid%(TSM/4)*4;                            // first row of A's tile that it copies
    const int ka = tid/(TSM/4);                              // and its first step of k
    const int ib = tid%(TSN/4)*4;                            // the same for B's tile
    const int kb = tid/(TSN/4);
    const int lda = (M - 1)/4*4 + 4;                         // leading dimensions of A and B
    const int ldb = (N - 1)/4*4 + 4;

    // which tile: down a band of ORDER rows of tiles, then on to the next column of the band
    const int tiles_m = (M - 1)/TSM + 1;
    const int tiles_n = (N - 1)/TSN + 1;
    const int tile = get_group_id(0);
    const int band = tile/(ORDER*tiles_n)*ORDER;
    const int rows = min(ORDER, tiles_m - band);
    const int m0 = (band + tile%(ORDER*tiles_n)%rows)*TSM;
    const int n0 = tile%(ORDER*tiles_n)/rows*TSN;
    const int inside = m0 + TSM <= M && n0 + TSN <= N;
    const __global float* a_from = A + (size_t)ka*lda + m0 + ia;
    const __global float* b_from = B + (size_t)kb*ldb + n0 + ib;
    int k0 = 0;                                              // first step of k to load
    int filled = 0;
    int now = 0;

    // local memory
    __local float Atile[STAGES][TSK][TSM + PAD] __attribute__((aligned(128))); // [stage][k][m]
    __local float Btile[STAGES][TSK][TSN + PAD] __attribute__((aligned(128))); // [stage][k][n]

    // accumulators, each for two rows and two columns, and the sums that are still in the tensor cores
    float4 acc[WM/16][WN/8];
    float4 sum[WM/16][WN/8];
    for (int i = 0; i < WM/16; i++) {
        for (int j = 0; j < WN/8; j++) {
            acc[i][j] = (float4)(0.0f);
            sum[i][j] = (float4)(0.0f);
        }
    }

    // load: the first tiles
    for (int stage = 1; stage < STAGES; stage++) {
        NEXT();
    }

    for (int first = 0; first < K; first += TSK) {
        // barrier: this tile has arrived, and nobody needs the one before any more
        AWAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);

        // load: one more tile
        NEXT();

        // compute: 8 steps of k with each instruction
        #pragma unroll
        for (int k = 0; k < TSK; k += 8) {
#if INSTRUCTION
            // fragments: load what this work-item needs for steps t and t + 4 from local memory into registers
            float a[WM/16][4], a_small[WM/16][4];
            float b[WN/8][2], b_small[WN/8][2];
            for (int h = 0; h < 2; h++) {
                for (int i = 0; i < WM/16; i += 2) {
                    const float4 x = *(const __local float4*)&Atile[now][k + t + 4*h][wm + i*16 + 4*g];
                    a[i][2*h] = x.x;
                    a[i][2*h + 1] = x.y;
                    a[i + 1][2*h] = x.z;
                    a[i + 1][2*h + 1] = x.w;
                }
                for (int j = 0; j < WN/8; j += 4) {
                    const float4 x = *(const __local float4*)&Btile[now][k + t + 4*h][wn + j*8 + 4*g];
                    b[j][h] = x.x;
                    b[j + 1][h] = x.y;
                    b[j + 2][h] = x.z;
                    b[j + 3][h] = x.w;
                }
            }
            for (int i = 0; i < WM/16; i++) {
                for (int l = 0; l < 4; l++) {
                    const float x = a[i][l];
                    a[i][l] = BIG(x);
                    a_small[i][l] = SMALL(x, a[i][l]);
                }
            }
            for (int j = 0; j < WN/8; j++) {
                for (int l = 0; l < 2; l++) {
                    const float x = b[j][l];
                    b[j][l] = BIG(x);
                    b_small[j][l] = SMALL(x, b[j][l]);
                }
            }
#endif
            for (int j = 0; j < WN/8; j++) {
                for (int i = 0; i < WM/16; i++) {
#if INSTRUCTION
#if PARTS == 2
                    sum[i][j] = mma(a_small[i], b[j], sum[i][j]);
                    sum[i][j] = mma(a[i], b_small[j], sum[i][j]);
#endif
                    sum[i][j] = mma(a[i], b[j], sum[i][j]);
#else
                    const int m = wm + i/2*32 + i%2*2 + 4*g;
                    const int n = wn + j/4*32 + j%4 + 8*t;
                    for (int l = 0; l < 8; l++) {
                        const __local float* x = &Atile[now][k + l][m];
                        const __local float* y = &Btile[now][k + l][n];
                        sum[i][j].x += product(x[0], y[0]);
                        sum[i][j].y += product(x[0], y[4]);
                        sum[i][j].z += product(x[1], y[0]);
                        sum[i][j].w += product(x[1], y[4]);
                    }
#endif
#if EVERY
                    if ((uint)(first + k)/8%EVERY == EVERY - 1) {
                        acc[i][j] += sum[i][j];
                        sum[i][j] = (float4)(0.0f);
                    }
#endif
                }
            }
        }
        now = now + 1 < STAGES ? now + 1 : 0;
    }

    // store
    for (int i = 0; i < WM/16; i++) {
        for (int j = 0; j < WN/8; j++) {
            acc[i][j] += sum[i][j];
        }
    }
    for (int i = 0; i < WM/16; i += 2) {
        for (int j = 0; j < WN/8; j++) {
            for (int h = 0; h < 2; h++) {
                const int m = m0 + wm + i*16 + 4*g;
                const int n = n0 + wn + j/4*32 + j%4 + 8*t + 4*h;
                const float4 p = acc[i][j];
                const float4 q = acc[i + 1][j];
                float4 x = (float4)(p.x, p.z, q.x, q.z);
                if (h) {
                    x = (float4)(p.y, p.w, q.y, q.w);
                }
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
    }
}
