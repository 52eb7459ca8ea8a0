// kernel 1, TS=8, 64 x 64 x 64
// pragmas, prefetch() and assertions of the preprocessor
// also 16 x 24 x 1, 40 x 8 x 33
#pragma OPENCL FP_CONTRACT OFF
#if TS > 64 || !defined(TS)
#error TS
#endif
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    prefetch(B + j*K, K);
    float s = 0.0f;
    #pragma unroll 4
    for (int k = 0; k < K; k++)
        s = fma(A[k*M + i], B[j*K + k], s);
    C[j*M + i] = s;
}
