"""A kernel of the ladder in CUDA: a few macros translate it, and CuPy compiles and times it."""

from __future__ import annotations

import statistics

from .. import check, model
from ..catalog import find, sources
from ..catalog.ladder import LADDER

#: In front of an OpenCL kernel these macros make it CUDA C++, unless it adds vectors, which CUDA cannot do.
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


def translate(kernel: int, params: dict[str, int] | None = None) -> str:
    """The CUDA C++ text of one of the kernels 1 to 10 except 4, with its parameters.

    Pointers into local memory need no qualifier in CUDA, so casts to `const __local float*` lose theirs.

    Raises:
        ValueError: for other kernels, and for WIDTH=8, which CUDA does not have.
    """
    spec = find(kernel)
    full = spec.validate(params)
    if spec.number in (4, 11) or spec not in LADDER:
        raise ValueError(f"kernel {spec.number} adds vectors or holds PTX, which is not translated to CUDA")
    if full.get("WIDTH", 1) > 4:
        raise ValueError(f"WIDTH={full['WIDTH']}: the vectors of CUDA have at most 4 floats")
    text = sources.read(spec.file).replace("const __local float*", "const float*")
    defines = "".join(f"#define {name} {value}\n" for name, value in full.items())
    return TRANSLATION + defines + text


def measure(kernel: int, size: int, params: dict[str, int] | None = None, repeats: int = 10) -> dict:
    """Compile a kernel with NVRTC, check it exactly on two tiles in each dimension, and time it with CUDA events.

    Args:
        kernel: its number.
        size: M = N = K of the timed product; must be a whole number of tiles.
        params: the kernel's parameters.
        repeats: timed runs.

    Returns:
        "kernel", "params", "size"; "ok", whether it was right; "gflops" from the median time; and "registers" per
        work-item.
    """
    import cupy

    spec = find(kernel)
    full = spec.validate(params)
    code = cupy.RawKernel(translate(kernel, full), "gemm", options=("--std=c++14",))
    local = spec.local_size(full)

    def run(m, n, k, a, b, c):
        grid = tuple(g // x for g, x in zip(spec.global_size(m, n, full), local, strict=True))
        code(grid, local, (cupy.int32(m), cupy.int32(n), cupy.int32(k), a, b, c))

    def place(x):
        return cupy.asarray(x.T.copy())

    m, n, k = (2 * multiple for multiple in spec.multiples(full))
    a, b = check.exact_inputs(m, n, k)
    c = cupy.full((n, m), cupy.nan, cupy.float32)
    run(m, n, k, place(a), place(b.T if spec.wants_transposed(full) else b), c)
    right = check.exact(c.T.get(), a, b).ok
    u, v, w = (cupy.random.rand(size, size, dtype=cupy.float32) for _ in range(3))
    times = []
    for _ in range(repeats + 2):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        run(size, size, size, u, v, w)
        end.record()
        end.synchronize()
        times.append(cupy.cuda.get_elapsed_time(start, end) * 1e-3)
    rate = model.gflops(size, size, size, statistics.median(times[2:]))
    return {"kernel": kernel, "params": full, "size": size, "ok": right, "gflops": rate, "registers": code.num_regs}
