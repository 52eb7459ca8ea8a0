// kernel 1, TS=8, 64 x 64 x 64
// 16-bit indices and an 8-bit counter, large enough at this size
// also 16 x 24 x 8, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const ushort i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (uchar k = 0; k < K; k++)
        s += A[(short)(k*M + i)]*B[(short)(j*K + k)];
    C[(short)(j*M + i)] = s;
}
