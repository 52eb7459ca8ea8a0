// asynchronous copies from global to local memory, on NVIDIA's GPUs since Ampere; without them, or
// with ASYNC = 0, the same calls make ordinary copies
#if ASYNC && defined(__NV_CL_C_VERSION)
// start to copy 4 floats; both addresses are multiples of 16 bytes
static inline void start_copy(__local float* to, const __global float* from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 :: "r"((uint)(size_t)to), "l"(from) : "memory");
}

// close a batch: all copies that this work-item has started since it closed the last one
static inline void end_batch(void)
{
    asm volatile("cp.async.commit_group;" ::: "memory");
}

// wait until all of this work-item's batches are complete but the last `batches`; a macro, because
// the instruction needs a constant
#define AWAIT(batches) asm volatile("cp.async.wait_group %0;" :: "n"(batches) : "memory")
#define BEYOND 1 // 1: read a stage behind the last tile, whose contents nothing uses: no test
#else
static inline void start_copy(__local float* to, const __global float* from)
{
    *(__local float4*)to = *(const __global float4*)from;
}

static inline void end_batch(void)
{
}

#define AWAIT(batches)
#define BEYOND 0 // test it: without asynchronous copies, what was never stored is not read
#endif
