// kernel 1, TS=8, 64 x 64 x 64
// an array of 16 KB, of which a column of B uses a part
// also 16 x 24 x 8, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float columns[TS][512];
    const int i = get_global_id(0), j = get_global_id(1), lj = get_local_id(1);
    for (int k = get_local_id(0); k < K; k += TS)
        columns[lj][k] = B[j*K + k];
    barrier(CLK_LOCAL_MEM_FENCE);
    float s = 0.0f;
    for (int k = 0; k < K; k++)
        s += A[k*M + i]*columns[lj][k];
    C[j*M + i] = s;
}
