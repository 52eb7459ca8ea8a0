// kernel 1, TS=8, 64 x 64 x 64
// 16 work-items walk over C, the others do nothing
// also 16 x 24 x 8, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int g = get_global_id(1)*get_global_size(0) + get_global_id(0);
    if (g < 16)
        for (int e = g; e < M*N; e += 16) {
            float s = 0.0f;
            for (int k = 0; k < K; k++)
                s += A[k*M + e % M]*B[e / M*K + k];
            C[e] = s;
        }
}
