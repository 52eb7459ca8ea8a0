// kernel 2, TS=8, 64 x 64 x 64
// the next tile is loaded into registers, guarded, before this one is multiplied
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS], b[TS][TS];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0, ra = A[lj*M + i], rb = B[j*K + li];
    for (int t = 0; t < K; t += TS) {
        a[lj][li] = ra;
        b[lj][li] = rb;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t + TS < K) {
            ra = A[(t + TS + lj)*M + i];
            rb = B[j*K + t + TS + li];
        }
        for (int k = 0; k < TS; k++) s += a[k][li]*b[lj][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[j*M + i] = s;
}
