// kernel 1, TS=8, 64 x 64 x 60
// the remainder of K by a switch that falls through
// also 16 x 24 x 5, 40 x 8 x 103
#define P(q) A[(k + q)*M + i]*B[j*K + k + q]
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    int i = get_global_id(0), j = get_global_id(1), k;
    float s = 0;
    for (k = 0; k + 8 <= K; k += 8)
        s += P(0) + P(1) + P(2) + P(3) + P(4) + P(5) + P(6) + P(7);
    switch (K - k) {
    case 7: s += P(6);
    case 6: s += P(5);
    case 5: s += P(4);
    case 4: s += P(3);
    case 3: s += P(2);
    case 2: s += P(1);
    case 1: s += P(0);
    }
    C[j*M + i] = s;
}
