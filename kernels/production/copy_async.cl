// copy 4 floats or 1 from global to local memory; store zeroes if they are outside the matrix
// asynchronous: a copy is only started; COPIED() ends a batch, AWAIT(n) waits until all but the last n batches
// have arrived; where the predicate p is true, zeroes are stored instead
#define COPY_4(to, from, there) \
    asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, 0; cp.async.cg.shared.global [%0], [%1], 16, p; }" \
                 :: "r"((uint)(size_t)(to)), "l"(from), "r"((int)(there)) : "memory")
#define COPY_1(to, from, there) \
    asm volatile("{ .reg .pred p; setp.eq.s32 p, %2, 0; cp.async.ca.shared.global [%0], [%1], 4, p; }" \
                 :: "r"((uint)(size_t)(to)), "l"(from), "r"((int)(there)) : "memory")
#define COPIED() asm volatile("cp.async.commit_group;" ::: "memory")
#define AWAIT(tiles) asm volatile("cp.async.wait_group %0;" :: "n"(tiles) : "memory")
