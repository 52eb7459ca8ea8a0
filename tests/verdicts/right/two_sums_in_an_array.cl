// kernel 1, TS=8, 64 x 64 x 64
// two sums in turn, in an array
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float v[2] = {0, 0};
    for (int k = 0; k < K; k++)
        v[k & 1] += A[k*M + i]*B[j*K + k];
    C[j*M + i] = v[0] + v[1];
}
