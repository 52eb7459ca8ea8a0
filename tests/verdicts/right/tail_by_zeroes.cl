// kernel 1, TS=8, 64 x 64 x 60
// tiles of 8 along k with zeroes behind K; kernel 1 does not pad K
// also 16 x 24 x 5, 40 x 8 x 103
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS], b[TS][TS];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0;
    for (int t = 0; t < K; t += TS) {
        a[lj][li] = t + lj < K ? A[(t + lj)*M + i] : 0.0f;
        b[lj][li] = t + li < K ? B[j*K + t + li] : 0.0f;
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++) s += a[k][li]*b[lj][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[j*M + i] = s;
}
