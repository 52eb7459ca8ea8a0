// kernel 1, TS=8, 64 x 64 x 64
// work-items leave the first loop at different rounds, and meet again
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1), cut = (5*i + 3*j) % (K + 1);
    float s = 0.0f;
    int k = 0;
    while (true) {
        if (k == cut) break;
        s += A[k*M + i]*B[j*K + k];
        k++;
    }
    for (k = 0; k < K; k++) {
        if (k < cut) continue;
        s += A[k*M + i]*B[j*K + k];
    }
    C[j*M + i] = s;
}
