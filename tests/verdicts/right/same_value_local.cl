// kernel 1, TS=8, 64 x 64 x 64
// all work-items of a group store the same value to the same places of local memory
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local int first[2];
    first[0] = get_group_id(0)*TS;
    first[1] = get_group_id(1)*TS;
    barrier(CLK_LOCAL_MEM_FENCE);
    const int i = first[0] + get_local_id(0), j = first[1] + get_local_id(1);
    float s = 0.0f;
    for (int k = 0; k < K; k++)
        s += A[k*M + i]*B[j*K + k];
    C[j*M + i] = s;
}
