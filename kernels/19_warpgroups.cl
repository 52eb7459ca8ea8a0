// 19 warpgroups: four warps multiply with one instruction, and go on while it runs.
//
// Before:   18_tensor_cores. Its instruction makes the warp wait. This one (wgmma, on Hopper) adds 64 x 8 times 8 x 128
//           to the sums of the 128 work-items of a warpgroup, reads B from local memory by itself, and lets them go on:
//           they split the next tile of B, once for all, and load what follows. A goes straight into registers.
// Costs:    4*TSK*130 floats of local memory; 128 accumulators, 64 sums; 1/TSM + 1/128 global loads per multiply-add.
// Requires: M, N and K multiples of TSM, 128 and TSK (padded to them); B as it lies, K x N. OpenCL's compiler does not
//           know the instruction: comments with //@ hide it until gemmlab/opencl/build.py reveals it; else C is NaN.
//
//    Work-item 4g + t of warp w has rows 32w + 4g ... 4g + 3, two for each of two instructions, and columns 8j + 2t and
//    8j + 2t + 1. In B's tile 4 steps of k lie side by side: [k/4][n][k%4].
//
// Compile:  -DTSM=256   rows of the tile of C: 128 for each warpgroup [128, 256]
//           -DTSK=16    depth of the tiles of A and B, in steps of k [8, 16]
//           -DPARTS=2   TF32 numbers that stand for a float: 1 (plain TF32) or 2 (3xTF32) [1, 2]
//           -DTENSOR=1  1: tensor cores where the device has them; 0: the same products in ordinary arithmetic [0, 1]

#define TSN (128)                   // columns of the tile of C
#define ROW (TSN + 2)               // vectors in a row of B's tile; 2 more against bank conflicts
#define ITEMS (TSM)                 // work-items in a work-group
#define LPTB (TSK*TSN/4/ITEMS)      // vectors of B's tile that a work-item loads
#define NB (ITEMS*4/TSK)            // columns of B's tile that a work-group loads at once
// the parts of a float: rounded to 10 bits after the point, and the rest, of which an instruction reads as many
#define BIG(x) as_float((as_uint(x) + 0x1000u) & 0xffffe000u)
#define SMALL(x) ((x) - BIG(x))
#define CUT(x) as_float(as_uint(x) & 0xffffe000u)

#if TENSOR && defined(__NV_CL_C_VERSION)
#define SHOW() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")         // makes stores visible to wgmma
#define BEGIN() asm volatile("//@ wgmma.fence.sync.aligned;" ::: "memory")         // before the first instruction
#define END() asm volatile("//@ wgmma.commit_group.sync.aligned;" ::: "memory")    // closes a batch
#define FINISH() asm volatile("//@ wgmma.wait_group.sync.aligned 0;" ::: "memory") // waits for it
#define REVEALED(x) asm volatile("//@ mov.f32 %0, 0f00000000;" : "+f"(x))
// where 8 steps of k of B's tile are: the address, and how far the next 4 steps and the next 8 columns are, by 16 bytes
#define AT(b) ((ulong)((uint)(size_t)(b) >> 4 & 0x3fff) | (ulong)ROW << 16 | (ulong)8 << 32)
// sum = (more ? sum : 0) + a b
#define EIGHT(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), \
                 "+f"(sum[i + 4]), "+f"(sum[i + 5]), "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define WGMMA(PART, b, more) \
    asm volatile("//@ {.reg .pred p; setp.ne.b32 p, %69, 0; " \
        "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 " \
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
        "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, " \
        "%43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, " \
        "{%64, %65, %66, %67}, %68, p, 1, 1;}" \
        : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48), EIGHT(56) \
        : "r"(as_uint(PART(a[k][2*i]))), "r"(as_uint(PART(a[k][2*i + 1]))), "r"(as_uint(PART(a[k + 1][2*i]))), \
          "r"(as_uint(PART(a[k + 1][2*i + 1]))), "l"(AT(b)), "r"(more))
#else
#define SHOW()
#define FINISH()
#define REVEALED(x) x = 0.0f
#endif
// load: from step k1 on four rows of A, at steps t, t + 4, ...; vectors of B, whose parts SPLIT_B stores
#define LOAD_A(k1) \
    for (int l = 0; l < TSK/4; l++) { \
        *(float4*)a[l] = *(const __global float4*)&A[((k1) + 4*l + t)*M + m0 + row]; \
    }
