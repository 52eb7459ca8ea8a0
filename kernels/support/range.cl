// range: does a matrix hold numbers that kernel 16 cannot cut into two parts?
//
// Idea:     every work-item looks at some elements, neighbours at neighbours, and whoever
//           finds a strange one says so. They all write the same, so nobody has to wait.
// Costs:    one load an element.
// Requires: *found is 0 before. LD is the distance between two columns of the P x Q matrix
//           and offset its first element. Strange are infinities, what is no number, what
//           rounding could make infinite, and what is so close to zero (but not zero) that
//           the bits of its small part would fall below the smallest numbers.

#ifndef WG
#define WG 64 // work-items of a work-group, all in dimension 0
#endif

#define SMALLEST 0x0d800000u // 2^-100
#define LARGEST 0x7f000000u  // 2^127

__kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void range(const int P, const int Q, const int LD, const long offset,
           const __global uint* restrict in,
           __global int* restrict found)
{
    const int p = get_global_id(0);
    int strange = 0;
    for (int q = get_global_id(1); q < Q && p < P; q += get_global_size(1)) {
        const uint bits = in[offset + (long)q*LD + p] & 0x7fffffffu; // without the sign
        strange |= bits >= LARGEST || (bits > 0 && bits < SMALLEST);
    }
    if (strange) {
        *found = 1;
    }
}
