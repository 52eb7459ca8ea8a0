"""Record the device time of every candidate kernel at many shapes: what the model behind `kernel="auto"` is fitted to.

Compiling takes longer than running, so all texts are compiled first, side by side. Then one shape after another is
timed, on random matrices that lie as `matmul` gets them from arrays in C order. A record that is there is continued.
"""

from __future__ import annotations

import json
import os
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import TimeoutError, as_completed
from contextlib import suppress
from functools import partial
from math import inf, prod
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
from tqdm import tqdm

from ..blas.passes import Matrix, Session
from ..blas.problem import Layout, Problem
from ..blas.products import matmul
from ..catalog import find
from ..catalog.spec import tiles_over
from ..family import candidates
from ..family.selection import Choice
from ..opencl.devices import Device, find_device
from ..opencl.launch import Kernel
from . import calls, records
from .children import Children
from .peaks import peaks

#: Shapes of the row-major product that are recorded besides random ones: those that our promises are about, and
#: usual squares.
PROMISED = (
    *((s, s, s) for s in (512, 1000, 1024, 1025, 2047, 2048, 2049, 4095, 4096, 4097, 5000, 8192)),
    (8192, 64, 8192), (64, 8192, 8192), (256, 256, 65536),
)  # fmt: skip
SQUARES = tuple(
    (s, s, s)
    for s in (16, 32, 64, 100, 128, 192, 200, 256, 300, 384, 500, 640, 768, 1280, 1500, 1536, 2500, 3000, 3333, 6144)
)
#: One row or column, or a few of them: a random shape has no side of 1 and all others aligned.
THIN = (
    (1, 4096, 4096), (4096, 1, 4096), (1, 8192, 8192), (8192, 1, 8192), (1, 1024, 1024), (1024, 1, 1024),
    (2, 4096, 4096), (4096, 8, 4096), (32, 4096, 4096), (4096, 32, 4096), (128, 4096, 4096), (4096, 4096, 128),
)  # fmt: skip
#: Seed and number of the random shapes: not those of comparisons, so that the model is judged by shapes it never saw.
SEED, RANDOM = 20101, 240
#: Sides of the squares at which the look at operands for TF32 is timed.
RANGE_SIDES = (64, 1024, 4096, 8192)
_AWKWARD = 65  # side of the square whose whole call is timed with that look
#: Precisions that are recorded, and of how many random shapes for those on tensor cores.
TENSOR_SHAPES = 60
#: Seconds that timing a candidate at a shape should take, and the fewest and the most runs besides the first one.
PAIR_SECONDS, LEAST_RUNS, MOST_RUNS = 0.02, 2, 5
#: A candidate that could at best take so many times as long as the best one so far is skipped.
HOPELESS = 3.0
#: Seconds between two writes of the file.
SAVED_EVERY = 20.0


class Job(NamedTuple):
    """A candidate at a shape: M, N, K of the column-major product."""

    choice: Choice
    sizes: tuple[int, int, int]
    precision: str

    @property
    def text(self) -> tuple:
        """What has to be compiled for it: equal for jobs that run the same binary."""
        kernel, params = self.choice
        return kernel, tuple(find(kernel).macros(*self.sizes[:2], dict(params)).items())


def shapes(random: int = RANDOM) -> list[tuple[int, int, int]]:
    """M, N, K of the row-major products to record, in an order in which every part has some of all kinds."""
    found = [*dict.fromkeys([*PROMISED, *SQUARES, *THIN, *calls.random_shapes(random, SEED, calls.MOST_FLOPS["GPU"])])]
    np.random.default_rng(SEED).shuffle(found)
    return [(int(m), int(n), int(k)) for m, n, k in found]


