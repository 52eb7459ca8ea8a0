// kernel 1, TS=8, 64 x 64 x 64
// floats travel through integers bit by bit
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const __global uint* a = (const __global uint*)A;
    const __global int* b = (const __global int*)B;
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (int k = 0; k < K; k++)
        s += as_float(a[k*M + i])*as_float(b[j*K + k]);
    ((__global int*)C)[j*M + i] = as_int(s);
}
