// kernel 2, TS=8, 64 x 64 x 64
// asynchronous copies into one half of an array while the other is multiplied
// also 16 x 24 x 8, 40 x 8 x 24
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[2][TS*TS], b[2][TS*TS];
    int li = get_local_id(0), lj = get_local_id(1), m0 = get_group_id(0)*TS, n0 = get_group_id(1)*TS;
    float s = 0;
    for (int t = -TS, now = 1; t < K; t += TS, now ^= 1) {
        event_t e = 0;
        if (t + TS < K)
            for (int q = 0; q < TS; q++) {
                e = async_work_group_copy(a[now ^ 1] + q*TS, A + (t + TS + q)*M + m0, TS, e);
                e = async_work_group_copy(b[now ^ 1] + q*TS, B + (n0 + q)*K + t + TS, TS, e);
            }
        if (t >= 0)
            for (int k = 0; k < TS; k++) s += a[now][k*TS + li]*b[now][lj*TS + k];
        if (t + TS < K)
            wait_group_events(1, &e);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[(n0 + lj)*M + m0 + li] = s;
}
