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
