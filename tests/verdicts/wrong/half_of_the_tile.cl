// kernel 3, TS=8, WPT=4, 64 x 64 x 64
// wrong: uninitialised; line 10, 14
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS];
    const int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), n0 = get_group_id(1)*TS + lj;
    float s[WPT] = {0};
    for (int t = 0; t < K; t += TS) {
        for (int q = lj; q < TS/2; q += TS/WPT) a[q][li] = A[(t + q)*M + i];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++)
            for (int w = 0; w < WPT; w++)
                s[w] += a[k][li]*B[(n0 + 2*w)*K + t + k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int w = 0; w < WPT; w++) C[(n0 + 2*w)*M + i] = s[w];
}
