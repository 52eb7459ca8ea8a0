// wgmma: the 128 work-items of a warpgroup multiply 64 x 8 by 8 x 128 TF32 numbers, and go on while
// the tensor cores work. Only Hopper's GPUs have the instruction.
//
// NVIDIA's OpenCL compiler translates OpenCL C to PTX, a text, and has the driver assemble it for
// the plain chip, where the instruction is an error. It copies the string of an `asm` statement
// into the text without reading it, and fills in registers for %0 and so on, even in a comment. So
// each instruction is a comment of PTX at first, on one line, behind the mark //@:
//
//     .target sm_90                               what the compiler returns
//     //@ wgmma.commit_group.sync.aligned;
//
//     .target sm_90a                              what gemmlab/opencl/build.py makes of it:
//     wgmma.commit_group.sync.aligned;            it names Hopper's target, removes the marks,
//                                                 and has that assembled
//
// Without this step the kernel would run without these instructions, and be wrong in silence. So
// all sums begin as NaN, and what sets them to zero is itself such a comment.
#if TENSOR && defined(__NV_CL_C_VERSION)
// 0, or NaN where the hidden instructions are still comments
static inline float zero_if_revealed(void)
{
    float zero = NAN;
    asm volatile("//@ mov.f32 %0, 0f00000000;" : "+f"(zero));
    return zero;
}

// make what this work-item has stored in local memory visible to the tensor cores, which read it by
// another path than work-items, so that a barrier is not enough
static inline void show_stores(void)
{
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// before the first instruction of a batch: what was written to the registers that it reads and
// writes, sums and factors, is complete
static inline void begin_batch(void)
{
    asm volatile("//@ wgmma.fence.sync.aligned;" ::: "memory");
}

// after its last instruction; the tensor cores work on it from now on
static inline void end_batch(void)
{
    asm volatile("//@ wgmma.commit_group.sync.aligned;" ::: "memory");
}

// wait until the batch is complete
static inline void await_batch(void)
{
    asm volatile("//@ wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

// where 8 steps of k of B's tile are: the address, and how far away the next 4 steps and the next 8
// columns are, in units of 16 bytes, with 14 bits each from bits 0, 16 and 32 on
static inline ulong descriptor(const __local float* b)
{
    return (ulong)((uint)(size_t)b >> 4 & 0x3fff) | (ulong)ROW << 16 | (ulong)8 << 32;
}

// sum = (more ? sum : 0) + a b: add 8 steps of k to 64 sums of this work-item. `a` are its factors
// of A, of which part BIG or SMALL is multiplied; `b` is B's tile, whose parts are split already.
// A macro, because the instruction names 64 registers; EIGHT names eight of them
#define EIGHT(s) "+f"((s)[0]), "+f"((s)[1]), "+f"((s)[2]), "+f"((s)[3]), \
                 "+f"((s)[4]), "+f"((s)[5]), "+f"((s)[6]), "+f"((s)[7])
#define WGMMA(sum, a, which, b, more, at_a) \
    asm volatile("//@ {.reg .pred p; setp.ne.b32 p, %69, 0; " \
        "wgmma.mma_async.sync.aligned.m64n128k8.f32.tf32.tf32 " \
        "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, " \
        "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, " \
        "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, " \
        "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63}, " \
        "{%64, %65, %66, %67}, %68, p, 1, 1;}" \
        : EIGHT(&sum[0]), EIGHT(&sum[8]), EIGHT(&sum[16]), EIGHT(&sum[24]), \
          EIGHT(&sum[32]), EIGHT(&sum[40]), EIGHT(&sum[48]), EIGHT(&sum[56]) \
        : "r"(as_uint(part(a.x, which))), "r"(as_uint(part(a.y, which))), \
          "r"(as_uint(part(a.z, which))), "r"(as_uint(part(a.w, which))), \
          "l"(descriptor(b)), "r"(more))
#else
static inline float zero_if_revealed(void)
{
    return 0.0f;
}

static inline void show_stores(void)
{
}

static inline void begin_batch(void)
{
}

static inline void end_batch(void)
{
}

static inline void await_batch(void)
{
}

// 8 steps of k in ordinary arithmetic: of a row of A, whose floats are `ld` apart from `at_a` on,
// and of column n of B's tile
static inline float product(const __global float* at_a, const int ld, const int which,
                            const __local float* b, const int n)
{
    float sum = 0.0f;
    for (int k = 0; k < 8; k++) {
        sum += cut(part(at_a[k*ld], which))*cut(b[(k/4*ROW + n)*4 + k%4]);
    }
    return sum;
}

// the same sums without the instruction, which needs no `a`: the factors of all are at `at_a`
#define WGMMA(sum, a, which, b, more, at_a) \
    for (int j = 0; j < 64; j++) { \
        const int n = j/4*8 + get_local_id(0)%4*2 + j%2; \
        sum[j] = ((more) ? sum[j] : 0.0f) + product((at_a) + j/2%2, M, which, b, n); \
    }
#endif
