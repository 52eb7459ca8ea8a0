// kernel 1, TS=8, 64 x 64 x 64
// wrong: endless loop; line 8
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (uint k = K - 1; k >= 0; k--)
        s += A[(k % K)*M + i]*B[j*K + k % K];
    C[j*M + i] = s;
}
