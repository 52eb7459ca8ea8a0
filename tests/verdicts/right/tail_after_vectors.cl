// kernel 1, TS=8, 64 x 64 x 60
// steps of 16 along k, then single ones
// also 16 x 24 x 5, 40 x 8 x 103
#define COLUMNS(q) A[(k + q)*M + i], A[(k + q + 1)*M + i], A[(k + q + 2)*M + i], A[(k + q + 3)*M + i]
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    int k = 0;
    for (; k <= K - 16; k += 16) {
        float16 b = vload16(0, B + j*K + k);
        float16 a = (float16)(COLUMNS(0), COLUMNS(4), COLUMNS(8), COLUMNS(12));
        float16 c = a*b;
        s += dot(c.s0123 + c.s4567 + c.s89ab + c.scdef, (float4)(1.0f));
    }
    for (; k < K; k++)
        s += A[k*M + i]*B[j*K + k];
    C[j*M + i] = s;
}
