"""Comparisons through the front door: `matmul` as a user calls it, beside PyTorch or NumPy, by the clock on the wall.

A round calls each way of multiplying in turn, so that what slows the machine for a while slows all of them. A call
includes all that it costs the host; what is counted is the time from before the first call of a round until the last
result is there.
"""

from __future__ import annotations

import time
from collections.abc import Callable
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
LONGEST = 16384  # side of a random product
MOST_FLOPS = 2e12  # of a random product on a GPU; see `most_flops`
LARGE = {"GPU": 1e9, "CPU": 1e8}  # operations from which on the device decides, and not the host that calls it
GOOD = 0.9  # a ratio from which on a shape counts as served well

Shape = tuple[int, int, int]


def most_flops(device: Device) -> float:
    """Operations of a random product on a device: on a processor what it does in half a second, as a power of ten.

    The rate is that of `matmul` at 1024, and the power of ten is the next lower one, so that another run on the same
    machine has the same shapes.
    """
    if device.kind == "GPU":
        return MOST_FLOPS
    x = np.ones((1024, 1024), np.float32)
    way = Way(lambda: matmul(x, x, device=device), lambda: None)
    seconds = min(_seconds(way, 1) for _ in range(4))
    return 10.0 ** np.floor(np.log10(0.5 * 2 * 1024**3 / seconds))


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


class Way(NamedTuple):
    """A way to multiply two given matrices.

    Attributes:
        call: multiplies; it need not wait for the result.
        wait: waits for all results.
    """

    call: Callable[[], object]
    wait: Callable[[], object]


class Row(NamedTuple):
    """A shape that was measured.

    Attributes:
        m, n, k: sizes of the row-major product: a is m x k, b is k x n.
        seconds: by the way's name, the seconds per call of each round; the last one is the other library's.
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
        """How many times as fast as the other library each round was: its time over ours, in the same round."""
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
    shapes: list[Shape], device: Device | int | str | None = None, numpy: bool = False, dtype: str = "float32"
) -> list[Row]:
    """Time `matmul` beside PyTorch (on a GPU, without TF32) or NumPy (on a processor), and print each shape.

    Args:
        shapes: M, N, K of the row-major products.
        device: a Device, an index or part of a name; the preferred device by default.
        numpy: whether operands and results are NumPy arrays. Otherwise they stay on the device: on its default queue,
            and on a queue of the user's own.
        dtype: "float32", "float64", "complex64" or "complex128".
    """
    device, rows = find_device(device), []
    if device.kind == "GPU":  # the compiler runs on one core, and takes longer than the products
        chosen = dict.fromkeys(choice.choose(device, (n, m, k)) for m, n, k in shapes)
        tuning.compile_ahead(device, [(kernel, dict(params)) for kernel, params in chosen])
    for m, n, k in shapes:
        rng = np.random.default_rng(0)
        a, b = _normal(rng, m, k, np.dtype(dtype)), _normal(rng, k, n, np.dtype(dtype))
        ways = {**_ours(a, b, device, numpy), **_theirs(a, b, device, numpy)}
        rows.append(Row(m, n, k, _alternating(ways), dtype))
        print(rows[-1], flush=True)
    return rows


def _normal(rng: np.random.Generator, rows: int, columns: int, dtype: np.dtype) -> np.ndarray:
    """A matrix of standard normal numbers; a complex one has two in each element."""
    real = np.empty(0, dtype).real.dtype
    return rng.standard_normal((rows, columns * (dtype.itemsize // real.itemsize)), real).view(dtype)


def _ours(a: np.ndarray, b: np.ndarray, device: Device, numpy: bool) -> dict[str, Way]:
    if numpy:
        return {"matmul of NumPy arrays": Way(lambda: matmul(a, b, device=device), lambda: None)}
    queues = {"default queue": device.queue, "own queue": cl.CommandQueue(device.context, device.cl)}
    return {name: _on(queue, a, b) for name, queue in queues.items()}


def _on(queue: cl.CommandQueue, a: np.ndarray, b: np.ndarray) -> Way:
    x, y = (cla.to_device(queue, z) for z in (a, b))
    return Way(lambda: matmul(x, y), queue.finish)


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
    return {"PyTorch": Way(lambda: torch.matmul(x, y), torch.cuda.synchronize)}


def _alternating(ways: dict[str, Way]) -> dict[str, list[float]]:
    """Seconds per call of each round, by the way's name. All ways make the same number of calls."""
    for way in ways.values():
        _seconds(way, 1)  # compiles
    calls = int(np.clip(ROUND_SECONDS / max(_seconds(way, 1) for way in ways.values()), 1, CALLS))
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        for name, way in ways.items():
            if "NumPy" in ways:
                _let_threads_sleep()
            found[name].append(_seconds(way, calls))
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


def _seconds(way: Way, calls: int) -> float:
    """Seconds per call, from before the first one until all results are there."""
    way.wait()
    start = time.perf_counter()
    for _ in range(calls):
        way.call()
    way.wait()
    return (time.perf_counter() - start) / calls


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
