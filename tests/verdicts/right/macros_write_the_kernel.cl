// kernel 1, TS=8, 64 x 64 x 64
// the whole kernel comes out of macros
// also 16 x 24 x 1, 40 x 8 x 33
#define JOIN(a, b) a##b
#define MATRIX(q, x) q __global float* x
#define PRODUCT(name, expression) \
    __kernel void name(int M, int N, int K, MATRIX(const, A), MATRIX(const, B), MATRIX(, C)) \
    { \
        const int JOIN(m, 0) = get_global_id(0), JOIN(n, 0) = get_global_id(1); \
        float JOIN(ac, c) = 0; \
        for (int k = 0; k < K; ++k) acc += (expression); \
        C[n0*M + m0] = acc; \
    }
PRODUCT(gemm, A[k*M + m0]*B[n0*K + k])
