// kernel 2, TS=8, 24 x 24 x 24
// the first work-item loads both tiles for all
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS], b[TS][TS];
    int li = get_local_id(0), lj = get_local_id(1), m0 = get_group_id(0)*TS, n0 = get_group_id(1)*TS;
    float s = 0;
    for (int t = 0; t < K; t += TS) {
        if (li == 0 && lj == 0)
            for (int e = 0; e < TS*TS; e++) {
                a[e / TS][e % TS] = A[(t + e / TS)*M + m0 + e % TS];
                b[e / TS][e % TS] = B[(n0 + e / TS)*K + t + e % TS];
            }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++) s += a[k][li]*b[lj][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[(n0 + lj)*M + m0 + li] = s;
}
