"""Record a landscape: compile on all cores, run one setting at a time, check every result.

Compiling takes longer than running, and a compiler may lock its process, abort it, or never end. A
child process per core therefore compiles a setting, waits for its turn on the device, runs the
setting alone, and checks the result while the next child has its turn.
"""

from __future__ import annotations

import os
import queue
import re
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import asdict
from itertools import combinations, islice, product
from math import inf
from pathlib import Path
from typing import Any, NamedTuple

import common
import numpy as np
import pyopencl as cl
from registers import build_log, in_log
from tqdm import tqdm

from gemmlab import check, environment, model
from gemmlab.blas.problem import Problem
from gemmlab.catalog import KernelSpec, Key, Limits, find, sources
from gemmlab.measurement import peaks, records, timing
from gemmlab.measurement.landscape import Landscape
from gemmlab.opencl import launch
from gemmlab.opencl.devices import Device, find_device

#: M = N = K at which the defaults of every kernel are recorded as well.
SIZES = (256, 512, 1024, 2048, 3072, 4096, 6144, 8192)
#: Seconds that a child may take for a step.
LIMIT = 60.0
#: Milliseconds of timed runs: a setting is run again as often as its first run fits into this time.
TIMED = 20.0
#: Milliseconds: a setting whose first run takes longer is not run again.
SLOW = 40.0
MOST_RUNS = 5
#: Runs that differ by more than this factor were disturbed, as by copies of another child. Then
#: there are `MOST_RUNS`, whose median is right as long as most of them were not disturbed.
AGREE = 1.01
#: More children do not help: with 16 the device is always busy.
MOST_CHILDREN = 16
#: Seconds that settings under way have to finish when the time is over.
GRACE = 5.0


#: A kernel with more legal settings than this is recorded at `SOME` of them.
MOST, SOME = 3000, 500


class Job(NamedTuple):
    """A setting of a kernel to run at M = N = K = size."""

    kernel: Key
    params: dict[str, int]
    size: int


def record(
    device: Device, kernels: Iterable[Key], size: int, path: Path, seconds: float = inf
) -> Landscape:
    """Record what is missing of these kernels' settings; an interrupt loses nothing.

    Args:
        device: where.
        kernels: their numbers.
        size: M = N = K. The defaults are recorded at the `SIZES` from a sixteenth to twice of it,
            too.
        path: the file to continue or to write.
        seconds: begin no more settings after that time.

    Raises:
        ValueError: if the file is of another device, driver or size.
    """
    end = time.monotonic() + seconds
    path.parent.mkdir(parents=True, exist_ok=True)
    landscape = begin(path, device, size)
    batches = missing(landscape, device, list(kernels))
    saved = time.monotonic()
    total = sum(map(len, batches))
    try:
        with closing(Crew(device, batches, end)) as crew:
            for job, answer in tqdm(crew.measurements(), total=total, unit="setting", disable=None):
                add(landscape, device, job, answer)
                if time.monotonic() > saved + common.SAVE_EVERY:
                    landscape.save(path)
                    saved = time.monotonic()
    finally:
        landscape.save(path)
    return landscape


def file_of(device: str) -> Path:
    """Where a device's landscape goes: "NVIDIA H200" has ``landscape_nvidia_h200.json``.

    In a checkout that is in ``results/``, with an installed package in the user's own folder.
    """
    folder = sources.folder("results")
    if (folder.parent / "__init__.py").exists() or not os.access(folder, os.W_OK):
        folder = sources.own_folder()
    return folder / f"landscape_{re.sub('[^a-z0-9]+', '_', device.lower()).strip('_')}.json"


def settings(spec: KernelSpec, limits: Limits) -> list[dict[str, int]]:
    """The settings of a kernel to record on a device with `limits`, none twice, defaults first.

    These are all legal combinations of the values that an explorer offers. Where there are more
    than `MOST`, they are those in which at most two parameters differ from the defaults, so that
    every picture over two parameters is whole around the defaults, and a sample, up to `SOME`.
    """
    chosen = [spec.fit(limits)]
    every = list(islice(spec.search_space(limits), MOST + 1))
    if len(every) <= MOST:
        chosen += every
    else:
        chosen += [*variations(spec, limits, 1), *variations(spec, limits, 2)]
        chosen += spec.sample(limits, max(0, SOME - len(chosen)))
    return list({tuple(setting.values()): setting for setting in chosen}.values())


def variations(spec: KernelSpec, limits: Limits, moved: int) -> Iterator[dict[str, int]]:
    """The legal settings in which exactly `moved` parameters differ from the defaults."""
    start = spec.fit(limits)
    for params in combinations(spec.params, moved):
        for values in product(*([v for v in p.choices if v != start[p.name]] for p in params)):
            setting = {**start, **{p.name: value for p, value in zip(params, values, strict=True)}}
            if not spec.problems(setting, limits):
                yield setting


