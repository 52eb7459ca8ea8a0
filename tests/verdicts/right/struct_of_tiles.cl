// kernel 2, TS=8, 64 x 64 x 64
// both tiles in one structure in local memory
// also 16 x 24 x 8, 40 x 8 x 24
typedef struct { float a[TS][TS + 1]; float b[TS][TS + 1]; } Tiles;
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local Tiles tiles;
    __local Tiles* t = &tiles;
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0;
    for (int k0 = 0; k0 < K; k0 += TS) {
        t->a[lj][li] = A[(k0 + lj)*M + i];
        t->b[lj][li] = B[j*K + k0 + li];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++) s += tiles.a[k][li]*tiles.b[lj][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[j*M + i] = s;
}
