// 19 warpgroups: four warps multiply with one instruction, and go on while it runs.
//
// Before:   18_tensor_cores. Its instruction makes the warp wait, and reads both matrices from
//           registers. This one (wgmma, on Hopper) adds 64 x 8 times 8 x 128 to the sums of the
//           128 work-items of a warpgroup, reads B from local memory by itself, and does not make
//           them wait: meanwhile they split the next tile of B into its parts, once for all, and
//           load their own elements of A from global memory straight into registers.
// Costs:    5*TSK*130 floats of local memory, 64 accumulators and 64 sums in the
//           tensor cores; 1/TSM + 1/128 global loads per multiply-add, and local ones by hardware.
// Requires: M, N and K multiples of TSM, 128 and TSK (padded to them); B as it lies, K x N.
//           OpenCL's compiler does not know the instruction. It is hidden in comments that begin
//           with //@ and revealed in the compiled PTX (gemmlab/opencl/build.py); otherwise C is
//           NaN. Without such tensor cores the same products are spelled out, which is slow.
//
//    A work-item 4g + t of warp w has rows 16w + 2g and 16w + 2g + 1, columns 8j + 2t and
//    8j + 2t + 1. Of B's tile 4 steps of k lie side by side, [k/4][n][k%4]: so it is read.

#ifndef TSM
#define TSM 128 // rows of the tile of C: 64 for each warpgroup
#endif
#ifndef TSK
#define TSK 16 // depth of the tiles of A and B, in steps of k
#endif
#ifndef PARTS
#define PARTS 2 // TF32 numbers that stand for a float: 1 (plain TF32) or 2 (3xTF32)
#endif
#ifndef TENSOR
#define TENSOR 1 // 1: tensor cores where the device has them; 0: the same products in ordinary arithmetic
#endif

#if !(TSM % 64 + TSK % 8 + TSK * 16 % TSM == 0)
#error TSM must be a multiple of 64, TSK of 8, and TSK*16 of TSM
#endif
#if !((TENSOR < 2) * (PARTS > 0) * (PARTS < 3) == 1)
#error TENSOR must be 0 or 1, and PARTS 1 or 2
#endif

#define TSN (128)                   // columns of the tile of C
#define STAGES (3)                  // tiles of B in local memory: one in use, the others being filled
#define ROW (TSN + 2)               // vectors in a row of B's tile; 2 more against bank conflicts
#define ITEMS (2*TSM)               // work-items in a work-group

// the big part of a float is rounded to 10 bits after the point; of the rest an instruction reads as many
#define BIG(x) as_float((as_uint(x) + 0x1000u) & 0xffffe000u)
#define SMALL(x) as_float(as_uint((x) - BIG(x)) & 0xffffe000u)

#if TENSOR && defined(__NV_CL_C_VERSION)
#define COPY(to, from) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" :: "r"((uint)(size_t)(to)), "l"(from) : "memory")
#define COPIED() asm volatile("cp.async.commit_group;" ::: "memory")
#define AWAIT(batches) asm volatile("cp.async.wait_group %0;" :: "n"(batches) : "memory")
// what was stored in local memory becomes visible to the tensor cores
#define SHOW() asm volatile("fence.proxy.async.shared::cta;" ::: "memory")
// BEGIN() comes before the first instruction, END() closes a batch, FINISH() waits for it
#define BEGIN() asm volatile("//@ wgmma.fence.sync.aligned;" ::: "memory")
#define END() asm volatile("//@ wgmma.commit_group.sync.aligned;" ::: "memory")
#define FINISH() asm volatile("//@ wgmma.wait_group.sync.aligned 0;" ::: "memory")
#define REVEALED(x) asm volatile("//@ mov.f32 %0, 0f00000000;" : "+f"(x))
// where 8 steps of k of B's tile are: the address, and how far the next 4 steps and the next 8 columns are, by 16 bytes
#define AT(b) ((ulong)((uint)(size_t)(b) >> 4 & 0x3fff) | (ulong)ROW << 16 | (ulong)8 << 32)
// sum = (more ? sum : 0) + a b
#define EIGHT(i) "+f"(sum[i]), "+f"(sum[i + 1]), "+f"(sum[i + 2]), "+f"(sum[i + 3]), \
                 "+f"(sum[i + 4]), "+f"(sum[i + 5]), "+f"(sum[i + 6]), "+f"(sum[i + 7])
#define WGMMA(PART, a, b, more) \
    asm volatile("//@ {.reg .pred p; setp.ne.b32 p, %69, 0; " \
        "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 " \
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
        "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, " \
        "%43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, " \
        "{%64, %65, %66, %67}, %68, p, 1, 1;}" \
        : EIGHT(0), EIGHT(8), EIGHT(16), EIGHT(24), EIGHT(32), EIGHT(40), EIGHT(48), EIGHT(56) \
        : "r"(as_uint(PART((a)[0].x))), "r"(as_uint(PART((a)[0].y))), "r"(as_uint(PART((a)[1].x))), \
          "r"(as_uint(PART((a)[1].y))), "l"(AT(b)), "r"(more))
#else
#define COPY(to, from) *(__local float4*)(to) = *(const __global float4*)(from)
#define COPIED()
#define AWAIT(batches)
#define SHOW()
#define FINISH()
#define REVEALED(x) x = 0.0f
#endif

