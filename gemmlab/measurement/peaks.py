"""The measured peaks of a device: arithmetic, and the bandwidth of global memory."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np

from .. import model
from ..caches import Notes, cached
from ..ladder import catalog, sources
from ..opencl import cl
from ..opencl.build import BuildError, Built, build
from ..opencl.devices import Device, find_device
from . import clock
from .records import Result

#: Variants of the multiply-add loop: chains, floats per vector, and fma(a, b, c) or a*b + c. A
#: chain waits for itself, so there are as many as registers hold: 12 vectors of a CPU's 16 or 32,
#: and 96 of a GPU's.
LOOPS = {
    "GPU": ((16, 1, 1), (12, 2, 1), (8, 4, 1), (8, 8, 1), (12, 8, 1)),
    "CPU": ((12, 1, 0), (12, 8, 1), (12, 8, 0), (12, 16, 1)),
}
#: A timed run takes at least so long.
SECONDS = 10e-3
#: Timed runs of a loop; the fastest counts.
LAUNCHES = 5

#: The highest GFLOPS and GB/s that any process has measured, by device, driver and version: a
#: machine that was busy once has the same peak as before.
highest = Notes("peaks.json")


def peaks(device: Device | int | str | None = None) -> model.Peaks:
    """The peaks of a device: multiply-adds in registers, and a copy within global memory.

    They are the highest ones ever measured here, so that all panels and processes agree; if a
    kernel was faster than the loop of multiply-adds (see `note`), its rate is the peak.

    Args:
        device: a Device, an index or part of a name; the preferred device by default.

    Returns:
        The GFLOPS of the fastest of the `LOOPS`, and the GB/s of a large copy (bytes read plus
        bytes written).
    """
    device = find_device(device)
    return _raise(device, _measure(device))


def entries(device: Device) -> list[dict[str, Any]]:
    """The rows of a record with the peaks of a device."""
    found = peaks(device)
    rows = {"peak GFLOPS": found.gflops, "peak GB/s": found.bandwidth}
    return [{"series": "peaks", "metric": name, "median": rate} for name, rate in rows.items()]


def note(device: Device, result: Result) -> None:
    """Remember a measured rate, so that `peaks` is never below it, unless it is wrong, of less than
    a tenth of a millisecond, or of tensor cores.
    """
    on_tensor_cores = result.kernel in catalog and catalog[result.kernel].tensor
    if not result.ok or result.kernel_ms[0] < 0.1 or on_tensor_cores:
        return
    _raise(device, model.Peaks(result.gflops, 0.0))


def _raise(device: Device, found: model.Peaks) -> model.Peaks:
    """The highest peaks so far, these included."""
    best = [found.gflops, found.bandwidth]
    known: Any = highest.read().get(device.identity)
    with suppress(TypeError, ValueError):  # what cannot be read is ignored
        best = [max(pair) for pair in zip(best, map(float, known), strict=True)]
    if best != known:
        highest.write(device.identity, best)
    return model.Peaks(*best)


@cached(8)
def _measure(device: Device) -> model.Peaks:
    rates, problem = [], None
    for chains, width, fused in LOOPS.get(device.kind, LOOPS["CPU"]):
        try:
            if width <= device.limits.vector:
                rates.append(_arithmetic(device, chains, width, fused))
        except BuildError as error:  # some versions of Mesa cannot compile fma
            problem = error
    if problem and not rates:
        raise problem
    return model.Peaks(max(rates), _copy(device))


def _arithmetic(device: Device, chains: int, width: int, fused: int) -> float:
    """GFLOPS of a loop of multiply-adds."""
    params = {"WIDTH": width, "CHAINS": chains, "FUSED": fused}
    kernel, (local, items) = _build(device, params, "fma_loop"), _items(device)
    out = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * width * items)

    def seconds(runs: int) -> float:
        queue, given = device.timed_queue, (rounds, 0.999, 0.001, out)
        return min(clock.launch_seconds(lambda: kernel(queue, (items,), (local,), *given), runs))

    rounds = 64
    while seconds(1) < SECONDS and rounds < 2**24:
        rounds *= 2
    return 2 * chains * width * items * rounds / seconds(LAUNCHES) * 1e-9


def _copy(device: Device) -> float:
    """GB/s of copying a large buffer, bytes read plus bytes written."""
    # in rows, since WebGPU has at most 65,535 work-groups in a dimension
    row = 4 * 2**16
    floats = max(1, min(64 * 2**20, device.largest // 16) // row) * row
    src, dst = (cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * floats) for _ in range(2))
    cl.enqueue_fill_buffer(device.timed_queue, src, np.array(1, np.float32), 0, 4 * floats)
    copy = _build(device, {"WIDTH": 1}, "copy")
    sizes = (row // 4, floats // row), (_items(device)[0], 1)
    seconds = clock.launch_seconds(lambda: copy(device.timed_queue, *sizes, src, dst), LAUNCHES)
    return 8 * floats / min(seconds) * 1e-9


def _items(device: Device) -> tuple[int, int]:
    """Work-items of a work-group, and of a launch that keeps all compute units busy."""
    return min(64, device.limits.work_group), device.units * (2048 if device.kind == "GPU" else 64)


def _build(device: Device, params: dict[str, int], name: str) -> Built:
    text = sources.read("support/peaks.cl")
    return build(device, device.context, "peaks.cl", text, params, name, ("-cl-mad-enable",))
