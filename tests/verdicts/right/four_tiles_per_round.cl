// kernel 2, TS=8, 64 x 64 x 64
// four tiles per round of the loop over k
// also 16 x 24 x 32, 40 x 8 x 96
#define STEP(t) \
    a[lj][li] = A[((t) + lj)*M + i]; b[lj][li] = B[j*K + (t) + li]; \
    barrier(CLK_LOCAL_MEM_FENCE); \
    for (int k = 0; k < TS; k++) s += a[k][li]*b[lj][k]; \
    barrier(CLK_LOCAL_MEM_FENCE);
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1), li = get_local_id(0), lj = get_local_id(1);
    __local float a[TS][TS], b[TS][TS];
    float s = 0;
    for (int t = 0; t < K; t += 4*TS) { STEP(t) STEP(t + TS) STEP(t + 2*TS) STEP(t + 3*TS) }
    C[j*M + i] = s;
}
