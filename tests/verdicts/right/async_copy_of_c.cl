// kernel 1, TS=8, 64 x 64 x 64
// the tile of C is collected in local memory and copied out asynchronously
// also 16 x 24 x 8, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float c[TS*TS];
    int li = get_local_id(0), lj = get_local_id(1), i = get_global_id(0), j = get_global_id(1);
    float s = 0;
    for (int k = 0; k < K; k++) s += A[k*M + i]*B[j*K + k];
    c[lj*TS + li] = s;
    barrier(CLK_LOCAL_MEM_FENCE);
    event_t e = 0;
    for (int q = 0; q < TS; q++)
        e = async_work_group_copy(C + (get_group_id(1)*TS + q)*M + get_group_id(0)*TS, c + q*TS, TS, e);
    wait_group_events(1, &e);
}
