#ifndef TS
#define TS 32 // side of the square of C that a work-group covers, in elements
#endif

__kernel __attribute__((reqd_work_group_size(TS, TS, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers: one work-item of four computes four columns of C, the others none
    const int m = get_global_id(0);
    const int n = get_global_id(1);
    const int columns = TS % 4 == 0 ? 4 : 1;
    if (n % columns != 0) return;

    // accumulators
    float acc[4] = {0.0f, 0.0f, 0.0f, 0.0f};

    // compute
    for (int k = 0; k < K; k++) {
        const float a = A[k*M + m]; // loaded once, used for all columns
        for (int j = 0; j < columns; j++) {
            acc[j] += a * B[(n + j)*K + k];
        }
    }

    // store
    for (int j = 0; j < columns; j++) {
        C[(n + j)*M + m] = acc[j];
    }
}
