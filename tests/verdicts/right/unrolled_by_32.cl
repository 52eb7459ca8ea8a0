// kernel 1, TS=8, 64 x 64 x 64
// unrolled by 32, by macros that call macros
// also 16 x 24 x 32, 8 x 40 x 96
#define S1 s += *a * *b++; a += M;
#define S4 S1 S1 S1 S1
#define S16 S4 S4 S4 S4
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    const __global float *a = A + i, *b = B + j*K;
    float s = 0;
    for (int left = K; left > 0; left -= 32) {
        S16
        S16
    }
    C[j*M + i] = s;
}
