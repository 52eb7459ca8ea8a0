// kernel 1, TS=8, 64 x 64 x 64
// an unsigned counter that counts down past zero
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const size_t i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (size_t k = K; k-- > 0;)
        s += A[k*M + i]*B[j*K + k];
    C[j*M + i] = s;
}
