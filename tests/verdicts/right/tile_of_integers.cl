// kernel 2, TS=8, 64 x 64 x 64
// the tiles hold the bits of floats as integers
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local int a[TS][TS];
    __local uint b[TS][TS];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0;
    for (int t = 0; t < K; t += TS) {
        a[lj][li] = as_int(A[(t + lj)*M + i]);
        b[lj][li] = as_uint(B[j*K + t + li]);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++) s += as_float(a[k][li])*as_float(b[lj][k]);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[j*M + i] = s;
}
