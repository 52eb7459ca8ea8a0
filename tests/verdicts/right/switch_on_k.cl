// kernel 1, TS=8, 64 x 64 x 64
// a switch spreads the terms over four sums
// also 16 x 24 x 3, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int i = get_global_id(0), j = get_global_id(1);
    float s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    for (int k = 0; k < K; k++) {
        float p = A[k*M + i]*B[j*K + k];
        switch (k & 3) {
        case 0: s0 += p; break;
        case 1: s1 += p; break;
        case 2: s2 += p; break;
        default: s3 += p;
        }
    }
    C[j*M + i] = s0 + s1 + s2 + s3;
}
