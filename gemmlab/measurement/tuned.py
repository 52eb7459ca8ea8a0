"""Tune ahead: time candidates for shapes that you will multiply, so that `matmul` runs the winners.

A model knows the device that it was fitted to; trials know yours. ISAAC (Tillet and Cox, 2017)
times the best candidates of a predictor in this way.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from math import inf

import numpy as np
import pyopencl as cl
from numpy.typing import DTypeLike
from tqdm import tqdm

from ..blas import products
from ..blas.arrays import DTYPES
from ..blas.explain import Explanation, explain
from ..blas.request import check_precision
from ..catalog import find
from ..catalog.spec import positive
from ..generate import choice
from ..generate.precision import check_double, letter_of
from ..generate.table import Choice, Sizes
from ..opencl import launch
from ..opencl.build import BuildError
from ..opencl.devices import Device, find_device
from .timing import measure

#: M, N, K of row-major products that most people meet: squares, and those with one narrow side.
USUAL = (
    *((side, side, side) for side in (64, 128, 256, 512, 1024, 2048, 4096)),
    (1, 4096, 4096),
    (4096, 1, 4096),
    (16, 4096, 4096),
    (4096, 16, 4096),
    (128, 4096, 4096),
    (4096, 128, 4096),
    (4096, 4096, 64),
    (64, 64, 4096),
)
#: Candidates that a trial times.
BEST = 8


def tune(
    shapes: Iterable[tuple[int, int, int]] = USUAL,
    device: Device | int | str | None = None,
    precision: str = "float32",
) -> list[Explanation]:
    """Time the best candidates for some shapes on this device; `matmul` runs the winners from now
    on.

    A winner is for all shapes of its class, whose sizes are about the same. It is remembered in the
    user's cache folder, for this device, driver and version, until `gemmlab.clear_caches` is
    called. A shape takes seconds at first, most of which the compiler needs.

    Args:
        shapes: M, N, K of row-major products; usual ones by default.
        device: a Device, an index or part of a name; the preferred device by default.
        precision: "float32", "tf32" or "tf32x3".

    Returns:
        What `matmul` runs for each shape, with the reason (see `gemmlab.auto`).

    Raises:
        ValueError: for shapes that are not three whole numbers from 1 on, a precision that the
            device does not have, and a device without candidates, such as a CPU.
    """
    device, shapes = find_device(device), [_sizes(*_three(shape)) for shape in shapes]
    check_precision(precision, device)
    if choice.model(device) is None:
        raise ValueError(
            f"no constants are recorded for {device}: there are no candidates to time. On a CPU "
            "there is one kernel; for a GPU 'python tools/record.py candidates' and "
            "'tools/fit.py' make the constants"
        )
    contested = {}
    for m, n, k in shapes:
        sizes = n, m, k
        if choice.winner(device, sizes, precision) is None:
            contested[sizes] = [
                one.choice for one in choice.ranked(device, sizes, precision)[:BEST]
            ]
    compile_ahead(device, [one for some in contested.values() for one in some])
    for sizes, some in tqdm(contested.items(), disable=None):
        times = {one: seconds(device, sizes, one) for one in some}
        if min(times.values(), default=inf) < inf:
            winner = min(times, key=lambda one: times[one])
            choice.record_winner(device, sizes, precision, winner)
    products.plan_for.cache_clear()  # type: ignore[attr-defined]
    return [explain(device, *shape, precision) for shape in shapes]


def seconds(device: Device, sizes: Sizes, one: Choice) -> float:
    """Seconds of a product on the device, in TF32 with the range check; inf if it fails."""
    kernel, params = one
    with suppress(cl.Error, BuildError, ValueError, MemoryError):
        result = measure(kernel, *sizes, params=dict(params), device=device)
        known = choice.model(device)
        if result.ok and find(kernel).tensor and known is not None:
            return choice.with_check(1e-3 * result.pipeline_ms[0], sizes, known)
        if result.ok:
            return 1e-3 * result.pipeline_ms[0]
    return inf


def compile_ahead(device: Device, choices: Iterable[Choice]) -> None:
    """Compile on a GPU in one process per core: its compiler uses one core. The driver keeps the
    results on disk. The user's program needs no ``if __name__ == "__main__"``.

    Args:
        device: nothing is done unless it is a GPU.
        choices: kernels with their parameters; a choice that does not compile is skipped.
    """
    jobs = [[kernel, dict(params)] for kernel, params in dict.fromkeys(choices)]
    if device.kind != "GPU":
        return
    command = [sys.executable, "-c", "from gemmlab.measurement import tuned; tuned.compile_input()"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    processes = []
    for first in range(min(os.cpu_count() or 1, len(jobs))):
        process = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.PIPE)
        assert process.stdin
        json.dump([device.index, jobs[first :: os.cpu_count() or 1]], process.stdin)
        process.stdin.close()
        processes.append(process)
    for process in processes:
        process.wait()


def compile_input() -> None:
    """In a child process: compile what `compile_ahead` has written to the standard input."""
    index, jobs = json.load(sys.stdin)
    for kernel, params in jobs:
        with suppress(RuntimeError, ValueError):  # timing it will say why
            launch.kernel(kernel, params, index)


def auto(
    m: int,
    n: int,
    k: int,
    device: Device | int | str | None = None,
    precision: str = "float32",
    dtype: DTypeLike = np.float32,
) -> Explanation:
    """What `matmul` runs for an m x k by k x n product of matrices without gaps, and why; print it.

    Args:
        m, n, k: sizes of the row-major product.
        device: a Device, an index or part of a name; the preferred device by default.
        precision: "float32", "tf32" or "tf32x3".
        dtype: of the elements: float32, float64, complex64 or complex128.

    Raises:
        ValueError: for sizes that are no whole numbers from 1 on, another dtype, a precision that
            the device does not have, or one other than "float32" for another dtype.
    """
    (m, n, k), device, dtype = _sizes(m, n, k), find_device(device), np.dtype(dtype)
    check_precision(precision, device)
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(map(str, DTYPES))}, not {dtype}")
    if precision != "float32" and dtype != np.float32:
        raise ValueError(f"precision={precision!r} is for float32, not for {dtype}")
    check_double(letter_of(dtype), device)
    return explain(device, m, n, k, precision, dtype)


def _sizes(m: int, n: int, k: int) -> Sizes:
    return positive("m", m), positive("n", n), positive("k", k)


def _three(shape) -> Sizes:
    if not isinstance(shape, Sequence) or isinstance(shape, str) or len(shape) != 3:
        raise ValueError(
            f"shapes must hold m, n and k of each product, such as (300, 5000, 128), not {shape!r}"
        )
    return tuple(shape)
