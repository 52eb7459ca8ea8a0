checks.check_00_3(r"""
__kernel __attribute__((reqd_work_group_size(8, 8, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* A, const __global float* B, __global float* C)
{
    const int m = get_global_id(0), n = get_global_id(1);
    float sum = 0.0f;
    for (int k = 0; k < K; k++) {
        sum += A[k*M + m] * B[n*K + k];
    }
    C[n*M + m] = sum;
}
""")
