// kernel 1, TS=8, 64 x 64 x 64
// the first half of k by one work-item, the second half by another, ordered by a barrier
// also 16 x 24 x 8, 40 x 8 x 34
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int i = get_global_id(0), j = get_global_id(1), turned = get_group_id(0)*TS + TS - 1 - get_local_id(0);
    float s = 0;
    for (int k = 0; k < K/2; k++) s += A[k*M + turned]*B[j*K + k];
    C[j*M + turned] = s;
    barrier(CLK_GLOBAL_MEM_FENCE);
    s = C[j*M + i];
    for (int k = K/2; k < K; k++) s += A[k*M + i]*B[j*K + k];
    C[j*M + i] = s;
}
