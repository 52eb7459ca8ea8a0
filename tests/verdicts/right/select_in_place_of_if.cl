// kernel 1, TS=8, 64 x 64 x 60
// select() masks the steps behind K, whose index is masked as well
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (int k = 0; k < ((K + 7) & ~7); k++) {
        const int in = k < K, at = select(0, k, in);
        s += select(0.0f, A[at*M + i]*B[j*K + at], in);
    }
    C[j*M + i] = s;
}
