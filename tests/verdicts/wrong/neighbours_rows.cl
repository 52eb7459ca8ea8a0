// kernel 3, TS=8, WPT=4, 64 x 64 x 64
// wrong: race between work-groups; line 7, 13
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), n0 = get_group_id(1)*TS + get_local_id(1)*WPT;
    for (int w = 0; w < WPT + 1; w++) {
        const int n = n0 + w;
        float s = 0.0f;
        if (n >= N) break;
        for (int k = 0; k < K; k++)
            s += A[k*M + i]*B[n*K + k];
        C[n*M + i] = w < WPT ? s : 0.0f;
    }
}
