// pad: copy a matrix into the corner of another one: a larger one, which is filled with zeros,
//      or one of the same size, which cuts a block out of a larger matrix.
//
// Idea:     padding gives whole tiles to the kernels that need them. Zeros add nothing to a
//           product, and cutting removes what they produce outside C.
// Costs:    one load and one store per element. A work-item does PE of each, in neighbouring
//           columns, and all its loads are in flight at the same time.
// Requires: nothing. LD is the leading dimension of the input, and offset is the index of
//           its first element, so the input may be a block inside a larger matrix.

#ifndef ELEMENT
#define ELEMENT float // or ushort, for the bits of float16
#endif
#ifndef PX
#define PX 32 // rows of work-items in a work-group
#endif
#ifndef PY
#define PY 8 // columns of work-items in a work-group
#endif
#ifndef PE
#define PE 4 // columns per work-item
#endif

// P x Q with leading dimension LD  ->  P_XL x Q_XL, with zeros outside the P x Q corner
__kernel __attribute__((reqd_work_group_size(PX, PY, 1)))
void pad(const int P, const int Q, const int LD, const long offset,
         const __global ELEMENT* restrict in,
         const int P_XL, const int Q_XL,
         __global ELEMENT* restrict out)
{
    const int p = get_group_id(0)*PX + get_local_id(0);
    const int q0 = (get_group_id(1)*PY + get_local_id(1))*PE;
    ELEMENT value[PE];
    for (int e = 0; e < PE; e++) {
        value[e] = p < P && q0 + e < Q ? in[offset + (long)(q0 + e)*LD + p] : 0;
    }
    for (int e = 0; e < PE; e++) {
        if (p < P_XL && q0 + e < Q_XL) {
            out[(long)(q0 + e)*P_XL + p] = value[e];
        }
    }
}
