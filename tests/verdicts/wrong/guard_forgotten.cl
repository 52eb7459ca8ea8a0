// kernel 12, TS=8, WPT=4, 50 x 70 x 33
// wrong: writes outside C; line 13
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), n0 = get_group_id(1)*TS + get_local_id(1);
    for (int w = 0; w < WPT; w++) {
        const int n = n0 + w*(TS/WPT);
        float s = 0.0f;
        if (i < M)
            for (int k = 0; k < K; k++)
                s += A[k*M + i]*(n < N ? B[n*K + k] : 0.0f);
        if (i < M) C[n*M + i] = s;
    }
}
