// kernel 2, TS=8, 64 x 64 x 64
// row and column of a tile from a linear id, columns first
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS], b[TS][TS];
    int l = get_local_id(1)*get_local_size(0) + get_local_id(0);
    int r = l / TS, c = l % TS;
    int i = get_group_id(0)*TS + r, j = get_group_id(1)*TS + c;
    float s = 0;
    for (int t = 0; t < K; t += TS) {
        a[c][r] = A[(t + c)*M + i];
        b[c][r] = B[j*K + t + r];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++) s += a[k][r]*b[c][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[j*M + i] = s;
}