def begin(path: Path, device: Device, size: int) -> Landscape:
    """The landscape in a file if it can be continued, or an empty one."""
    origin = records.origin(common.command())
    if not path.exists():
        head = {**common.head(device), "begun": origin["date"], "size": size}
        peak = round(peaks.peaks(device).gflops, 1)
        return Landscape({**head, "peak": peak, "limits": asdict(device.limits)})
    landscape = Landscape.load(path)
    recorded = landscape.head["device"]
    for what, before, now in (
        ("device", recorded["device"], device.name),
        ("version", recorded["version"], device.version),
        ("driver", recorded["driver"], device.driver),
        ("size", landscape.size, size),
    ):
        if before != now:
            raise ValueError(
                f"{path} was recorded with {what} {before}, not {now}; name another file with --out"
            )
    for kernel in [kernel for kernel in landscape.kernels if not landscape.current(kernel)]:
        print(f"kernel {kernel}: its text has changed since it was recorded; it is recorded again")
        landscape.forget(kernel)
    landscape.head |= origin
    return landscape


def missing(landscape: Landscape, device: Device, kernels: list[Key]) -> list[list[Job]]:
    """What is left to record, in batches for one child each: defaults by size, then settings.

    Kernels with few settings come first: a run that is cut short then leaves few gaps.
    """
    batches: list[list[list[Job]]] = []
    for kernel in kernels:
        recorded = landscape.rows(kernel)
        wanted = settings(find(kernel), device.limits)
        new = [setting for setting in wanted if tuple(setting.values()) not in recorded]
        batches.append([[Job(kernel, setting, landscape.size)] for setting in new])
    over_sizes = [
        Job(kernel, find(kernel).fit(device.limits), size)
        for size in SIZES  # size by size: the child makes the matrices of a size once
        for kernel in kernels
        if landscape.size / 16 <= size <= 2 * landscape.size
        and size not in landscape.over_sizes(kernel)
    ]
    found = [over_sizes] if over_sizes else []
    for of_kernel in sorted(batches, key=len):
        found += of_kernel
    return found


def add(landscape: Landscape, device: Device, job: Job, answer: dict[str, Any]) -> None:
    """Put a child's answer into the landscape."""
    spec, problem = find(job.kernel), answer.get("problem", "")
    gflops: float = 0
    if not problem:
        seconds = float(np.median(answer["ms"])) * 1e-3
        gflops = rounded(model.gflops(job.size, job.size, job.size, seconds))
    if job.params == spec.fit(device.limits):
        landscape.add_size(job.kernel, job.size, gflops)
    if job.size != landscape.size or tuple(job.params.values()) in landscape.rows(job.kernel):
        return
    if problem:
        landscape.add(job.kernel, job.params, [" ".join(problem.split())[:160]])
        return
    registers, spilled = answer["used"] or (None, None)
    row = [gflops, registers, spilled, occupancy(device, spec, job.params, registers)]
    landscape.add(job.kernel, job.params, row)


def rounded(gflops: float) -> float:
    """With 4 significant digits, and as a whole number from 1,000 on."""
    short = float(f"{gflops:.4g}")
    return int(short) if short >= 1000 else short


def occupancy(
    device: Device, spec: KernelSpec, params: dict[str, int], registers: int | None
) -> int | None:
    """Per cent of the work-items that a multiprocessor holds; None if `registers` is unknown."""
    if registers is None:
        return None
    # OpenCL reports less than the whole local memory of a multiprocessor
    chips = {chip.name: chip for chip in (model.H200, model.K40M)}
    chip = chips.get(device.name) or model.multiprocessor(device)
    across, down = spec.local_size(params)
    limits = model.occupancy(chip, across * down, registers, spec.local_memory(params))
    return round(100 * min(limits.values()) * across * down / chip.work_items)


# Children


