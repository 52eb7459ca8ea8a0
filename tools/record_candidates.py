"""Record the device time of every candidate kernel at many shapes, for `fit.py`.

Compiling takes longer than running: all texts are compiled first, on all cores. Then one shape
after another is timed, on random matrices with the layouts that `matmul` gets from arrays in C
order.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import product
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
import pyopencl as cl
from compare import MOST_FLOPS, random_shapes
from pyopencl.clrandom import PhiloxGenerator
from tqdm import tqdm

from gemmlab import files, matmul
from gemmlab.blas.plan import Builder, Matrix
from gemmlab.blas.problem import Layout, Problem
from gemmlab.catalog import find
from gemmlab.catalog.spec import tiles_over
from gemmlab.generate import choice
from gemmlab.generate.cost import text_of
from gemmlab.generate.table import PRECISIONS, Choice, Sizes, implied
from gemmlab.measurement import clock, records, timing
from gemmlab.measurement.peaks import peaks
from gemmlab.opencl.devices import Device, find_device
from gemmlab.opencl.launch import Kernel

#: M, N, K of the row-major products that the README's claims are about.
PROMISED = (
    *((s, s, s) for s in (512, 1000, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 5000, 8192)),
    (8192, 64, 8192),
    (64, 8192, 8192),
    (256, 256, 65536),
)
_SIDES = (16, 32, 64, 100, 128, 192, 200, 256, 300, 384, 500, 640, 768, 1280, 1500, 1536)
SQUARES = tuple((s, s, s) for s in (*_SIDES, 2500, 3000, 3333, 6144))
#: One row or column, or a few; random shapes have no side of 1 with all others aligned.
THIN = (
    *((1, s, s) for s in (1024, 4096, 8192)),
    *((s, 1, s) for s in (1024, 4096, 8192)),
    *((2, 4096, 4096), (4096, 8, 4096), (32, 4096, 4096), (4096, 32, 4096)),
    *((128, 4096, 4096), (4096, 4096, 128)),
)
#: Seed of the random shapes: not one of comparisons, so that the model is judged by shapes it never
#: saw.
SEED = 20101
RANDOM = 240
#: Of how many random shapes the precisions of tensor cores are recorded.
TENSOR_SHAPES = 60
#: Sides of the squares at which the range check of operands for TF32 is timed.
RANGE_SIDES = (64, 1024, 4096, 8192)
#: Side of the square whose whole call is timed with that check.
RANGE_CALL_SIDE = 65
#: Seconds that timing a candidate at a shape should take.
PAIR_SECONDS = 0.02
LEAST_RUNS, MOST_RUNS = 2, 5
#: A candidate that could at best take so many times as long as the best one so far is skipped.
HOPELESS = 3.0

#: The kernels with candidates.
KERNELS = ("warp_tiling", "tensor_cores", "warpgroups", "narrow")
#: Tiles of warp tiling: TSM, TSN, TSK, WPTM, WPTN, WARPM, STAGES, BATCHES; and the work-groups per
#: compute unit that may share all tiles.
WARP_TILES: tuple[tuple[tuple[int, ...], tuple[float, ...]], ...] = (
    ((256, 128, 8, 16, 8, 4, 3, 7), (1,)),
    ((128, 256, 8, 8, 16, 8, 3, 7), (1,)),
    ((128, 128, 8, 8, 8, 4, 3, 7), (1, 2)),
    ((128, 64, 16, 8, 8, 4, 3, 10), (1, 2, 4)),
    ((64, 128, 16, 8, 8, 4, 3, 10), (1, 2, 4)),
    ((128, 32, 16, 8, 4, 8, 3, 6), (1, 2, 4)),
    ((32, 128, 16, 4, 8, 8, 3, 6), (1, 2, 4)),
    ((64, 64, 16, 8, 4, 8, 3, 10), (1 / 2, 1, 2, 4)),
    ((64, 64, 8, 8, 4, 8, 3, 7), ()),
    ((64, 32, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
    ((32, 64, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
    ((32, 32, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
    ((128, 16, 32, 4, 4, 8, 2, 6), (1 / 2, 1, 2)),
    ((64, 16, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2)),
    ((32, 16, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
    ((16, 128, 32, 4, 4, 4, 2, 6), (1 / 2, 1, 2)),
    ((16, 64, 32, 4, 4, 4, 3, 6), (1 / 4, 1 / 2, 1, 2)),
    ((16, 32, 32, 4, 4, 4, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
)
WARP_NAMES = ("TSM", "TSN", "TSK", "WPTM", "WPTN", "WARPM", "STAGES", "BATCHES")
#: Work-groups per compute unit for narrow products.
NARROW_GROUPS = (1 / 4, 1 / 2, 1, 2, 4, 8)
#: Steps of k in a tile of narrow products: by ROWS, for up to 4 lines and for more.
NARROW_DEPTHS = {0: ((64, 256, 1024), (64, 256)), 1: ((128, 512, 1024), (128, 256))}
#: Tiles for tensor cores.
TENSOR_TILES: dict[str, tuple[dict[str, int], ...]] = {
    "tensor_cores": (
        {"TSM": 128, "TSN": 128, "TSK": 8, "WM": 64, "WN": 64},
        {"TSM": 128, "TSN": 64, "TSK": 16, "WM": 64, "WN": 32},
        {"TSM": 64, "TSN": 64, "TSK": 16, "WM": 32, "WN": 32},
        {"TSM": 64, "TSN": 32, "TSK": 32, "WM": 32, "WN": 32},
        {"TSM": 32, "TSN": 32, "TSK": 32, "WM": 32, "WN": 32},
    ),
    "warpgroups": ({"TSK": 16, "STAGES": 3},),
}


def texts(precision: str) -> Iterator[tuple[str, dict[str, int], tuple[float, ...]]]:
    """Kernels with parameters, and the work-groups per compute unit among which to share."""
    if precision != "float32":
        for kernel, tiles in TENSOR_TILES.items():
            yield from ((kernel, {**tile, **implied(precision, kernel)}, ()) for tile in tiles)
        return
    for (values, groups), width in product(WARP_TILES, (4, 1)):
        tile = dict(zip(WARP_NAMES, values, strict=True))
        yield "warp_tiling", {**tile, "WIDTH": width, "TRANSPOSED": 0}, groups
    for rows, lines, width in product((0, 1), choice.LINES, (4, 1)):
        for wpt, depth in product((1, 4) if rows else (1,), NARROW_DEPTHS[rows][lines > 4]):
            tile = {"LINES": lines, "ROWS": rows, "TSK": depth, "WPT": wpt, "WIDTH": width}
            yield "narrow", tile, NARROW_GROUPS


def groups_of(text: Choice) -> tuple[float, ...]:
    """The work-groups per compute unit among which a text's work may be shared."""
    kernel, params = text[0], dict(text[1])
    for precision in PRECISIONS:
        for name, tile, groups in texts(precision):
            if name == kernel and tile.items() <= params.items():
                return groups
    return ()


