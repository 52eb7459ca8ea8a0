"""Compare whole calls of `matmul` with those of PyTorch (on a GPU) or NumPy (on a CPU).

    python tools/compare.py calls --sizes 512,64x8192x1024 --random 60 --seed 1
    python tools/compare.py calls --random 60 --seed 1 --precision tf32x3
    python tools/compare.py join results/cpu_calls.json "a CPU" "40 shapes, seed 1=random.json" ...

Calls alternate, so whatever slows the machine for a while slows both. A round lasts from before its
first call to the last result. `join` joins records of `calls` into one: each becomes a set with the
shapes before its equals sign.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import common
import numpy as np
import pyopencl.array as cla

from gemmlab import matmul
from gemmlab.cli import amount, count, output_file, size_list
from gemmlab.generate import table
from gemmlab.measurement import clock, records
from gemmlab.opencl.devices import Device, find_device

#: Rounds of a comparison; the median counts.
ROUNDS = 5
#: Rounds where precisions are compared, which often launch the same kernel.
MOST_ROUNDS = 25
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
TYPES = ("float32", "float64", "complex64", "complex128", "float16")

Shape = tuple[int, int, int]
#: A function that multiplies, and one that waits for all results.
Contender = tuple[Callable[[], object], Callable[[], object]]


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
) -> list[Row]:
    """Time `matmul` and PyTorch (on a GPU, without TF32) or NumPy (on a CPU); print each shape.

    Args:
        shapes: M, N, K of the row-major products.
        device: where.
        numpy: whether operands and results are NumPy arrays instead of device arrays.
        dtype: of `TYPES`.
        precisions: "tf32", "tf32x3" or both, to compare `matmul` in these with `matmul` in float32.

    Raises:
        ValueError: for precisions of other types or of NumPy arrays.
    """
    if precisions and (numpy or dtype != "float32"):
        given = f"numpy={numpy}, dtype={dtype!r}"
        raise ValueError(
            f"precisions={tuple(precisions)} needs device arrays of float32, not {given}"
        )
    shapes, rows = list(shapes), []
    for m, n, k in shapes:
        a, b = operands(m, n, k, dtype)
        rivals = contenders(a, b, device, numpy, precisions)
        seconds = alternating(rivals, MOST_ROUNDS if precisions else ROUNDS)
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


def contenders(
    a: np.ndarray, b: np.ndarray, device: Device, numpy: bool, precisions: Sequence[str]
) -> dict[str, Contender]:
    """`matmul`, then the other library, by name; or `matmul` in precisions, float32 last."""
    if numpy:
        ours = {"matmul of NumPy arrays": (partial(matmul, a, b, device=device), lambda: None)}
    else:
        u, v = (cla.to_device(device.queue, x) for x in (a, b))
        names = {"matmul": "float32"} if not precisions else {p: p for p in precisions}
        ours = {
            name: (partial(matmul, u, v, precision=precision), device.queue.finish)
            for name, precision in names.items()
        }
        if precisions:
            return {**ours, "float32": (partial(matmul, u, v), device.queue.finish)}
    if device.kind == "GPU":
        return {**ours, "PyTorch": pytorch(a, b, numpy)}
    return {**ours, "NumPy": (lambda: a @ b, lambda: None)}


def pytorch(a: np.ndarray, b: np.ndarray, numpy: bool) -> Contender:
    import torch

    torch.backends.cuda.matmul.allow_tf32 = False
    torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
    p, q = torch.from_numpy(a), torch.from_numpy(b)
    if numpy:
        return (lambda: torch.matmul(p.cuda(), q.cuda()).cpu()), torch.cuda.synchronize
    u, v = p.cuda(), q.cuda()
    return (lambda: torch.matmul(u, v)), torch.cuda.synchronize


def alternating(rivals: dict[str, Contender], rounds: int) -> dict[str, list[float]]:
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
        return clock.wall_seconds(call, wait, calls)

    each = {name: partial(one_round, *contender) for name, contender in rivals.items()}
    return clock.alternating(each, rounds)


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


def large(rows: list[Row], kind: str) -> list[Row]:
    """The rows of products whose operations take longer than the call."""
    return [row for row in rows if row.flops >= LARGE.get(kind, LARGE["CPU"])]


# Commands


def run_calls(given: argparse.Namespace) -> None:
    device = find_device(given.device)
    if given.title and not given.json:
        raise ValueError("--title is for the record; give --json FILE, too")
    shapes = [table.dimensions(size) for size in given.sizes]
    if given.random:
        most = given.most_flops or MOST_FLOPS.get(device.kind, MOST_FLOPS["CPU"])
        print(f"random shapes of at most {most:.0e} operations (--most-flops)")
        shapes += random_shapes(given.random, given.seed, most)
    if not shapes:
        raise ValueError("nothing to compare: give --sizes, --random N, or both")
    rows: list[Row] = []
    for dtype in given.types:
        rows += compare(shapes, device, given.numpy, dtype, given.precision)
    sums = {"summary": summary(rows), "large": summary(large(rows, device.kind))}
    for which, found in sums.items():
        print(f"{which}: {json.dumps(found)}")
    if given.json:
        head = common.head(device, given.title)
        records.write(given.json, {**head, "calls": [row._asdict() for row in rows], **sums})
        print(f"wrote {given.json}")


def run_join(given: argparse.Namespace) -> None:
    sets = []
    for part in given.parts:
        shapes, equals, file = part.partition("=")
        if not equals:
            raise ValueError(f"{part!r} is not of the form SHAPES=FILE")
        sets.append({"shapes": shapes, **json.loads(Path(file).read_text(encoding="utf-8"))})
    note = (
        "whole calls in wall-clock time, alternating with another library's product of the same "
        "operands; a ratio is its seconds over ours"
    )
    kept = ("title", "shapes", "command", "device", "summary", "large")
    joined = [
        {**{name: one[name] for name in kept}, "calls": [rounded(call) for call in one["calls"]]}
        for one in sets
    ]
    shared = {name: sets[0][name] for name in ("device", "date", "versions")}
    head = {"title": given.title, "command": common.command(), **shared, "note": note}
    records.write(given.file, {**head, "sets": joined})


def rounded(call: dict) -> dict:
    """A call with its seconds in four digits, a small part of what differs from round to round."""
    seconds = {name: [float(f"{s:.4g}") for s in each] for name, each in call["seconds"].items()}
    return {**call, "seconds": seconds}


def words_from(*allowed: str) -> Callable[[str], list[str]]:
    """The type of an option that takes some of these words, separated by commas."""

    def parse(text: str) -> list[str]:
        words = text.split(",")
        if unknown := [word for word in words if word not in allowed]:
            raise argparse.ArgumentTypeError(f"{unknown[0]!r} is none of {', '.join(allowed)}")
        return words

    return parse


def parser() -> argparse.ArgumentParser:
    raw = argparse.RawDescriptionHelpFormatter
    top = argparse.ArgumentParser(description=__doc__, formatter_class=raw)
    commands = top.add_subparsers(required=True)
    whole = commands.add_parser("calls", help="whole calls in wall-clock time")
    whole.set_defaults(run=run_calls)
    words = "such as 512,64x8192x1024: M x N x K of row-major products"
    whole.add_argument("--sizes", type=size_list, default=[], help=words)
    whole.add_argument("--random", type=count, default=0, metavar="N", help="so many random shapes")
    whole.add_argument("--seed", type=int, default=0, help="of the random shapes (default: 0)")
    words = "operations of a random shape at most (default: 2e12, on CPUs 1e10)"
    whole.add_argument("--most-flops", type=amount, help=words)
    words = "such as float64,complex64 (default: float32)"
    whole.add_argument("--types", type=words_from(*TYPES), default=["float32"], help=words)
    whole.add_argument("--numpy", action="store_true", help="NumPy arrays instead of device arrays")
    words = "tf32, tf32x3 or both, compared with float32 instead of another library"
    whole.add_argument("--precision", type=words_from("tf32", "tf32x3"), default=[], help=words)
    common.add_device(whole)
    whole.add_argument("--json", type=output_file, metavar="FILE", help="write a record")
    whole.add_argument("--title", help="with --json: a short name of the device for charts")
    join = commands.add_parser("join", help="join records of calls into one")
    join.set_defaults(run=run_join)
    join.add_argument("file", type=output_file, help="the file to write")
    join.add_argument("title", help="of the joined record")
    join.add_argument(
        "parts", nargs="+", metavar="SHAPES=FILE", help="what was recorded, and where"
    )
    return top


def main(arguments: list[str] | None = None) -> None:
    given = parser().parse_args(arguments)
    given.run(given)


if __name__ == "__main__":
    common.run(main)