#define LOAD_B(k1) \
    for (int l = 0; l < LPTB; l++) { \
        b[l] = *(const __global float4*)&B[(n0 + ib + l*NB)*K + (k1) + 4*kb]; \
    }
#define SPLIT_B(to) \
    for (int l = 0; l < LPTB; l++) { \
        const float4 big = (float4)(BIG(b[l].x), BIG(b[l].y), BIG(b[l].z), BIG(b[l].w)); \
        *(__local float4*)Bbig[to][kb][ib + l*NB] = big; \
        if (PARTS == 2) *(__local float4*)Bsmall[to][kb][ib + l*NB] = b[l] - big; \
    } \
    SHOW()

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A, const __global float* restrict B, __global float* restrict C)
{
    // identifiers
    const int t = get_local_id(0)%4;         // which steps of k, and which columns
    const int row = get_local_id(0)/4*4;     // first of its four rows in the tile of C
    const int kb = get_local_id(0)%(TSK/4);  // which 4 steps of k of B's tile it loads
    const int ib = get_local_id(0)/(TSK/4);  // and of which column
    const int m0 = get_group_id(0)*TSM; const int n0 = get_group_id(1)*TSN; // first row and column of the tile of C

    // local memory: two buffers, one to compute from and one to fill
    __local float Bbig[2][TSK/4][ROW][4] __attribute__((aligned(128)));   // [buffer][k/4][n][k%4]
    __local float Bsmall[2][TSK/4][ROW][4] __attribute__((aligned(128)));

    // accumulators, and sums that are still in the tensor cores
    float acc[2][64], sum[64], zero = NAN; REVEALED(zero);
    for (int j = 0; j < 64; j++) { acc[0][j] = acc[1][j] = sum[j] = zero; }

    // load: the first tiles
    float a[TSK/4][4] __attribute__((aligned(16))); float4 b[LPTB];
    LOAD_B(0) SPLIT_B(0); LOAD_A(0) LOAD_B(min(TSK, K - TSK))

    for (int k0 = 0; k0 < K; k0 += TSK) {
        const int now = k0/TSK%2;            // the buffer to compute from
        barrier(CLK_LOCAL_MEM_FENCE);        // this tile has been split, and nobody needs the other buffer any more
        #pragma unroll
        for (int i = 0; i < 2; i++) {
            // compute: start the instructions for two of the four rows
#if TENSOR && defined(__NV_CL_C_VERSION)
            BEGIN();
            for (int k = 0; k < TSK/4; k += 2) {
#if PARTS == 2
                WGMMA(SMALL, Bbig[now][k], k > 0);
                WGMMA(BIG, Bsmall[now][k], 1);
#endif
                WGMMA(BIG, Bbig[now][k], PARTS == 2 || k > 0);
            }
            END();
#else
            for (int j = 0; j < 64; j++) {
                sum[j] = 0.0f;
                for (int k = 0; k < TSK; k++) {
                    const float x = A[(k0 + k)*M + m0 + row + 2*i + j/2%2];
                    const float big = Bbig[now][k/4][j/4*8 + 2*t + j%2][k%4];
                    sum[j] += BIG(x)*big;
#if PARTS == 2
                    sum[j] += CUT(SMALL(x))*big + BIG(x)*CUT(Bsmall[now][k/4][j/4*8 + 2*t + j%2][k%4]);
#endif
                }
            }
#endif
            // meanwhile: split the next tile of B, load the one after it, and the next one of A
            if (i == 0) { SPLIT_B(1 - now); LOAD_B(min(k0 + 2*TSK, K - TSK)) }
            else { LOAD_A(min(k0 + TSK, K - TSK)) }
            FINISH();                        // the sums move into ordinary floats, since tensor cores cut sums off
            for (int j = 0; j < 64; j++) { acc[i][j] += sum[j]; }
        }
    }

    // store: four rows at a time
    for (int j = 0; j < 64; j += 4) { for (int h = j; h < j + 2; h++) {
        const float4 x = (float4)(acc[0][h], acc[0][h + 2], acc[1][h], acc[1][h + 2]);
        *(__global float4*)&C[(n0 + 2*j + 2*t + h - j)*M + m0 + row] = x;
    } }
}

#if !(TSM % 128 + TSK % 8 + TSK * 32 % TSM == 0)
#error TSM is not a multiple of 128, TSK not one of 8, or TSK times 32 not one of TSM
#endif
#if !((TENSOR < 2) * (PARTS > 0) * (PARTS < 3) == 1)
#error TENSOR is neither 0 nor 1, or PARTS neither 1 nor 2
#endif
