// kernel 2, TS=8, 64 x 64 x 64
// wrong: too much local memory; line 7, 8
#define DEPTH 65536
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[DEPTH][TS];
    __local float b[TS][DEPTH];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0;
    for (int k = lj; k < K; k += TS) a[k][li] = A[k*M + i];
    for (int k = li; k < K; k += TS) b[lj][k] = B[j*K + k];
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int k = 0; k < K; k++) s += a[k][li]*b[lj][k];
    C[j*M + i] = s;
}
