"""Comparisons through the front door: `matmul` as a user calls it, beside PyTorch or NumPy, by the clock on the wall.

A round calls each way of multiplying in turn, so that what slows the machine for a while slows all of them. A call
includes all that it costs the host; what is counted is the time from before the first call of a round until the last
result is there. In device time, calls are queued behind long products, so that the device never waits for the host:
what is counted then is the time from the end of those products to the last result.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from ..blas.products import matmul
from ..family import choice
from ..opencl.devices import Device, find_device
from . import tuning

ROUNDS = 5  # the median of them counts
ROUND_SECONDS = 0.05  # as many calls make up a round
CALLS = 50  # but no more than this
#: Seconds at a time in which a processor's threads are watched until they sleep, and seconds in all, at most.
WATCHED, LONGEST_PAUSE = 0.05, 2.0
MOST_ROUNDS, ROUNDS_SECONDS = 25, 0.25  # between precisions, which often launch the same: as many as take so long
QUEUED = 50  # calls of a round in device time: a driver does not take any number before the first one begins
BUSY = 4096  # side of the products that keep a device busy while calls are queued
RANDOM = 2**24  # random numbers of which matrices consist, again and again: making them takes longer than multiplying
LONGEST = 16384  # side of a random product
MOST_FLOPS = {"GPU": 2e12, "CPU": 1e10}  # operations of a random product: it takes less than a second
LARGE = {"GPU": 1e9, "CPU": 1e8}  # operations from which on the device decides, and not the host that calls it
GOOD = 0.9  # a ratio from which on a shape counts as served well

Shape = tuple[int, int, int]


def random_shapes(number: int, seed: int, most_flops: float) -> list[Shape]:
    """Sizes M, N, K of products, log-uniform from 1 to 16,384, of at most so many operations.

    One product in four, drawn at random, has sides that are multiples of 64, and one in five has a side of at most 64.

    Raises:
        ValueError: if `number` or `most_flops` is less than 1.
    """
    for name, value in (("number", number), ("most_flops", most_flops)):
        if value < 1:
            raise ValueError(f"{name} must be at least 1, not {value}")
    rng = np.random.default_rng(seed)
    found: list[Shape] = []
    while len(found) < number:
        sides = np.exp(rng.uniform(0, np.log(LONGEST), 3))
        whole, thin, which = rng.random() < 1 / 4, rng.random() < 1 / 5, rng.integers(3)
        if thin:
            sides[which] = np.exp(rng.uniform(0, np.log(64)))
        sides = np.maximum(1, np.round(sides / 64)) * 64 if whole else np.maximum(1, np.round(sides))
        if 2 * np.prod(sides) <= most_flops:
            m, n, k = map(int, sides)
            found.append((m, n, k))
    return found


class Long(NamedTuple):
    """Long products that were begun on a device.

    Attributes:
        over: whether they are done.
        wait: waits for them.
    """

    over: Callable[[], bool]
    wait: Callable[[], object]


class Way(NamedTuple):
    """A way to multiply two given matrices.

    Attributes:
        call: multiplies; it need not wait for the result.
        wait: waits for all results.
        occupy: begins so many long products, where the calls will be queued behind them.
    """

    call: Callable[[], object]
    wait: Callable[[], object]
    occupy: Callable[[int], Long] | None = None


class Row(NamedTuple):
    """A shape that was measured.

    Attributes:
        m, n, k: sizes of the row-major product: a is m x k, b is k x n.
        seconds: by the way's name, the seconds per call of each round; the last one is the other library's, or that of
            float32 where precisions are compared.
        dtype: the type of the matrices.
    """

    m: int
    n: int
    k: int
    seconds: dict[str, list[float]]
    dtype: str = "float32"

    @property
    def flops(self) -> float:
        """Operations of the product."""
        each = 4 if self.dtype.startswith("complex") else 1  # real multiply-adds in one
        return 2.0 * each * self.m * self.n * self.k

    def ratios(self, way: str) -> list[float]:
        """How many times as fast as the last way each round was: its time over this one's, in the same round."""
        return [theirs / ours for ours, theirs in zip(self.seconds[way], [*self.seconds.values()][-1], strict=True)]

    def __str__(self) -> str:
        *ours, other = self.seconds
        theirs = 1e-9 * self.flops / float(np.median(self.seconds[other]))
        words = [f"{self.dtype}, {self.m} x {self.n} x {self.k}: {other} {theirs:,.1f} GFLOPS"]
        for way in ours:
            ratios = self.ratios(way)
            words.append(f"{way} {np.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})")
        return ", ".join(words)


