// kernel 3, TS=8, WPT=4, 64 x 64 x 64
// wrong: fraction lost; line 10
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), n0 = get_group_id(1)*TS + get_local_id(1);
    for (int w = 0; w < WPT; w++) {
        short s = 0;
        for (int k = 0; k < K; k++)
            s += A[k*M + i]*B[(n0 + 2*w)*K + k];
        C[(n0 + 2*w)*M + i] = s;
    }
}
