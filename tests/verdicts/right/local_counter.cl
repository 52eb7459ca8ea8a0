// kernel 1, TS=8, 64 x 64 x 64
// work-items draw elements of their tile from a counter in local memory
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local int counter;
    const int m0 = get_group_id(0)*TS, n0 = get_group_id(1)*TS;
    if (get_local_id(0) + get_local_id(1) == 0) counter = 0;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int e = atomic_inc(&counter); e < TS*TS; e = atomic_inc(&counter)) {
        const int i = m0 + e % TS, j = n0 + e / TS;
        float s = 0.0f;
        for (int k = 0; k < K; k++) s += A[k*M + i]*B[j*K + k];
        C[j*M + i] = s;
    }
}
