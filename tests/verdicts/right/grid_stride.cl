// kernel 1, TS=8, 64 x 64 x 64
// a loop over all elements with the number of work-items as step
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int total = get_global_size(0)*get_global_size(1);
    for (int e = get_global_id(1)*get_global_size(0) + get_global_id(0); e < M*N; e += total) {
        const int i = e % M, j = e / M;
        float s = 0.0f;
        for (int k = 0; k < K; k++)
            s += A[k*M + i]*B[j*K + k];
        C[e] = s;
    }
}
