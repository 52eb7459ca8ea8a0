"""Record what chapters, explorers and the model of `matmul` show or need of a device.

    python tools/record.py landscape --kernels 3 --seconds 200     settings of the explorers
    python tools/record.py candidates results/my_candidates.json   kernels that matmul may choose
    python tools/record.py chapters results/my_chapters.json       sweeps that the chapters show
    python tools/record.py edges results/edges_mine.json --sizes 1000-1100:7

`landscape` and `candidates` continue a file that exists. `python -m gemmlab bench --json` records
the kernels themselves.
"""

from __future__ import annotations

import argparse
import time
from contextlib import suppress
from math import inf
from pathlib import Path
from typing import Any

import common
import numpy as np
import pyopencl.array as cla
import record_candidates
import record_landscape

from gemmlab import catalog, check, matmul, model
from gemmlab.blas.problem import Problem, plan
from gemmlab.catalog import Key
from gemmlab.cli import count, kernel_numbers, size_list
from gemmlab.generate import choice, table
from gemmlab.measurement import landscape, sweeps, timing
from gemmlab.opencl import launch, ptx
from gemmlab.opencl.devices import Device, find_device

#: The switches of kernel 8: READONLY and SHUFFLE.
SWITCHES = {"plain": (0, 0), "read-only": (1, 0), "shuffles": (0, 1), "both": (1, 1)}
#: The kernels of the ladder that CUDA can run; kernel 4 adds vectors, which it cannot.
IN_CUDA = (1, 2, 3, 5, 6, 7, 8, 9, 10)
STRATEGIES = ("pad", "guard", "shift", "auto")


# The sweeps of the chapters


def curves(device: Device, size: int, kernels: list[Key]) -> dict[str, Any]:
    """Run the sweeps of these kernels.

    Returns:
        By title: GFLOPS ("curves"), largest absolute errors ("errors"), registers per work-item
        with bytes spilled ("registers", NVIDIA); and by size the milliseconds of each pass
        ("passes").
    """
    found: dict[str, Any] = {
        "size": size, "curves": {}, "passes": {}, "registers": {}, "errors": {}
    }  # fmt: skip
    for title, (kernel, name, values, params) in sweeps.CURVES.items():
        if kernel not in kernels:
            continue
        results = sweeps.sweep(kernel, name, values, size, params, device, repeats=5)
        over_sizes = name == "size"
        rates = {
            str(value): result.pipeline_gflops if over_sizes else result.gflops
            for value, result in results.items()
        }
        found["curves"][title] = rates
        found["errors"][title] = {str(value): result.error for value, result in results.items()}
        if over_sizes:
            found["passes"] |= {str(value): result.passes_ms for value, result in results.items()}
        else:
            used = {
                str(value): ptx.registers(launch.kernel(kernel, result.params, device))
                for value, result in results.items()
            }
            if any(used.values()):
                found["registers"][title] = used
        print(title, {value: round(rate) for value, rate in rates.items()}, flush=True)
    return found


def everything(device: Device, size: int) -> dict[str, Any]:
    """All that the chapters show of a recorded device; `size` is that of the square matrices."""
    found = curves(device, size, list(catalog)) | {"instructions": {}, "switches": {}}
    for wpt in sweeps.CURVES["03 WPT"][2]:
        if text := ptx.ptx(launch.kernel(3, {"TS": 32, "WPT": wpt}, device)):
            found["instructions"][str(wpt)] = ptx.instructions(text)
    found["transposing"] = {
        name: sweeps.transposing(size, name == "coalesced", device)
        for name in ("coalesced", "naive")
    }
    for name, (readonly, shuffle) in SWITCHES.items():
        params = {"READONLY": readonly, "SHUFFLE": shuffle}
        result = timing.measure(8, size, params=params, device=device, repeats=10)
        found["switches"][name] = {"gflops": result.gflops, "path": result.path, "ok": result.ok}
    if "nvidia" in device.features:
        found["cuda"] = {
            str(number): common.lesson("cuda").measure(number, size) for number in IN_CUDA
        }
        found["opencl"] = {
            str(number): timing.measure(number, size, device=device, repeats=10).gflops
            for number in IN_CUDA
        }
    return found


# Strategies for edges


def edges(sizes: list[int], device: Device, repeats: int | None) -> dict[str, Any]:
    """Measure every strategy for edges at every size, three times, alternating.

    Returns:
        {strategy: {size: {"kernel", "ok", "gflops", "launches", "bytes"}}}; GFLOPS are those of the
        whole pipeline, for "split" in wall-clock time. "split" has neither launches nor bytes.
    """
    found: dict[str, Any] = {name: {} for name in (*STRATEGIES, "split")}
    for size in sizes:
        rounds: dict[str, list[timing.Result]] = {name: [] for name in STRATEGIES}
        for name in STRATEGIES * 3:
            kernel, params = choice.choose(device, (size, size, size), name)
            result = timing.measure(
                kernel, size, params=dict(params), device=device, repeats=repeats
            )
            rounds[name].append(result)
        for name, results in rounds.items():
            middle = sorted(results, key=lambda result: result.pipeline_gflops)[1]
            problem = Problem.compact(size, size, size)
            passes = plan(catalog[middle.kernel], middle.params, problem, device.features)
            found[name][size] = {
                "kernel": middle.kernel,
                "ok": all(result.ok for result in results),
                "gflops": middle.pipeline_gflops,
                "launches": len(passes),
                "bytes": 4 * sum(step.floats for step in passes),
            }
        found["split"][size] = splitting(size, device)
        rates = ", ".join(f"{name} {one[size]['gflops']:,.1f}" for name, one in found.items())
        print(f"{size}: {rates}", flush=True)
    return found


