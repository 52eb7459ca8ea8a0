// kernel 1, TS=8, 64 x 64 x 64
// always reads an element ahead, inside the matrix, and does not use the last of them
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f, a = A[i], b = B[j*K];
    for (int k = 0; k < K; k++) {
        int next = min(k + 1, K - 1);
        float a1 = A[next*M + i], b1 = B[j*K + next];
        s += a*b;
        a = a1;
        b = b1;
    }
    C[j*M + i] = s;
}
