// kernel 1, TS=8, 64 x 64 x 64
// wrong: missing barrier; line 14
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float part[TS][TS];
    const int li = get_local_id(0), lj = get_local_id(1), j0 = get_group_id(1)*TS, m0 = get_group_id(0)*TS;
    for (int e = 0; e < TS; e++) {
        float s = 0;
        for (int k = li; k < K; k += TS) s += A[k*M + m0 + lj]*B[(j0 + e)*K + k];
        part[lj][li] = s;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int w = TS/2; w > 0; w /= 2)
            if (li < w) part[lj][li] += part[lj][li + w];
        if (li == 0) C[(j0 + e)*M + m0 + lj] = part[lj][0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
