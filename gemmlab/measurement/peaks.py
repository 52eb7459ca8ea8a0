"""The measured peaks of a device: the roof over all kernels, and how fast each memory delivers."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pyopencl as cl

from .. import model
from ..caches import cached, on_clear
from ..catalog import find, sources
from ..opencl.build import build
from ..opencl.devices import Device, find_device
from .records import Result

#: Texts of the multiply-add loop that are tried: chains, floats per vector, fma(a, b, c) or a*b +
#: c. A chain must wait for itself, so there are as many as registers hold: 12 vectors of the 16 or
#: 32 of a processor, 96 of a GPU's.
LOOPS = {
    "GPU": ((16, 1, 1), (12, 2, 1), (8, 4, 1), (8, 8, 1), (12, 8, 1)),
    "CPU": ((12, 1, 0), (12, 8, 1), (12, 8, 0), (12, 16, 1)),
}
SECONDS = 10e-3  # that a timed run takes at least
RUNS = 5  # of which the fastest counts
AGAIN = 3  # how often the fastest loop is measured once more

# by the index of a device: the best rate of a kernel, and which it was
_beaten: dict[int, tuple[float, str]] = {}
_lock = threading.Lock()
on_clear(_beaten.clear)


def peaks(device: Device | int | str | None = None, caches: bool = False) -> model.Peaks:
    """The peaks of a device: multiply-adds in registers, and a copy within global memory.

    A kernel of ours that was measured to be faster than the loop of multiply-adds (see `note`)
    shows that the loop was not the peak. Its rate is then the peak, and `how` says so.

    Args:
        device: a Device, an index or part of a name; the preferred device by default.
        caches: measure local memory and the cache beyond it, too, as `model.measured` needs it.

    Returns:
        The GFLOPS of the fastest text of a multiply-add loop (see `LOOPS`), the GB/s of a large
        copy (bytes read plus bytes written), and with `caches` the GB/s of reading local memory,
        and a few megabytes again and again.
    """
    device = find_device(device)
    found = _measured(device)
    if caches:
        local, cache = _memories(device)
        found = replace(found, local_bandwidth=local, cache_bandwidth=cache)
    gflops, which = _beaten.get(device.index, (0.0, ""))
    if gflops > found.gflops:
        found = replace(
            found,
            gflops=gflops,
            how=f"{which}, which was faster than every loop of multiply-adds tried",
        )
    return found


def note(device: Device, result: Result) -> None:
    """Remember a measured rate, so that `peaks` never stays below it.

    A result that is wrong, that took less than a tenth of a millisecond, or that used tensor cores
    does not count.
    """
    if not result.ok or result.kernel_ms[0] < 0.1 or find(result.kernel).tensor:
        return
    with _lock:
        if result.gflops > _beaten.get(device.index, (0.0, ""))[0]:
            _beaten[device.index] = (
                result.gflops,
                f"kernel {result.kernel} at {result.m} x {result.n} x {result.k}",
            )


@cached(8)
def _measured(device: Device) -> model.Peaks:
    loops = [
        loop for loop in LOOPS.get(device.kind, LOOPS["CPU"]) if loop[1] <= device.limits.vector
    ]
    tried = {loop: _loop(device, *loop) for loop in loops}
    fastest = max(tried, key=lambda loop: tried[loop])
    # another program may have taken a core meanwhile, as a browser does: once more, and the fastest
    # counts
    gflops, width, how = max(tried[fastest], *(_loop(device, *fastest) for _ in range(AGAIN)))
    return model.Peaks(gflops=gflops, bandwidth=_copy(device), width=width, how=how)


def _loop(device: Device, chains: int, width: int, fused: int) -> tuple[float, int, str]:
    """GFLOPS of a loop of multiply-adds, its width, and what it is in words."""
    params = {"WIDTH": width, "CHAINS": chains, "FUSED": fused}
    kernel = _compiled(device, params, "fma_loop")
    local, items = _items(device)
    out = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * items)
    rate = _rate(
        lambda rounds: kernel(device.timed_queue, (items,), (local,), rounds, 0.999, 0.001, out)
    )
    how = f"{chains} chains of {width} floats, {'fma(a, b, c)' if fused else 'a*b + c'}"
    return 2 * chains * width * items * rate, width, how


@cached(8)
def _memories(device: Device) -> tuple[float, float]:
    """GB/s of local memory (on a processor: the nearest cache) and of the cache beyond it.

    A GPU's work-items read neighbouring vectors, all of them together a few times more than the L1
    caches hold. On a processor each work-item walks through memory by itself: 16 KB are in the
    nearest cache, a megabyte beyond it.
    """
    _, items = _items(device)
    if device.kind == "GPU":
        places = 1 << items.bit_length()
        return _local(device), _cache(device, 4, 4, places, (1, 4 * items, items))
    width, chains = min(8, device.limits.vector), 8
    near, far = (size // (4 * width) for size in (2**14, 2**20))
    nearest = _cache(device, width, chains, near, (0, chains, 1))
    return nearest, _cache(device, width, chains, far, (far // items, chains, 1))


def _local(device: Device) -> float:
    """GB/s of reading local memory without bank conflicts, as single floats or as vectors of 4."""
    return max(_local_vectors(device, width) for width in (1, 4))


def _local_vectors(device: Device, width: int) -> float:
    local, items = _items(device)
    out, chains = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * items), 8
    kernel = _compiled(device, {"WIDTH": width, "CHAINS": chains, "ITEMS": local}, "local_loop")
    queue = device.timed_queue
    return (
        4
        * chains
        * width
        * items
        * _rate(lambda rounds: kernel(queue, (items,), (local,), rounds, 1, out))
    )


def _cache(
    device: Device, width: int, chains: int, places: int, walk: tuple[int, int, int]
) -> float:
    """GB/s of reading vectors at some places again and again; `walk` are the last arguments of
    cache_loop.
    """
    local, items = _items(device)
    out = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * items)
    size = 4 * width * (places + chains * walk[2])
    data = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, size)
    cl.enqueue_fill_buffer(device.timed_queue, data, np.float32(1), 0, size)
    kernel = _compiled(device, {"WIDTH": width, "CHAINS": chains}, "cache_loop")
    rate = _rate(
        lambda rounds: kernel(
            device.timed_queue, (items,), (local,), rounds, places, *walk, data, out
        )
    )
    return 4 * width * chains * items * rate


def _copy(device: Device) -> float:
    """GB/s of copying a large buffer, bytes read plus bytes written."""
    floats = min(64 * 2**20, device.largest // 16) // 4 * 4
    src, dst = (cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * floats) for _ in range(2))
    cl.enqueue_fill_buffer(device.timed_queue, src, np.float32(1), 0, 4 * floats)
    copy = _compiled(device, {"WIDTH": 1}, "copy")
    local, _ = _items(device)
    seconds = (
        _seconds(copy(device.timed_queue, (floats // 4,), (local,), src, dst)) for _ in range(6)
    )
    return 8 * floats / min(seconds) * 1e-9


def _items(device: Device) -> tuple[int, int]:
    """Work-items of a work-group, and of all: enough to fill a GPU, and a few work-groups for each
    core.
    """
    return min(64, device.limits.work_group), device.units * (2048 if device.kind == "GPU" else 64)


def _compiled(device: Device, params: dict[str, int], name: str):
    text = sources.read("support/peaks.cl")
    return build(device, device.context, "peaks.cl", text, params, name, ("-cl-mad-enable",))


def _rate(run: Callable[[int], cl.Event]) -> float:
    """10^9 rounds per second of a kernel that takes the number of rounds: the best of some runs of
    `SECONDS` each.
    """
    rounds = 64
    while _seconds(run(rounds)) < SECONDS and rounds < 2**24:
        rounds *= 2
    return rounds / min(_seconds(run(rounds)) for _ in range(RUNS)) * 1e-9


def _seconds(event: cl.Event) -> float:
    event.wait()
    return (event.profile.end - event.profile.start) * 1e-9
