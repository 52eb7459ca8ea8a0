"""Compare whole calls of `matmul` with those of PyTorch (on a GPU) or NumPy (on a CPU).

    python tools/compare.py --sizes 512,64x8192x1024 --random 60 --seed 1
    python tools/compare.py --random 60 --seed 1 --precision tf32x3
    python tools/compare.py --random 60 --json results/my_calls.json

Calls alternate, so whatever slows the machine for a while slows both. A round lasts from before its
first call to the last result. The record is written after each shape.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from statistics import geometric_mean, median
from typing import Any, NamedTuple

import common
import numpy as np
import pyopencl.array as cla

from gemmlab import matmul
from gemmlab.blas.arrays import DTYPES
from gemmlab.cli import count, device_option, record_file, size_list
from gemmlab.generate import candidates
from gemmlab.measurement import clock, records
from gemmlab.measurement.records import Row
from gemmlab.opencl.devices import Device, find_device

#: Rounds of a comparison; the median counts.
ROUNDS = 9
#: Seconds of a round, as far as `clock.MOST_CALLS` allows.
ROUND_SECONDS = 0.05
#: Seconds after which the threads of OpenBLAS, which wait busily after a product, are asleep.
PAUSE = 0.2
#: The longest side of a random product.
LONGEST = 16384
#: The most operations of a random product: it takes less than a second.
MOST_FLOPS = {"GPU": 2e12, "CPU": 1e10}
#: With at least so many operations the device, not the host, decides how long a call takes.
LARGE = {"GPU": 1e9, "CPU": 1e8}

Shape = tuple[int, int, int]
#: A function that multiplies, and one that waits for all results.
Contender = tuple[Callable[[], object], Callable[[], object]]


class Pair(NamedTuple):
    """Two contenders at a shape: a is m x k, b is k x n, both row-major."""

    m: int
    n: int
    k: int
    seconds: Mapping[
        str, Sequence[float]
    ]  # per call, of each round, by contender: ours comes first
    precision: str = "float32"

    @property
    def flops(self) -> float:
        """Operations of the product."""
        complex_factor = 4 if self.precision.startswith("complex") else 1
        return 2.0 * complex_factor * self.m * self.n * self.k

    @property
    def ratios(self) -> list[float]:
        """The other one's time over ours, round by round."""
        return [theirs / ours for ours, theirs in zip(*self.seconds.values(), strict=True)]

    def rows(self, series: str) -> list[dict[str, Any]]:
        """The rows of a record."""
        sizes = {"m": self.m, "n": self.n, "k": self.k}
        shared = {"series": series, **sizes, "precision": self.precision, "metric": "s"}
        return [{**shared, "kernel": name, "values": s} for name, s in self.seconds.items()]

    def __str__(self) -> str:
        ours, other = self.seconds
        rate = 1e-9 * self.flops / median(self.seconds[other])
        low, middle, high = np.percentile(self.ratios, (0, 50, 100))
        shape = f"{self.precision}, {self.m} x {self.n} x {self.k}"
        return f"{shape}: {other} {rate:,.1f} GFLOPS, {ours} {middle:.2f} ({low:.2f} to {high:.2f})"


def pairs(rows: Iterable[Row]) -> list[Pair]:
    """The pairs of recorded rows."""
    seconds: dict[tuple[int, int, int, str, str], dict[str, Sequence[float]]] = {}
    for row in rows:
        shape = row.m, row.n, row.k, row.precision, row.variant
        seconds.setdefault(shape, {})[str(row.kernel)] = row.values
    return [Pair(m, n, k, both, precision) for (m, n, k, precision, _), both in seconds.items()]


def random_shapes(number: int, seed: int, most_flops: float) -> list[Shape]:
    """Sizes M, N, K of products, log-uniform from 1 to 16,384, of at most so many operations.

    One product in four has sides that are multiples of 64; one in five has a side of at most 64.
    """
    rng = np.random.default_rng(seed)
    drawn: list[Shape] = []
    while len(drawn) < number:
        sides = np.exp(rng.uniform(0, np.log(LONGEST), 3))
        aligned, thin, which = rng.random() < 1 / 4, rng.random() < 1 / 5, rng.integers(3)
        if thin:
            sides[which] = np.exp(rng.uniform(0, np.log(64)))
        unit = 64 if aligned else 1
        sides = np.maximum(1, np.round(sides / unit)) * unit
        if 2 * np.prod(sides) <= most_flops:
            m, n, k = map(int, sides)
            drawn.append((m, n, k))
    return drawn


def compare(
    shapes: Iterable[Shape],
    device: Device,
    dtype: str = "float32",
    precision: candidates.Precision | None = None,
) -> Iterator[Pair]:
    """Time `matmul` and PyTorch (on a GPU, without TF32) or NumPy (on a CPU) at M, N, K of
    row-major products; with a precision, `matmul` in it and in float32. On a CPU operands and
    results are NumPy arrays, on a GPU device arrays.
    """
    for m, n, k in shapes:
        rivals = contenders(*operands(m, n, k, dtype), device, precision)
        yield Pair(m, n, k, alternate(rivals), dtype)


