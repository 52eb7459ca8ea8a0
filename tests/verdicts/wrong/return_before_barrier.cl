// kernel 12, TS=8, WPT=4, 50 x 70 x 33
// wrong: divergent barrier; line 8, 13, 17
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS];
    const int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), n0 = get_group_id(1)*TS + lj;
    if (i >= M) return;
    float s[WPT] = {0};
    for (int t = 0; t < K; t += TS) {
        for (int q = lj; q < TS; q += TS/WPT)
            a[q][li] = t + q < K ? A[(t + q)*M + i] : 0;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int w = 0; w < WPT; w++)
            for (int k = 0; k < TS && t + k < K; k++)
                if (n0 + 2*w < N) s[w] += a[k][li]*B[(n0 + 2*w)*K + t + k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int w = 0; w < WPT; w++)
        if (n0 + 2*w < N) C[(n0 + 2*w)*M + i] = s[w];
}