def children(device: Device, batches: list[list[Job]]) -> list[common.Child]:
    """As many as cores and memory allow; on a CPU one, as compiling would slow the kernels."""
    if device.kind != "GPU" or not batches:
        return [common.Child(Bench, device.index)]
    size = max(job.size for batch in batches for job in batch)
    each = 12 * 4 * size**2  # four inputs, two results, and copies for the edges
    most = (MOST_CHILDREN, os.cpu_count() or 1, device.memory // each, len(batches))
    return [common.Child(Bench, device.index) for _ in range(max(1, min(most)))]


class Crew:
    """Children, each with a thread that gives it batches of jobs until none is left."""

    def __init__(self, device: Device, batches: list[list[Job]], end: float):
        self._batches: queue.SimpleQueue[list[Job]] = queue.SimpleQueue()
        for batch in batches:
            self._batches.put(batch)
        self._answers: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._turn = threading.Lock()  # the device runs one setting at a time
        self._end = end
        self._children = children(device, batches)
        # what comes from a cache has no build log, and thousands of binaries are too many to keep
        self._options = {"CUDA_CACHE_DISABLE": "1", "PYOPENCL_NO_CACHE": "1"}
        self._options["OPENBLAS_NUM_THREADS"] = "1"
        if "nvidia" in device.features:
            self._options["PYOPENCL_BUILD_OPTIONS"] = "-cl-nv-verbose"  # logs registers and spills

    def measurements(self) -> Iterator[tuple[Job, dict[str, Any]]]:
        """Measured settings as they come; no job begins after the end."""
        with environment.variables(self._options):
            for child in self._children:
                threading.Thread(target=self._work, args=(child,), daemon=True).start()
            working = len(self._children)
            while working:
                seconds = min(1e6, max(0.0, self._end - time.monotonic()) + GRACE)
                try:
                    answer = self._answers.get(timeout=seconds)
                except queue.Empty:
                    return
                if isinstance(answer, RuntimeError):
                    raise answer
                if answer is None:
                    working -= 1
                else:
                    yield answer

    def close(self) -> None:
        """Give up what is under way."""
        for child in self._children:
            child.close()

    def _work(self, child: common.Child) -> None:
        try:
            while True:
                for job in self._batches.get_nowait():
                    if time.monotonic() >= self._end:
                        raise queue.Empty
                    self._answers.put((job, measured(child, job, self._turn)))
        except queue.Empty:
            self._answers.put(None)
        except RuntimeError as error:
            self._answers.put(error)


def measured(child: common.Child, job: Job, turn: threading.Lock) -> dict[str, Any]:
    """What a child finds of a setting: "used", "ms"; or "problem"."""
    answer = child.ask("compile", LIMIT, **job._asdict())
    if "problem" not in answer:
        with turn:
            answer |= child.ask("time", LIMIT)
    if "problem" not in answer:
        answer |= child.ask("check", LIMIT)
    return answer


class Inputs:
    """Matrices of a size on a device: exact ones with a test of their product, random ones."""

    def __init__(self, device: Device, size: int):
        self.size, self.problem = size, Problem.compact(size, size, size)
        a, b = check.exact_inputs(size, size, size)
        # Freivalds' check: C x must equal A (B x), which is computed only once
        self._x = np.random.default_rng(0).integers(-512, 512, (size, 3)).astype(np.float64)
        self._expected = a @ (b @ self._x)
        self.exact = timing.upload(device, a), timing.upload(device, b)
        u, v = check.random_inputs(size, size, size)
        self.random = timing.upload(device, u), timing.upload(device, v)

    def right(self, c: np.ndarray) -> bool:
        """Whether C (m x n) is the product of the exact matrices; a NaN never is."""
        return np.array_equal(c @ self._x, self._expected)


class Bench:
    """Compiles, times and checks a setting in a child process, one step per request."""

    def __init__(self, index: int):
        self.device = find_device(index)
        self._product: timing.Product | None = None
        self._inputs: Inputs | None = None

    def compile(self, kernel: Key, params: dict[str, int], size: int) -> dict[str, Any]:
        """Compile, and prepare the matrices, while another child has the device."""
        self._product = None  # its memory is free for others
        self._kernel = launch.kernel(kernel, params, self.device)
        if self._inputs is None or self._inputs.size != size:
            self._inputs = None  # frees its memory first
            self._inputs = Inputs(self.device, size)
        nvidia = "nvidia" in self.device.features
        return {"used": in_log(build_log(self._kernel)) if nvidia else None}

    def time(self) -> dict[str, Any]:
        """Milliseconds on random matrices, after a run on the exact ones for `check`."""
        assert self._inputs is not None
        self._product = self._prepared(self._inputs.exact)
        first = self._milliseconds(self._product)
        if first > SLOW:
            return {"ms": [first]}
        product = self._prepared(self._inputs.random)
        runs = int(min(MOST_RUNS, max(1.0, TIMED / first)))
        ms = [self._milliseconds(product) for _ in range(runs)]
        if max(first, *ms) > AGREE * min(first, *ms):
            ms += [self._milliseconds(product) for _ in range(MOST_RUNS - runs)]
        return {"ms": ms}

    def _prepared(self, operands: tuple[cl.Buffer, cl.Buffer]) -> timing.Product:
        assert self._inputs is not None
        return timing.Product(self._kernel, self.device, self._inputs.problem, *operands)

    def _milliseconds(self, product: timing.Product) -> float:
        return product.run()["gemm"]

    def check(self) -> dict[str, Any]:
        """Whether the product of the exact matrices was right; only reading it needs the device."""
        assert self._product is not None and self._inputs is not None
        if not self._product.frame.untouched():
            return {"problem": "wrong: it writes outside C"}
        if not self._inputs.right(self._product.result()):
            return {"problem": "wrong: C is not the product of A and B"}
        return {}
