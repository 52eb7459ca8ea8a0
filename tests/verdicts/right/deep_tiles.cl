// kernel 2, TS=8, 64 x 64 x 64
// tiles of 32 steps of k: four loads per work-item and tile
// also 16 x 24 x 32, 40 x 8 x 96
#define DEPTH 32
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[DEPTH][TS], b[TS][DEPTH];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0;
    for (int t = 0; t < K; t += DEPTH) {
        for (int q = 0; q < DEPTH; q += TS) {
            a[q + lj][li] = A[(t + q + lj)*M + i];
            b[lj][q + li] = B[j*K + t + q + li];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < DEPTH; k++) s += a[k][li]*b[lj][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[j*M + i] = s;
}
