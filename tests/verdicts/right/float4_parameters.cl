// kernel 4, TS=8, WIDTH=4, 64 x 64 x 64
// vectors as parameters, without local memory
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float4* A, const __global float4* B, __global float4* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float4 s = (float4)(0);
    for (int k = 0; k < K/4; k++) {
        const float4 b = B[j*(K/4) + k];
        s += A[(4*k)*(M/4) + i]*b.x + A[(4*k + 1)*(M/4) + i]*b.y;
        s += A[(4*k + 2)*(M/4) + i]*b.z + A[(4*k + 3)*(M/4) + i]*b.w;
    }
    C[j*(M/4) + i] = s;
}
