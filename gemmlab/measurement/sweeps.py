"""Sweeps: one parameter varies, the others stay. The chapters run them here, and show recorded
ones.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pyopencl as cl

from ..caches import cached
from ..catalog import Key, ParameterError, find, sources
from ..catalog.spec import positive, round_up
from ..opencl.build import build
from ..opencl.devices import Device, find_device
from . import timing
from .records import Result, pooled

#: The sweeps that the chapters show: kernel, the parameter that varies, its values, fixed
#: parameters. "WPTM WPTN" varies both together.
CURVES: dict[str, tuple[Key, str, tuple[int, ...], dict[str, int]]] = {
    "02 TS": (2, "TS", (4, 8, 16, 32), {}),
    "03 WPT": (3, "WPT", (1, 2, 4, 8, 16), {"TS": 32}),
    "04 WIDTH": (4, "WIDTH", (1, 2, 4, 8), {"TS": 32}),
    "05 PAD": (5, "PAD", (0, 1, 2), {"TS": 32, "TSK": 16, "WPT": 8}),
    "05 TSK": (5, "TSK", (8, 16, 32), {"TS": 32, "WPT": 8, "PAD": 1}),
    "06 block": (6, "WPTM WPTN", (2, 4, 8), {"TSM": 64, "TSN": 64, "TSK": 16}),
    "06 tile": (6, "TSM TSN", (32, 64, 128), {"WPTM": 4, "WPTN": 4, "TSK": 16}),
    "07 WIDTH": (7, "WIDTH", (1, 2, 4, 8), {}),
    "09 TSK, kernel 7": (7, "TSK", (8, 16, 32), {}),
    "09 TSK, kernel 9": (9, "TSK", (8, 16, 32), {}),
    "10 size": (10, "size", (1000, 1016, 1023, 1024, 1025, 1032, 1088, 1151, 1152, 1153), {}),
    "10 large sizes": (10, "size", (500, 1000, 2000, 4000), {}),
    "warp_tiling ASYNC": ("warp_tiling", "ASYNC", (0, 1), {}),
    "warp_tiling STAGES": ("warp_tiling", "STAGES", (2, 3, 4), {}),
    "warp_tiling block": ("warp_tiling", "WPTM WPTN", (4, 8), {"TSM": 64, "TSN": 64}),
    "warp_tiling WARPM": ("warp_tiling", "WARPM", (4, 8, 16), {}),
    "warp_tiling BATCHES": (
        "warp_tiling",
        "BATCHES",
        (1, 3, 6, 15),
        {"TRANSPOSED": 0, "STAGES": 3},
    ),
    "warp_tiling ORDER": ("warp_tiling", "ORDER", (1, 4, 8, 32), {}),
    "tensor_cores PARTS": ("tensor_cores", "PARTS", (1, 2), {}),
    "tensor_cores EVERY": ("tensor_cores", "EVERY", (0, 1, 2, 8), {"WN": 32}),
    "tensor_cores PAD": ("tensor_cores", "PAD", (0, 4, 8), {}),
}


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
    """The bandwidth of transposing a size x size matrix of float32, in GB/s (bytes read plus bytes
    written).

    Args:
        size: rounded up to a multiple of 32.
        coalesced: True for `transpose.cl`, False for `transpose_naive.cl`, which has no tile in
            local memory.
        device: a Device, an index or part of a name; the preferred device by default.

    Raises:
        RuntimeError: if the result is wrong.
    """
    device = find_device(device)
    size = round_up(size, 32)
    file, name = (
        ("transpose.cl", "transpose") if coalesced else ("transpose_naive.cl", "transpose_naive")
    )
    built = build(device, device.context, file, sources.read(f"support/{file}"), {}, name)
    x = np.random.default_rng(0).random((size, size), np.float32)
    flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
    source = cl.Buffer(device.context, flags, hostbuf=x)
    target = cl.Buffer(device.context, cl.mem_flags.WRITE_ONLY, x.nbytes)
    events = []
    for _ in range(12):
        if coalesced:
            event = built(
                device.timed_queue,
                (size, size // 4),
                (32, 8),
                size,
                size,
                size,
                0,
                source,
                size,
                target,
            )
        else:
            event = built(device.timed_queue, (size, size), (16, 16), size, size, source, target)
        events.append(event)
    y = np.empty_like(x)
    cl.enqueue_copy(device.timed_queue, y, target)
    if not (y == x.T).all():
        raise RuntimeError(f"{file} gives a wrong result on {device}")
    seconds = statistics.median(e.profile.end - e.profile.start for e in events[2:]) * 1e-9
    return 2 * x.nbytes / seconds * 1e-9


@cached(1)
def recorded() -> dict:
    """What ``tools/record.py chapters`` measured on an NVIDIA H200; curves by title, with numbers
    as keys.
    """
    text = (Path(sources.folder("results")) / "nvidia_h200_chapters.json").read_text(
        encoding="utf-8"
    )
    found = json.loads(text)
    for part in ("curves", "registers", "errors"):
        found[part] = {
            title: {int(v): x for v, x in curve.items()} for title, curve in found[part].items()
        }
    for part in ("passes", "instructions"):
        found[part] = {int(v): x for v, x in found[part].items()}
    return found


def curve(title: str) -> dict[str, dict[int, float]]:
    """A recorded sweep as a series for `plot.lines`: {"NVIDIA H200 at 4096": {value: GFLOPS}}."""
    found = recorded()
    name = found["title"] if "size" in title else f"{found['title']} at {found['size']}"
    return {name: found["curves"][title]}
