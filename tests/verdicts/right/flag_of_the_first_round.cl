// kernel 2, TS=8, 64 x 64 x 64
// one array for both tiles; a flag leaves the barrier of the first round out
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float tile[2*TS*TS];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0;
    bool first = true;
    for (int t = 0; t < K; first = false, t += TS) {
        if (!first) barrier(CLK_LOCAL_MEM_FENCE);
        tile[lj*TS + li] = A[(t + lj)*M + i];
        tile[TS*TS + lj*TS + li] = B[j*K + t + li];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int e = 0; e < TS*TS; e += TS) s += tile[e + li]*tile[TS*TS + lj*TS + e/TS];
    }
    C[j*M + i] = s;
}
