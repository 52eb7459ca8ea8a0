// kernel 1, TS=8, 64 x 256 x 16
// wrong: type too small; line 7, 10, 11
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0);
    const char j = get_global_id(1);
    float s = 0.0f;
    for (int k = 0; k < K; k++)
        s += A[k*M + i]*B[j*K + k];
    C[j*M + i] = s;
}
