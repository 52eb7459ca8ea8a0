// kernel 2, TS=8, 64 x 64 x 64
// wrong: race with the tile before last; line 16, 17, 21
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    __local float a[3][TS][TS], b[3][TS][TS];
    float s = 0;
    for (int t = 0; t < 2; t++) {
        a[t][lj][li] = A[(t*TS + lj)*M + i];
        b[t][lj][li] = B[j*K + t*TS + li];
    }
    for (int t = 0; t < K/TS; t++) {
        const int far = (t + 2) % 3;
        if (t + 2 < K/TS) {
            a[far][lj][li] = A[((t + 2)*TS + lj)*M + i];
            b[far][lj][li] = B[j*K + (t + 2)*TS + li];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++)
            s += a[t % 3][k][li]*b[t % 3][lj][k];
    }
    C[j*M + i] = s;
}
