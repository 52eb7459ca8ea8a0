"""Time candidates for shapes that you will multiply, so that `matmul` runs the winners.

ISAAC (Tillet and Cox, 2017) also times the best candidates of a predictor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from math import inf

import numpy as np
from tqdm import tqdm

from ..blas.choose import check_support
from ..blas.explain import Decision, auto, check_sizes
from ..blas.product import Options
from ..blas.run import session_of
from ..generate import candidates
from ..generate.candidates import Setting, Sizes
from ..ladder import find
from ..opencl import cl
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
    precision: candidates.Precision = "float32",
) -> list[Decision]:
    """Time the best candidates for some shapes on this device; `matmul` runs the winners from now
    on.

    A winner is for all shapes of its class, whose sizes are about the same. It is kept in the
    user's cache folder, for this device, driver and version, and is not timed again; `python -m
    gemmlab forget` deletes it. A shape takes seconds, most of which the compiler needs.

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
    device, shapes = find_device(device), list(shapes)
    for shape in shapes:
        if not isinstance(shape, Sequence) or isinstance(shape, str) or len(shape) != 3:
            raise ValueError(f"shapes must hold (m, n, k) of each product, not {shape!r}")
        check_sizes(*shape)
    check_support(Options.of(precision=precision), np.dtype(np.float32), device)
    if candidates.model(device) is None:
        raise ValueError(
            f"no constants are recorded for {device}: there are no candidates to time. On a CPU "
            "there is one kernel; for a GPU 'python tools/record_candidates.py' and "
            "'tools/fit.py' make the constants"
        )
    for m, n, k in tqdm(shapes, disable=None):
        sizes = n, m, k
        if candidates.winner(device, sizes, precision) is None:
            best = candidates.ranked(device, sizes, precision)[:BEST]
            times = {one.setting: seconds(device, sizes, one.setting) for one in best}
            if min(times.values(), default=inf) < inf:
                winner = min(times, key=lambda one: times[one])
                candidates.record_winner(device, sizes, precision, winner)
    session_of.cache_clear()
    return [auto(*shape, device, precision) for shape in shapes]


def seconds(device: Device, sizes: Sizes, one: Setting) -> float:
    """Seconds of a product on the device, in TF32 with the range check; inf if it fails."""
    kernel, params = one
    with suppress(cl.Error, BuildError, ValueError, MemoryError):
        result = measure(kernel, *sizes, params=dict(params), device=device)
        taken, model = 1e-3 * result.pipeline_ms[0], candidates.model(device)
        if result.ok and model is not None and find(kernel).tensor:
            return candidates.with_check(taken, sizes, model)
        return taken if result.ok else inf
    return inf
