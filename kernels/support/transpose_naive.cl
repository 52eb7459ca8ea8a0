// transpose naive: write a P x Q matrix as its Q x P transpose (both column-major).
//
// Idea:     each work-item moves one element. Neighbouring work-items load neighbouring
//           elements but store elements that are Q apart, so the stores of a warp need
//           many transactions. The tile in transpose.cl avoids that.
// Costs:    one load and one store per element.
// Requires: nothing; elements outside the matrix are not touched.

#ifndef TT
#define TT 16 // side of the square that a work-group covers, in elements
#endif

__kernel __attribute__((reqd_work_group_size(TT, TT, 1)))
void transpose_naive(const int P, const int Q,
                     const __global float* restrict in,
                     __global float* restrict out)
{
    // identifiers
    const int p = get_group_id(0)*TT + get_local_id(0);
    const int q = get_group_id(1)*TT + get_local_id(1);

    // load, and store: rows and columns exchanged
    if (p < P && q < Q) {
        out[p*Q + q] = in[q*P + p];
    }
}
