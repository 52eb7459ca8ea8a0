"""Check a kernel, then time it."""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from math import prod
from numbers import Real
from typing import Any

import numpy as np

from .. import check
from ..blas.choose import choose
from ..blas.plan import check_memory
from ..blas.product import FAMILY, PACKED, Product
from ..caches import cached
from ..generate.candidates import Sizes
from ..ladder import Key, find
from ..ladder.spec import KernelSpec, positive
from ..model import gflops
from ..opencl.build import WorkGroupError
from ..opencl.devices import Device, find_device
from ..opencl.launch import Kernel
from . import clock, peaks
from .framed import Chosen, FramedProduct
from .records import Result

#: Runs that a prediction counts: two checks, a warm-up, and at least three timed runs.
RUNS = 6
#: Multiply-adds above which the reference of a whole product takes too long; in a browser NumPy has
#: no BLAS.
LARGE = 2**25 if sys.platform == "emscripten" else 2**31
#: The side of the smallest product that predicts the time of a larger one.
SIDE = 128


class TooSlow(RuntimeError):
    """A measurement is predicted to take longer than allowed; nothing was run at the full size."""


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
        on_step: called with "compile", "predict", "check" and, if the result is right, "time",
            before each step.

    Raises:
        ValueError: for sizes or repeats that are not positive whole numbers, and for a limit that
            is not positive; for a `source` whose parameters are not those of a product.
        ParameterError: if the kernel or the device refuses the parameters.
        MemoryError: if the device has too little memory.
        BuildError: if the kernel does not compile.
        TooSlow: see most_seconds.
    """
    if repeats is not None:
        repeats = positive("repeats", repeats)
    prepared = prepare(
        kernel, m, n, k, params=params, device=device, source=source,
        most_seconds=most_seconds, on_step=on_step,
    )  # fmt: skip
    prepared.runs.repeat(repeats)
    return prepared.result()


def prepare(  # noqa: PLR0913
    kernel: Key,
    m: int,
    n: int | None = None,
    k: int | None = None,
    *,
    params: dict[str, int] | None = None,
    device: Device | int | str | None = None,
    source: str | None = None,
    most_seconds: float | None = None,
    on_step: Callable[[str], None] = lambda step: None,
) -> Prepared:
    """Build a kernel and check it. Args and errors are those of `measure`."""
    n, k = (m if size is None else size for size in (n, k))
    sizes = m, n, k = positive("m", m), positive("n", n), positive("k", k)
    if most_seconds is not None and (not isinstance(most_seconds, Real) or not most_seconds > 0):
        raise ValueError(f"most_seconds must be a positive number, not {most_seconds!r}")
    device, spec = find_device(device), find(kernel)
    params = None if params is None else spec.validate(params, device.limits)
    check_memory(device, {"A": m * k, "B": k * n, "C": m * n}, spec.wide)
    on_step("compile")
    built = _build(spec, params, device, source)
    if most_seconds is not None:
        on_step("predict")
        _refuse_slow(built, device, sizes, most_seconds)
    return Prepared(built, spec.number, device, sizes, on_step)


def measure_auto(
    m: int,
    n: int,
    k: int,
    device: Device | int | str | None = None,
    repeats: int | None = None,
) -> Result:
    """Check what `matmul` runs for a column-major product in float32, then time it.

    Args and errors are those of `measure`. The result names the kernel that `matmul` chooses; its
    `pipeline_ms` includes packing.
    """
    sizes = m, n, k = positive("m", m), positive("n", n), positive("k", k)
    device = find_device(device)
    chosen = choose(Product.compact(*sizes), device)
    if chosen.kernel not in (PACKED, FAMILY):
        return measure(chosen.kernel, m, n, k, params=chosen.params, device=device, repeats=repeats)
    repeats = None if repeats is None else positive("repeats", repeats)
    check_memory(device, {"A": m * k, "B": k * n, "C": m * n})
    prepared = Prepared(Chosen.of(chosen, device, sizes), chosen.kernel, device, sizes)
    prepared.runs.repeat(repeats)
    return prepared.result()


class Prepared:
    """A kernel that was checked, and whose `runs` can be timed."""

    def __init__(
        self,
        built: Kernel | Chosen,
        key: Key,
        device: Device,
        sizes: Sizes,
        on_step: Callable[[str], None] = lambda step: None,
    ):
        self._built, self._key, self._device, self._sizes = built, key, device, sizes
        on_step("check")
        data = _data(*sizes)
        self._exact, self._accurate, self._framed = _verdicts(built, device, data)
        self.right: bool = self._exact.ok and self._accurate.ok and self._framed
        if self.right:
            on_step("time")
        self.runs: Runs = Runs(FramedProduct.of(built, device, data.u, data.v))

    def result(self) -> Result:
        """What the check and the `runs` so far show."""
        m, n, k = self._sizes
        exact, accurate, built = self._exact, self._accurate, self._built
        times = self.runs.milliseconds
        result = Result(
            kernel=self._key,
            params=built.params,
            m=m,
            n=n,
            k=k,
            ok=self.right,
            verdict=self._verdict(),
            error=accurate.error,
            bound=accurate.bound,
            kernel_ms=_spread([run["gemm"] for run in times]),
            pipeline_ms=_spread([sum(run.values()) for run in times]),
            passes_ms={name: statistics.median(run[name] for run in times) for name in times[0]},
            repeats=len(times),
            build_seconds=built.build_seconds,
            path=built.path,
            device=self._device.facts(),
            first_wrong=exact.first and exact.first[:2],
        )
        peaks.note(self._device, result)
        return result

    def _verdict(self) -> str:
        """The outcome in words."""
        exact, accurate = self._exact, self._accurate
        verdict = str(exact)
        if not self._framed:
            verdict = f"wrong: it writes outside C; inside C, {exact}"
        if exact.ok and not accurate.ok:
            extent = str(accurate).removeprefix("wrong: ")
            verdict = f"wrong: too inaccurate with random inputs: {extent}"
        if not self.runs.credible:
            verdict += "; wall-clock times, because this driver's clock contradicts them"
        return verdict


def _build(
    spec: KernelSpec, params: dict[str, int] | None, device: Device, source: str | None
) -> Kernel:
    """The kernel with these parameters, or with those nearest to its defaults that fit."""
    try:
        fitting = spec.fit(device.limits) if params is None else params
        return Kernel(spec, fitting, device, device.context, source)
    except WorkGroupError as error:
        if params is not None:
            raise
        fitting = spec.fit(device.limited(error.limit).limits)
        return Kernel(spec, fitting, device, device.context, source)


def _verdicts(
    kernel: Kernel | Chosen, device: Device, data: _Data
) -> tuple[check.Verdict, check.Verdict, bool]:
    """The exact verdict, the accuracy verdict, and whether the frame is intact."""
    product = FramedProduct.of(kernel, device, data.a, data.b)
    product.run()
    exact, framed = data.exact(product.result()), product.frame.is_intact()
    product = FramedProduct.of(kernel, device, data.u, data.v)
    product.run()
    error = kernel.spec.product_error(kernel.params) if isinstance(kernel, Kernel) else 0.0
    accurate = data.accurate(product.result(), error)
    return exact, accurate, framed


def _refuse_slow(kernel: Kernel, device: Device, sizes: Sizes, most: float) -> None:
    """Raise TooSlow if smaller runs predict more than `most` seconds for check and timing.

    Small products leave a GPU partly idle, so their sides are doubled until the prediction is low
    enough, or until the next one would take too long itself.
    """
    total, side, least = prod(sizes), SIDE, kernel.spec.minimum_sizes(kernel.params)
    while True:
        m, n, k = (
            min(size, max(side, minimum)) for size, minimum in zip(sizes, least, strict=True)
        )
        work = m * n * k
        if work >= total:
            return
        product = FramedProduct.of(kernel, device, *check.random_inputs(m, n, k))
        product.run()
        seconds = min(sum(product.run().values()) for _ in range(2)) * 1e-3
        predicted = seconds * total / work
        if RUNS * predicted <= most:
            return
        if RUNS * 8 * seconds > most:
            enough = int((most / RUNS / seconds * work) ** (1 / 3))
            raise TooSlow(
                f"{' x '.join(map(str, sizes))} would take about {predicted:.1f} s per "
                f"run with these settings; the limit here is {most / RUNS:.2f} s per run, "
                f"which is enough for about {enough} x {enough} x {enough}"
            )
        side *= 2


class _Data:
    """Inputs and references of both checks.

    Above `LARGE`, references for the whole of C would take too long: then the exact check
    multiplies by vectors (`check.exact_large`), and accuracy is checked on 64 rows.
    """

    def __init__(self, m: int, n: int, k: int):
        large = m * n * k > LARGE
        self.a, self.b = check.exact_inputs(m, n, k)
        self._c = None if large else self.a @ self.b
        self.u, self.v = check.random_inputs(m, n, k)
        self._rows: Any = slice(None)
        if large:
            self._rows = np.random.default_rng(0).choice(m, min(m, 64), replace=False)
        self._some = self.u[self._rows]
        self._product = self._some.astype(np.float64) @ self.v.astype(np.float64)

    def exact(self, c: np.ndarray) -> check.Verdict:
        if self._c is None and check.exact_large(c, self.a, self.b):
            return check.Verdict(True, 0.0, 0.0, 0, None)
        return check.compare(c, self.a @ self.b if self._c is None else self._c, 0.0)

    def accurate(self, c: np.ndarray, product_error: float) -> check.Verdict:
        bound = check.bound(self._some, self.v, product=product_error)
        return check.compare(c[self._rows], self._product, bound)


_last_data = cached(1)(_Data)


def _data(m: int, n: int, k: int) -> _Data:
    """The last ones are kept: at 4096 they take seconds, and 256 MB. Larger ones are not."""
    return (_last_data if m * n * k <= 2**36 else _Data)(m, n, k)


def random_product(kernel: Kernel, device: Device, sizes: Sizes) -> FramedProduct:
    """Return the product of the random matrices that `measure` times."""
    data = _data(*sizes)
    return FramedProduct.of(kernel, device, data.u, data.v)


class Runs:
    """Runs of one product, after one to warm up, which took `seconds`. Where the device's clock has
    large steps, a run is the mean of several launches.

    If that run shows that the device's clock is not `credible`, all wall-clock time counts as the
    kernel's, passes included.
    """

    def __init__(self, product: FramedProduct):
        self._product, self._launches = product, 1
        passes, wall = self._run()
        self._launches = clock.launches_a_run(product.device, wall)
        if self._launches > 1:
            passes, wall = self._run()
        seconds = 1e-3 * sum(passes.values())
        self.credible: bool = clock.credible(seconds, wall)
        self.seconds: float = seconds if self.credible else wall
        self.milliseconds: list[dict[str, float]] = []  # of each pass, by run

    def once(self) -> float:
        """Run; the kernel's GFLOPS."""
        passes, wall = self._run()
        if not self.credible:
            passes = dict.fromkeys(passes, 0.0) | {"gemm": 1e3 * wall}
        self.milliseconds.append(passes)
        return gflops(*self._product.problem.sizes, 1e-3 * passes["gemm"])

    def repeat(self, repeats: int | None) -> None:
        """Run so many times; by default as many as fit into 80 ms, from 3 to 50."""
        for _ in range(repeats or int(min(50, max(3, 0.08 / self.seconds)))):
            self.once()

    def _run(self) -> tuple[dict[str, float], float]:
        """The milliseconds of each pass on the device, and wall-clock seconds."""
        start = time.perf_counter()
        passes = self._product.run(self._launches)
        return passes, (time.perf_counter() - start) / self._launches


def _spread(values: list[float]) -> tuple[float, float, float]:
    return statistics.median(values), min(values), max(values)
