// kernel 1, TS=8, 64 x 64 x 64
// wrong: race between work-groups; line 12, 13
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), upper = get_group_id(1) % 2;
    int j = get_global_id(1) - upper*TS;
    for (int q = 0; q < 2; q++, j += TS) {
        float s = 0.0f;
        for (int k = upper*K/2; k < (upper + 1)*K/2; k++)
            s += A[k*M + i]*B[j*K + k];
        if (upper == 0) C[j*M + i] = s;
        else C[j*M + i] += s;
    }
}
