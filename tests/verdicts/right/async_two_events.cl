// kernel 2, TS=8, 64 x 64 x 64
// an array of two events, waited for together
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS][TS], b[TS][TS];
    int li = get_local_id(0), lj = get_local_id(1), m0 = get_group_id(0)*TS, n0 = get_group_id(1)*TS;
    float s = 0;
    for (int t = 0; t < K; t += TS) {
        event_t e[2];
        e[0] = async_work_group_copy(a[0], &A[t*M + m0], TS, 0);
        e[1] = async_work_group_copy(b[0], &B[n0*K + t], TS, 0);
        for (int q = 1; q < TS; q++) {
            e[0] = async_work_group_copy(a[q], &A[(t + q)*M + m0], TS, e[0]);
            e[1] = async_work_group_copy(b[q], &B[(n0 + q)*K + t], TS, e[1]);
        }
        wait_group_events(2, e);
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < TS; k++) s += a[k][li]*b[lj][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[(n0 + lj)*M + m0 + li] = s;
}
