// kernel 1, TS=8, 64 x 64 x 64
// the last work-group computes everything, in tiles of the size of a group
// also 16 x 24 x 8, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    if (get_group_id(0) + 1 < get_num_groups(0) || get_group_id(1) + 1 < get_num_groups(1))
        return;
    for (int j = get_local_id(1); j < N; j += TS)
        for (int i = get_local_id(0); i < M; i += TS) {
            float s = 0.0f;
            for (int k = 0; k < K; k++)
                s += A[k*M + i]*B[j*K + k];
            C[j*M + i] = s;
        }
}
