// kernel 1, TS=8, 64 x 64 x 64
// the group uses its tile of C to hand elements of A on, with global barriers
// also 16 x 24 x 8, 40 x 8 x 32
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    int n0 = get_group_id(1)*TS;
    float s = 0;
    for (int t = 0; t < K; t += TS) {
        C[j*M + i] = A[(t + lj)*M + i];
        barrier(CLK_GLOBAL_MEM_FENCE);
        for (int k = 0; k < TS; k++) s += C[(n0 + k)*M + i]*B[j*K + t + k];
        barrier(CLK_GLOBAL_MEM_FENCE);
    }
    C[j*M + i] = s;
}
