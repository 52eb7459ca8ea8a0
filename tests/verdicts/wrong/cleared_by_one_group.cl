// kernel 1, TS=8, 64 x 64 x 64
// wrong: race between work-groups; line 8, 13
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1), l = get_local_id(1)*TS + get_local_id(0);
    if (get_group_id(0) == 0 && get_group_id(1) == 0)
        for (int e = l; e < M*N; e += TS*TS) C[e] = 0;
    barrier(CLK_GLOBAL_MEM_FENCE);
    float s = 0.0f;
    for (int k = 0; k < K; k++)
        s += A[k*M + i]*B[j*K + k];
    C[j*M + i] += s;
}
