// kernel 1, TS=8, 64 x 64 x 64
// do-while, and the increment within the index
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    size_t i = get_global_id(0), j = get_global_id(1);
    float s = 0;
    int k = 0;
    do {
        s += A[i + k*M]*B[k + j*K];
    } while (++k != K);
    C[i + j*M] = s;
}