def candidates(device: Device, sizes: Sizes, precision: str = "float32") -> list[Choice]:
    """The kernels to time at M, N, K of a column-major product."""
    found: list[Choice] = []
    for kernel, tile, groups in texts(precision):
        full = find(kernel).complete(tile)
        if not find(kernel).problems(full, device.limits):
            text = text_of((kernel, tuple(full.items())))
            found += choice.settings(text, groups, sizes, device.units)
    return found


class Job(NamedTuple):
    """A candidate at M, N, K of a column-major product."""

    choice: Choice
    sizes: tuple[int, int, int]
    precision: str

    @property
    def text(self) -> tuple:
        """What has to be compiled: equal for jobs that run the same binary."""
        kernel, params = self.choice
        return kernel, tuple(find(kernel).macros(*self.sizes[:2], dict(params)).items())

    @property
    def entry(self) -> list:
        """The candidate as it is recorded."""
        return [self.choice[0], dict(self.choice[1])]


def shapes(random: int = RANDOM) -> list[tuple[int, int, int]]:
    """M, N, K of the row-major products to record, shuffled: any part has all kinds."""
    drawn = random_shapes(random, SEED, MOST_FLOPS["GPU"])
    found = list(dict.fromkeys([*PROMISED, *SQUARES, *THIN, *drawn]))
    np.random.default_rng(SEED).shuffle(found)
    return [(int(m), int(n), int(k)) for m, n, k in found]


