"""Is a product right? An exact check needs no tolerance; a check of accuracy has a bound."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

#: Largest K of the exact check: products of entries +-1/2 and +-3/2 are at most 9 quarters, and 9 K
#: must stay below 2^24.
EXACT_K = (2**24 - 1) // 9
#: The same for complex entries, whose products have parts of at most 3 * 3 + 2 * 2 = 13 quarters.
EXACT_K_COMPLEX = (2**24 - 1) // 13
#: Draws an array of this shape.
Draw = Callable[[np.random.Generator, tuple[int, int]], np.ndarray]


@dataclass(frozen=True)
class Verdict:
    """The outcome of a check."""

    ok: bool  # whether every element is right
    error: float  # largest absolute error (infinite if an element is NaN)
    bound: float  # the largest error allowed at that element (0 for the exact check)
    wrong: int  # wrong elements
    first: tuple[int, int, Any, Any] | None  # in column-major order: row, column, got, expected

    def __str__(self) -> str:
        if self.ok:
            return (
                "right: every element exact"
                if self.bound == 0
                else f"right: error {self.error:.1e}"
            )
        assert self.first is not None
        i, j, got, want = self.first
        extent = "1 element is" if self.wrong == 1 else f"{self.wrong:,} elements are"
        return f"wrong: {extent} off; the first is C[{i}, {j}] = {got:g}, expected {want:g}"


def exact_inputs(
    m: int, n: int, k: int, seed: int = 0, dtype: DTypeLike = np.float32
) -> tuple[np.ndarray, np.ndarray]:
    """A (m x k) and B (k x n) of `dtype`, column-major, entries drawn from -3/2, -1/2, 1/2, 3/2.

    All entries are odd halves, so every product is an odd number of quarters: a single product that
    is dropped or added twice makes an even number odd, or an odd one even, and always shows. Every
    partial sum stays below 2^24 quarters, which float32 holds exactly, so no order of summation
    makes a rounding error. A conversion to an integer discards fractions, and shows, too.

    Complex entries have such a real part, and an imaginary part of -1, 0 or 1. The real part of a
    product is an odd number of quarters again, and conjugating an operand changes the result.

    Raises:
        ValueError: if k is larger than `EXACT_K`, or for complex types `EXACT_K_COMPLEX`.
    """
    gaussian = np.dtype(dtype).kind == "c"
    most = EXACT_K_COMPLEX if gaussian else EXACT_K
    if k > most:
        raise ValueError(f"k={k} is over {most}; for larger k partial sums may exceed 2^24")

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        odd = np.array([-1.5, -0.5, 0.5, 1.5], dtype)[rng.integers(0, 4, shape)]
        return odd + np.array([-1j, 0, 1j], dtype)[rng.integers(0, 3, shape)] if gaussian else odd

    return _draw(draw, m, n, k, seed)


def random_inputs(
    m: int, n: int, k: int, seed: int = 0, kind: str = "uniform", dtype: DTypeLike = np.float32
) -> tuple[np.ndarray, np.ndarray]:
    """A (m x k) and B (k x n) of `dtype`, column-major, "uniform" in [-1, 1) or standard "normal",
    in each part.

    Raises:
        ValueError: for another kind.
    """
    if kind not in ("uniform", "normal"):
        raise ValueError(f"kind must be 'uniform' or 'normal', not {kind!r}")
    dtype = np.dtype(dtype)
    real = np.result_type(np.empty(0, dtype).real.dtype, np.float32)

    def part(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        if kind == "uniform":
            return rng.random(shape, dtype=real) * 2 - 1
        return rng.standard_normal(shape, dtype=real)

    def draw(rng: np.random.Generator, shape: tuple[int, int]) -> np.ndarray:
        numbers = part(rng, shape)
        if dtype.kind == "c":
            numbers = numbers + 1j * part(rng, shape)
        return numbers.astype(dtype, copy=False)

    return _draw(draw, m, n, k, seed)


def _draw(draw: Draw, m: int, n: int, k: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return draw(rng, (k, m)).T, draw(rng, (n, k)).T


def exact(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> Verdict:
    """Check C (m x n) against A B bit for bit, where A and B come from `exact_inputs`.

    NumPy computes the reference in the type of the operands, which with these inputs is exact as
    well. Products of float16 are exact in float32, and rounded once if C is float16.
    """
    if a.dtype == np.float16:
        a, b = a.astype(np.float32), b.astype(np.float32)
    return compare(c, (a @ b).astype(c.dtype), 0.0)


def exact_large(
    c: np.ndarray, a: np.ndarray, b: np.ndarray, rounds: int = 3, seed: int = 0
) -> bool:
    """Check C x = A (B x) exactly for random integer vectors x, in float64 (Freivalds' check).

    This is for products whose reference would take too long to compute. A wrong C passes one round
    with a probability of at most 1/1024: if an entry of C is wrong in some column, then of the 1024
    values that x may have there at most one hides it.
    """
    rng = np.random.default_rng(seed)
    for _ in range(rounds):
        x = np.asarray(rng.integers(-512, 512, b.shape[1]), np.float64)
        if not np.array_equal(_times(c, x), _times(a, _times(b, x))):
            return False
    return True


def _times(matrix: np.ndarray, x: np.ndarray, rows: int = 1024) -> np.ndarray:
    """matrix @ x in float64 (or complex128), without such a copy of the whole matrix."""
    wide = np.result_type(matrix.dtype, np.float64)
    parts = [matrix[i : i + rows].astype(wide) @ x for i in range(0, matrix.shape[0], rows)]
    return np.concatenate(parts) if parts else np.zeros(0)


def bound(
    a: np.ndarray, b: np.ndarray, product: float = 0.0, result: DTypeLike | None = None
) -> np.ndarray:
    """How far each element of a product in the operands' type may be from the true one: m x n,
    float64.

    For k terms in any order, ``k eps (|A| @ |B|) + k tiny`` always holds to first order (Higham,
    Accuracy and Stability of Numerical Algorithms, section 3.5), with eps = 2^-23 and tiny = 2^-126
    for float32. For independent random data the rounding errors mostly cancel, and
    ``2 sqrt(k) eps`` suffices instead of ``k eps``: this is the bound. Each part of a complex
    element is a sum of 2 k real products, and the errors of both parts add up like the legs of a
    right triangle: hence 2 k for k, and a factor of sqrt(2).

    Products of float16 are added up in float32. A result in float16 is rounded once more, by at
    most 2^-11 of it, or 2^-25.

    Args:
        a, b: m x k and k x n, of the same type, random and independent.
        product: an additional relative error that each product of two floats may have (on tensor
            cores).
        result: the type of the result, if it is not that of the sums.
    """
    limits, gaussian = np.finfo(np.result_type(a.dtype, np.float32)), a.dtype.kind == "c"
    k = a.shape[1] * (2 if gaussian else 1)
    factor = 2 * np.sqrt(k) * (np.sqrt(2) if gaussian else 1)
    sizes = np.abs(a).astype(np.float64) @ np.abs(b).astype(np.float64)
    of_sums = (factor * float(limits.eps) + product) * sizes + k * float(limits.tiny)
    if result != np.float16:
        return of_sums
    true = np.abs(a.astype(np.float64) @ b.astype(np.float64))
    return of_sums + 2.0**-11 * (true + of_sums) + 2.0**-25


def accuracy(c: np.ndarray, a: np.ndarray, b: np.ndarray) -> Verdict:
    """Check each element of C (m x n) against the product of A (m x k) and B (k x n) in a wider
    type, within `bound`.

    The wider type of float16 and float32 is float64, of float64 NumPy's longdouble (no wider on
    some machines), and likewise for complex types.
    """
    is_short = a.dtype in (np.float16, np.float32, np.complex64)
    wider = np.result_type(a.dtype, np.float64 if is_short else np.longdouble)
    allowed = bound(a, b, result=c.dtype)
    return compare(c, a.astype(wider) @ b.astype(wider), allowed)


def compare(c: np.ndarray, expected: np.ndarray, allowed: float | np.ndarray) -> Verdict:
    """Compare element by element; a NaN is always wrong. `allowed` is the largest absolute
    difference, one number or m x n. Raises ValueError if the shapes differ.
    """
    if c.shape != expected.shape:
        raise ValueError(f"c has the shape {c.shape}, expected {expected.shape}")
    difference = np.abs(c.astype(np.result_type(c.dtype, expected.dtype, np.float64)) - expected)
    wrong = ~(difference <= allowed)
    count = int(np.count_nonzero(wrong))
    difference = np.where(np.isnan(difference), np.inf, difference)
    at = np.unravel_index(np.argmax(difference), c.shape) if c.size else ()
    limit = np.broadcast_to(allowed, c.shape)
    error, where = (float(difference[at]), float(limit[at])) if c.size else (0.0, 0.0)
    if not count:
        return Verdict(True, error, where, 0, None)
    j, i = np.argwhere(wrong.T)[0]
    return Verdict(
        False, error, where, count, (int(i), int(j), c[i, j].item(), expected[i, j].item())
    )
