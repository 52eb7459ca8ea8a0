"""The waterfall: from kernel 10 to warpgroups, each step beside the same kernel with its idea switched off.

python docs/experiments/waterfall.py results/nvidia_h200_waterfall.json [--size 4096] [--rounds 10] [--device 0]

Every way to multiply is compiled, checked at a smaller size, and then timed in rounds in which all ways take turns, so
that a chip that gets warm is the same for all. Rates are those of the device's own clock, and Stream-K's count its
fix-up, too. Operands lie as the kernels want them. cuBLAS comes through PyTorch, if that is there.
"""

from __future__ import annotations

import argparse
import os
import statistics
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyopencl as cl

import gemmlab
from gemmlab import model
from gemmlab.bench import records, timing
from gemmlab.opencl import launch, ptx
from gemmlab.opencl.build import HIDDEN
from gemmlab.opencl.devices import Device, find_device


class Way(NamedTuple):
    """A kernel with parameters, and what they show."""

    kernel: int | str
    params: Mapping[str, int]


#: Tiles and blocks of kernel 16, for kernel 15, and those of kernel 15 for kernel 16.
LARGE = {"TSM": 256, "TSN": 128, "TSK": 8, "WPTM": 16}
SMALL = {"TSM": 128, "TSN": 64, "TSK": 16, "WPTM": 8}

#: The steps, each with what it is like without its idea. Parameters that are not named have their defaults.
WAYS: dict[str, Way] = {
    "10 any size": Way(10, {}),
    "15 warp tiles": Way(15, {}),
    "15 without vectors": Way(15, {"LWIDTH": 1}),
    "15 with flat warps": Way(15, {"WARPM": 16}),
    "15 with blocks of 16 x 8": Way(15, {**LARGE, "WARPM": 4}),
    "16 asynchronous copies": Way(16, {}),
    "16 through registers": Way(16, {"ASYNC": 0, "STAGES": 2}),
    "16 in two stages": Way(16, {"STAGES": 2}),
    "16 with blocks of 8 x 8": Way(16, SMALL),
    "17 Stream-K": Way(17, {}),
    "17 without Stream-K": Way(17, {"GROUPS": 0}),
    "17 without an order of tiles": Way(17, {"ORDER": 1}),
    "18 tensor cores, 3xTF32": Way(18, {}),
    "18 tensor cores, TF32": Way(18, {"PARTS": 1}),
    "18 without tensor cores": Way(18, {"TENSOR": 0}),
    "19 warpgroups, 3xTF32": Way(19, {}),
    "19 warpgroups, TF32": Way(19, {"PARTS": 1}),
}
CHECKED = 512  # size of the products that are compared with a reference
LAUNCHES, SLOW = 3, 0.02  # of each way in a round, or one if it takes more than so many seconds


def run(ways: Mapping[str, Way], size: int, rounds: int, device: Device) -> dict:
    """Check and time all ways.

    Args:
        ways: by title.
        size: M = N = K.
        rounds: how often all ways take turns.
        device: where.

    Returns:
        The facts of each way by its title, without those that cannot be compiled, which say why: "kernel", "params",
        "path", "ok" and "verdict" of the check, "registers" and "spilled" bytes where the compiler tells, and
        "gflops" with its "least" and "most", from the median, the longest and the shortest launch.
    """
    found: dict[str, dict] = {title: {"kernel": way.kernel} for title, way in ways.items()}
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        facts = pool.map(lambda title: prepared(ways[title], found[title], device), ways)
        kernels = {title: kernel for title, kernel in zip(ways, facts, strict=True) if kernel is not None}
    calls = {title: (size, timed(kernel, size, device)) for title, kernel in kernels.items()}
    for title, kernel in kernels.items():
        result = timing.measure(kernel.spec.number, CHECKED, params=kernel.params, device=device, repeats=1)
        found[title] |= {"ok": result.ok, "verdict": result.verdict}
    for title, call in cublas(size).items():
        calls[title], found[title] = (size, call), {}
    for title, rates in take_turns(calls, rounds).items():
        found[title] |= rates
    return found


