// kernel 2, TS=8, 64 x 64 x 64
// a double buffer with one barrier per tile
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    __local float a[2][TS][TS], b[2][TS][TS];
    float s = 0;
    a[0][lj][li] = A[lj*M + i];
    b[0][lj][li] = B[j*K + li];
    for (int t = 0; t < K/TS; t++) {
        const int now = t & 1, next = now ^ 1;
        barrier(CLK_LOCAL_MEM_FENCE);
        if (t + 1 < K/TS) {
            a[next][lj][li] = A[((t + 1)*TS + lj)*M + i];
            b[next][lj][li] = B[j*K + (t + 1)*TS + li];
        }
        for (int k = 0; k < TS; k++) s += a[now][k][li]*b[now][lj][k];
    }
    C[j*M + i] = s;
}
