// kernel 1, TS=8, 64 x 64 x 64
// other kernels in the same source code, one of them called
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void zero(__global float* x) { x[get_global_id(0)] = 0.0f; }
__kernel void element(int M, int K, const __global float* A, const __global float* B, __global float* c)
{
    float s = 0.0f;
    for (int k = 0; k < K; k++)
        s += A[k*M]*B[k];
    *c = s;
}
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    element(M, K, A + i, B + j*K, C + j*M + i);
}
