// kernel 1, TS=8, 64 x 64 x 64
// dot() of four steps of k
// also 16 x 24 x 4, 40 x 8 x 36
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (int k = 0; k < K; k += 4) {
        float4 a;
        a.s0 = A[k*M + i]; a.s1 = A[(k + 1)*M + i]; a.s2 = A[(k + 2)*M + i]; a.s3 = A[(k + 3)*M + i];
        s += dot(a, ((const __global float4*)(B + j*K))[k >> 2]);
    }
    C[j*M + i] = s;
}
