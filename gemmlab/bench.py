"""Check a kernel, then time it honestly."""

from __future__ import annotations

import statistics
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pyopencl as cl

from . import check
from .catalog import find
from .device import Device, find_device
from .launch import Kernel
from .pipeline import Matrix, Session, demand, fits
from .record import Result

#: Bytes of patterned memory on either side of C; damage there means that a kernel wrote out of bounds.
FRAME = 16384
_PATTERN = np.float32(-7.25e-19)


class TooSlow(RuntimeError):
    """A run would take longer than allowed; nothing was run at the full size."""


class Superseded(Exception):
    """Somebody wants something newer: the job was given up between two steps."""


def measure(
    kernel: int = 1,
    m: int = 512,
    n: int | None = None,
    k: int | None = None,
    *,
    params: dict[str, int] | None = None,
    device: Device | int | str | None = None,
    repeats: int | None = None,
    source: str | None = None,
    most_seconds: float | None = None,
    on_step: Callable[[str], None] = lambda step: None,
) -> Result:
    """Build a kernel, check it, then time it.

    Args:
        kernel: its number.
        m, n, k: sizes of the column-major product; n and k default to m. Any size: it is padded where needed.
        params: the kernel's parameters; missing ones take their defaults.
        device: a Device, an index or part of a name; the preferred device by default.
        repeats: timed runs after the warm-up; by default as many as fit 80 ms, from 3 to 50.
        source: other OpenCL C text in place of the kernel's own, with the same parameters.
        most_seconds: refuse with TooSlow what is predicted, from smaller runs, to take longer in all.
        on_step: called with "compile", "predict", "check", "time"; may raise Superseded to give up.

    Raises:
        ValueError, ParameterError, MemoryError, BuildError, TooSlow.
    """
    n, k = (m if size is None else size for size in (n, k))
    for name, size in (("m", m), ("n", n), ("k", k)):
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
            raise ValueError(f"{name} must be a whole number from 1 on, not {size!r}")
    device, spec = find_device(device), find(kernel)
    params = spec.validate(params, device.limits) if params is not None else spec.fit(device.limits)
    pieces = {"the pieces of tiles": spec.value(spec.pieces, params) if spec.pieces else 0}
    fits(device, demand(int(m), int(n), int(k), spec.multiples(params)) | pieces, spec.wide)
    on_step("compile")
    built = Kernel(spec, params, device, device.context, source)
    bench = _Bench(built, device)
    if most_seconds is not None:
        on_step("predict")
        bench.refuse_slow((m, n, k), most_seconds)
    on_step("check")
    problem = (_kept_problem if m * n * k <= 2**28 else _Problem)(m, n, k)
    verdict, c_error, framed = bench.check(problem)
    on_step("time")
    runs = bench.time(problem, repeats)
    words = str(verdict) if framed else f"wrong: it writes outside C; inside, {verdict}"
    return Result(
        kernel=spec.number,
        params=built.params,
        m=int(m),
        n=int(n),
        k=int(k),
        ok=verdict.ok and c_error.ok and framed,
        verdict=words if c_error.ok or not verdict.ok else f"{words}, but inaccurate: {c_error}",
        error=c_error.error,
        bound=c_error.bound,
        kernel_ms=_spread([dict(run)["gemm"] for run in runs]),
        pipeline_ms=_spread([sum(ms for _, ms in run) for run in runs]),
        passes_ms=_passes(runs),
        repeats=len(runs),
        build_seconds=built.build_seconds,
        path=built.path,
        device=device.facts(),
    )


