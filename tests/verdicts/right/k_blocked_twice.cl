// kernel 2, TS=8, 64 x 64 x 64
// k in blocks of four tiles, with a sum for each block
// also 16 x 24 x 40, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS], b[TS][TS];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float total = 0;
    for (int k2 = 0; k2 < K; k2 += 4*TS) {
        float s = 0;
        for (int k1 = k2; k1 < min(k2 + 4*TS, K); k1 += TS) {
            a[lj][li] = A[(k1 + lj)*M + i];
            b[lj][li] = B[j*K + k1 + li];
            barrier(CLK_LOCAL_MEM_FENCE);
            for (int k = 0; k < TS; k++) s += a[k][li]*b[lj][k];
            barrier(CLK_LOCAL_MEM_FENCE);
        }
        total += s;
    }
    C[j*M + i] = total;
}
