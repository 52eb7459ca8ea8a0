// kernel 2, TS=8, 64 x 64 x 64
// the first work-item stores the number of tiles for all
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS], b[TS][TS];
    __local int tiles;
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    if (li == 0 && lj == 0)
        tiles = K/TS;
    barrier(CLK_LOCAL_MEM_FENCE);
    float s = 0;
    for (int t = 0; t < tiles; t++) {
        a[lj][li] = A[(t*TS + lj)*M + i];
        b[lj][li] = B[j*K + t*TS + li];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++) s += a[k][li]*b[lj][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[j*M + i] = s;
}
