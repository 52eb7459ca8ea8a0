// kernel 1, TS=8, 64 x 64 x 64
// the loop over k unrolled by 8 by hand
// also 16 x 24 x 40, 72 x 8 x 104
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float s = 0.0f;
    for (int k = 0; k < K; k += 8) {
        s += A[k*M + i]*B[j*K + k];
        s += A[(k + 1)*M + i]*B[j*K + k + 1];
        s += A[(k + 2)*M + i]*B[j*K + k + 2];
        s += A[(k + 3)*M + i]*B[j*K + k + 3];
        s += A[(k + 4)*M + i]*B[j*K + k + 4];
        s += A[(k + 5)*M + i]*B[j*K + k + 5];
        s += A[(k + 6)*M + i]*B[j*K + k + 6];
        s += A[(k + 7)*M + i]*B[j*K + k + 7];
    }
    C[j*M + i] = s;
}
