// kernel 1, TS=8, 64 x 64 x 64
// the sizes are a macro, the parameters are not used
#define SZ 64
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (int k = 0; k < SZ; k++)
        s += A[k*SZ + i]*B[j*SZ + k];
    C[j*SZ + i] = s;
}
