// kernel 12, TS=8, WPT=4, 50 x 70 x 33
// work-items outside C return at once; no barriers
// also 16 x 24 x 8, 7 x 5 x 3
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0);
    const int j0 = get_group_id(1)*TS + get_local_id(1);
    if (i >= M) return;
    for (int w = 0, j = j0; w < WPT && j < N; w++, j += TS/WPT) {
        float s = 0.0f;
        for (int k = 0; k < K; k++)
            s += A[k*M + i]*B[j*K + k];
        C[j*M + i] = s;
    }
}
