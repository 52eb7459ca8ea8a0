// kernel 12, TS=8, WPT=4, 50 x 70 x 33
// reads are clamped into the matrices, and multiplied by a mask of 0 or 1
// also 16 x 24 x 8, 7 x 5 x 3
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS], b[TS][TS];
    const int li = get_local_id(0), lj = get_local_id(1);
    const int i = get_group_id(0)*TS + li, n0 = get_group_id(1)*TS;
    float s[WPT] = {0};
    for (int t = 0; t < K; t += TS) {
        for (int q = lj; q < TS; q += TS/WPT) {
            a[q][li] = A[min(t + q, K - 1)*M + min(i, M - 1)]*(t + q < K);
            b[q][li] = B[min(n0 + q, N - 1)*K + min(t + li, K - 1)]*(t + li < K);
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int w = 0; w < WPT; w++)
            for (int k = 0; k < TS; k++) s[w] += a[k][li]*b[w*(TS/WPT) + lj][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    for (int w = 0; w < WPT; w++)
        if (i < M && n0 + w*(TS/WPT) + lj < N) C[(n0 + w*(TS/WPT) + lj)*M + i] = s[w];
}
