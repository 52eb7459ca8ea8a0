// kernel 1, TS=8, 64 x 64 x 64
// one work-item in a column of a group computes all its rows as outer products
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int m0 = get_group_id(0)*TS, j = get_global_id(1);
    if (get_local_id(0)) return;
    float c[TS];
    for (int r = 0; r < TS; r++) c[r] = 0.0f;
    for (int k = 0; k < K; k++)
        for (int r = 0; r < TS; r++)
            c[r] += A[k*M + m0 + r]*B[j*K + k];
    for (int r = 0; r < TS; r++) C[j*M + m0 + r] = c[r];
}
