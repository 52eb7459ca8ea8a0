// kernel 5, TS=8, TSK=8, WPT=4, PAD=1, 64 x 64 x 64
// kernel 5's B is N x K: without local memory, two loops exchanged
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), n0 = get_group_id(1)*TS + get_local_id(1);
    float s[WPT] = {0.0f};
    for (int k = 0; k < K; k++)
        for (int w = 0; w < WPT; w++)
            s[w] += A[k*M + i]*B[k*N + n0 + w*(TS/WPT)];
    for (int w = WPT; w--;)
        C[(n0 + w*(TS/WPT))*M + i] = s[w];
}
