// kernel 1, TS=8, 64 x 64 x 64
// each work-item begins at another k, and comes round
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (int q = 0; q < K; q++) {
        const int k = (q + i + 3*j) % K;
        s += A[k*M + i]*B[j*K + k];
    }
    C[j*M + i] = s;
}
