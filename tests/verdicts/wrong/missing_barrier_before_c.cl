// kernel 2, TS=8, 64 x 64 x 64
// wrong: missing barrier; line 15, 17
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS], b[TS][TS];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0;
    for (int t = 0; t < K; t += TS) {
        if (t > 0) barrier(CLK_LOCAL_MEM_FENCE);
        a[lj][li] = A[(t + lj)*M + i];
        b[lj][li] = B[j*K + t + li];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++)
            s += a[k][li]*b[lj][k];
    }
    a[li][lj] = s;
    barrier(CLK_LOCAL_MEM_FENCE);
    C[(get_group_id(1)*TS + li)*M + get_group_id(0)*TS + lj] = a[lj][li];
}
