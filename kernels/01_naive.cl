// 01 naive: one work-item computes one element of C.
//
// Before:   nothing; this is the first step of the ladder.
// Costs:    no local memory, one accumulator; 2 global loads per multiply-add.
// Requires: M and N multiples of TS (K may be anything).
//
//              n                 A is M x K, B is K x N, C is M x N, all column-major:
//           +--|--+              element (row, column) of an R-row matrix lies at
//         B |  |  | K            column*R + row, so going down a column is going
//           |  v  |              through memory one float at a time.
//   +-----+ +-----+
// m |---->| |  x  |              Work-item (m, n) walks along row m of A and
//   |  A  | |  C  | M            down column n of B, and writes the one x.
//   +-----+ +-----+
//      K       N
//
// Compile:  -DTS=32  side of the square of C that a work-group covers [4, 8, 12, 16, 20, 24, 32]

__kernel __attribute__((reqd_work_group_size(TS, TS, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* restrict A,
          const __global float* restrict B,
          __global float* restrict C)
{
    // identifiers
    const int m = get_global_id(0); // row of C
    const int n = get_global_id(1); // column of C

    // accumulators
    float acc = 0.0f;

    // compute
    for (int k = 0; k < K; k++) {
        acc += A[k*M + m] * B[n*K + k];
    }

    // store
    C[n*M + m] = acc;
}
