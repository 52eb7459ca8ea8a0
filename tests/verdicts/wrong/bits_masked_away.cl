// kernel 1, TS=8, 64 x 64 x 64
// wrong: digits lost; line 9
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (int k = 0; k < K; k++)
        s += as_float(as_int(A[k*M + i]) & 0xffff0000)*as_float(as_int(B[j*K + k]) & 0xffff0000);
    C[j*M + i] = s;
}
