// kernel 2, TS=8, 64 x 64 x 64
// memory fences beside barriers, and more barriers than needed
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS], b[TS][TS];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0;
    barrier(CLK_GLOBAL_MEM_FENCE);
    for (int t = 0; t < K; t += TS) {
        a[lj][li] = A[(t + lj)*M + i];
        write_mem_fence(CLK_LOCAL_MEM_FENCE);
        b[lj][li] = B[j*K + t + li];
        mem_fence(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++) s += a[k][li]*b[lj][k];
        read_mem_fence(CLK_LOCAL_MEM_FENCE);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[j*M + i] = s;
}
