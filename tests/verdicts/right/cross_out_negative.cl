// kernel 1, TS=8, 64 x 64 x 64
// pointers behind the matrices and negative indices that end up inside
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    const __global float *a = A + M*K + i, *b = B + (j + 1)*K;
    float s = 0.0f;
    for (int k = -K; k < 0; k++)
        s += a[k*M]*b[k];
    *(C + M*N - (M*N - j*M - i)) = s;
}
