// kernel 2, TS=8, 64 x 64 x 64
// wrong: race with the tile before last; line 14, 15, 19
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
        if (t + 1 < K/TS) {
            a[next][lj][li] = A[((t + 1)*TS + lj)*M + i];
            b[next][lj][li] = B[j*K + (t + 1)*TS + li];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++)
            s += a[now][k][li]*b[now][lj][k];
    }
    C[j*M + i] = s;
}