def compare(
    shapes: list[Shape],
    device: Device | int | str | None = None,
    numpy: bool = False,
    dtype: str = "float32",
    precisions: Sequence[str] = (),
    device_time: bool = False,
) -> list[Row]:
    """Time `matmul` beside PyTorch (on a GPU, without TF32) or NumPy (on a processor), and print each shape.

    Args:
        shapes: M, N, K of the row-major products.
        device: a Device, an index or part of a name; the preferred device by default.
        numpy: whether operands and results are NumPy arrays. Otherwise they stay on the device.
        dtype: "float32", "float64", "complex64" or "complex128".
        precisions: "tf32", "tf32x3" or both, to time `matmul` with these beside `matmul` in float32.
        device_time: whether to time the device alone, without what a call costs the host (see `device_seconds`).

    Raises:
        ValueError: for precisions of other types or of NumPy arrays, and for device time of a processor, of NumPy
            arrays, or of precisions, whose calls wait for the device.
    """
    device, rows = find_device(device), []
    if precisions and (numpy or dtype != "float32"):
        given = f"numpy={numpy}, dtype={dtype!r}"
        raise ValueError(f"precisions={tuple(precisions)} are compared on device arrays of float32, but got {given}")
    if device_time and (numpy or precisions or device.kind != "GPU"):
        given = f"numpy={numpy}, precisions={tuple(precisions)}, device={device}"
        raise ValueError(f"device_time is for calls that return before a GPU is done, but got {given}")
    if device.kind == "GPU":  # the compiler runs on one core, and takes longer than the products
        each = [(shape, way) for shape in shapes for way in (*precisions, "float32")]
        chosen = dict.fromkeys(choice.choose(device, (n, m, k), precision=way) for (m, n, k), way in each)
        tuning.compile_ahead(device, [(kernel, dict(params)) for kernel, params in chosen])
    for m, n, k in shapes:
        a, b = _normal(m, k, np.dtype(dtype), 0), _normal(k, n, np.dtype(dtype), 1)
        if precisions:
            ways = _precisions(a, b, device, precisions)
        else:
            ways = {**_ours(a, b, device, numpy), **_theirs(a, b, device, numpy)}
        seconds = _alternating(ways, MOST_ROUNDS if precisions else ROUNDS, device_time)
        rows.append(Row(m, n, k, seconds, dtype))
        print(rows[-1], flush=True)
    return rows


