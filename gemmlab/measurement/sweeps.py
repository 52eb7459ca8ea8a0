"""Sweeps: one parameter varies, the others stay. Chapters run sweeps, and show recorded ones."""

from __future__ import annotations

import statistics
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..caches import cached
from ..ladder import Key, ParameterError, find, sources
from ..ladder.spec import positive, round_up
from ..opencl import cl
from ..opencl.build import build
from ..opencl.devices import Device, find_device
from . import clock, records, timing
from .records import Result, pooled


def sweep(  # noqa: PLR0913
    kernel: Key,
    name: str,
    values: Iterable[int],
    size: int = 256,
    params: dict[str, int] | None = None,
    device: Device | int | str | None = None,
    repeats: int | None = None,
    rounds: int = 1,
) -> dict[int, Result]:
    """Measure a kernel for several values of one parameter.

    Args:
        kernel: its number or name.
        name: a parameter, several that get the same value ("WPTM WPTN"), or "size".
        values: its values; any that the kernel or the device refuses are left out, and the reason
            is printed.
        size: of the square matrices.
        params: the other parameters.
        device, repeats: as in `gemmlab.measure`.
        rounds: how often all values are measured, one after the other. With more than one, whatever
            else the machine does meets all values alike, and shows in their spread.

    Returns:
        The result for each value that was measured.
    """
    spec, device, rounds = find(kernel), find_device(device), positive("rounds", rounds)
    base = spec.complete(params) if params or name != "size" else spec.fit(device.limits)
    found: dict[int, list[Result]] = {value: [] for value in values}
    for _ in range(rounds):
        for value in list(found):
            moved = {} if name == "size" else dict.fromkeys(name.split(), value)
            try:
                side = value if name == "size" else size
                run = timing.measure(
                    kernel, side, params={**base, **moved}, device=device, repeats=repeats
                )
                found[value].append(run)
            except ParameterError as error:
                print(f"{name}={value} is left out: {error}")
                del found[value]
    return {value: pooled(runs) for value, runs in found.items()}


def transposing(
    size: int, coalesced: bool = True, device: Device | int | str | None = None
) -> float:
    """The bandwidth of transposing a square matrix of float32, in GB/s (bytes read plus bytes
    written), by `transpose.cl`, or by `transpose_naive.cl`, which has no tile in local memory. The
    size is rounded up to a multiple of 32. Raises RuntimeError if the result is wrong.
    """
    device, size = find_device(device), round_up(size, 32)
    name = "transpose" if coalesced else "transpose_naive"
    text = sources.read(f"support/{name}.cl")
    built = build(device, device.context, f"{name}.cl", text, {}, name)
    x = np.random.default_rng(0).random((size, size), np.float32)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    source = cl.Buffer(device.context, flags, hostbuf=x)
    target = cl.Buffer(device.context, cl.mem_flags.WRITE_ONLY, x.nbytes)
    arguments: tuple[Any, ...] = (size, size), (16, 16), size, size, source, target
    if coalesced:
        arguments = (size, size // 4), (32, 8), size, size, size, 0, source, size, target
    seconds = clock.launch_seconds(lambda: built(device.timed_queue, *arguments))
    y = np.empty_like(x)
    cl.enqueue_copy(device.timed_queue, y, target)
    if not (y == x.T).all():
        raise RuntimeError(f"{name}.cl gives a wrong result on {device}")
    return 2 * x.nbytes / statistics.median(seconds) * 1e-9


@cached(1)
def recorded() -> dict[str, Any]:
    """The parameter sweeps recorded on an NVIDIA H200, with numbers as keys."""
    found = dict(records.read("nvidia_h200_chapters"))
    for part in ("curves", "registers"):
        curves = found[part].items()
        found[part] = {title: {int(v): x for v, x in curve.items()} for title, curve in curves}
    for part in ("passes", "instructions"):
        found[part] = {int(v): x for v, x in found[part].items()}
    return found


def curve(title: str) -> dict[str, dict[int, float]]:
    """A recorded sweep as a series for `plot.lines`: {"NVIDIA H200 at 4096": {value: GFLOPS}}."""
    found = recorded()
    name = found["title"] if "size" in title else f"{found['title']} at {found['size']}"
    return {name: found["curves"][title]}
