// kernel 1, TS=8, 64 x 64 x 64
// the rows of a group share k among them, then add up in local memory as a tree
// also 16 x 24 x 8, 40 x 8 x 32
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float part[TS][TS];
    const int li = get_local_id(0), lj = get_local_id(1), j0 = get_group_id(1)*TS, m0 = get_group_id(0)*TS;
    for (int q = 0; q < TS*TS; q += TS) {
        const int e = q/TS, i = m0 + lj, j = j0 + e;
        float s = 0;
        for (int k = li; k < K; k += TS) s += A[k*M + i]*B[j*K + k];
        part[lj][li] = s;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int w = TS/2; w > 0; w /= 2) {
            if (li < w) part[lj][li] += part[lj][li + w];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        if (li == 0) C[j*M + i] = part[lj][0];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
}
