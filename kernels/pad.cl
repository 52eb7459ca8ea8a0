// pad, unpad: make a matrix larger with zeroes, and cut it out again.
//
// Idea:     kernels that need whole tiles get them. Zeroes add nothing to a
//           product, and what they produce beyond C is cut away by unpad.
// Costs:    one load and one store an element.
// Requires: nothing. LD is the distance in memory between two columns and
//           offset the index of the first element, so that a block inside a
//           larger matrix can be taken out in the same pass.

#ifndef PX
#define PX 16 // work-group: rows
#endif
#ifndef PY
#define PY 16 // work-group: columns
#endif

// P x Q, columns LD apart  ->  P_XL x Q_XL, zeroes outside the P x Q corner
__kernel __attribute__((reqd_work_group_size(PX, PY, 1)))
void pad(const int P, const int Q, const int LD, const long offset,
         const __global float* restrict in,
         const int P_XL, const int Q_XL,
         __global float* restrict out)
{
    const int p = get_group_id(0)*PX + get_local_id(0);
    const int q = get_group_id(1)*PY + get_local_id(1);
    if (p < P_XL && q < Q_XL) {
        float value = 0.0f;
        if (p < P && q < Q) {
            value = in[offset + (long)q*LD + p];
        }
        out[(long)q*P_XL + p] = value;
    }
}

// the P x Q corner of a matrix with P_XL rows  ->  P x Q
__kernel __attribute__((reqd_work_group_size(PX, PY, 1)))
void unpad(const int P_XL, const __global float* restrict in,
           const int P, const int Q, __global float* restrict out)
{
    const int p = get_group_id(0)*PX + get_local_id(0);
    const int q = get_group_id(1)*PY + get_local_id(1);
    if (p < P && q < Q) {
        out[(long)q*P + p] = in[(long)q*P_XL + p];
    }
}
