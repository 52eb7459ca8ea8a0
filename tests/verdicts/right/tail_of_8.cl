// kernel 1, TS=8, 64 x 64 x 52
// K is a multiple of 4 only: the last step of 8 is cut to 4
// also 16 x 24 x 4, 40 x 8 x 100
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (int k = 0; k < K; k += 8) {
        for (int q = 0; q < 4; q++) s += A[(k + q)*M + i]*B[j*K + k + q];
        if (k + 4 < K)
            for (int q = 4; q < 8; q++) s += A[(k + q)*M + i]*B[j*K + k + q];
    }
    C[j*M + i] = s;
}
