// axpby: out = alpha*x + beta*y, element by element, over `size` floats.
//
// Idea:     the kernels compute A B, while BLAS defines alpha A B + beta C. This
//           additional pass computes the second from the first.
// Costs:    at most two loads and one store per element.
// Requires: nothing. As in BLAS, an array whose factor is zero is not read,
//           so a NaN or an infinity in it does no harm.

#ifndef WG
#define WG 128 // work-items in a work-group
#endif
#ifndef EACH
#define EACH 4 // elements per work-item, whose loads are all in flight at the same time
#endif

__kernel __attribute__((reqd_work_group_size(WG, 1, 1)))
void axpby(const long size, const float alpha, const __global float* restrict x,
           const float beta, const __global float* restrict y,
           __global float* restrict out)
{
    // identifiers: a work-item's elements are WG apart, so neighbours read neighbouring elements
    const long first = get_group_id(0)*WG*EACH + get_local_id(0);

    float value[EACH];
    #pragma unroll
    for (int e = 0; e < EACH; e++) {
        value[e] = 0.0f;
    }
    if (alpha != 0.0f) {
        #pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (first + e*WG < size) value[e] += alpha * x[first + e*WG];
        }
    }
    if (beta != 0.0f) {
        #pragma unroll
        for (int e = 0; e < EACH; e++) {
            if (first + e*WG < size) value[e] += beta * y[first + e*WG];
        }
    }

    // store
    #pragma unroll
    for (int e = 0; e < EACH; e++) {
        if (first + e*WG < size) out[first + e*WG] = value[e];
    }
}
