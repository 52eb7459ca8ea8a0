// kernel 1, TS=8, 64 x 64 x 64
// 16 elements of a column of B per load
// also 16 x 24 x 48, 40 x 8 x 112
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (int k = 0; k < K; k += 16) {
        float16 b = vload16(0, B + j*K + k);
        float bs[16];
        vstore16(b, 0, bs);
        for (int q = 0; q < 16; q++)
            s += A[(k + q)*M + i]*bs[q];
    }
    C[j*M + i] = s;
}
