// kernel 1, TS=8, 64 x 64 x 64
// work-groups take tiles of C in another order, from a linear number
// also 16 x 24 x 1, 40 x 8 x 33
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int across = get_num_groups(0), down = get_num_groups(1);
    const int g = across*down - 1 - (get_group_id(1)*across + get_group_id(0));
    const int i = g / down*TS + get_local_id(0), j = g % down*TS + get_local_id(1);
    float s = 0.0f;
    for (int k = 0; k < K; k++)
        s += A[k*M + i]*B[j*K + k];
    C[j*M + i] = s;
}
