"""Record a landscape: compile on all cores, run one setting at a time, check it. An interrupted run can be continued.

Compiling takes longer than running, and a compiler may lock its process, abort it, or never end. So there is a child
process for each core. It compiles a setting, waits for its turn on the device, runs the setting alone, and checks the
result while the next child has its turn.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from math import inf
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyopencl as cl
from tqdm import tqdm

from .. import check, model
from ..blas.problem import Problem
from ..catalog import KernelSpec, Key, catalog, find
from ..opencl import launch, ptx
from ..opencl.devices import Device, find_device
from . import peaks, records, timing
from .landscape import Landscape, choice, file_of

#: M = N = K at which the defaults of every kernel are recorded as well.
SIZES = (256, 512, 1024, 2048, 3072, 4096, 6144, 8192)
#: Seconds that a child may take for each step.
LIMITS = {"start": 120.0, "compile": 60.0, "time": 60.0, "check": 60.0}
#: Milliseconds: a setting is timed once more for each time that its first run fits in here, but at most `MOST_RUNS`
#: times; and one whose first run takes longer than `SLOW` is not timed again.
TIMED, SLOW, MOST_RUNS = 20.0, 40.0, 5
#: Runs that differ by more than this factor were disturbed, as by the copies of another child: then there are all
#: `MOST_RUNS`, whose median is right as long as most are not. On an H200, with 16 children and a single timed run, one
#: setting in ten differed by more than 3 % between kernels 7 and 8, where both are the same; half of them by 0.2 %.
AGREE = 1.01
#: More children than this do not help: with 16 of them the device is busy all the time.
MOST_CHILDREN = 16
#: Seconds after the end that settings under way have to finish.
GRACE = 5.0
#: The file is written whenever so many seconds have passed.
SAVED_EVERY = 15.0


class Job(NamedTuple):
    """A setting of a kernel to run at M = N = K = size."""

    kernel: Key
    params: dict[str, int]
    size: int


def record(
    device: Device,
    kernels: Iterable[Key] = tuple(catalog),
    size: int = 4096,
    seconds: float = inf,
    path: str | Path | None = None,
    command: str = "",
) -> Path:
    """Record the settings of these kernels, or what is still missing of them.

    Args:
        device: where.
        kernels: their numbers.
        size: M = N = K of the products. The defaults are recorded at the `SIZES` from a sixteenth to twice of it, too.
        seconds: begin with no more settings after that time.
        path: the file to continue or to write; by default that of the device (see `landscape.file_of`).
        command: what was typed, for the record.

    Returns:
        The file. It is up to date whenever this function ends, also by an interrupt.

    Raises:
        ValueError: if the file is of another device, driver or size.
    """
    end = time.monotonic() + seconds
    path = Path(path or file_of(device.name))
    path.parent.mkdir(parents=True, exist_ok=True)
    found = _begun(path, device, size, command)
    batches = _missing(found, device, list(kernels))
    crew = _Crew(device, batches)
    saved = time.monotonic()
    try:
        with tqdm(total=sum(map(len, batches)), unit="setting", disable=None) as bar:
            for job, measured in crew.results(end):
                _add(found, device, job, measured)
                bar.update()
                if time.monotonic() > saved + SAVED_EVERY:
                    found.save(path)
                    saved = time.monotonic()
    finally:
        crew.stop()
        found.save(path)
    return path


def _begun(path: Path, device: Device, size: int, command: str) -> Landscape:
    """The landscape in a file if it can be continued, or an empty one."""
    origin = records.origin(command)
    if not path.exists():
        head = {"title": device.name, **origin, "begun": origin["date"], "device": device.facts(), "size": size}
        peak = round(peaks.peaks(device).gflops, 1)
        return Landscape({**head, "peak": peak, "limits": asdict(device.limits)})
    found = Landscape.load(path)
    known = found.head["device"]
    for what, was, now in (
        ("the device", known["device"], device.name),
        ("the driver", f"{known['version']}, {known['driver']}", f"{device.version}, {device.driver}"),
        ("size", found.size, size),
    ):
        if was != now:
            raise ValueError(f"{path} was recorded with {what} {was}, not {now}; give another file with --out")
    for kernel in found.forget_old():
        print(f"kernel {kernel}: its text has changed since it was recorded, so it is recorded anew")
    found.head |= origin
    return found


def _missing(found: Landscape, device: Device, kernels: list[Key]) -> list[list[Job]]:
    """What is left to record, in batches for one child each: the defaults over the sizes, then single settings.

    Kernels with few settings come first, so that a run that is cut short leaves as few gaps as possible.
    """
    left: dict[Key, list[list[Job]]] = {}
    for kernel in kernels:
        settings = choice(find(kernel), device.limits)
        known = found.rows(kernel)
        left[kernel] = [[Job(kernel, s, found.size)] for s in settings if tuple(s.values()) not in known]
    over_sizes = [
        Job(kernel, find(kernel).fit(device.limits), size)
        for size in SIZES  # size by size, since the child makes the matrices of a size once
        for kernel in kernels
        if found.size / 16 <= size <= 2 * found.size and size not in found.over_sizes(kernel)
    ]
    return [over_sizes] * bool(over_sizes) + [batch for jobs in sorted(left.values(), key=len) for batch in jobs]


def _add(found: Landscape, device: Device, job: Job, measured: dict[str, Any]) -> None:
    """Put what a child answered into the landscape."""
    spec, problem = find(job.kernel), measured.get("problem", "")
    gflops = 0.0 if problem else model.gflops(job.size, job.size, job.size, np.median(measured["ms"]) * 1e-3)
    gflops = _rounded(gflops)
    if job.params == spec.fit(device.limits):
        found.add_size(job.kernel, job.size, gflops)
    if job.size != found.size or tuple(job.params.values()) in found.rows(job.kernel):
        return
    if problem:
        found.add(job.kernel, job.params, [" ".join(problem.split())[:160]])
    else:
        used = measured["used"] or (None, None)
        found.add(job.kernel, job.params, [gflops, *used, occupancy(device, spec, job.params, used[0])])


def _rounded(gflops: float) -> float:
    """With 4 significant digits, and as a whole number from 1,000 on."""
    short = float(f"{gflops:.4g}")
    return int(short) if short >= 1000 else short


def occupancy(device: Device, spec: KernelSpec, params: dict[str, int], registers: int | None) -> int | None:
    """Work-items that a multiprocessor of the device holds at once, in per cent; None if `registers` is not known."""
    if registers is None:
        return None
    known = (model.H200, model.K40M)  # OpenCL reports less than the whole local memory of a multiprocessor
    chip = next((c for c in known if c.name == device.name), None) or model.multiprocessor(device)
    across, down = spec.local_size(params)
    groups = min(model.occupancy(chip, across * down, registers, spec.local_memory(params)).values())
    return round(100 * groups * across * down / chip.work_items)


class _Crew:
    """Threads with a child each, which take batches of jobs until none is left.

    On a processor there is one child only: compiling would take the time of the kernels.
    """

    def __init__(self, device: Device, batches: list[list[Job]]):
        cores = min(MOST_CHILDREN, os.cpu_count() or 1) if device.kind == "GPU" else 1
        self._batches: queue.SimpleQueue[list[Job]] = queue.SimpleQueue()
        for batch in batches:
            self._batches.put(batch)
        self._done: queue.SimpleQueue[tuple[Job, dict[str, Any]]] = queue.SimpleQueue()
        self._failed: RuntimeError | None = None
        self._turn = threading.Lock()  # the device runs one setting at a time
        self._stopped = threading.Event()
        fitting = _fitting(device, max((job.size for batch in batches for job in batch), default=1))
        self._children = [_Child(device) for _ in range(min(cores, fitting, max(1, len(batches))))]
        self._threads = [threading.Thread(target=self._work, args=(child,)) for child in self._children]

    def results(self, end: float) -> Iterator[tuple[Job, dict[str, Any]]]:
        """What is measured, as it comes; no job begins after `end`, in seconds of `time.monotonic`."""
        for thread in self._threads if time.monotonic() < end else ():
            thread.start()
        while any(thread.is_alive() for thread in self._threads) or not self._done.empty():
            if time.monotonic() > end:
                self._stopped.set()
            if self._failed or time.monotonic() > end + GRACE:
                break
            with suppress(queue.Empty):
                yield self._done.get(timeout=0.5)
        if self._failed:
            raise self._failed

    def stop(self) -> None:
        """Give up what is under way."""
        self._stopped.set()
        for child in self._children:
            child.close()

    def _work(self, child: _Child) -> None:
        try:
            self._take(child)
        except RuntimeError as error:
            self._failed = error
        finally:
            child.close()

    def _take(self, child: _Child) -> None:
        """Take batches until none is left."""
        while not self._stopped.is_set():
            try:
                batch = self._batches.get_nowait()
            except queue.Empty:
                break
            for job in batch:
                if self._stopped.is_set():
                    break
                measured = self._measure(child, job)
                if not child.closed:  # what an interrupt has stopped is no answer
                    self._done.put((job, measured))

    def _measure(self, child: _Child, job: Job) -> dict[str, Any]:
        found = child.ask("compile", **job._asdict())
        if "problem" not in found:
            with self._turn:
                found |= child.ask("time")
        if "problem" not in found:
            found |= child.ask("check")
        return found


def _fitting(device: Device, size: int) -> int:
    """How many children's matrices the device's memory holds: four inputs, two results, and copies for the edges."""
    return max(1, device.memory // (12 * 4 * size**2))


class _Child:
    """A child process that takes one request per line. It is started when first asked, and again if it has died."""

    def __init__(self, device: Device):
        self.closed = False
        self._lock = threading.Lock()
        self._command = [sys.executable, "-m", "gemmlab.bench.recorder", str(device.index)]
        # what comes from a cache has no build log, and 8,000 binaries are too many to keep
        extra = {
            "CUDA_CACHE_DISABLE": "1",
            "PYOPENCL_NO_CACHE": "1",
            "PYTHONPATH": os.pathsep.join(filter(None, sys.path)),  # it imports what its parent imports
            "OPENBLAS_NUM_THREADS": "1",
        }
        if "nvidia" in device.features:
            extra["PYOPENCL_BUILD_OPTIONS"] = "-cl-nv-verbose"  # registers and spills in the build log
        self._environment = {**os.environ, **extra}
        self._process: subprocess.Popen[str] | None = None

    def ask(self, step: str, **arguments: Any) -> dict[str, Any]:
        """The child's answer; a problem if it dies, or takes longer than the step may (see `LIMITS`).

        Raises:
            RuntimeError: if the child does not even start.
        """
        if self._process is None or self._process.poll() is not None:
            self._start()
        return self._exchange(step, {"step": step, **arguments})

    def _exchange(self, step: str, request: dict[str, Any] | None) -> dict[str, Any]:
        """Send a request, if there is one, and wait for the next line."""
        process, start = self._process, time.monotonic()
        if process is None or self.closed:
            return {"problem": "interrupted"}
        assert process.stdin and process.stdout
        alarm = threading.Timer(LIMITS[step], process.kill)
        alarm.start()
        try:
            if request:
                process.stdin.write(json.dumps(request) + "\n")
                process.stdin.flush()
            line = process.stdout.readline()
        except OSError:  # it is gone
            line = ""
        alarm.cancel()
        if not line:
            code, late = process.wait(), time.monotonic() - start >= LIMITS[step]
            why = f"took over {LIMITS[step]:g} s" if late else f"ended its process with code {code}"
            return {"problem": f"the step {step!r} {why}"}
        answer = json.loads(line)
        if answer.get("ends"):
            process.wait()
        return answer

    def _start(self) -> None:
        with self._lock:
            if self.closed:
                return
            # in a session of its own, so that Ctrl-C reaches the parent alone
            self._process = subprocess.Popen(self._command, env=self._environment, text=True, stdin=subprocess.PIPE,
                                             stdout=subprocess.PIPE, start_new_session=True)  # fmt: skip
        greeting = self._exchange("start", None)
        if "problem" in greeting and not self.closed:
            raise RuntimeError(f"a child process for the compiler does not start: {greeting['problem']}")

    def close(self) -> None:
        """End the child; no answer comes from it any more."""
        with self._lock:
            self.closed = True
            if self._process is not None:
                self._process.kill()
                self._process.wait()


# What happens in a child.


class _Inputs:
    """Matrices of one size on a device: exact ones with the test of their product, and random ones for timing."""

    def __init__(self, device: Device, size: int):
        self.problem = Problem.compact(size, size, size)
        a, b = check.exact_inputs(size, size, size)
        # Freivalds' check as in `check.exact_large`: C x must equal A (B x), which is worked out only once
        self._x = np.random.default_rng(0).integers(-512, 512, (size, 3)).astype(np.float64)
        self._expected = a @ (b @ self._x)
        self.exact = timing.upload(device, a), timing.upload(device, b)
        u, v = check.random_inputs(size, size, size)
        self.random = timing.upload(device, u), timing.upload(device, v)

    def right(self, c: np.ndarray) -> bool:
        """Whether C (m x n) is the product of the exact matrices; a NaN never is."""
        return np.array_equal(c @ self._x, self._expected)


class _Bench:
    """Compiles, times and checks a setting, one step per request."""

    def __init__(self, device: Device):
        self.device = device
        self._product: timing.Product | None = None
        self._inputs_of = lru_cache(maxsize=1)(lambda size: _Inputs(device, size))

    def compile(self, kernel: Key, params: dict[str, int], size: int) -> dict[str, Any]:
        """Compile, and have the matrices ready, while another child has the device."""
        self._product = None  # its memory is free for others
        self._kernel = launch.kernel(kernel, params, self.device)
        self._inputs = self._inputs_of(size)
        used = ptx.in_log(ptx.build_log(self._kernel)) if "nvidia" in self.device.features else None
        return {"used": used}

    def time(self) -> dict[str, Any]:
        """Milliseconds of the bare kernel on random matrices, after a first run on the exact ones, which is checked."""
        self._product = self._of(self._inputs.exact)
        first = dict(self._product.run())["gemm"]
        if first > SLOW:
            return {"ms": [first]}
        product = self._of(self._inputs.random)
        runs = int(min(MOST_RUNS, max(1.0, TIMED / first)))
        ms = [dict(product.run())["gemm"] for _ in range(runs)]
        if max(first, *ms) > AGREE * min(first, *ms):
            ms += [dict(product.run())["gemm"] for _ in range(MOST_RUNS - runs)]
        return {"ms": ms}

    def _of(self, operands: tuple[cl.Buffer, cl.Buffer]) -> timing.Product:
        return timing.Product(self._kernel, self.device, self._inputs.problem, *operands)

    def check(self) -> dict[str, Any]:
        """Whether the first product of the last timing was right; nothing but reading it back needs the device."""
        assert self._product is not None
        if not self._product.frame.untouched():
            return {"problem": "wrong: it writes outside C"}
        right = self._inputs.right(self._product.result())
        return {} if right else {"problem": "wrong: C is not the product of A and B"}


def _serve(requests: IO[str], answers: IO[str], bench: _Bench) -> None:
    """Say that all is ready, and answer one request per line."""
    answers.write("{}\n")
    answers.flush()
    for line in requests:
        request = json.loads(line)
        step = request.pop("step")
        try:
            answer = getattr(bench, step)(**request)
        except cl.Error as error:  # a context that has failed once may fail for ever
            answer = {"problem": f"the device gave up: {error}", "ends": True}
        except Exception as error:  # every failure is an answer
            answer = {"problem": f"{error}"}
        answers.write(json.dumps(answer) + "\n")
        answers.flush()
        if answer.get("ends"):
            os._exit(1)


if __name__ == "__main__":
    _answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a compiler prints must not mix with the answers
    _serve(sys.stdin, _answers, _Bench(find_device(sys.argv[1])))
