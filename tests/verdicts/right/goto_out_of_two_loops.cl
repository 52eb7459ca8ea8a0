// kernel 1, TS=8, 64 x 64 x 64
// goto leaves two loops at once
// also 16 x 24 x 20, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int i = get_global_id(0), j = get_global_id(1), k = 0;
    float s = 0.0f;
    for (;;)
        for (int q = 0; q < 16; q++) {
            if (k == K) goto done;
            s += A[k*M + i]*B[j*K + k];
            k++;
        }
done:
    C[j*M + i] = s;
}
