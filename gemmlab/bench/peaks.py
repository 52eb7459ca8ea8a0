"""The measured peaks of a device: the roof over all kernels."""

from __future__ import annotations

import numpy as np
import pyopencl as cl

from .. import model
from ..caches import cached
from ..catalog import sources
from ..opencl.build import build
from ..opencl.devices import Device, find_device


@cached(8)
def peaks(device: Device | int | str | None = None) -> model.Peaks:
    """Measure the peaks of a device: multiply-adds in registers, and a copy within global memory.

    Args:
        device: a Device, an index or part of a name; the preferred device by default.

    Returns:
        The GFLOPS of a loop of FMAs at its fastest vector width, the GB/s of a large copy (bytes read plus bytes
        written), and that width.
    """
    device = find_device(device)
    queue, text = device.queue, sources.read("support/peaks.cl")
    local = min(64, device.limits.work_group)
    items = device.units * (2048 if device.kind == "GPU" else 64)
    out = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * items)
    best, chains = (0.0, 1), 12
    for width in (w for w in (1, 2, 4, 8, 16) if w <= device.limits.vector):
        loop = build(device, device.context, "peaks.cl", text, {"WIDTH": width, "CHAINS": chains}, "fma_loop")
        rounds = 256
        while _seconds(loop(queue, (items,), (local,), rounds, 0.999, 0.001, out)) < 5e-3 and rounds < 2**24:
            rounds *= 2
        fastest = min(_seconds(loop(queue, (items,), (local,), rounds, 0.999, 0.001, out)) for _ in range(5))
        best = max(best, (2 * chains * width * rounds * items / fastest * 1e-9, width))
    floats = min(64 * 2**20, device.largest // 16) // 4 * 4
    src, dst = (cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * floats) for _ in range(2))
    cl.enqueue_fill_buffer(queue, src, np.float32(1), 0, 4 * floats)
    copy = build(device, device.context, "peaks.cl", text, {"WIDTH": 1}, "copy")
    times = [_seconds(copy(queue, (floats // 4,), (local,), src, dst)) for _ in range(6)]
    return model.Peaks(gflops=best[0], bandwidth=8 * floats / min(times) * 1e-9, width=best[1])


def _seconds(event: cl.Event) -> float:
    event.wait()
    return (event.profile.end - event.profile.start) * 1e-9
