// kernel 1, TS=8, 64 x 64 x 56
// wrong: remainder of K; line 8, 9, 12
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (int k = 0; k < K; k += 16) {
        const float16 b = vload16(0, B + j*K + k);
        const float* p = (const float*)&b;
        for (int q = 0; q < 16; q++)
            s += A[(k + q)*M + i]*p[q];
    }
    C[j*M + i] = s;
}
