// kernel 1, TS=8, 64 x 64 x 64
// unrolled by 16, with a macro and two sums
// also 16 x 24 x 48, 72 x 8 x 112
#define P(q) A[(k + q)*M + i]*B[j*K + k + q]
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int i = get_global_id(0), j = get_global_id(1), k;
    float s = 0, t = 0;
    for (k = 0; k < K; k += 16) {
        s += P(0) + P(1) + P(2) + P(3); t += P(4) + P(5) + P(6) + P(7);
        s += P(8) + P(9) + P(10) + P(11); t += P(12) + P(13) + P(14) + P(15);
    }
    C[j*M + i] = s + t;
}
