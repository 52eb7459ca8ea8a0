// kernel 2, TS=8, 64 x 64 x 64
// the first work-group of each row computes the whole row of tiles, with barriers
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS], b[TS][TS];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0);
    if (get_group_id(1) > 0) return;
    for (int n = 0; n < N; n += TS) {
        float s = 0;
        for (int t = 0; t < K; t += TS) {
            a[lj][li] = A[(t + lj)*M + i];
            b[lj][li] = B[(n + lj)*K + t + li];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = 0; k < TS; k++) s += a[k][li]*b[lj][k];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        C[(n + lj)*M + i] = s;
    }
}
