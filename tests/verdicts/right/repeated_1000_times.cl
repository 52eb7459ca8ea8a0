// kernel 1, TS=8, 32 x 32 x 32
// the same work 1000 times, to have something to time
// also 16 x 24 x 8, 8 x 8 x 40
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s;
    for (int r = 0; r < 1000; r++) {
        s = 0.0f;
        for (int k = 0; k < K; k++)
            s += A[k*M + i]*B[j*K + k];
    }
    C[j*M + i] = s;
}
