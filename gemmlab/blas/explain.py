"""What `matmul` runs for a product, and why: the list that `gemmlab.auto` prints."""

from __future__ import annotations

from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..generate import candidates
from ..ladder import find
from ..ladder.spec import positive
from ..opencl.devices import Device, find_device
from . import packed
from .arrays import DTYPES
from .choose import KINDS, Choice, check_support, choose
from .product import FAMILY, PACKED, Options, Product

#: Candidates that are listed.
LISTED = 5


class Decision(NamedTuple):
    """What a row-major product runs, and why; `str` puts it into sentences."""

    m: int
    n: int
    k: int
    precision: str  # or the type of the elements, if it is not float32
    kernel: int | str  # as in `matmul`: the name of a kernel, "packed" or "family"
    params: dict[str, int]
    why: str
    candidates: tuple[candidates.Candidate, ...]  # with predicted seconds, the fastest one first
    refused: dict[str, str]  # why kinds of kernels do not support the product, by their names

    def __str__(self) -> str:
        listed = ", ".join(f"{name}={value}" for name, value in self.params.items())
        what = "" if self.precision == "float32" else f" in {self.precision}"
        head = f"{self.m} x {self.n} x {self.k}{what}: kernel {self.kernel!r} with {listed}."
        lines = [f"{head} {self.why}"]
        if self.candidates:
            lines.append("The candidates by predicted time; the one with * runs:")
        for place, one in enumerate(self.candidates):
            name, params = one.setting
            runs = (name, dict(params)) == (self.kernel, self.params)
            if place >= LISTED and not runs:
                continue
            rows, columns, _ = find(name).tiles(dict(params))  # of the transposed result
            lines.append(
                f"{'*' if runs else ' '} {microseconds(one.seconds):>22}  {name}, tiles of "
                f"{columns} x {rows}, {one.work.groups:,} work-groups of {one.work.steps:,} steps"
            )
        lines += [f"Not by the route {name}: {why}." for name, why in self.refused.items()]
        return "\n".join(lines)


def auto(
    m: int,
    n: int,
    k: int,
    device: Device | int | str | None = None,
    precision: candidates.Precision = "float32",
    dtype: DTypeLike = np.float32,
) -> Decision:
    """Return what `matmul` runs for an m x k by k x n product of matrices without gaps, and why.

    Args:
        m, n, k: sizes of the row-major product.
        device: a Device, an index or part of a name; the preferred device by default.
        precision: "float32", "tf32" or "tf32x3".
        dtype: of the elements: float32, float64, complex64, complex128 or float16.

    Raises:
        ValueError: for sizes that are not positive integers, another dtype, a precision that
            the device does not have, or one other than "float32" for another dtype.
    """
    check_sizes(m, n, k)
    device, dtype = find_device(device), np.dtype(dtype)
    if dtype not in DTYPES:
        raise ValueError(f"dtype must be one of {', '.join(map(str, DTYPES))}, not {dtype}")
    options, sizes = Options.of(precision=precision), (n, m, k)  # of the column-major product
    check_support(options, dtype, device)
    product = Product.compact(*sizes)._replace(dtype=dtype, result=dtype, options=options)
    chosen = choose(product, device)
    is_measured = chosen.kernel not in (PACKED, FAMILY)
    order = candidates.ranked(device, sizes, precision) if is_measured else []
    order.sort(key=lambda one: one.seconds)
    why = _explain(chosen, product, device, order)
    named = precision if dtype == np.float32 else dtype.name
    answers = {name: choice_of(product, device) for name, choice_of in KINDS.items()}
    refused = {name: answer for name, answer in answers.items() if isinstance(answer, str)}
    return Decision(m, n, k, named, chosen.kernel, chosen.params, why, tuple(order), refused)


def check_sizes(m: int, n: int, k: int) -> None:
    """Raise ValueError unless all are whole numbers from 1 on."""
    for name, value in {"m": m, "n": n, "k": k}.items():
        positive(name, value)


def _explain(
    chosen: Choice, product: Product, device: Device, order: list[candidates.Candidate]
) -> str:
    sizes, precision = product.sizes, product.options.precision
    if chosen.kernel == PACKED:
        rows = packed.Blocks.of(device, product.dtype).rows
        return (
            f"{rows} x {packed.COLUMNS} elements of C fit this CPU's vector registers; A is packed "
            "into panels."
        )
    if chosen.kernel == FAMILY:
        if chosen.seconds == inf:
            return f"{device} was not measured: its tile follows from a rule."
        return f"It is the fastest of the measured tiles, with {microseconds(chosen.seconds)}."
    own = chosen.kernel, tuple(chosen.params.items())
    if own in [candidates.winner(device, sizes, kind) for kind in (precision, "float32")]:
        return f"It was the fastest of those that were timed on {device} at such sizes."
    model = candidates.model(device)
    if not order or model is None:
        return (
            f"There are no constants for {device}, so the kernel of the nearest row of the table "
            "runs."
        )
    fastest = microseconds(order[0].seconds)
    if own == order[0].setting:
        return (
            f"It is predicted to be the fastest, with {fastest}, by the constants of "
            f"{model.device}."
        )
    return (
        f"By the constants of {model.device}, a candidate in TF32 is predicted to be the fastest, "
        f"with {fastest}; but predictions are uncertain, and TF32 runs only if it is predicted to "
        f"be {candidates.CLEARLY} times as fast as float32."
    )


def microseconds(seconds: float) -> str:
    return f"{1e6 * seconds:,.1f} microseconds"
