// copy 4 floats from global to local memory; store zeroes if they are outside the matrix
// asynchronous: a copy is only started; COPIED() ends a batch, AWAIT(n) waits until all but the last n have arrived
#define COPY(to, from, there) \
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" \
                 :: "r"((uint)(size_t)(to)), "l"(from), "r"((there) ? 16 : 0) : "memory")
#define COPIED() asm volatile("cp.async.commit_group;" ::: "memory")
#define AWAIT(batches) asm volatile("cp.async.wait_group %0;" :: "n"(batches) : "memory")
