// kernel 3, TS=8, WPT=4, 64 x 64 x 64
// wrong: only a part of C; line 9, 10, 11, 12
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), n0 = get_group_id(1)*TS + get_local_id(1);
    float s[WPT] = {0};
    for (int k = 0; k < K; k++)
        for (int w = 1; w < WPT; w++)
            s[w] += A[k*M + i]*B[(n0 + 2*w)*K + k];
    for (int w = 0; w < WPT; w++) C[(n0 + 2*w)*M + i] = s[w];
}
