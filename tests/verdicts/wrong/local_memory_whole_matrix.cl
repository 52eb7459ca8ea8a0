// kernel 2, TS=8, 64 x 64 x 64
// wrong: too much local memory; line 6
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float whole[1024][1024];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    for (int e = lj; e < K; e += TS)
        for (int r = li; r < M; r += TS) whole[e][r] = A[e*M + r];
    barrier(CLK_LOCAL_MEM_FENCE);
    float s = 0;
    for (int k = 0; k < K; k++) s += whole[k][i]*B[j*K + k];
    C[j*M + i] = s;
}
