"""What makes CUDA C++ of the ladder's kernels, for chapter 8."""

#: With these macros in front an OpenCL kernel is CUDA C++.
TRANSLATION = """\
#define __kernel extern "C" __global__
#define __global
#define __local __shared__
#define restrict __restrict__
#define reqd_work_group_size(x, y, z) launch_bounds((x) * (y) * (z))
#define barrier(fence) __syncthreads()
#define get_local_id(d) ((d) ? threadIdx.y : threadIdx.x)
#define get_group_id(d) ((d) ? blockIdx.y : blockIdx.x)
#define get_global_id(d) (get_group_id(d) * ((d) ? blockDim.y : blockDim.x) + get_local_id(d))
"""
