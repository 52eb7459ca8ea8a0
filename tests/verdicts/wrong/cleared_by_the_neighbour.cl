// kernel 1, TS=8, 64 x 64 x 64
// wrong: race between work-groups; line 7, 10
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1), other = (j + TS) % N;
    C[other*M + i] = 0.0f;
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (int k = 0; k < K; k++)
        C[j*M + i] += A[k*M + i]*B[j*K + k];
}
