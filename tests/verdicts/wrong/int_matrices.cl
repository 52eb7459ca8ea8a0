// kernel 1, TS=8, 64 x 64 x 64
// wrong: parameters; line 3, 4
__kernel void gemm(const int M, const int N, const int K,
                   const __global int* A, const __global int* B, __global int* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    int s = 0;
    for (int k = 0; k < K; k++)
        s += A[k*M + i]*B[j*K + k];
    C[j*M + i] = s;
}
