// kernel 4, TS=8, WIDTH=4, 64 x 64 x 64
// plain floats as parameters where kernel 4 has vectors; four rows per work-item
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    for (int q = 0; q < WIDTH; q++) {
        const int i = get_global_id(0)*WIDTH + q, j = get_global_id(1);
        float s = 0.0f;
        for (int k = 0; k < K; k++) s += A[k*M + i]*B[j*K + k];
        C[j*M + i] = s;
    }
}