def splitting(size: int, device: Device, repeats: int = 5) -> dict[str, Any]:
    """A product as up to four: one of whole tiles, and those of the edge strips."""
    a, b = check.exact_inputs(size, size, size)
    kernel, params = table.nearest(device, (size, size, size), "pad")
    columns, rows, _ = catalog[kernel].tiles(dict(params))  # swapped: the product is row-major
    u, v = (cla.to_device(device.queue, x) for x in (a, b))
    parts = [
        (slice(0, size // rows * rows), slice(0, size // columns * columns), "pad"),
        (slice(0, size // rows * rows), slice(size // columns * columns, size), "guard"),
        (slice(size // rows * rows, size), slice(0, size // columns * columns), "guard"),
        (slice(size // rows * rows, size), slice(size // columns * columns, size), "guard"),
    ]
    parts = [part for part in parts if u[part[0]].size and v[:, part[1]].size]
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        results = [matmul(u[down], v[:, across], edges=name) for down, across, name in parts]
        device.queue.finish()
        times.append(time.perf_counter() - start)
    c = np.empty((size, size), np.float32)
    for (down, across, _), result in zip(parts, results, strict=True):
        c[down, across] = result.get()
    gflops = model.gflops(size, size, size, float(np.median(times[1:])))
    return {"kernel": kernel, "ok": check.exact(c, a, b).ok, "gflops": gflops}


# Commands


def run_landscape(given: argparse.Namespace) -> None:
    device = find_device(given.device)
    path = given.out or landscape.file_of(device.name)
    with suppress(KeyboardInterrupt):
        record_landscape.record(device, given.kernels, given.size, path, given.seconds)
    found = landscape.Landscape.load(path)
    for kernel in found.kernels:
        best = found.best(kernel)
        rate = (
            f"at best {best.gflops:,.0f} GFLOPS with {best.params}"
            if best
            else "none of them right"
        )
        print(f"kernel {kernel}: {len(found.rows(kernel)):,} settings, {rate}")
    print(f"wrote {path}; the same command continues it")


def run_candidates(given: argparse.Namespace) -> None:
    record_candidates.record(
        find_device(given.device),
        given.file,
        given.seconds,
        given.compiling,
        given.random,
        given.again,
    )


def run_chapters(given: argparse.Namespace) -> None:
    device = find_device(given.device)
    head = common.head(device, given.title)
    if given.kernels:
        common.save(given.file, head | curves(device, given.size, given.kernels))
    else:
        common.save(given.file, head | everything(device, given.size))


def run_edges(given: argparse.Namespace) -> None:
    oblong = [size for size in given.sizes if not isinstance(size, int)]
    if oblong:
        raise ValueError(f"--sizes must be of square matrices, not {oblong[0]}")
    device = find_device(given.device)
    found = edges(given.sizes, device, given.repeats)
    common.save(given.file, common.head(device, given.title) | {"strategies": found})


def parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    commands = top.add_subparsers(required=True)
    explorers = commands.add_parser("landscape", help="every setting that the explorers offer")
    explorers.set_defaults(run=run_landscape)
    words = "such as 1-3,10 (default: all)"
    explorers.add_argument("--kernels", type=kernel_numbers, default=list(catalog), help=words)
    explorers.add_argument("--size", type=count, default=4096, help="M = N = K (default: 4096)")
    explorers.add_argument(
        "--seconds", type=float, default=inf, help="begin no more after that time"
    )
    words = "the file to write (default: landscape_DEVICE.json in results/)"
    explorers.add_argument("--out", type=Path, metavar="FILE", help=words)
    candidates = commands.add_parser("candidates", help="every kernel that matmul may choose")
    candidates.set_defaults(run=run_candidates)
    candidates.add_argument("--seconds", type=float, default=inf, help="begin no more shapes after")
    candidates.add_argument("--compiling", type=float, default=inf, help="compile no more after")
    words = "so many random shapes (default: 240)"
    candidates.add_argument("--random", type=count, default=240, metavar="N", help=words)
    kernels = list(record_candidates.KERNELS)
    words = "time this kernel again, whose text has changed"
    candidates.add_argument("--again", default="", choices=kernels, help=words)
    chapters = commands.add_parser("chapters", help="the sweeps that the chapters show")
    chapters.set_defaults(run=run_chapters)
    chapters.add_argument("--size", type=count, default=4096, help="M = N = K (default: 4096)")
    words = "only the sweeps of these kernels"
    chapters.add_argument("--kernels", type=kernel_numbers, default=[], help=words)
    strategies = commands.add_parser("edges", help="strategies for sizes that are not whole tiles")
    strategies.set_defaults(run=run_edges)
    words = "of square matrices, such as 1000-1100:7,1440"
    strategies.add_argument("--sizes", type=size_list, required=True, help=words)
    words = "timed runs (default: as many as fit 80 ms)"
    strategies.add_argument("--repeats", type=count, help=words)
    for command in (candidates, chapters, strategies):
        command.add_argument("file", type=Path, help="the file to write")
    for command in (chapters, strategies):
        command.add_argument("--title", help="a short name of the device for charts")
    for command in (explorers, candidates, chapters, strategies):
        common.add_device(command)
    return top


def main(arguments: list[str] | None = None) -> None:
    given = parser().parse_args(arguments)
    given.run(given)


if __name__ == "__main__":
    common.run(main)
