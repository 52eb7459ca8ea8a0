// range: does a matrix contain numbers that tensor_cores.cl cannot split into two parts?
//
// Idea:     every work-item checks some elements, neighbouring work-items neighbouring
//           elements, and sets *found to 1 if one of them cannot be split. All work-items
//           would write the same value, so none has to wait for another. Each loads AHEAD
//           elements before it checks the first, to hide latency; beyond the last column it
//           reads that one again.
// Costs:    one load per element.
// Requires: *found is 0 before the launch. LD is the leading dimension of the P x Q matrix,
//           and offset is the index of its first element. What cannot be split: infinities,
//           NaN, numbers that rounding could make infinite, and nonzero numbers so small
//           that underflow would lose bits of their small part.

#ifndef WG
#define WG 64 // work-items in a work-group, all in dimension 0
#endif

#ifndef AHEAD
#define AHEAD 8 // elements that a work-item loads before it checks them
#endif

#define SMALLEST 0x0d800000u // 2^-100
#define LARGEST 0x7f000000u  // 2^127

__kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void range(const int P, const int Q, const int LD, const long offset,
           const __global uint* restrict in,
           __global int* restrict found)
{
    const int p = get_global_id(0);
    const int columns = get_global_size(1);
    int strange = 0;
    for (int q = get_global_id(1); q < Q && p < P; q += AHEAD*columns) {
        uint bits[AHEAD];
        #pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            bits[i] = in[offset + min((long)q + (long)i*columns, Q - 1L)*LD + p];
        }
        #pragma unroll
        for (int i = 0; i < AHEAD; i++) {
            const uint size = bits[i] & 0x7fffffffu; // without the sign
            strange |= size >= LARGEST || (size > 0 && size < SMALLEST);
        }
    }
    if (strange) {
        *found = 1;
    }
}
