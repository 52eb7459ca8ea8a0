// kernel 2, TS=8, 64 x 64 x 64
// from the last tile to the first, and backwards within a tile
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS], b[TS][TS];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0;
    for (int t = K - TS; t >= 0; t -= TS) {
        a[lj][li] = A[(t + lj)*M + i];
        b[lj][li] = B[j*K + t + li];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = TS; k-- > 0;) s += a[k][li]*b[lj][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[j*M + i] = s;
}
