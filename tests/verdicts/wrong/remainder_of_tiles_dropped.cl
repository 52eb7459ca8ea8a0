// kernel 1, TS=8, 64 x 64 x 60
// wrong: remainder of K; line 9, 10, 11, 14
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS], b[TS][TS];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0;
    for (int t = 0; t < K/TS; t++) {
        a[lj][li] = A[(t*TS + lj)*M + i];
        b[lj][li] = B[j*K + t*TS + li];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++)
            s += a[k][li]*b[lj][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[j*M + i] = s;
}
