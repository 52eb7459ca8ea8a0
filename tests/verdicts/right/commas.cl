// kernel 1, TS=8, 64 x 64 x 64
// comma operators, and a loop without a body
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int i, j, k;
    float s;
    for (i = get_global_id(0), j = get_global_id(1), k = 0, s = 0; k < K; s += A[k*M + i]*B[j*K + k], k++)
        ;
    (void)(k = 0, C[j*M + i] = s);
}
