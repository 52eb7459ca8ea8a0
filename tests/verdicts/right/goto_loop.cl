// kernel 1, TS=8, 64 x 64 x 64
// goto in place of a loop
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int i = get_global_id(0), j = get_global_id(1), k = 0;
    float s = 0.0f;
next:
    s += A[k*M + i]*B[j*K + k];
    k++;
    if (k < K) goto next;
    C[j*M + i] = s;
}
