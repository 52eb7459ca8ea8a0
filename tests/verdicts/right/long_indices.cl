// kernel 1, TS=8, 64 x 64 x 64
// 64-bit indices of all kinds
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const long i = get_global_id(0);
    const ulong j = get_global_id(1);
    const size_t rows = M;
    float s = 0.0f;
    for (long k = 0L; k < (long)K; k++)
        s += A[(size_t)k*rows + i]*B[j*(ulong)K + (ulong)k];
    C[j*rows + i] = s;
}