def take_turns(calls: Mapping[str, tuple[int, Callable[[], float]]], rounds: int) -> dict[str, dict[str, float]]:
    """The "gflops" of each call, with their "least" and "most", from its median, its longest and its shortest launch.

    Args:
        calls: by title the size of a product, and a function that multiplies once and returns the seconds that it took.
        rounds: how often all calls take turns, after a round that warms up.
    """
    times: dict[str, list[float]] = {title: [] for title in calls}
    for turn in range(rounds + 1):
        for title, (_, call) in calls.items():
            taken = [call()]
            taken += [call() for _ in range(1, LAUNCHES) if taken[0] < SLOW]
            times[title] += taken if turn else []
    found = {}
    for title, seconds in times.items():
        size = calls[title][0]
        rates = [model.gflops(size, size, size, s) for s in (statistics.median(seconds), max(seconds), min(seconds))]
        found[title] = dict(zip(("gflops", "least", "most"), rates, strict=True))
    return found


def prepared(way: Way, facts: dict, device: Device) -> launch.Kernel | None:
    """The kernel of a way, with what its compiler tells in `facts`; None if it cannot be compiled."""
    try:
        kernel = launch.kernel(way.kernel, dict(way.params) or None, device)
    except (gemmlab.ParameterError, launch.BuildError) as error:
        facts["problem"] = str(error)
        return None
    facts |= {"params": kernel.params, "path": kernel.path}
    used = ptx.registers(kernel) if HIDDEN not in kernel.source else None  # it would not know what is revealed later
    if used:
        facts |= {"registers": used[0], "spilled": used[1]}
    return kernel


@cache
def operands(size: int, device: Device) -> tuple[cl.Buffer, cl.Buffer, cl.Buffer]:
    """A, B and C of a size, for all ways of this size."""
    rng = np.random.default_rng(0)
    a, b, c = (timing.upload(device, rng.standard_normal((size, size), np.float32)) for _ in range(3))
    return a, b, c


def timed(kernel: launch.Kernel, size: int, device: Device) -> Callable[[], float]:
    """A function that multiplies once and returns the seconds that the device took for all launches."""

    def once() -> float:
        given = size, size, size, *operands(size, device)
        events: list[cl.Event] = [event for _, event in kernel.passes(*given, queue=device.timed_queue)]
        events[-1].wait()
        return sum(event.profile.end - event.profile.start for event in events) * 1e-9

    return once


def cublas(size: int) -> dict[str, Callable[[], float]]:
    """The same for cuBLAS, in float32 and in TF32; nothing where PyTorch or its device is missing."""
    try:
        import torch
    except ImportError:
        return {}
    if not torch.cuda.is_available():
        return {}
    a, b, c = (torch.randn(size, size, device="cuda") for _ in range(3))

    def once(tf32: bool) -> float:
        torch.backends.cuda.matmul.allow_tf32 = tf32
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        torch.matmul(a, b, out=c)
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3

    return {"cuBLAS SGEMM": lambda: once(False), "cuBLAS in TF32": lambda: once(True)}


def table(found: Mapping[str, dict]) -> str:
    """The rates as lines of text."""
    lines = []
    for title, one in found.items():
        said = one.get("problem") or (
            f"{one['gflops']:10,.0f} GFLOPS ({one['least']:,.0f} to {one['most']:,.0f})"
            + (f", {one['registers']} registers, {one['spilled']} bytes spilled" if "registers" in one else "")
            + ("" if one.get("ok", True) else f", {one['verdict']}")
        )
        lines.append(f"{title:32} {said}")
    return "\n".join(lines)


def results(found: Mapping[str, dict], size: int) -> list[dict]:
    """The kernels past the tutorial with their defaults, as other records have them."""
    return [
        {**one, **dict.fromkeys("mnk", size), "when": date.today().isoformat()}
        for one in found.values()
        if one.get("kernel", 0) > 13 and one.get("params") == gemmlab.catalog[one["kernel"]].defaults
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--size", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--device", default=None)
    given = parser.parse_args()
    device = find_device(given.device)
    found = run(WAYS, given.size, given.rounds, device)
    command = f"python docs/experiments/waterfall.py {given.file.name} --size {given.size} --rounds {given.rounds}"
    head = {**records.origin(command), "title": device.name, "size": given.size, "device": device.facts()}
    records.write(given.file, {**head, "ways": found, "results": results(found, given.size)})
    print(table(found))


if __name__ == "__main__":
    main()
