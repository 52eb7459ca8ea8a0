// kernel 1, TS=8, 64 x 64 x 64
// a table in constant memory, an enumeration and a typedef
// also 16 x 24 x 1, 40 x 8 x 33
__constant float signs[2] = {1.0f, -1.0f};
enum { ROW, COLUMN };
typedef const __global float* Matrix;
float at(Matrix x, int ld, int r, int c) { return x[c*ld + r]; }
__kernel void gemm(const int M, const int N, const int K,
                   const __global float* A, const __global float* B, __global float* C)
{
    const int g[2] = {get_global_id(ROW), get_global_id(COLUMN)};
    float s = 0.0f;
    for (int k = 0; k < K; k++)
        s -= signs[1]*at(A, M, g[ROW], k)*at(B, K, k, g[COLUMN])*signs[0];
    C[g[COLUMN]*M + g[ROW]] = s;
}
