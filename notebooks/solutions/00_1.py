checks.check_00_1(r"""
__kernel __attribute__((reqd_work_group_size(16, 1, 1)))
void twice(const __global float* x, __global float* y)
{
    const int i = get_global_id(0);   // 0, 1, 2 ... 63
    y[i] = 2.0f * x[i];
}
""")
