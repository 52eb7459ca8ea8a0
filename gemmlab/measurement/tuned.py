"""Tune ahead: trials of the candidates for shapes that you will multiply, so that no call has to
make them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress

import numpy as np
from numpy.typing import DTypeLike
from tqdm import tqdm

from ..blas import packed, trials
from ..blas.request import check_precision
from ..catalog.spec import positive
from ..generate import choice, tiles
from ..generate.precision import check_double, letter_of
from ..generate.selection import Choice
from ..opencl import launch
from ..opencl.devices import Device, find_device

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


def tune(
    shapes: Iterable[tuple[int, int, int]] = USUAL,
    device: Device | int | str | None = None,
    precision: str = "float32",
) -> list[choice.Explanation]:
    """Time the best candidates for some shapes on this device; from then on `matmul` takes the
    winners.

    A winner serves all shapes of its class, whose sizes are about the same. It is remembered in the
    user's cache folder, for this device, driver and version, until `gemmlab.clear_caches` is
    called. A shape takes seconds at first, most of which the compiler needs.

    Args:
        shapes: M, N, K of row-major products; usual ones by default.
        device: a Device, an index or part of a name; the preferred device by default.
        precision: "float32", "tf32" or "tf32x3".

    Returns:
        What `matmul` takes for each shape, with the reason (see `gemmlab.auto`).

    Raises:
        ValueError: for shapes that are not three whole numbers from 1 on, a precision that the
            device does not have, and a device of which no constants are recorded, so that there are
            no candidates to begin with.
    """
    device, shapes = find_device(device), [_sizes(*_three(shape)) for shape in shapes]
    check_precision(precision, device)
    if choice.known(device) is None:
        raise ValueError(
            f"no constants are recorded for {device}: there are no candidates to time. On a CPU "
            "there is one kernel; for a GPU 'python tools/record.py candidates' and "
            "'tools/fit.py' make the constants"
        )
    compile_ahead(
        device,
        [
            one.choice
            for m, n, k in shapes
            for one in trials.contenders(device, (n, m, k), precision)
        ],
    )
    for m, n, k in tqdm(shapes, unit="shape", disable=None):
        trials.try_out(device, (n, m, k), precision)
    return [choice.explain(device, *shape, precision) for shape in shapes]


def compile_ahead(device: Device, choices: Iterable[Choice]) -> None:
    """Compile on a GPU in one process per core: its compiler uses one core. The driver keeps the
    results on disk.

    The processes do not depend on the user's program, which therefore needs no
    ``if __name__ == "__main__"``.

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
) -> choice.Explanation:
    """Which kernel `matmul` takes for an m x k by k x n product of matrices without gaps, and why;
    print it.

    Args:
        m, n, k: sizes of the row-major product.
        device: a Device, an index or part of a name; the preferred device by default.
        precision: "float32", "tf32" or "tf32x3".
        dtype: of the elements: float32 or float64.

    Raises:
        ValueError: for sizes that are no whole numbers from 1 on, another dtype, a precision that
            the device does not have, or one other than "float32" for float64.
    """
    (m, n, k), device, dtype = _sizes(m, n, k), find_device(device), np.dtype(dtype)
    check_precision(precision, device)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, not {dtype}")
    if device.kind == "CPU":
        return _on_a_cpu(device, m, n, k, dtype)
    if dtype == np.float32:
        return choice.explain(device, m, n, k, precision)
    if precision != "float32":
        raise ValueError(f"precision={precision!r} is for float32, not for {dtype}")
    tile = tiles.choose(device, letter_of(dtype), (n, m, k))
    why = "It is the family's tile for these sizes; for float64 no other kernels are ranked."
    return choice.Explanation(m, n, k, dtype.name, "family", tile, why)


def _on_a_cpu(device: Device, m: int, n: int, k: int, dtype: np.dtype) -> choice.Explanation:
    check_double(letter_of(dtype), device)
    blocks = packed.Blocks.of(device, dtype)
    why = (
        f"{blocks.rows} x {packed.COLUMNS} elements of C fit this CPU's vector registers; A is "
        "packed into panels."
    )
    return choice.Explanation(
        m, n, k, dtype.name, "packed", {"WIDTH": blocks.width, "KC": blocks.depth}, why
    )


def _sizes(m: int, n: int, k: int) -> tuple[int, int, int]:
    return positive("m", m), positive("n", n), positive("k", k)


def _three(shape) -> tuple[int, int, int]:
    if not isinstance(shape, Sequence) or isinstance(shape, str) or len(shape) != 3:
        raise ValueError(
            f"shapes must hold m, n and k of each product, such as (300, 5000, 128), not {shape!r}"
        )
    return tuple(shape)
