"""The ladder in CUDA: macros translate a kernel, and CuPy compiles, checks and times it."""

from __future__ import annotations

from typing import Any

import numpy as np

from gemmlab import check, model
from gemmlab.catalog import KernelSpec, find, sources
from lessons.cuda import TRANSLATION

#: What the macros translate. Kernel 4 adds vectors, which CUDA cannot do, and others hold PTX.
KERNELS = (1, 2, 3, 5, 6, 7, 8, 9, 10)


def translate(kernel: int) -> str:
    """The CUDA C++ text of one of `KERNELS` with its defaults."""
    spec = find(kernel)
    # in CUDA a pointer into local memory needs no qualifier
    text = sources.read(spec.file).replace("const __local float*", "const float*")
    defines = "".join(f"#define {name} {value}\n" for name, value in spec.defaults.items())
    return TRANSLATION + defines + text


def measure(kernel: int, size: int) -> dict[str, Any]:
    """Compile one of `KERNELS` with NVRTC, check it exactly on 2 x 2 tiles, and time it by CUDA
    events, at M = N = K = size.
    """
    import cupy
    from cupyx.profiler import benchmark

    spec = find(kernel)
    code = cupy.RawKernel(translate(kernel), "gemm", options=("--std=c++14",))
    matrices = tuple(cupy.random.rand(size, size, dtype=cupy.float32) for _ in range(3))
    timed = benchmark(_launch, (code, spec, (size, size, size), matrices), n_repeat=10, n_warmup=2)
    rate = model.gflops(size, size, size, float(np.median(timed.gpu_times)))
    facts = {"kernel": kernel, "params": spec.defaults, "size": size}
    return facts | {"ok": _is_right(code, spec), "gflops": rate, "registers": code.num_regs}


def _is_right(code: Any, spec: KernelSpec) -> bool:
    import cupy

    m, n, k = (2 * multiple for multiple in spec.multiples(spec.defaults))
    a, b = check.exact_inputs(m, n, k)
    c = cupy.full((n, m), cupy.nan, cupy.float32)
    stored = b.T if spec.wants_transposed(spec.defaults) else b
    x, y = (cupy.asarray(np.ascontiguousarray(matrix.T)) for matrix in (a, stored))
    _launch(code, spec, (m, n, k), (x, y, c))
    return check.exact(c.T.get(), a, b).ok


def _launch(code: Any, spec: KernelSpec, sizes: tuple[int, int, int], arrays: tuple) -> None:
    """Launch a kernel; the arrays A, B and C are column-major."""
    m, n, k = (np.int32(size) for size in sizes)
    local, total = spec.local_size(spec.defaults), spec.global_size(*sizes[:2], spec.defaults)
    grid = tuple(items // group for items, group in zip(total, local, strict=True))
    code(grid, local, (m, n, k, *arrays))
