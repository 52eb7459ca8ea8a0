// kernel 2, TS=8, 64 x 64 x 64
// many qualifiers and attributes
// also 16 x 24 x 8, 40 x 8 x 24
__attribute__((always_inline)) static inline float once(const float x) { return x; }
__kernel __attribute__((reqd_work_group_size(TS, TS, 1), vec_type_hint(float)))
void gemm(const int M, const int N, const int K,
          __global const float* restrict const A, const __global float* restrict B,
          __global volatile float* restrict C)
{
    volatile __local float a[TS][TS] __attribute__((aligned(64)));
    __local volatile float b[TS][TS];
    const uint li = get_local_id(0), lj = get_local_id(1);
    const int i = get_global_id(0), j = get_global_id(1);
    volatile float s = 0;
    for (int t = 0; t < K; t += TS) {
        a[lj][li] = once(A[(t + lj)*M + i]);
        b[lj][li] = once(B[j*K + t + li]);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (unsigned short k = 0; k < TS; k++) s += a[k][li]*b[lj][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[j*M + i] = s;
}
