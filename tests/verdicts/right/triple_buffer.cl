// kernel 2, TS=8, 64 x 64 x 64
// three buffers: the load stands in front of the barrier, which is right with three
// also 16 x 24 x 8, 40 x 8 x 40
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    __local float a[3][TS][TS], b[3][TS][TS];
    float s = 0;
    a[0][lj][li] = A[lj*M + i];
    b[0][lj][li] = B[j*K + li];
    for (int t = 0; t < K/TS; t++) {
        int next = (t + 1) % 3;
        if (t + 1 < K/TS) {
            a[next][lj][li] = A[((t + 1)*TS + lj)*M + i];
            b[next][lj][li] = B[j*K + (t + 1)*TS + li];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++) s += a[t % 3][k][li]*b[t % 3][lj][k];
    }
    C[j*M + i] = s;
}
