"""The ladder in CUDA, for chapter 8: macros translate a kernel, and CuPy compiles and times it."""

from __future__ import annotations

import statistics
from typing import Any

import numpy as np

from gemmlab import check, model
from gemmlab.catalog import KernelSpec, find, sources

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
#: What they translate. Kernel 4 adds vectors, which CUDA cannot do, and others hold PTX.
KERNELS = (1, 2, 3, 5, 6, 7, 8, 9, 10)


def translate(kernel: int, params: dict[str, int] | None = None, source: str | None = None) -> str:
    """The CUDA C++ text of a kernel with its parameters; `source` replaces its own text.

    Raises:
        ValueError: if kernel is not in `KERNELS`, and for WIDTH=8, which CUDA does not have.
    """
    spec = find(kernel)
    full = spec.validate(params)
    if kernel not in KERNELS:
        wanted = ", ".join(map(str, KERNELS))
        raise ValueError(f"kernel must be one of {wanted} to be translated to CUDA, not {kernel!r}")
    if full.get("WIDTH", 1) > 4:
        raise ValueError(f"WIDTH={full['WIDTH']}: the vectors of CUDA have at most 4 floats")
    # in CUDA a pointer into local memory needs no qualifier
    text = (source or sources.read(spec.file)).replace("const __local float*", "const float*")
    defines = "".join(f"#define {name} {value}\n" for name, value in full.items())
    return TRANSLATION + defines + text


def measure(
    kernel: int, size: int, params: dict[str, int] | None = None, source: str | None = None
) -> dict[str, Any]:
    """Compile a kernel with NVRTC, check it exactly on 2 x 2 tiles, and time it by CUDA events.

    Args:
        kernel: one of `KERNELS`.
        size: M = N = K of the timed product; must be a whole number of tiles.
        params: the kernel's parameters.
        source: another text to translate in the kernel's place.

    Returns:
        "kernel", "params", "size"; "ok", whether it was right; "gflops" from the median time; and
        "registers" per work-item.
    """
    import cupy

    spec = find(kernel)
    full = spec.validate(params)
    code = cupy.RawKernel(translate(kernel, full, source), "gemm", options=("--std=c++14",))
    ok = _is_right(code, spec, full)
    a, b, c = (cupy.random.rand(size, size, dtype=cupy.float32) for _ in range(3))
    seconds = []
    for _ in range(12):
        start, end = cupy.cuda.Event(), cupy.cuda.Event()
        start.record()
        _launch(code, spec, full, (size, size, size), (a, b, c))
        end.record()
        end.synchronize()
        seconds.append(cupy.cuda.get_elapsed_time(start, end) * 1e-3)
    rate = model.gflops(size, size, size, statistics.median(seconds[2:]))
    facts = {"kernel": kernel, "params": full, "size": size}
    return facts | {"ok": ok, "gflops": rate, "registers": code.num_regs}


def _is_right(code: Any, spec: KernelSpec, params: dict[str, int]) -> bool:
    import cupy

    m, n, k = (2 * multiple for multiple in spec.multiples(params))
    a, b = check.exact_inputs(m, n, k)
    c = cupy.full((n, m), cupy.nan, cupy.float32)
    stored = b.T if spec.wants_transposed(params) else b
    x, y = (cupy.asarray(np.ascontiguousarray(matrix.T)) for matrix in (a, stored))
    _launch(code, spec, params, (m, n, k), (x, y, c))
    return check.exact(c.T.get(), a, b).ok


def _launch(
    code: Any, spec: KernelSpec, params: dict[str, int], sizes: tuple[int, int, int], arrays: tuple
) -> None:
    """Launch a kernel; the arrays A, B and C are column-major."""
    m, n, k = (np.int32(size) for size in sizes)
    local, total = spec.local_size(params), spec.global_size(*sizes[:2], params)
    grid = tuple(items // group for items, group in zip(total, local, strict=True))
    code(grid, local, (m, n, k, *arrays))