class _Bench:
    """The steps of a measurement of one built kernel."""

    def __init__(self, kernel: Kernel, device: Device):
        self.kernel, self.device = kernel, device

    def upload(self, a: np.ndarray, b: np.ndarray) -> tuple[Matrix, Matrix]:
        flags = cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR
        return tuple(Matrix(cl.Buffer(self.device.context, flags, hostbuf=x.T), *x.shape, x.shape[0]) for x in (a, b))

    def frame(self, m: int, n: int) -> _Frame:
        """Memory for the C that the kernel writes, whole tiles, with a patterned frame around it."""
        rows, cols = (-(-size // tile) * tile for size, tile in zip((m, n), self.kernel.multiples[:2], strict=True))
        return _Frame(self.device, rows, cols)

    def run(self, a: Matrix, b: Matrix, frame: _Frame):
        """The product once, within the frame: C and the milliseconds of each pass."""
        session = Session(self.device.queue, self.device)
        m, n = a.rows, b.cols
        whole = (m, n) == (frame.rows, frame.cols)
        out = Matrix(frame.inside, m, n, m) if whole else session.new(m, n)
        session.gemm(self.kernel, a, False, b, False, out, frame.inside)
        self.device.queue.finish()
        return out, [(name, (event.profile.end - event.profile.start) * 1e-6) for name, event in session.events]

    def read(self, c: Matrix) -> np.ndarray:
        host = np.empty((c.cols, c.rows), np.float32)
        cl.enqueue_copy(self.device.queue, host, c.buffer)
        return host.T

    def check(self, problem: _Problem):
        """The exact verdict, the accuracy verdict, and whether the memory around C is untouched; also warms up."""
        frame = self.frame(problem.a.shape[0], problem.b.shape[1])
        verdict = problem.exact(self.read(self.run(*self.upload(problem.a, problem.b), frame)[0]))
        framed = frame.untouched()
        frame.clear()
        c, self.warm = self.run(*self.upload(problem.u, problem.v), frame)
        spec = self.kernel.spec
        return verdict, problem.accurate(self.read(c), spec.value(spec.product_error, self.kernel.params)), framed

    def time(self, problem: _Problem, repeats: int | None):
        """The passes of each timed run; by default as many as fit 80 ms, from 3 to 50."""
        a, b = self.upload(problem.u, problem.v)
        frame = self.frame(a.rows, b.cols)
        if repeats is None:
            repeats = int(min(50, max(3, 80 / max(sum(ms for _, ms in self.warm), 1e-3))))
        return [self.run(a, b, frame)[1] for _ in range(repeats)]

    def refuse_slow(self, sizes: tuple[int, int, int], most: float) -> None:
        """Predict a run from smaller ones; raise TooSlow if check and timing would pass `most` seconds.

        Small products leave a GPU half idle, so the prediction starts at 128 and doubles while
        that still makes the device faster.
        """
        whole, side, rate = sizes[0] * sizes[1] * sizes[2], 128, 0.0
        smallest = self.kernel.spec.least(self.kernel.params)
        while True:
            small = tuple(min(size, max(side, least)) for size, least in zip(sizes, smallest, strict=True))
            work = small[0] * small[1] * small[2]
            if work == whole:
                return
            a, b = self.upload(*check.random_inputs(*small))
            frame = self.frame(a.rows, b.cols)
            self.run(a, b, frame)
            seconds = min(sum(ms for _, ms in self.run(a, b, frame)[1]) for _ in range(2)) * 1e-3
            faster, rate = work / seconds > 1.2 * rate, work / seconds
            if 6 * whole / rate <= most:
                return
            if not faster or 6 * 8 * work / rate > most:
                fits = int((most * rate / 6) ** (1 / 3))
                raise TooSlow(
                    f"{' x '.join(map(str, sizes))} would take about {whole / rate:.1f} s a run with these settings; "
                    f"here a run may take {most / 6:.2f} s, which is enough for about {fits} x {fits} x {fits}"
                )
            side *= 2


class _Problem:
    """Inputs and references of both checks. Past 2^31 multiply-adds full references would take too long:
    then the exact check multiplies by vectors, and the accuracy of 64 rows stands for all."""

    def __init__(self, m: int, n: int, k: int):
        large = m * n * k > 2**31
        self.a, self.b = check.exact_inputs(m, n, k)
        self.c = None if large else self.a @ self.b
        self.u, self.v = check.random_inputs(m, n, k)
        self.rows = np.random.default_rng(0).choice(m, min(m, 64), replace=False) if large else slice(None)
        some = self.u[self.rows]
        self.product = some.astype(np.float64) @ self.v.astype(np.float64)
        self.some = some
        self.bounds: dict[float, np.ndarray] = {}  # by what the products may be off

    def exact(self, c: np.ndarray) -> check.Verdict:
        if self.c is None and check.exact_large(c, self.a, self.b):
            return check.Verdict(True, 0.0, 0.0, 0, None)
        return check.compare(c, self.a @ self.b if self.c is None else self.c, 0.0)

    def accurate(self, c: np.ndarray, product_error: float = 0.0) -> check.Verdict:
        if product_error not in self.bounds:
            self.bounds[product_error] = check.bound(self.some, self.v, product=product_error)
        return check.compare(c[self.rows], self.product, self.bounds[product_error])


_kept_problem = lru_cache(maxsize=4)(_Problem)


class _Frame:
    """A buffer for a rows x cols C, filled with NaN, inside a larger one filled with a pattern."""

    def __init__(self, device: Device, rows: int, cols: int):
        self.queue, self.rows, self.cols, self.bytes = device.queue, rows, cols, 4 * rows * cols
        self.outside = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, self.bytes + 2 * FRAME)
        self.inside = self.outside[FRAME : FRAME + self.bytes]
        cl.enqueue_fill_buffer(self.queue, self.outside, _PATTERN, 0, self.bytes + 2 * FRAME)
        self.clear()

    def clear(self) -> None:
        """Fill C with NaN, so that an element nobody writes shows."""
        cl.enqueue_fill_buffer(self.queue, self.outside, np.float32(np.nan), FRAME, self.bytes)
        self.queue.finish()

    def untouched(self) -> bool:
        edges = np.empty((2, FRAME // 4), np.float32)
        for edge, start in zip(edges, (0, FRAME + self.bytes), strict=True):
            cl.enqueue_copy(self.queue, edge, self.outside, src_offset=start)
        return bool((edges == _PATTERN).all())


def _spread(values: list[float]) -> tuple[float, float, float]:
    return statistics.median(values), min(values), max(values)


def _passes(runs) -> dict[str, float]:
    totals: dict[str, list[float]] = {}
    for run in runs:
        sums: dict[str, float] = {}
        for name, ms in run:
            sums[name] = sums.get(name, 0.0) + ms
        for name, ms in sums.items():
            totals.setdefault(name, []).append(ms)
    return {name: statistics.median(values) for name, values in totals.items()}
