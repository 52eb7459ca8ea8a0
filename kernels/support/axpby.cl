// axpby: out = alpha*x + beta*y, element by element, over `size` floats.
//
// Idea:     the kernels compute A B, and BLAS defines alpha A B + beta C. One more
//           pass computes the second from the first.
// Costs:    at most two loads and one store per element.
// Requires: nothing. As in BLAS, a zero factor means that its array is not
//           read at all, so a NaN or an infinity in it does no harm.

#ifndef WG
#define WG 64 // work-items in a work-group
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void axpby(const int size, const float alpha, const __global float* restrict x,
           const float beta, const __global float* restrict y,
           __global float* restrict out)
{
    const int i = get_global_id(0);
    if (i < size) {
        float value = 0.0f;
        if (alpha != 0.0f) value += alpha * x[i];
        if (beta != 0.0f) value += beta * y[i];
        out[i] = value;
    }
}
