// kernel 2, TS=8, 64 x 64 x 64
// loads and sums in functions that take pointers to local memory
// also 16 x 24 x 8, 40 x 8 x 24
void load(__local float* tile, const __global float* from, int stride)
{
    tile[get_local_id(1)*TS + get_local_id(0)] = from[get_local_id(1)*stride + get_local_id(0)];
}
float product(const __local float* a, const __local float* b)
{
    float s = 0;
    for (int k = 0; k < TS; k++, a += TS) s += *a * *b++;
    return s;
}
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    __local float a[TS*TS], b[TS*TS];
    float s = 0;
    for (int t = 0; t < K; t += TS) {
        load(a, A + t*M + get_group_id(0)*TS, M);
        load(b, B + get_group_id(1)*TS*K + t, K);
        barrier(CLK_LOCAL_MEM_FENCE);
        s += product(a + get_local_id(0), b + get_local_id(1)*TS);
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    C[get_global_id(1)*M + get_global_id(0)] = s;
}
