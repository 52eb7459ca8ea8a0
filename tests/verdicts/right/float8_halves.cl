// kernel 1, TS=8, 64 x 64 x 64
// one work-item of eight computes eight rows in a float8
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    if (i % 8 != 0) return;
    float8 s = 0;
    for (int k = 0; k < K; k++) {
        float8 a = vload8(0, A + k*M + i);
        s.even = s.even + a.even*B[j*K + k];
        s.odd = fma(a.odd, (float4)(B[j*K + k]), s.odd);
    }
    vstore4(s.lo, 0, C + j*M + i);
    vstore4(s.hi, 1, C + j*M + i);
}
