// kernel 2, TS=8, 64 x 64 x 64
// a number of tiles written as a number, and sizes of other names
#define TILES 8
__kernel void gemm(int rows, int columns, int depth,
                   const __global float* left, const __global float* right, __global float* out)
{
    __local float a[8][8], b[8][8];
    const int y = get_local_id(0), x = get_local_id(1);
    const int row = 8*get_group_id(0) + y, column = 8*get_group_id(1) + x;
    float sum = 0;
    for (int t = 0; t < TILES; t++) {
        a[x][y] = left[(8*t + x)*rows + row];
        b[x][y] = right[column*depth + 8*t + y];
        barrier(CLK_LOCAL_MEM_FENCE);
        for (int k = 0; k < 8; k++) sum += a[k][y]*b[x][k];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    out[column*rows + row] = sum;
}
