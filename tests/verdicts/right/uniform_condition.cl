// kernel 2, TS=8, 64 x 64 x 64
// barriers under conditions that are the same for the whole group
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS], b[TS][TS];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0;
    for (int t = 0; t < K; t += TS) {
        if (t != 0)
            barrier(CLK_LOCAL_MEM_FENCE);
        a[lj][li] = A[(t + lj)*M + i];
        b[lj][li] = B[j*K + t + li];
        if (get_group_id(0) % 2 == 0)
            barrier(CLK_LOCAL_MEM_FENCE);
        else
            barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        for (int k = 0; k < TS; k++) s += a[k][li]*b[lj][k];
    }
    C[j*M + i] = s;
}
