// kernel 1, TS=8, 64 x 64 x 64
// compensated summation
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float sum = 0.0f, lost = 0.0f;
    for (int k = 0; k < K; k++) {
        float y = A[k*M + i]*B[j*K + k] - lost;
        float t = sum + y;
        lost = (t - sum) - y;
        sum = t;
    }
    C[j*M + i] = sum;
}
