// kernel 1, TS=8, 64 x 64 x 60
// wrong: remainder of K; line 9, 10
#define P(q) A[(k + q)*M + i]*B[j*K + k + q]
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (int k = 0; k < K; k += 8)
        s += P(0) + P(1) + P(2) + P(3) + P(4) + P(5) + P(6) + P(7);
    C[j*M + i] = s;
}
