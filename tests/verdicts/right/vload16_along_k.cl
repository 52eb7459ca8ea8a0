// kernel 1, TS=8, 64 x 64 x 64
// 16 elements of a column of B per load
// also 16 x 24 x 48, 40 x 8 x 112
#define P(q, x) A[(k + q)*M + i]*b.s##x
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (int k = 0; k < K; k += 16) {
        float16 b = vload16(0, B + j*K + k);
        s += P(0, 0) + P(1, 1) + P(2, 2) + P(3, 3) + P(4, 4) + P(5, 5) + P(6, 6) + P(7, 7);
        s += P(8, 8) + P(9, 9) + P(10, a) + P(11, b) + P(12, c) + P(13, d) + P(14, e) + P(15, f);
    }
    C[j*M + i] = s;
}
