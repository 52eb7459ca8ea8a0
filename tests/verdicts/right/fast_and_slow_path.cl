// kernel 1, TS=8, 64 x 64 x 56
// a path for K that is a multiple of 16, another for the rest
// also 16 x 24 x 32, 40 x 8 x 7
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    if (K % 16 == 0) {
        for (int k = 0; k < K; k += 16)
            #pragma unroll
            for (int q = 0; q < 16; q++) s += A[(k + q)*M + i]*B[j*K + k + q];
    } else {
        for (int k = 0; k < K; k++) s += A[k*M + i]*B[j*K + k];
    }
    C[j*M + i] = s;
}
