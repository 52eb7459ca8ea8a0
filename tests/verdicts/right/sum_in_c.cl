// kernel 1, TS=8, 64 x 64 x 64
// the sum is kept in C itself, which each work-item zeroes first
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __global float* c = &C[get_global_id(1)*M + get_global_id(0)];
    *c = 0.0f;
    for (int k = 0; k < K; k++)
        *c += A[k*M + get_global_id(0)]*B[get_global_id(1)*K + k];
}
