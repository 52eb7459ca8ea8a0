"""What clscope's tests share. They need NumPy, pytest and hypothesis; where PyOpenCL, libclang or
wgpu is missing, the comparisons with these are skipped, and fail if GEMMLAB_NO_SKIP is 1.
"""

from __future__ import annotations

import os
from functools import cache, lru_cache
from typing import Any, NamedTuple

import numpy as np
import pytest

import clscope

NO_SKIP = os.environ.get("GEMMLAB_NO_SKIP") == "1"
#: Each night: many more random texts beside clang.
FULL = os.environ.get("GEMMLAB_FULL") == "1"


def lacking(what: str) -> None:
    """Skip a test because this machine lacks something; in CI fail."""
    if NO_SKIP:
        pytest.fail(f"{what}, and GEMMLAB_NO_SKIP=1 forbids skipping")
    pytest.skip(what)


def line_of(source: str, part: str, which: int = 0) -> int:
    """The number of a line that contains `part`."""
    return [i for i, line in enumerate(source.split("\n"), 1) if part in line][which]


def kernel(body: str, before: str = "") -> str:
    """A kernel for work-groups of 8 x 8: m and n number work-items, tm and tn those of a group."""
    return f"""{before}
__kernel __attribute__((reqd_work_group_size(8, 8, 1)))
void k(const int M, const int N, const int K,
       const __global float* A, const __global float* B, __global float* C)
{{
    const int m = get_global_id(0);
    const int n = get_global_id(1);
    const int tm = get_local_id(0);
    const int tn = get_local_id(1);
{body}
}}
"""


def run(source: str, m: int = 8, n: int = 8, k: int = 8, **options: Any) -> clscope.Run:
    """Run a text of `kernel` on m x n work-items; A, B and C have m x k, n x k and m x n floats."""
    a, b = (np.arange(size * k, dtype=np.float32) % 5 - 2 for size in (m, n))
    return clscope.run(source, "k", (m, n), None, [m, n, k, a, b, clscope.Empty(m * n)], **options)


def kinds(run: clscope.Run) -> set[str]:
    return {finding.kind for finding in run.findings}


class Runtime(NamedTuple):
    """A real OpenCL device."""

    name: str
    context: Any
    queue: Any
    widest: int  # bytes of the widest vectors that its compiler takes

    def launch(self, source: str, name: str, sizes, local, args, *options: str) -> list[Any]:
        """The arguments of a kernel after a launch; arrays are copied."""
        import pyopencl as cl

        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
        after = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
        buffers = {
            at: cl.Buffer(self.context, flags, hostbuf=a)
            for at, a in enumerate(after)
            if isinstance(a, np.ndarray)
        }
        program = built(self.context, source, *options)
        values = [buffers.get(at, a) for at, a in enumerate(after)]
        cl.Kernel(program, name)(self.queue, sizes, local, *values)
        for at, buffer in buffers.items():
            cl.enqueue_copy(self.queue, after[at], buffer)
        return after


@lru_cache(maxsize=1)
def built(context: Any, source: str, *options: str) -> Any:
    """Compile a program, unless it is the last one again."""
    import pyopencl as cl

    return cl.Program(context, source).build(options=["-cl-std=CL1.2", *options])


@cache
def runtimes() -> dict[str, Runtime]:
    """The CPUs of this machine's OpenCL, by the first word of their platform's name."""
    try:
        import pyopencl as cl

        platforms = cl.get_platforms()
    except Exception:  # not installed, or no platform
        return {}
    by_name = {}
    for platform in platforms:
        for device in platform.get_devices(cl.device_type.CPU):
            context = cl.Context([device])
            # this one aborts the process for some kernels with vectors of 64 bytes
            widest = 32 if "PoCL 3.0" in platform.version else 64
            runtime = Runtime(platform.name, context, cl.CommandQueue(context), widest)
            by_name.setdefault(platform.name.split()[0], runtime)
    return by_name


def pocl() -> Runtime:
    """PoCL: it computes as the specification says, where Intel's runtime flushes denormals."""
    return runtimes().get("Portable") or lacking("no PoCL")
