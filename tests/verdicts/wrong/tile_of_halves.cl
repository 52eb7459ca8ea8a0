// kernel 2, TS=8, 64 x 64 x 64
// wrong: digits lost; line 11, 12
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local ushort a[TS*TS], b[TS*TS];
    __local half *ha = (__local half*)a, *hb = (__local half*)b;
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0;
    for (int t = 0; t < K; t += TS) {
        vstore_half(A[(t + lj)*M + i], lj*TS + li, ha);
        vstore_half(B[j*K + t + li], lj*TS + li, hb);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++) s += vload_half(k*TS + li, ha)*vload_half(lj*TS + k, hb);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[j*M + i] = s;
}
