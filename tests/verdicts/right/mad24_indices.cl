// kernel 1, TS=8, 64 x 64 x 64
// indices by mad24 and mul24, sums by mad
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1), row = mul24(j, K);
    float s = 0.0f;
    for (int k = 0; k < K; k++)
        s = mad(A[mad24(k, M, i)], B[row + k], s);
    C[mad24(j, M, i)] = s;
}
