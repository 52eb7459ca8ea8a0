// kernel 1, TS=8, 64 x 64 x 64
// the sum in double precision
// also 16 x 24 x 1, 40 x 8 x 33
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    double sum = 0.0;
    for (int k = 0; k < K; k++)
        sum += (double)A[k*M + i]*(double)B[j*K + k];
    C[j*M + i] = (float)sum;
}
