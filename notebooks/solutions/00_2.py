checks.check_00_2(r"""
__kernel __attribute__((reqd_work_group_size(8, 8, 1)))
void negate(const int M, const __global float* A, __global float* C)
{
    const int m = get_global_id(0);   // row
    const int n = get_global_id(1);   // column
    const int at = n*M + m;
    C[at] = -A[at];
}
""")
