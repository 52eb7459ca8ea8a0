// kernel 1, TS=8, 64 x 64 x 48
// vload16 with an index in units of 16, at a K that is no power of two
// also 16 x 24 x 80, 40 x 8 x 16
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float16 s = 0.0f;
    for (int k = 0; k < K/16; k++) {
        float16 b = vload16(k, &B[j*K]), a;
        for (int q = 0; q < 16; q++) ((float*)&a)[q] = A[(16*k + q)*M + i];
        s += a*b;
    }
    float8 t = s.lo + s.hi;
    float4 u = t.lo + t.hi;
    C[j*M + i] = u.x + u.y + u.z + u.w;
}
