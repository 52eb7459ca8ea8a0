// kernel 2, TS=8, 64 x 64 x 64
// two buffers whose pointers are swapped
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    __local float first[2*TS*TS], second[2*TS*TS];
    __local float *now = first, *next = second, *swap;
    float s = 0;
    for (int t = 0; t < K; t += TS) {
        now[lj*TS + li] = A[(t + lj)*M + i];
        now[TS*TS + lj*TS + li] = B[j*K + t + li];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++) s += now[k*TS + li]*now[TS*TS + lj*TS + k];
        swap = now; now = next; next = swap;
    }
    C[j*M + i] = s;
}
