"""The measured peaks of a device: arithmetic, and the bandwidth of each memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyopencl as cl

from .. import model
from ..caches import cached, on_clear
from ..catalog import find, sources
from ..opencl.build import BuildError, build
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
RUNS = 5

#: By the index of a device: the highest rate of a kernel, and which kernel it was.
_beaten: dict[int, tuple[float, str]] = {}
on_clear(_beaten.clear)


def peaks(device: Device | int | str | None = None, caches: bool = False) -> model.Peaks:
    """The peaks of a device: multiply-adds in registers, and a copy within global memory.

    If a kernel was faster than the loop of multiply-adds (see `note`), the loop was not the peak:
    the kernel's rate is, and `how` says so.

    Args:
        device: a Device, an index or part of a name; the preferred device by default.
        caches: also measure local memory and the next cache, as `model.measured` needs them.

    Returns:
        The GFLOPS of the fastest of the `LOOPS`, the GB/s of a large copy (bytes read plus bytes
        written), and with `caches` the GB/s of reading local memory, and of reading a few megabytes
        repeatedly.
    """
    device = find_device(device)
    measured = _measured(device)
    if caches:
        local, cache = _memories(device)
        measured = replace(measured, local_bandwidth=local, cache_bandwidth=cache)
    gflops, which = _beaten.get(device.index, (0.0, ""))
    if gflops > measured.gflops:
        how = f"{which}, which was faster than every loop of multiply-adds"
        measured = replace(measured, gflops=gflops, how=how)
    return measured


def note(device: Device, result: Result) -> None:
    """Remember a measured rate, so that `peaks` is never below it.

    Wrong results, those that took less than a tenth of a millisecond, and those of tensor cores do
    not count.
    """
    if not result.ok or result.kernel_ms[0] < 0.1 or find(result.kernel).tensor:
        return
    which = f"kernel {result.kernel} at {result.m} x {result.n} x {result.k}"
    _beaten[device.index] = max((result.gflops, which), _beaten.get(device.index, (0.0, "")))


@cached(8)
def _measured(device: Device) -> model.Peaks:
    rates = {}
    problem: BuildError | None = None
    for one in LOOPS.get(device.kind, LOOPS["CPU"]):
        try:
            if one[1] <= device.limits.vector:
                rates[one] = _arithmetic(device, *one)
        except BuildError as error:  # some versions of Mesa cannot compile fma
            problem = error
    if problem and not rates:
        raise problem
    fastest = max(rates, key=rates.__getitem__)
    chains, width, fused = fastest
    how = f"{chains} chains of {width} floats, {'fma(a, b, c)' if fused else 'a*b + c'}"
    return model.Peaks(rates[fastest], _copy(device), width=width, how=how)


def _arithmetic(device: Device, chains: int, width: int, fused: int) -> float:
    """GFLOPS of a loop of multiply-adds."""
    params = {"WIDTH": width, "CHAINS": chains, "FUSED": fused}
    return 2 * chains * width * _rate(device, "fma_loop", params, 0.999, 0.001)


@cached(8)
def _memories(device: Device) -> tuple[float, float]:
    """GB/s of local memory (on a CPU: the nearest cache) and of the next cache.

    A GPU's work-items read neighbouring vectors, together a few times more than the L1 caches hold.
    On a CPU each work-item walks through memory alone: 16 KB are in the nearest cache, a megabyte
    is in the next one.
    """
    _, items = _items(device)
    if device.kind == "GPU":
        vectors = 1 << items.bit_length()
        return _local(device), _cache(device, 4, 4, vectors, (1, 4 * items, items))
    width, chains = min(8, device.limits.vector), 8
    first, second = (size // (4 * width) for size in (2**14, 2**20))
    nearest = _cache(device, width, chains, first, (0, chains, 1))
    return nearest, _cache(device, width, chains, second, (second // items, chains, 1))


def _local(device: Device) -> float:
    """GB/s of reading local memory without bank conflicts, as single floats or as vectors of 4."""
    local, chains = _items(device)[0], 8
    rates = [
        width * _rate(device, "local_loop", {"WIDTH": width, "CHAINS": chains, "ITEMS": local}, 1)
        for width in (1, 4)
    ]
    return 4 * chains * max(rates)


def _cache(
    device: Device, width: int, chains: int, vectors: int, walk: tuple[int, int, int]
) -> float:
    """GB/s of reading so many vectors repeatedly; `walk` are further arguments of cache_loop."""
    size = 4 * width * (vectors + chains * walk[2])
    data = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, size)
    cl.enqueue_fill_buffer(device.timed_queue, data, np.float32(1), 0, size)
    params = {"WIDTH": width, "CHAINS": chains}
    return 4 * width * chains * _rate(device, "cache_loop", params, vectors, *walk, data)


def _copy(device: Device) -> float:
    """GB/s of copying a large buffer, bytes read plus bytes written."""
    floats = min(64 * 2**20, device.largest // 16) // 4 * 4
    src, dst = (cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * floats) for _ in range(2))
    cl.enqueue_fill_buffer(device.timed_queue, src, np.float32(1), 0, 4 * floats)
    copy, sizes = _compiled(device, {"WIDTH": 1}, "copy"), ((floats // 4,), (_items(device)[0],))
    seconds = clock.launch_seconds(lambda: copy(device.timed_queue, *sizes, src, dst), RUNS)
    return 8 * floats / min(seconds) * 1e-9


def _items(device: Device) -> tuple[int, int]:
    """Work-items of a work-group, and of a launch that keeps all compute units busy."""
    return min(64, device.limits.work_group), device.units * (2048 if device.kind == "GPU" else 64)


def _compiled(device: Device, params: dict[str, int], name: str):
    text = sources.read("support/peaks.cl")
    return build(device, device.context, "peaks.cl", text, params, name, ("-cl-mad-enable",))


def _rate(device: Device, name: str, params: dict[str, int], *arguments: Any) -> float:
    """10^9 rounds per second of a loop of peaks.cl, over all work-items, in its fastest run."""
    kernel, (local, items) = _compiled(device, params, name), _items(device)
    out = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * items)

    def seconds(runs: int) -> float:
        queue, given = device.timed_queue, (rounds, *arguments, out)
        return min(clock.launch_seconds(lambda: kernel(queue, (items,), (local,), *given), runs))

    rounds = 64
    while seconds(1) < SECONDS and rounds < 2**24:
        rounds *= 2
    return items * rounds / seconds(RUNS) * 1e-9
