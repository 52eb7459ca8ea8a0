// kernel 2, TS=8, 64 x 64 x 24
// wrong: race with the tile before last; line 14, 15, 19
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    __local float first[2*TS*TS], second[2*TS*TS];
    __local float *now = first, *next = second, *swap;
    float s = 0;
    now[lj*TS + li] = A[lj*M + i];
    now[TS*TS + lj*TS + li] = B[j*K + li];
    for (int t = TS; t <= K; t += TS) {
        if (t < K) {
            next[lj*TS + li] = A[(t + lj)*M + i];
            next[TS*TS + lj*TS + li] = B[j*K + t + li];
        }
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++)
            s += now[k*TS + li]*now[TS*TS + lj*TS + k];
        swap = now; now = next; next = swap;
    }
    C[j*M + i] = s;
}