def operands(m: int, n: int, k: int, dtype: str) -> tuple[np.ndarray, np.ndarray]:
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


def contenders(
    a: np.ndarray, b: np.ndarray, device: Device, precision: candidates.Precision | None
) -> dict[str, Contender]:
    """`matmul`, then the other library, by name; or `matmul` in a precision, then in float32."""
    if device.kind != "GPU" and not precision:
        ours: Contender = partial(matmul, a, b, device=device), lambda: None
        return {"matmul": ours, "NumPy": (lambda: a @ b, lambda: None)}
    u, v = (cla.to_device(device.queue, x) for x in (a, b))
    in_float32: Contender = partial(matmul, u, v), device.queue.finish
    if precision:
        ours = partial(matmul, u, v, precision=precision), device.queue.finish
        return {precision: ours, "float32": in_float32}
    return {"matmul": in_float32, "PyTorch": pytorch(a, b)}


def pytorch(a: np.ndarray, b: np.ndarray) -> Contender:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    u, v = torch.from_numpy(a).cuda(), torch.from_numpy(b).cuda()
    return (lambda: torch.matmul(u, v)), torch.cuda.synchronize


def alternate(rivals: dict[str, Contender]) -> dict[str, list[float]]:
    """Seconds per call of each round, by contender. All make the same number of calls."""
    for call, wait in rivals.values():
        clock.wall_seconds(call, wait)  # compiles
    slowest = max(clock.wall_seconds(call, wait) for call, wait in rivals.values())
    calls = int(np.clip(ROUND_SECONDS / slowest, 1, clock.MOST_CALLS))

    def one_round(call: Callable[[], object], wait: Callable[[], object]) -> float:
        if "NumPy" in rivals:
            time.sleep(PAUSE)
        else:
            clock.wall_seconds(call, wait)  # a first call after another library's takes longer
        return common.short(clock.wall_seconds(call, wait, calls))

    found: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(ROUNDS):  # what slows the machine for a while slows all of them alike
        for name, contender in rivals.items():
            found[name].append(one_round(*contender))
    return found


def summary(pairs: list[Pair]) -> dict[str, float]:
    """The geometric "mean", the "least", and the "spread" of the ratios: of a shape, the median of
    its rounds counts, and the difference between the fastest and the slowest one.
    """
    if not pairs:
        return {}
    each = [pair.ratios for pair in pairs]
    ratios = [median(r) for r in each]
    spread = median((max(r) - min(r)) / median(r) for r in each)
    return {"mean": geometric_mean(ratios), "least": min(ratios), "spread": spread}


def large(pairs: list[Pair], kind: str) -> list[Pair]:
    """The products for whose time the device decides, not the host."""
    return [pair for pair in pairs if pair.flops >= LARGE.get(kind, LARGE["CPU"])]


def parser() -> argparse.ArgumentParser:
    top = common.parser(__doc__)
    words = "such as 512,64x8192x1024: M x N x K of row-major products"
    top.add_argument("--sizes", type=size_list, default=[], help=words)
    top.add_argument("--random", type=count, default=0, metavar="N", help="so many random shapes")
    top.add_argument("--seed", type=int, default=0, help="of the random shapes (default: 0)")
    words = "of the elements (default: float32)"
    top.add_argument("--dtype", choices=[*map(str, DTYPES)], default="float32", help=words)
    words = "compared with float32 instead of another library"
    top.add_argument("--precision", choices=("tf32", "tf32x3"), help=words)
    device_option(top)
    words = "the record to add the calls to"
    top.add_argument("--json", type=record_file, metavar="FILE", help=words)
    top.add_argument("--title", help="of the set: a short name of the device")
    return top


def main(arguments: list[str] | None = None) -> None:
    given = parser().parse_args(arguments)
    device = find_device(given.device)
    shapes = [candidates.dimensions(size) for size in given.sizes]
    parts = [f"{len(shapes)} shapes"] if shapes else []
    if given.random:
        most = MOST_FLOPS.get(device.kind, MOST_FLOPS["CPU"])
        shapes += random_shapes(given.random, given.seed, most)
        parts.append(f"{given.random} random shapes, seed {given.seed}")
    if not shapes:
        raise ValueError("nothing to compare: give --sizes, --random N, or both")
    head, series = common.session(device, given.title), " and ".join(parts)
    compared: list[Pair] = []
    for pair in compare(dict.fromkeys(shapes), device, given.dtype, given.precision):
        compared.append(pair)
        print(pair, flush=True)
        if given.json:
            records.append(given.json, head, pair.rows(series))
    of_large = summary(large(compared, device.kind))
    print(json.dumps({"summary": summary(compared), "large": of_large}))


if __name__ == "__main__":
    common.run(main)
