// kernel 1, TS=8, 64 x 64 x 64
// every fourth work-item loads and stores four rows
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    if ((i & 3) == 0) {
        float4 s = 0.0f;
        for (int k = 0; k < K; k++)
            s += vload4((k*M + i)/4, A)*B[j*K + k];
        *(__global float4*)(C + j*M + i) = s;
    }
}