// load: the tile of B from step k1 on, 4 steps of a column at a time
#define LOAD_B(stage, k1) \
    if ((k1) < K) { \
        for (int e = get_local_id(0), l = 0; l < TSK*TSN/4; e += ITEMS, l += ITEMS) { \
            COPY(Btile[stage][e%(TSK/4)][e/(TSK/4)], &B[(n0 + e/(TSK/4))*K + (k1) + e%(TSK/4)*4]); \
        } \
    } \
    COPIED()

// load: the elements of A that this work-item needs of a tile, two rows at steps t, t + 4, ...
#define LOAD_A(k1) \
    for (int l = 0; l < TSK/4; l++) { \
        a[l] = *(const __global float2*)&A[((k1) + 4*l + t)*M + m0 + row]; \
    }

// split: the tile of B in a stage; its big parts take its place
#define SPLIT_B(stage, to) \
    for (int e = get_local_id(0), l = 0; l < TSK*TSN/4; e += ITEMS, l += ITEMS) { \
        __local float4* place = (__local float4*)Btile[stage][e/TSN][e%TSN]; \
        const float4 x = *place; \
        *place = (float4)(BIG(x.x), BIG(x.y), BIG(x.z), BIG(x.w)); \
        *(__local float4*)Bsmall[to][e/TSN][e%TSN] = (float4)(SMALL(x.x), SMALL(x.y), SMALL(x.z), SMALL(x.w)); \
    } \
    SHOW()

__kernel __attribute__((reqd_work_group_size(ITEMS, 1, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int t = get_local_id(0)%4;         // which steps of k, and which columns
    const int row = get_local_id(0)/32*16 + get_local_id(0)%32/4*2; // first of its two rows in the tile
    const int m0 = get_group_id(0)*TSM;      // first row of the tile of C
    const int n0 = get_group_id(1)*TSN;      // first column of the tile of C

    // local memory: a tile of B to compute from, and others to fill; small parts of two tiles
    __local float Btile[STAGES][TSK/4][ROW][4] __attribute__((aligned(128))); // [stage][k/4][n][k%4]
    __local float Bsmall[2][TSK/4][ROW][4] __attribute__((aligned(128)));

    // accumulators, and sums that are still in the tensor cores
    float acc[64], sum[64], zero = NAN;
    REVEALED(zero);
    for (int j = 0; j < 64; j++) {
        acc[j] = zero;
        sum[j] = zero;
    }

    // load: the first tiles
    float2 a[TSK/4];
    LOAD_A(0)
    for (int stage = 0; stage < STAGES - 1; stage++) {
        LOAD_B(stage, stage*TSK);
    }
    AWAIT(STAGES - 2);
    barrier(CLK_LOCAL_MEM_FENCE);
    SPLIT_B(0, 0);
    barrier(CLK_LOCAL_MEM_FENCE);

    int now = 0, odd = 0;                    // the stage to compute from, and its small parts
    for (int k0 = 0; k0 < K; k0 += TSK) {
        const int next = (now + 1)%STAGES;
#if TENSOR && defined(__NV_CL_C_VERSION)
        // compute: only start, for 8 steps of k each
        BEGIN();
        for (int k = 0; k < TSK/4; k += 2) {
#if PARTS == 2
            WGMMA(SMALL, &a[k], Btile[now][k], k > 0);
            WGMMA(BIG, &a[k], Bsmall[odd][k], 1);
            WGMMA(BIG, &a[k], Btile[now][k], 1);
#else
            WGMMA(BIG, &a[k], Btile[now][k], k > 0);
#endif
        }
        END();
#else
        for (int j = 0; j < 64; j++) {
            const int n = j/4*8 + 2*t + j%2;
            sum[j] = 0.0f;
            for (int k = 0; k < TSK; k++) {
                const float x = A[(k0 + k)*M + m0 + row + j/2%2];
                const float big = Btile[now][k/4][n][k%4], small = Bsmall[odd][k/4][n][k%4];
                sum[j] += (PARTS - 1)*(SMALL(x)*big + BIG(x)*small) + BIG(x)*big;
            }
        }
#endif
        // meanwhile: start one more copy, split the next tile of B, load the next one of A
        LOAD_B((next + 1)%STAGES, k0 + (STAGES - 1)*TSK);
        AWAIT(STAGES - 2);
        barrier(CLK_LOCAL_MEM_FENCE);
        if (k0 + TSK < K) {
            SPLIT_B(next, 1 - odd);
            LOAD_A(k0 + TSK)
        }

        // the sums are there: they move into ordinary floats, since tensor cores cut sums off
        FINISH();
        for (int j = 0; j < 64; j++) {
            acc[j] += sum[j];
        }

        // barrier: the next tile has been split, and nobody needs this one any more
        barrier(CLK_LOCAL_MEM_FENCE);
        now = next;
        odd = 1 - odd;
    }

    // store: two rows at a time
    for (int j = 0; j < 64; j += 4) {
        for (int h = 0; h < 2; h++) {
            __global float* c = &C[(n0 + 2*j + 2*t + h)*M + m0 + row];
            *(__global float2*)c = (float2)(acc[j + h], acc[j + h + 2]);
        }
    }
}