def jobs(device: Device, random: int = RANDOM) -> list[list[Job]]:
    """The candidates of every shape, shape by shape, with the precisions that the device has."""
    found = []
    for number, (rows, cols, k) in enumerate(shapes(random)):
        sizes, per_shape = (cols, rows, k), []  # a row-major product is the column-major one of the swapped operands
        for precision in ("float32", "tf32", "tf32x3"):
            if precision == "float32" or ("tensor" in device.features and number % (1 + random // TENSOR_SHAPES) == 0):
                per_shape += [Job(c, sizes, precision) for c in candidates.candidates(device, sizes, precision)]
        found.append(per_shape)
    return found


def record(
    device: Device,
    path: str | Path,
    command: str,
    seconds: float = inf,
    compiling: float = inf,
    random: int = RANDOM,
    anew: str = "",
) -> Path:
    """Time the candidates that the file does not have yet. What is no candidate any more is forgotten.

    Args:
        device: where.
        path: the file to write or to continue.
        command: what was typed, for the record.
        seconds: begin with no more shapes after that time, which includes compiling.
        compiling: compile no more after that time; candidates that are not compiled are left out.
        random: how many random shapes.
        anew: the name of a kernel (see `candidates.KERNELS`) whose text has changed, so that it is timed again.

    Returns:
        The file; it is up to date whenever this function ends.

    Raises:
        ValueError: for a device without candidates, such as a processor.
    """
    start, path = time.monotonic(), Path(path)
    data = _begun(path, device, command)
    known = {tuple(shape["sizes"]): shape for shape in data["shapes"]}
    missing = []
    groups = jobs(device, random)
    if not all(groups):
        raise ValueError(f"{device} has no candidates to time; on a processor matmul packs the operands instead")
    for group in groups:
        shape = known.get(group[0].sizes, {})
        _forget(shape, group, data["kernels"], anew)
        missing.append([job for job in group if not _has(shape, job, data["kernels"])])
    missing = [group for group in missing if group]
    ready = _compiled(device, missing, start + min(compiling, seconds))
    bench = _Bench(device)
    if "tensor" in device.features and "range_call_us" not in data:
        data["range_us"] = [bench.range_check(side) for side in RANGE_SIDES]
        data["range_call_us"] = bench.call_with_range_check()
    saved = time.monotonic()
    try:
        for group in tqdm(missing, unit="shape", disable=None):
            if time.monotonic() > start + seconds:
                break
            if group[0].sizes not in known:
                known[group[0].sizes] = {"sizes": list(group[0].sizes)}
                data["shapes"].append(known[group[0].sizes])
            compiled = [job for job in group if job.text in ready]
            bench.shape(known[group[0].sizes], compiled, data["kernels"])
            if time.monotonic() > saved + SAVED_EVERY:
                _save(path, data)
                saved = time.monotonic()
    finally:
        _save(path, data)
    return path


def _entry(job: Job) -> list:
    """A job's candidate as it is recorded."""
    return [next(name for name, key in candidates.KERNELS.items() if key == job.choice[0]), dict(job.choice[1])]


def _has(shape: dict[str, Any], job: Job, kernels: list) -> bool:
    """Whether a job is recorded: that it was timed, skipped, or that it failed."""
    if job.precision not in shape or _entry(job) not in kernels:
        return False
    number, found = kernels.index(_entry(job)), shape[job.precision]
    return number in found["skipped"] or any(number == row[0] for row in found["runs"] + found["failed"])


def _forget(shape: dict[str, Any], group: list[Job], kernels: list, anew: str) -> None:
    """Take out of a recorded shape what is no candidate any more, and the kernel that is timed anew."""
    for precision in {job.precision for job in group} & shape.keys():
        offered = [_entry(job) for job in group if job.precision == precision]
        kept = {number for number, entry in enumerate(kernels) if entry in offered and entry[0] != anew}
        found = shape[precision]
        shape[precision] = {
            "runs": [run for run in found["runs"] if run[0] in kept],
            "skipped": [number for number in found["skipped"] if number in kept],
            "failed": [row for row in found.get("failed", []) if row[0] in kept],
        }


def _begun(path: Path, device: Device, command: str) -> dict[str, Any]:
    if path.exists():
        data = json.loads(path.read_text(encoding="utf-8"))
        if data["device"] != device.facts():
            raise ValueError(f"{path} was recorded on {data['device']}, not on {device.facts()}; name another file")
        return data
    head = {"title": device.name, **records.origin(command), "device": device.facts()}
    words = "runs: number in kernels, least and median microseconds of all launches together, launches"
    return {**head, "gflops": round(peaks(device).gflops), "note": words, "kernels": [], "shapes": []}


def _save(path: Path, data: dict[str, Any]) -> None:
    """One line per kernel and per shape, which keeps the file small and readable."""
    lists = {name: data[name] for name in ("kernels", "shapes")}
    head = json.dumps({name: value for name, value in data.items() if name not in lists}, indent=1)[:-2]
    for name, rows in lists.items():
        head += (
            f',\n "{name}": [\n' + ",\n".join("  " + json.dumps(row, separators=(",", ":")) for row in rows) + "\n ]"
        )
    path.write_text(head + "\n}\n", encoding="utf-8")


# Compiling, side by side.


def _compiled(device: Device, groups: list[list[Job]], end: float) -> set[tuple]:
    """The texts that the device takes, compiled until `end`; those that most jobs need come first.

    The driver keeps what the children compile on disk. On a processor texts are compiled when they are needed.
    """
    texts = Counter(job.text for group in groups for job in group)
    if device.kind != "GPU":
        return set(texts)
    example = {job.text: job for group in groups for job in group}
    ready: set[tuple] = set()
    children = max(1, (os.cpu_count() or 2) - 1)
    pool = Children(children)
    try:
        waiting = {pool.submit(compile_one, device.index, example[text]): text for text, _ in texts.most_common()}
        left = None if end == inf else max(0.0, end - time.monotonic())
        with suppress(TimeoutError), tqdm(total=len(waiting), unit="text", disable=None) as bar:
            for done in as_completed(waiting, timeout=left):
                bar.update()
                if done.result():
                    ready.add(waiting[done])
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
    print(f"compiled {len(ready)} of {len(texts)} texts")
    return ready


def compile_one(index: int, job: Job) -> bool:
    """Compile what a job needs; whether the device takes it."""
    with suppress(RuntimeError, ValueError, cl.Error):
        _build(find_device(index), job)
        return True
    return False


def _build(device: Device, job: Job) -> Kernel:
    kernel, params = job.choice
    built = Kernel(find(kernel), dict(params), device, device.context)
    built.launch(*job.sizes)
    return built


# Timing, one shape at a time.


class _Bench:
    """Two large random matrices on the device, of which every shape takes what it needs."""

    def __init__(self, device: Device):
        self.device = device
        flags = cl.command_queue_properties.PROFILING_ENABLE
        self.queue = cl.CommandQueue(device.context, device.cl, flags)
        self._random = np.random.default_rng(0).standard_normal(2**20, np.float32)
        self._buffers: list[cl.Buffer] = []
        self._peak = peaks(device).gflops * 1e9
        self._kernels: dict[tuple, Kernel] = {}

    def shape(self, found: dict[str, Any], group: list[Job], kernels: list) -> None:
        """Add to what is recorded of a shape; kernels that are new are added to `kernels`."""
        m, n, k = found["sizes"]
        a, b = self._operands(m * k, k * n)
        for precision in dict.fromkeys(job.precision for job in group):
            of_precision = [job for job in group if job.precision == precision]
            self._times(
                found.setdefault(precision, {"runs": [], "skipped": [], "failed": []}), of_precision, a, b, kernels
            )
        if "cublas_us" not in found:
            with suppress(ImportError):
                found["cublas_us"] = [_short(1e6 * s) for s in cublas_seconds(n, m, k)]

    def range_check(self, side: int) -> list[float]:
        """Elements of two square matrices, and microseconds of the device to see whether TF32 suits them."""
        matrices = [Matrix(buffer, Layout.compact(side, side)) for buffer in self._operands(side**2, side**2)]
        queue = cl.CommandQueue(self.device.context, self.device.cl)  # without profiling, which takes time

        def look() -> None:
            with Session(queue, self.device) as session:
                session.look_for_unsplittable(*matrices)

        look()  # compiles
        way = calls.on_queue(queue, look)
        return [2 * side**2, _short(1e6 * min(calls.device_seconds(way, 20) for _ in range(3)))]

    def call_with_range_check(self) -> float:
        """Microseconds of a whole call in TF32 that the host decides, not the device: a small one, nothing aligned."""
        queue = cl.CommandQueue(self.device.context, self.device.cl)
        x = cla.to_device(queue, self._random[: _AWKWARD**2].reshape(_AWKWARD, _AWKWARD))
        way = calls.on_queue(queue, partial(matmul, x, x, kernel=candidates.TENSOR_CORES, precision="tf32"))
        way.call()  # compiles
        return _short(1e6 * min(calls.wall_seconds(way, calls.CALLS) for _ in range(3)))

    def _operands(self, *elements: int) -> list[cl.Buffer]:
        """Buffers of at least so many random numbers."""
        if not self._buffers or any(buffer.size < 4 * e for buffer, e in zip(self._buffers, elements, strict=True)):
            self._buffers = []
            self._buffers = [self._filled(e) for e in elements]
        return self._buffers

    def _filled(self, elements: int) -> cl.Buffer:
        """A new buffer of random numbers, the same ones again and again; larger than asked for, for shapes to come."""
        count = min(tiles_over(2 * elements, self._random.size), tiles_over(2**28, self._random.size))
        count = max(count, tiles_over(elements, self._random.size))
        size = self._random.nbytes
        buffer = cl.Buffer(self.device.context, cl.mem_flags.READ_WRITE, size * count)
        cl.enqueue_copy(self.queue, buffer, self._random)
        for i in range(1, count):
            cl.enqueue_copy(self.queue, buffer, buffer, byte_count=size, src_offset=0, dst_offset=size * i)
        return buffer

    def _times(self, found: dict[str, list], group: list[Job], a, b, kernels: list) -> None:
        best = min((1e-6 * run[1] for run in found["runs"]), default=inf)
        for job in sorted(group, key=self._least_seconds):
            if _entry(job) not in kernels:
                kernels.append(_entry(job))
            number = kernels.index(_entry(job))
            if self._least_seconds(job) > HOPELESS * best:
                found["skipped"].append(number)
                continue
            try:
                seconds, launches = self._seconds(job, a, b, best)
            except (RuntimeError, ValueError, MemoryError, cl.Error) as error:
                found["failed"].append([number, str(error).splitlines()[0][:120]])
                continue
            best = min(best, *seconds)
            found["runs"].append(
                [number, _short(1e6 * min(seconds)), _short(1e6 * float(np.median(seconds))), launches]
            )

    def _least_seconds(self, job: Job) -> float:
        """A bound: no compute unit does more than its part of the peak, and zeroes around C are multiplied, too."""
        kernel, params = job.choice
        p = dict(params)
        rows, cols, _ = find(kernel).tiles(p)
        count = tiles_over(job.sizes[0], rows) * tiles_over(job.sizes[1], cols)
        waves = count / self.device.units if p.get("GROUPS") else tiles_over(count, self.device.units)
        rate = self._peak * (1 if job.precision == "float32" else 4)
        return waves * 2 * rows * cols * job.sizes[2] * self.device.units / rate

    def _seconds(self, job: Job, a, b, best: float) -> tuple[list[float], int]:
        """Seconds of each run after the first one, and how many launches a run has."""
        run = self._run(job, a, b)
        first, launches = run()
        if first > HOPELESS * best and first > 1e-4:
            return [first], launches
        count = int(np.clip(PAIR_SECONDS / first, LEAST_RUNS, MOST_RUNS))
        return [run()[0] for _ in range(count)], launches

    def _run(self, job: Job, a, b) -> Callable[[], tuple[float, int]]:
        m, n, k = job.sizes
        problem = Problem.compact(m, n, k)
        if job.choice not in self._kernels:
            self._kernels[job.choice] = _build(self.device, job)
        kernel = self._kernels[job.choice]

        def run() -> tuple[float, int]:
            with Session(self.queue, self.device) as session:
                out = session.new(Layout.compact(m, n))
                session.multiply(kernel, problem, a, b, out)
                self.queue.finish()
                times = [(event.profile.end - event.profile.start) * 1e-9 for _, event in session.events]
            return sum(times), len(times)

        return run


def cublas_seconds(m: int, n: int, k: int, runs: int = 3) -> tuple[float, float]:
    """Least and median seconds of cuBLAS SGEMM on the device, for a row-major product: no TF32.

    Many products are captured in a CUDA graph, so that launching them takes the host no time.
    """
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    a, b = torch.randn(m, k, device="cuda"), torch.randn(k, n, device="cuda")
    out = torch.empty(m, n, device="cuda")
    count = int(np.clip(2e10 / (2 * prod((m, n, k))), 1, 20))
    side, graph = torch.cuda.Stream(), torch.cuda.CUDAGraph()
    with torch.cuda.stream(side):
        torch.matmul(a, b, out=out)
    torch.cuda.synchronize()
    with torch.cuda.graph(graph):
        for _ in range(count):
            torch.matmul(a, b, out=out)
    seconds = []
    for _ in range(runs + 1):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        graph.replay()
        end.record()
        torch.cuda.synchronize()
        seconds.append(begin.elapsed_time(end) * 1e-3 / count)
    return min(seconds[1:]), float(np.median(seconds[1:]))


def _short(value: float) -> float:
    """Four significant digits."""
    return float(f"{value:.4g}")
