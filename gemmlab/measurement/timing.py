"""Check a kernel, then time it."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from math import prod
from numbers import Real

import numpy as np
import pyopencl as cl

from .. import check
from ..blas.plan import Builder, Matrix, check_memory
from ..blas.problem import Layout, Problem, footprint, plan
from ..caches import cached
from ..catalog import Key, find
from ..catalog.spec import KernelSpec, positive, round_up
from ..opencl.devices import Device, find_device
from ..opencl.launch import Kernel, whole
from . import peaks
from .records import Result

#: Bytes of memory with a pattern before and after C; damage there means that the kernel stored
#: outside C.
FRAME = 16384
_PATTERN = np.float32(-7.25e-19)

Passes = list[tuple[str, float]]  # names and milliseconds of the passes of one run


class TooSlow(RuntimeError):
    """A measurement is predicted to take longer than allowed; nothing was run at the full size."""


class Superseded(Exception):
    """A newer request has arrived, and the job was given up between two steps."""


def measure(  # noqa: PLR0913
    kernel: Key = 1,
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
    runs: Callable[[Product], list[Passes]] | None = None,
) -> Result:
    """Build a kernel, check it, then time it.

    Args:
        kernel: its number.
        m, n, k: sizes of the column-major product; n and k default to m. Any size is possible:
            where a kernel needs whole tiles, matrices are padded.
        params: the kernel's parameters; missing ones take their defaults.
        device: a Device, an index or part of a name; the preferred device by default.
        repeats: timed runs after the warm-up; by default as many as fit into 80 ms, from 3 to 50.
        source: OpenCL C text to use instead of the kernel's own, with the same parameters.
        most_seconds: raise TooSlow if smaller runs predict that check and timing together would
            take longer.
        on_step: called with "compile", "predict", "check" and "time" before each step; it may raise
            Superseded to give up.
        runs: runs the product as often as it wants, instead of `repeats` (see `comparison`).

    Raises:
        ValueError: for sizes or repeats that are no whole numbers from 1 on, and for a limit of no
            time.
        ParameterError: if the kernel or the device refuses the parameters.
        MemoryError: if the device has too little memory.
        BuildError: if the kernel does not compile.
        TooSlow: see most_seconds.
    """
    n, k = (m if size is None else size for size in (n, k))
    m, n, k = (positive(name, size) for name, size in (("m", m), ("n", n), ("k", k)))
    if repeats is not None:
        repeats = positive("repeats", repeats)
    if most_seconds is not None and (not isinstance(most_seconds, Real) or not most_seconds > 0):
        raise ValueError(f"most_seconds must be a positive number, not {most_seconds!r}")
    device, spec = find_device(device), find(kernel)
    params = spec.validate(params, device.limits) if params is not None else spec.fit(device.limits)
    problem = Problem.compact(m, n, k)
    check_memory(
        device, footprint(problem, plan(spec, params, problem, device.features)), spec.wide
    )
    on_step("compile")
    built = Kernel(spec, params, device, device.context, source)
    bench = _Bench(built, device, (m, n, k))
    if most_seconds is not None:
        on_step("predict")
        bench.refuse_slow(most_seconds)
    on_step("check")
    data = _data(m, n, k)
    verdict, c_error, framed = bench.check(data)
    on_step("time")
    timed = runs(bench.prepare(data.u, data.v)) if runs else bench.time(data, repeats)
    words = str(verdict) if framed else f"wrong: it writes outside C; inside C, {verdict}"
    result = Result(
        kernel=spec.number,
        params=built.params,
        m=m,
        n=n,
        k=k,
        ok=verdict.ok and c_error.ok and framed,
        verdict=words if c_error.ok or not verdict.ok else f"{words}, but inaccurate: {c_error}",
        error=c_error.error,
        bound=c_error.bound,
        kernel_ms=_spread([dict(run)["gemm"] for run in timed]),
        pipeline_ms=_spread([sum(ms for _, ms in run) for run in timed]),
        passes_ms=_passes(timed),
        repeats=len(timed),
        build_seconds=built.build_seconds + bench.first_launch,
        path=built.path,
        device=device.facts(),
    )
    peaks.note(device, result)
    return result


def compile_ahead(  # noqa: PLR0913
    kernel: Key,
    m: int,
    n: int,
    k: int,
    *,
    params: dict[str, int],
    device: Device | int | str | None = None,
    source: str | None = None,
    on_step: Callable[[str], None] = lambda step: None,
) -> float:
    """Compile a kernel and launch it once, so that a later measurement finds it in the caches of
    the runtime.

    Some runtimes, such as PoCL, compile again at the first launch. This holds for the passes around
    the kernel too.

    Args:
        kernel, m, n, k, params, device, source, on_step: as in `measure`.

    Returns:
        The seconds that it took.
    """
    start = time.perf_counter()
    device, spec = find_device(device), find(kernel)
    on_step("compile")
    bench = _Bench(Kernel(spec, params, device, device.context, source), device, (m, n, k))
    on_step("predict")
    rows, cols, steps = bench.smaller(128)
    bench.prepare(*check.random_inputs(rows, cols, steps)).run()
    return time.perf_counter() - start


#: Runs that a prediction of the time of a measurement counts: two checks, a warm-up, and at least
#: three timed runs.
RUNS = 6


def smaller(
    spec: KernelSpec, params: Mapping[str, int], sizes: Sequence[int], side: int
) -> list[int]:
    """Sizes for a smaller product that takes the same passes: it is padded where the whole one is.

    So what it compiles is all that the whole product needs, and its rate is that of the same work.

    Args:
        spec, params: the kernel, and all its parameters.
        sizes: those of the whole product.
        side: the largest of the smaller product; a unit of the kernel may be larger, and none of
            `sizes` is exceeded.
    """
    found = []
    for size, few, unit in zip(sizes, spec.minimum_sizes(params), spec.units(params), strict=True):
        near = max(side, few)
        if size % unit == 0:
            near = round_up(near, unit)
        elif near % unit == 0:
            # one less is padded to as much; but a kernel that shifts its tiles needs a whole one
            near += 1 if near == few and spec.edges == "shift" else -1
        found.append(min(size, near))
    return found


class _Bench:
    """The steps of a measurement of one built kernel."""

    def __init__(self, kernel: Kernel, device: Device, sizes: tuple[int, int, int]):
        self.kernel, self.device, self.sizes = kernel, device, sizes
        self.warm: list[tuple[str, float]] = []
        self.seconds: list[float] = []  # of the first launches, in wall-clock time

    @property
    def first_launch(self) -> float:
        """Seconds by which the first launch took longer than the second: some runtimes compile only
        then.
        """
        return max(0.0, self.seconds[0] - self.seconds[1])

    def smaller(self, side: int) -> list[int]:
        """See `smaller`."""
        return smaller(self.kernel.spec, self.kernel.params, self.sizes, side)

    def run(self, product: Product) -> list[tuple[str, float]]:
        """Multiply once, and note how long it took."""
        start = time.perf_counter()
        passes = product.run()
        self.seconds.append(time.perf_counter() - start)
        return passes

    def prepare(self, a: np.ndarray, b: np.ndarray) -> Product:
        """The product of a (m x k) and b (k x n), column-major, ready to run, with a new frame
        around C.
        """
        problem = Problem.compact(a.shape[0], b.shape[1], a.shape[1])
        return Product(
            self.kernel, self.device, problem, upload(self.device, a), upload(self.device, b)
        )

    def check(self, data: _Data) -> tuple[check.Verdict, check.Verdict, bool]:
        """The exact verdict, the accuracy verdict, and whether the frame is intact. This also warms
        the device up.
        """
        exact = self.prepare(data.a, data.b)
        self.run(exact)
        verdict, framed = data.exact(exact.result()), exact.frame.untouched()
        accurate = self.prepare(data.u, data.v)
        self.warm = self.run(accurate)
        error = self.kernel.spec.product_error(self.kernel.params)
        return verdict, data.accurate(accurate.result(), error), framed

    def time(self, data: _Data, repeats: int | None) -> list[list[tuple[str, float]]]:
        """Run `repeats` times; return the passes of each run as (name, milliseconds)."""
        product = self.prepare(data.u, data.v)
        if repeats is None:
            repeats = int(min(50, max(3, 80 / max(sum(ms for _, ms in self.warm), 1e-3))))
        return [product.run() for _ in range(repeats)]

    def refuse_slow(self, most: float) -> None:
        """Predict the time from smaller runs; raise TooSlow if check and timing would take more
        than `most` seconds.

        Small products leave a GPU partly idle, so the prediction starts at a size of 128 and
        doubles it as long as the rate still rises.
        """
        total, side, rate = prod(self.sizes), 128, 0.0
        while True:
            small = self.smaller(side)
            work = prod(small)
            if work == total:
                return
            product = self.prepare(*check.random_inputs(small[0], small[1], small[2]))
            self.run(product)
            seconds = min(sum(ms for _, ms in self.run(product)) for _ in range(2)) * 1e-3
            faster, rate = work / seconds > 1.2 * rate, work / seconds
            if RUNS * total / rate <= most:
                return
            if not faster or RUNS * 8 * work / rate > most:
                side = int((most * rate / RUNS) ** (1 / 3))
                raise TooSlow(
                    f"{' x '.join(map(str, self.sizes))} would take about {total / rate:.1f} s per "
                    f"run with these settings; the limit here is {most / RUNS:.2f} s per run, "
                    f"which is enough for about {side} x {side} x {side}"
                )
            side *= 2


def prepare(kernel: Kernel, device: Device, sizes: tuple[int, int, int]) -> Product:
    """A product of random matrices, ready to run."""
    data = _data(*sizes)
    return _Bench(kernel, device, sizes).prepare(data.u, data.v)


def upload(device: Device, x: np.ndarray) -> cl.Buffer:
    """A copy of a column-major matrix on the device."""
    return cl.Buffer(
        device.context, cl.mem_flags.READ_ONLY | cl.mem_flags.COPY_HOST_PTR, hostbuf=x.T
    )


class Product:
    """One product of compact column-major matrices on the device, with a frame around its C.

    Args:
        kernel: what multiplies.
        device: where.
        problem: the sizes.
        a, b: the buffers of A (M x K) and B (K x N).
    """

    def __init__(
        self, kernel: Kernel, device: Device, problem: Problem, a: cl.Buffer, b: cl.Buffer
    ):
        self.kernel, self.device, self.problem, self.a, self.b = kernel, device, problem, a, b
        sizes = self.problem.m, self.problem.n, self.problem.k
        rows, cols, _ = whole(*sizes, kernel.multiples)
        self.frame = _Frame(device, rows, cols)
        layout = Layout.compact(self.problem.m, self.problem.n)
        # the kernel may write whole tiles into the frame; a smaller C is cut out of them
        inside = (rows, cols) == sizes[:2]
        outside = (
            None if inside else cl.Buffer(device.context, cl.mem_flags.READ_WRITE, 4 * layout.room)
        )
        self.out = Matrix(self.frame.inside if inside else outside, layout)
        builder = Builder(device.timed_queue, device)
        builder.multiply(kernel, problem, a, b, self.out, self.frame.inside)
        self._plan = builder.plan()

    def run(self) -> list[tuple[str, float]]:
        """Multiply once; return the passes as (name, milliseconds)."""
        queue = self.device.timed_queue
        events = self._plan(queue)
        queue.finish()
        return [(name, (event.profile.end - event.profile.start) * 1e-6) for name, event in events]

    def result(self) -> np.ndarray:
        """C on the host: m x n, column-major."""
        host = np.empty((self.problem.n, self.problem.m), np.float32)
        cl.enqueue_copy(self.device.queue, host, self.out.buffer)
        return host.T


class _Data:
    """Inputs and references of both checks.

    Above 2^31 multiply-adds, references for the whole of C would take too long: then the exact
    check multiplies by vectors (`check.exact_large`), and accuracy is checked on 64 rows.
    """

    def __init__(self, m: int, n: int, k: int):
        large = m * n * k > 2**31
        self.a, self.b = check.exact_inputs(m, n, k)
        self.c = None if large else self.a @ self.b
        self.u, self.v = check.random_inputs(m, n, k)
        self.rows = (
            np.random.default_rng(0).choice(m, min(m, 64), replace=False) if large else slice(None)
        )
        some = self.u[self.rows]
        self.product = some.astype(np.float64) @ self.v.astype(np.float64)
        self.some = some
        self.bounds: dict[float, np.ndarray] = {}  # by the error that single products may have

    def exact(self, c: np.ndarray) -> check.Verdict:
        if self.c is None and check.exact_large(c, self.a, self.b):
            return check.Verdict(True, 0.0, 0.0, 0, None)
        return check.compare(c, self.a @ self.b if self.c is None else self.c, 0.0)

    def accurate(self, c: np.ndarray, product_error: float = 0.0) -> check.Verdict:
        if product_error not in self.bounds:
            self.bounds[product_error] = check.bound(self.some, self.v, product=product_error)
        return check.compare(c[self.rows], self.product, self.bounds[product_error])


_small_data = cached(4)(_Data)
_large_data = cached(1)(_Data)


def _data(m: int, n: int, k: int) -> _Data:
    """Those of a size; kept for the next measurement, since at 4096 it takes seconds to make them.

    The last large ones stay, if they are not larger than at 4096, where they take 256 MB.
    """
    work = m * n * k
    return (_small_data if work <= 2**28 else _large_data if work <= 2**36 else _Data)(m, n, k)


class _Frame:
    """A buffer for a C of rows x cols, filled with NaN, inside a larger buffer filled with a
    pattern.
    """

    def __init__(self, device: Device, rows: int, cols: int):
        self.queue, self.bytes = device.queue, 4 * rows * cols
        self.outside = cl.Buffer(device.context, cl.mem_flags.READ_WRITE, self.bytes + 2 * FRAME)
        self.inside = self.outside[FRAME : FRAME + self.bytes]
        cl.enqueue_fill_buffer(self.queue, self.outside, _PATTERN, 0, self.bytes + 2 * FRAME)
        # C starts as NaN, so that an element that is never written is noticed
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