def _normal(rows: int, columns: int, dtype: np.dtype, seed: int) -> np.ndarray:
    """A matrix of standard normal numbers; a complex one has two in each element."""
    real = np.empty(0, dtype).real.dtype
    return np.resize(_numbers(real, seed), (rows, columns * (dtype.itemsize // real.itemsize))).view(dtype)


@lru_cache(2)
def _numbers(real: np.dtype, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal(RANDOM, real)


def _ours(a: np.ndarray, b: np.ndarray, device: Device, numpy: bool) -> dict[str, Way]:
    if numpy:
        return {"matmul of NumPy arrays": Way(lambda: matmul(a, b, device=device), lambda: None)}
    return {"matmul": _on(device.queue, a, b)}


def _on(queue: cl.CommandQueue, a: np.ndarray, b: np.ndarray) -> Way:
    x, y = (cla.to_device(queue, z) for z in (a, b))
    return on_queue(queue, lambda: matmul(x, y))


def on_queue(queue: cl.CommandQueue, call: Callable[[], object]) -> Way:
    """A way to multiply by calls on an OpenCL queue."""
    return Way(call, queue.finish, partial(_occupied, queue))


def _occupied(queue: cl.CommandQueue, count: int) -> Long:
    """Begin so many long products on a queue."""
    x, out = _long(queue)
    for _ in range(count):
        (event,) = matmul(x, x, out).events
    complete = cl.command_execution_status.COMPLETE
    return Long(lambda: event.command_execution_status == complete, event.wait)


@lru_cache(2)
def _long(queue: cl.CommandQueue) -> tuple[cla.Array, cla.Array]:
    """A matrix of zeroes and memory for its square, kept: freeing memory would wait for the device."""
    x = cla.zeros(queue, (BUSY, BUSY), np.float32)
    return x, cla.empty_like(x)


def _precisions(a: np.ndarray, b: np.ndarray, device: Device, precisions: Sequence[str]) -> dict[str, Way]:
    """`matmul` in each precision, and in float32."""
    x, y = (cla.to_device(device.queue, z) for z in (a, b))
    return {name: on_queue(device.queue, partial(matmul, x, y, precision=name)) for name in (*precisions, "float32")}


def _theirs(a: np.ndarray, b: np.ndarray, device: Device, numpy: bool) -> dict[str, Way]:
    """PyTorch on a GPU, NumPy on a processor."""
    if device.kind != "GPU":
        return {"NumPy": Way(lambda: a @ b, lambda: None)}
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    x, y = (torch.from_numpy(z) for z in (a, b))
    if numpy:
        return {"PyTorch": Way(lambda: torch.matmul(x.cuda(), y.cuda()).cpu(), torch.cuda.synchronize)}
    x, y = x.cuda(), y.cuda()

    def occupy(count: int) -> Long:
        z, event = torch.zeros(BUSY, BUSY, device="cuda"), torch.cuda.Event()
        for _ in range(count):
            torch.matmul(z, z)
        event.record()
        return Long(event.query, event.synchronize)

    return {"PyTorch": Way(lambda: torch.matmul(x, y), torch.cuda.synchronize, occupy)}


def _alternating(ways: dict[str, Way], most: int = ROUNDS, device_time: bool = False) -> dict[str, list[float]]:
    """Seconds per call of each round, by the way's name. All ways make the same number of calls.

    There are `ROUNDS` rounds, or up to `most` where they are short.
    """
    for way in ways.values():
        wall_seconds(way, 1)  # compiles
    slowest = max(wall_seconds(way, 1) for way in ways.values())
    calls = int(np.clip(ROUND_SECONDS / slowest, 1, QUEUED if device_time else CALLS))
    rounds = int(np.clip(ROUNDS_SECONDS / (calls * slowest), ROUNDS, most))
    timed = device_seconds if device_time else wall_seconds
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            if "NumPy" in ways:
                _let_threads_sleep()
            elif way.occupy:  # the first call after another library's turn takes a GPU longer: not timed
                wall_seconds(way, 1)
            found[name].append(timed(way, calls))
    return found


def _let_threads_sleep() -> None:
    """Wait until this process computes nothing any more.

    After a product a library's threads wait busily for the next one, and take a core from whoever comes then. Those of
    OpenBLAS, which multiplies for NumPy, do so for 2**28 cycles of the clock: a tenth of a second or more.
    """
    end = time.perf_counter() + LONGEST_PAUSE
    busy = True
    while busy and time.perf_counter() < end:
        before = time.process_time()
        time.sleep(WATCHED)
        busy = time.process_time() - before > 0.02 * WATCHED


def wall_seconds(way: Way, calls: int) -> float:
    """Seconds per call, from before the first one until all results are there."""
    way.wait()
    start = time.perf_counter()
    for _ in range(calls):
        way.call()
    way.wait()
    return (time.perf_counter() - start) / calls


def device_seconds(way: Way, calls: int) -> float:
    """Seconds per call of a device that never waits for the host: calls queued behind long products, from the end of
    these until all results are there. With more products and fewer calls if they were over before all were queued.

    Raises:
        RuntimeError: if not even a single call could be queued in time: it must have waited for the device.
    """
    assert way.occupy is not None, "calls of NumPy arrays wait for the device"
    count, left = 1, calls
    while left:
        way.wait()
        products = way.occupy(count)
        for _ in range(left):
            way.call()
        late = products.over()
        products.wait()
        start = time.perf_counter()
        way.wait()
        if not late:
            return (time.perf_counter() - start) / left
        count, left = 2 * count, left // 2
    raise RuntimeError(f"even one of {calls} calls returned only after {count // 2} products of {BUSY} were done")


def summary(rows: list[Row]) -> dict[str, dict[str, float]]:
    """Over all shapes, by the way's name: geometric "mean", "share" of ratios above 0.9, the "least", and "spread".

    A shape's ratio is the median of its rounds; the spread is the median over the shapes of the difference between
    the fastest and the slowest round, as a part of the ratio.
    """
    found: dict[str, dict[str, float]] = {}
    for way in [*rows[0].seconds][:-1] if rows else []:
        each = [row.ratios(way) for row in rows]
        ratios = np.array([np.median(r) for r in each])
        found[way] = {
            "mean": float(np.exp(np.log(ratios).mean())),
            "share": float((ratios > GOOD).mean()),
            "least": float(ratios.min()),
            "spread": float(np.median([(max(r) - min(r)) / np.median(r) for r in each])),
        }
    return found


def recorded(rows: list[Row], kind: str) -> dict:
    """The rows for a record, with a summary of all and one of those that are large for a device of this kind."""
    return {"calls": [row._asdict() for row in rows], "summary": summary(rows), "large": summary(large(rows, kind))}


def large(rows: list[Row], kind: str) -> list[Row]:
    """The rows of products whose operations take longer than the call."""
    return [row for row in rows if row.flops >= LARGE.get(kind, LARGE["CPU"])]
