// kernel 1, TS=8, 64 x 64 x 64
// the index wraps with a mask, so that the last read is of element 0 and is not used
// also 16 x 24 x 8, 40 x 8 x 32
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int i = get_global_id(0), j = get_global_id(1);
    float4 now = vload4(0, B + j*K), next;
    float s = 0.0f;
    for (int k = 0; k < K; k += 4) {
        next = vload4(0, B + j*K + (k + 4) % K);
        float4 a = (float4)(A[k*M + i], A[(k + 1)*M + i], A[(k + 2)*M + i], A[(k + 3)*M + i]);
        s += dot(a, now);
        now = next;
    }
    C[j*M + i] = s;
}
