// kernel 1, TS=8, 64 x 64 x 64
// wrong: too much local memory; line 6
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float big[512*1024];
    const int i = get_global_id(0), j = get_global_id(1), li = get_local_id(0), lj = get_local_id(1);
    for (int k = li; k < K; k += TS)
        big[lj*65536 + k] = B[j*K + k];
    barrier(CLK_LOCAL_MEM_FENCE);
    float s = 0.0f;
    for (int k = 0; k < K; k++)
        s += A[k*M + i]*big[lj*65536 + k];
    C[j*M + i] = s;
}
