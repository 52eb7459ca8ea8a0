// kernel 3, TS=8, WPT=4, 64 x 64 x 64
// four neighbouring columns per work-item in a float4
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_group_id(1)*TS + get_local_id(1)*4;
    float4 s = (float4)(0.0f);
    for (int k = 0; k < K; k++) {
        const float4 b = {B[j*K + k], B[(j + 1)*K + k], B[(j + 2)*K + k], B[(j + 3)*K + k]};
        s += A[k*M + i]*b;
    }
    C[j*M + i] = s.x;
    C[(j + 1)*M + i] = s.y;
    C[(j + 2)*M + i] = s.s2;
    C[(j + 3)*M + i] = s.w;
}
