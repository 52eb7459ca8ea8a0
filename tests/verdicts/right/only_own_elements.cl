// kernel 1, TS=8, 64 x 64 x 64
// local memory without a barrier: each work-item uses only its own elements
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float sums[TS][TS];
    const int i = get_global_id(0), j = get_global_id(1), li = get_local_id(0), lj = get_local_id(1);
    sums[lj][li] = 0.0f;
    for (int k = 0; k < K; k++)
        sums[lj][li] += A[k*M + i]*B[j*K + k];
    C[j*M + i] = sums[lj][li];
}