def jobs(device: Device, random: int) -> list[list[Job]]:
    """The candidates of each shape, in the precisions that the device has."""
    groups = []
    for number, (rows, columns, k) in enumerate(shapes(random)):
        sizes = columns, rows, k  # as the column-major product of the swapped operands
        precisions = ["float32"]
        if "tensor" in device.features and number % (1 + random // TENSOR_SHAPES) == 0:
            precisions += ["tf32", "tf32x3"]
        groups.append([
            Job(one, sizes, precision)
            for precision in precisions
            for one in candidates(device, sizes, precision)
        ])  # fmt: skip
    return groups


def record(device: Device, path: Path, seconds: float = inf, random: int = RANDOM) -> None:
    """Time the candidates that the file lacks.

    Args:
        device: a GPU.
        path: the file to write or to continue; it is up to date even after an interrupt.
        seconds: compile for at most half of that time, and begin no more shapes after it.
        random: how many random shapes.

    Raises:
        ValueError: for a device without candidates, such as a CPU, and a file of another device.
    """
    end = time.monotonic() + seconds
    groups = jobs(device, random)
    if not all(groups):
        raise ValueError(f"{device} has no candidates to time; they are for GPUs")
    data = begin(path, device)
    recorded = {tuple(shape["sizes"]): shape for shape in data["shapes"]}
    missing = []
    for group in groups:
        shape = recorded.get(group[0].sizes, {})
        missing.append([job for job in group if not has(shape, job, data["kernels"])])
    missing = [group for group in missing if group]
    ready = compiled(device, missing, seconds / 2)
    bench = Bench(device)
    if "tensor" in device.features and "range_call_us" not in data:
        data["range_us"] = [bench.range_check(side) for side in RANGE_SIDES]
        data["range_call_us"] = bench.call_with_range_check()
    saved = time.monotonic()
    try:
        for group in tqdm(missing, unit="shape", disable=None):
            if time.monotonic() > end:
                break
            if group[0].sizes not in recorded:
                recorded[group[0].sizes] = {"sizes": list(group[0].sizes)}
                data["shapes"].append(recorded[group[0].sizes])
            bench.shape(recorded[group[0].sizes], [job for job in group if job.text in ready], data)
            if time.monotonic() > saved + common.SAVE_EVERY:
                records.write(path, data)
                saved = time.monotonic()
    finally:
        records.write(path, data)


def begin(path: Path, device: Device) -> dict[str, Any]:
    if path.exists():
        data = files.load_json(path, dict)
        if data.get("device") != device.facts():
            raise ValueError(
                f"{path} was recorded on {data.get('device')}, not on {device.facts()}; "
                "name another file"
            )
        return data
    note = "runs: number in kernels, least and median microseconds of all launches"
    peak = round(peaks(device).gflops)
    return {**common.head(device), "gflops": peak, "note": note, "kernels": [], "shapes": []}


def has(shape: dict[str, Any], job: Job, kernels: list) -> bool:
    """Whether a job was timed, skipped, or failed."""
    if job.precision not in shape or job.entry not in kernels:
        return False
    number, times = kernels.index(job.entry), shape[job.precision]
    rows = times["runs"] + times["failed"]
    return number in times["skipped"] or any(number == row[0] for row in rows)


def compiled(device: Device, groups: list[list[Job]], seconds: float) -> set[tuple]:
    """The texts that the device accepts, compiled in so many seconds; the most frequent ones first.

    On a CPU texts are compiled when they are needed.
    """
    texts = Counter(job.text for group in groups for job in group)
    if device.kind != "GPU":
        return set(texts)
    example = {job.text: job for group in groups for job in group}
    work = [example[text] for text, _ in texts.most_common()]
    results = common.parallel(
        partial(accepts, device.index), work, None if seconds == inf else seconds
    )
    ready = {job.text for job, accepted in tqdm(results, total=len(work), unit="text") if accepted}
    print(f"compiled {len(ready)} of {len(texts)} texts")
    return ready


def accepts(index: int, job: Job) -> bool:
    """Compile what a job needs; whether the device accepts it."""
    with suppress(RuntimeError, ValueError, cl.Error):
        build(find_device(index), job)
        return True
    return False


def build(device: Device, job: Job) -> Kernel:
    kernel, params = job.choice
    built = Kernel(find(kernel), dict(params), device, device.context)
    built.launch(*job.sizes)
    return built


class Bench:
    """Times candidates, one shape at a time, on random matrices."""

    def __init__(self, device: Device):
        self.device = device
        self._generator = PhiloxGenerator(device.context, seed=0)
        self._peak = peaks(device).gflops * 1e9
        self._kernels: dict[Choice, Kernel] = {}

    def shape(self, found: dict[str, Any], group: list[Job], data: dict[str, Any]) -> None:
        """Add measurements to what is recorded of a shape; and new kernels to the record."""
        m, n, k = found["sizes"]
        operands = self._random(m * k), self._random(k * n)
        for precision in dict.fromkeys(job.precision for job in group):
            some = [job for job in group if job.precision == precision]
            times = found.setdefault(precision, {"runs": [], "skipped": [], "failed": []})
            self._times(times, some, operands, data["kernels"])

    def range_check(self, side: int) -> list[float]:
        """Elements of two square matrices, and microseconds of the device to check their range."""
        layout = Layout.compact(side, side)
        matrices = [Matrix(self._random(side**2), layout) for _ in range(2)]
        builder = Builder(self.device.timed_queue, self.device)
        builder.look_for_unsplittable(*matrices)
        plan = builder.plan()

        def seconds() -> float:
            return clock.device_seconds(*(event for _, event in plan(self.device.timed_queue)))

        seconds()  # compiles
        return [2 * side**2, short(1e6 * min(seconds() for _ in range(20)))]

    def call_with_range_check(self) -> float:
        """Microseconds of a call in TF32 so small that the host decides, nothing aligned."""
        queue = cl.CommandQueue(self.device.context, self.device.cl)
        x = self._generator.normal(queue, (RANGE_CALL_SIDE, RANGE_CALL_SIDE), np.float32)
        call = partial(matmul, x, x, kernel="tensor_cores", precision="tf32")
        call()  # compiles
        rounds = (clock.wall_seconds(call, queue.finish, clock.MOST_CALLS) for _ in range(3))
        return short(1e6 * min(rounds))

    def _random(self, elements: int) -> cl.Buffer:
        """So many standard normal numbers on the device."""
        return self._generator.normal(self.device.queue, elements, np.float32).base_data

    def _times(self, found: dict[str, list], group: list[Job], operands, kernels: list) -> None:
        best = min((1e-6 * run[1] for run in found["runs"]), default=inf)
        for job in sorted(group, key=self._least_seconds):
            if job.entry not in kernels:
                kernels.append(job.entry)
            number = kernels.index(job.entry)
            if self._least_seconds(job) > HOPELESS * best:
                found["skipped"].append(number)
                continue
            try:
                seconds = self._seconds(job, operands, best)
            except (RuntimeError, ValueError, MemoryError, cl.Error) as error:
                found["failed"].append([number, str(error).splitlines()[0][:120]])
                continue
            best = min(best, *seconds)
            median = float(np.median(seconds))
            found["runs"].append([number, short(1e6 * min(seconds)), short(1e6 * median)])

    def _least_seconds(self, job: Job) -> float:
        """A bound: no compute unit exceeds its part of the peak, zeros around C included."""
        kernel, params = job.choice[0], dict(job.choice[1])
        rows, columns, _ = find(kernel).tiles(params)
        count = tiles_over(job.sizes[0], rows) * tiles_over(job.sizes[1], columns)
        units = self.device.units
        waves = count / units if params.get("GROUPS") else tiles_over(count, units)
        rate = self._peak * (1 if job.precision == "float32" else 4)
        return waves * 2 * rows * columns * job.sizes[2] * units / rate

    def _seconds(self, job: Job, operands, best: float) -> list[float]:
        """Seconds on the device of each run after the first one."""
        if job.choice not in self._kernels:
            self._kernels[job.choice] = build(self.device, job)
        kernel, problem = self._kernels[job.choice], Problem.compact(*job.sizes)
        product = timing.Product(kernel, self.device, problem, *operands)
        first = 1e-3 * sum(product.run().values())
        if first > HOPELESS * best and first > 1e-4:
            return [first]
        count = int(np.clip(PAIR_SECONDS / first, LEAST_RUNS, MOST_RUNS))
        return [1e-3 * sum(product.run().values()) for _ in range(count)]


def short(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")
