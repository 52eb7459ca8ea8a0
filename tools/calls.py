"""Whole calls of `matmul` alternating with those of PyTorch (on a GPU) or NumPy (on a CPU).

Whatever slows the machine for a while then slows both. A round lasts from before its first call to
the last result. In device time, calls are queued behind long products: the device never waits for
the host, and what counts is the time from the end of those products to the last result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from gemmlab import matmul
from gemmlab.generate import choice
from gemmlab.measurement import clock
from gemmlab.measurement.tuned import compile_ahead
from gemmlab.opencl.devices import Device

#: Rounds of a comparison; the median counts.
ROUNDS = 5
#: Seconds of a round, as far as `CALLS` allows.
ROUND_SECONDS = 0.05
#: Calls of a round at most: a driver does not queue any number.
CALLS = clock.MOST_CALLS
#: Rounds where precisions are compared, which often launch the same kernel.
MOST_ROUNDS = 25
#: Seconds after which the threads of OpenBLAS, which wait busily after a product, are asleep.
PAUSE = 0.2
#: Side of the products that keep a device busy while calls are queued.
BUSY = 4096
#: The longest side of a random product.
LONGEST = 16384
#: The most operations of a random product: it takes less than a second.
MOST_FLOPS = {"GPU": 2e12, "CPU": 1e10}
#: With at least so many operations the device, not the host, decides how long a call takes.
LARGE = {"GPU": 1e9, "CPU": 1e8}

Shape = tuple[int, int, int]


@dataclass(frozen=True)
class Contender:
    """One of several ways to multiply two given matrices.

    Attributes:
        call: multiplies; it may return before the result is complete.
        wait: waits for all results.
        occupy: begins so many long products, behind which calls are queued. It returns a function
            that tells whether they are complete, and one that waits for them.
    """

    call: Callable[[], object]
    wait: Callable[[], object]
    occupy: Callable[[int], tuple[Callable[[], bool], Callable[[], object]]] | None = None

    def wall_seconds(self, calls: int) -> float:
        """Wall-clock seconds per call, until all results are complete."""
        return clock.wall_seconds(self.call, self.wait, calls)

    def device_seconds(self, calls: int) -> float:
        """Seconds per call of a device that never waits for the host.

        The calls are queued behind long products; if these finish before all calls are queued, it
        tries again with more products and fewer calls.

        Raises:
            RuntimeError: if not even one call could be queued in time: it must have waited for the
                device.
        """
        assert self.occupy is not None, "calls of NumPy arrays wait for the device"
        products, left = 1, calls
        while left:
            self.wait()
            complete, wait = self.occupy(products)
            for _ in range(left):
                self.call()
            late = complete()
            wait()
            start = time.perf_counter()
            self.wait()
            if not late:
                return (time.perf_counter() - start) / left
            products, left = 2 * products, left // 2
        raise RuntimeError(
            f"even one of {calls} calls returned only after {products // 2} long products"
        )


class Row(NamedTuple):
    """A shape that was compared.

    Attributes:
        m, n, k: sizes of the row-major product: a is m x k, b is k x n.
        seconds: seconds per call of each round, by contender; the last one is what others are
            compared with.
        dtype: of the matrices.
    """

    m: int
    n: int
    k: int
    seconds: dict[str, list[float]]
    dtype: str = "float32"

    @property
    def flops(self) -> float:
        """Operations of the product."""
        complex_factor = 4 if self.dtype.startswith("complex") else 1
        return 2.0 * complex_factor * self.m * self.n * self.k

    def ratios(self, name: str) -> list[float]:
        """The last contender's time over this one's, round by round."""
        last = [*self.seconds.values()][-1]
        return [theirs / ours for ours, theirs in zip(self.seconds[name], last, strict=True)]

    def __str__(self) -> str:
        *ours, other = self.seconds
        rate = 1e-9 * self.flops / float(np.median(self.seconds[other]))
        words = [f"{self.dtype}, {self.m} x {self.n} x {self.k}: {other} {rate:,.1f} GFLOPS"]
        for name in ours:
            low, middle, high = np.percentile(self.ratios(name), (0, 50, 100))
            words.append(f"{name} {middle:.2f} ({low:.2f} to {high:.2f})")
        return ", ".join(words)


def random_shapes(number: int, seed: int, most_flops: float) -> list[Shape]:
    """Sizes M, N, K of products, log-uniform from 1 to 16,384, of at most so many operations.

    One product in four has sides that are multiples of 64; one in five has a side of at most 64.
    """
    rng = np.random.default_rng(seed)
    found: list[Shape] = []
    while len(found) < number:
        sides = np.exp(rng.uniform(0, np.log(LONGEST), 3))
        aligned, thin, which = rng.random() < 1 / 4, rng.random() < 1 / 5, rng.integers(3)
        if thin:
            sides[which] = np.exp(rng.uniform(0, np.log(64)))
        unit = 64 if aligned else 1
        sides = np.maximum(1, np.round(sides / unit)) * unit
        if 2 * np.prod(sides) <= most_flops:
            m, n, k = map(int, sides)
            found.append((m, n, k))
    return found


def compare(
    shapes: Iterable[Shape],
    device: Device,
    numpy: bool = False,
    dtype: str = "float32",
    precisions: Sequence[str] = (),
    device_time: bool = False,
) -> list[Row]:
    """Time `matmul` and PyTorch (on a GPU, without TF32) or NumPy (on a CPU); print each shape.

    Args:
        shapes: M, N, K of the row-major products.
        device: where.
        numpy: whether operands and results are NumPy arrays instead of device arrays.
        dtype: "float32", "float64", "complex64", "complex128" or "float16".
        precisions: "tf32", "tf32x3" or both, to compare `matmul` in these with `matmul` in float32.
        device_time: whether to time the device alone (see `device_seconds`).

    Raises:
        ValueError: for precisions of other types or of NumPy arrays, and for device time of a CPU,
            of NumPy arrays, or of precisions, whose calls wait for the device.
    """
    if precisions and (numpy or dtype != "float32"):
        given = f"numpy={numpy}, dtype={dtype!r}"
        raise ValueError(
            f"precisions={tuple(precisions)} needs device arrays of float32, not {given}"
        )
    if device_time and (numpy or precisions or device.kind != "GPU"):
        given = f"numpy={numpy}, precisions={tuple(precisions)}, device={device}"
        raise ValueError(f"device_time needs calls that return before a GPU is done, not {given}")
    shapes, rows = list(shapes), []
    for precision in (*precisions, "float32") if dtype == "float32" else ():
        compile_ahead(
            device, [choice.choose(device, (n, m, k), "auto", precision) for m, n, k in shapes]
        )
    for m, n, k in shapes:
        a, b = operands(m, n, k, dtype)
        if precisions:
            seconds = alternating(in_precisions(a, b, device, precisions), MOST_ROUNDS)
        else:
            how = Contender.device_seconds if device_time else Contender.wall_seconds
            seconds = alternating(contenders(a, b, device, numpy), seconds_of=how)
        rows.append(Row(m, n, k, seconds, dtype))
        print(rows[-1], flush=True)
    return rows


def operands(m: int, n: int, k: int, dtype: str = "float32") -> tuple[np.ndarray, np.ndarray]:
    """Matrices of standard normal numbers, m x k and k x n; the same numbers repeat."""
    real = np.empty(0, dtype).real.dtype
    rng = np.random.default_rng(0)
    # drawing all takes longer than multiplying
    drawn = rng.standard_normal(2**20 + 2, np.result_type(real, np.float32)).astype(real)
    factor = np.dtype(dtype).itemsize // real.itemsize
    a, b = (
        np.resize(drawn, (rows, factor * columns)).view(dtype) for rows, columns in ((m, k), (k, n))
    )
    return a, b


def on_queue(queue: cl.CommandQueue, call: Callable[[], object]) -> Contender:
    """Calls on an OpenCL queue."""

    def occupy(count: int) -> tuple[Callable[[], bool], Callable[[], object]]:
        x, out = busy_operands(queue)
        for _ in range(count):
            (event,) = matmul(x, x, out).events
        complete = cl.command_execution_status.COMPLETE
        return lambda: event.command_execution_status == complete, event.wait

    return Contender(call, queue.finish, occupy)


@lru_cache(2)
def busy_operands(queue: cl.CommandQueue) -> tuple[cla.Array, cla.Array]:
    """A matrix of zeros and memory for its square; freeing memory would wait for the device."""
    x = cla.zeros(queue, (BUSY, BUSY), np.float32)
    return x, cla.empty_like(x)


def in_precisions(
    a: np.ndarray, b: np.ndarray, device: Device, precisions: Sequence[str]
) -> dict[str, Contender]:
    """`matmul` in each precision, and in float32."""
    u, v = (cla.to_device(device.queue, x) for x in (a, b))
    names = (*precisions, "float32")
    return {name: on_queue(device.queue, partial(matmul, u, v, precision=name)) for name in names}


def contenders(a: np.ndarray, b: np.ndarray, device: Device, numpy: bool) -> dict[str, Contender]:
    """`matmul`, then the other library, by name."""
    if numpy:
        call = partial(matmul, a, b, device=device)
        ours = {"matmul of NumPy arrays": Contender(call, lambda: None)}
    else:
        u, v = (cla.to_device(device.queue, x) for x in (a, b))
        ours = {"matmul": on_queue(device.queue, partial(matmul, u, v))}
    if device.kind == "GPU":
        return {**ours, "PyTorch": pytorch(a, b, numpy)}
    return {**ours, "NumPy": Contender(lambda: a @ b, lambda: None)}


def pytorch(a: np.ndarray, b: np.ndarray, numpy: bool) -> Contender:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    p, q = torch.from_numpy(a), torch.from_numpy(b)
    if numpy:
        return Contender(lambda: torch.matmul(p.cuda(), q.cuda()).cpu(), torch.cuda.synchronize)
    u, v = p.cuda(), q.cuda()

    def occupy(count: int) -> tuple[Callable[[], bool], Callable[[], object]]:
        x, event = torch.zeros(BUSY, BUSY, device="cuda"), torch.cuda.Event()
        for _ in range(count):
            torch.matmul(x, x)
        event.record()
        return event.query, event.synchronize

    return Contender(lambda: torch.matmul(u, v), torch.cuda.synchronize, occupy)


def alternating(
    contenders: Mapping[str, Contender],
    rounds: int = ROUNDS,
    seconds_of: Callable[[Contender, int], float] = Contender.wall_seconds,
) -> dict[str, list[float]]:
    """Seconds per call of each round, by contender. All make the same number of calls."""
    for contender in contenders.values():
        contender.wall_seconds(1)  # compiles
    slowest = max(contender.wall_seconds(1) for contender in contenders.values())
    count = int(np.clip(ROUND_SECONDS / slowest, 1, CALLS))

    def one_round(contender: Contender) -> float:
        if "NumPy" in contenders:
            time.sleep(PAUSE)
        else:
            contender.wall_seconds(1)  # a GPU's first call after another library's takes longer
        return seconds_of(contender, count)

    rivals = {name: partial(one_round, contender) for name, contender in contenders.items()}
    return clock.alternating(rivals, rounds)


def summary(rows: list[Row]) -> dict[str, dict[str, float]]:
    """By contender: geometric "mean", "share" of ratios above 0.9, "least", and "spread".

    A shape's ratio is the median of its rounds; the spread is the median over the shapes of the
    difference between the fastest and the slowest round, relative to the ratio.
    """
    found: dict[str, dict[str, float]] = {}
    for name in [*rows[0].seconds][:-1] if rows else []:
        each = [row.ratios(name) for row in rows]
        ratios = np.array([np.median(r) for r in each])
        found[name] = {
            "mean": float(np.exp(np.log(ratios).mean())),
            "share": float((ratios > 0.9).mean()),
            "least": float(ratios.min()),
            "spread": float(np.median([(max(r) - min(r)) / np.median(r) for r in each])),
        }
    return found


def print_summary(rows: list[Row], kind: str) -> None:
    """Sentences about all shapes, and about those that are large for a device of this kind."""
    least = LARGE.get(kind, LARGE["CPU"])
    big = f"of them with at least {least:.0e} operations"
    for some, which in ((rows, "shapes"), (large(rows, kind), big)):
        for name, found in summary(some).items():
            share, spread = f"{found['share']:.0%} above 0.9", f"{found['spread']:.0%}"
            words = f"geometric mean {found['mean']:.2f}, {share}, least {found['least']:.2f}"
            print(f"{name}, {len(some)} {which}: {words}, spread within a shape {spread}")


def large(rows: list[Row], kind: str) -> list[Row]:
    """The rows of products whose operations take longer than the call."""
    return [row for row in rows if row.flops >= LARGE.get(kind, LARGE["CPU"])]
