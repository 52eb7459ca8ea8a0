// kernel 1, TS=8, 64 x 64 x 64
// wrong: divergent barrier; line 9, 11
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float row[TS][TS];
    const int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (int k = li; k < K + li/7; k++) {
        if (k - li < K) row[lj][li] = B[j*K + k - li];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int k = 0; k < K; k++)
        s += A[k*M + i]*B[j*K + k];
    C[j*M + i] = s;
}
