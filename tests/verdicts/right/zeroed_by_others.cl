// kernel 1, TS=8, 64 x 64 x 64
// each element is zeroed by another work-item of the group, then a barrier
// also 16 x 24 x 8, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int i = get_global_id(0), j = get_global_id(1), m0 = get_group_id(0)*TS, n0 = get_group_id(1)*TS;
    int l = get_local_id(1)*TS + get_local_id(0), p = TS*TS - 1 - l;
    C[(n0 + p/TS)*M + m0 + p%TS] = 0.0f;
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (int k = 0; k < K; k++)
        C[j*M + i] += A[k*M + i]*B[j*K + k];
}
