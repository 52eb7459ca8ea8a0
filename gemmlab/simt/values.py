"""Values of all work-items at once: the vocabulary of the Python text that a kernel becomes.

A number that is the same for all work-items is a plain number (int, bool, np.float32 ...); one that differs is an
array with an entry per work-item, a *lane*. So sizes and loop counters cost next to nothing, and a loop that all
work-items go through alike is an ordinary loop. Whole numbers are Python's, or int64 in arrays: large enough that an
int which overflows is seen; `uint` is cut to its 32 bits, and a `ulong` is held as the int64 of the same bits.
A vector of n numbers is an array of n rows; one column stands for all lanes.

A mask says which lanes take part: None for all, False for none, else an array of bool.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from .types import Scalar

array = np.ndarray
Lanes = Any  # a number, or an array with an entry per lane
Mask = Any  # None, False or an array of bool


class Partly:
    """A value that only some lanes have been given."""

    __slots__ = ("value", "given")

    def __init__(self, value, given):
        self.value, self.given = value, given


def assign(mask, new, old):
    """The value of a variable after the lanes of `mask` have been given a new one; `old` is None before the first."""
    if mask is None:
        return new
    if old is None:
        return Partly(new, mask)
    if old.__class__ is Partly:
        given = old.given | mask
        value = np.where(mask, new, old.value)
        return value if given.all() else Partly(value, given)
    return np.where(mask, new, old)


def extremes(x: np.ndarray) -> tuple[int, int]:
    """The smallest and the largest number; so it takes a fifth of the time that x.min() and x.max() take."""
    return x.item(x.argmin()), x.item(x.argmax())


def finished(result):
    """What a function returns: lanes that did not call it have nothing, and need nothing."""
    return result.value if result.__class__ is Partly else result


def pick(condition, yes, no):
    """condition ? yes : no, where both sides have been computed, or one is None because no lane wants it."""
    if yes is None or no is None:
        return no if yes is None else yes
    if condition.__class__ is array:
        return np.where(condition, yes, no)
    return yes if condition else no


def union(whole, a, b):
    """The lanes of either mask; `whole` itself if it is all of its lanes, so that masks can be compared by identity."""
    if a is False or b is False:
        return b if a is False else a
    if a is None or b is None:
        return None
    both = a | b
    if whole.__class__ is array and (both == whole).all():
        return whole
    return None if both.all() else both


def without(mask, gone):
    """The lanes of `mask` that are not in `gone`."""
    if gone is False:
        return mask
    if gone is None:
        return False
    left = ~gone if mask is None else mask & ~gone
    if mask is not None and (left == mask).all():
        return mask
    return left if left.any() else False


# ---- from one type to another
def cut(x, of: Scalar):
    """The lower bits of a whole number as a type reads them; of a ulong as the long with the same bits."""
    if of.kind == "uint" and of.size < 8:
        return x & of.most
    if x.__class__ is array and of.size == 8:
        return x.view(np.int64)
    half = 1 << (of.bits - 1)
    return ((x + half) & (2 * half - 1)) - half


def unsigned(x):
    """The number that the bits of a ulong mean."""
    return x.view(np.uint64) if x.__class__ is array else x & (2**64 - 1)


def floating(x, of: Scalar):
    """A number as float, half or double: the nearest there is."""
    return x.astype(of.dtype) if x.__class__ is array else of.dtype.type(x)


def converted(x, of: Scalar, to: Scalar):
    """A number, or a vector of them, as C converts it; a float is rounded towards zero, what is no number becomes 0."""
    if not to.whole:
        return floating(unsigned(x) if of.name == "ulong" else x, to)
    if x.__class__ is array:
        return cut(np.where(np.isfinite(x), x, 0).astype(np.int64), to)
    return cut(int(x) if math.isfinite(x) else 0, to)


def bits_as(x, of: Scalar, to: Scalar):
    """The same bits as another type of the same size: as_uint(x)."""
    new = np.asarray(x).astype(of.dtype).view(to.dtype)
    if x.__class__ is array:
        return new.astype(to.held)
    return cut(new.item(), to) if to.whole else new[()]


# ---- vectors
def spread(x, n):
    """n times the same number."""
    return np.broadcast_to(x, (n, x.shape[-1])) if x.__class__ is array else np.full((n, 1), x)


def vector(parts, of: Scalar):
    """A vector of numbers and shorter vectors."""
    rows: list = []
    for part in parts:
        rows.extend(part if part.__class__ is array and part.ndim == 2 else (part,))
    lanes = max(row.shape[0] if row.__class__ is array else 1 for row in rows)
    out = np.empty((len(rows), lanes), of.held)
    for i, row in enumerate(rows):
        out[i] = row
    return out


def element(v, i):
    """One number of a vector."""
    if v.shape[1] > 1:
        return v[i]
    return v[i, 0] if v.dtype.kind == "f" else int(v[i, 0])


def changed(old, at, new, n, of: Scalar):
    """The vector `old` (None: it has no value yet) with new numbers at the places `at`."""
    old = finished(old)
    if old is None:
        old = np.zeros((n, 1), of.held)
    lanes = max(old.shape[1], new.shape[-1] if new.__class__ is array else 1)
    out = np.empty((n, lanes), old.dtype)
    out[:] = old
    out[at] = new
    return out


# ---- arithmetic
def quotient_of(a, b):
    """a / b of whole numbers, rounded towards zero as in C; no b is 0."""
    down = a // b
    return down + ((down < 0) & (down * b != a))


def remainder_of(a, b):
    """What is left of a, with the sign of a."""
    return a - b * quotient_of(a, b)


def fma(a, b, c):
    """a*b + c in double, which holds the product of two floats exactly."""
    return np.multiply(a, b, dtype=np.float64) + c


def least(a, b):
    return np.minimum(a, b) if a.__class__ is array or b.__class__ is array else min(a, b)


def greatest(a, b):
    return np.maximum(a, b) if a.__class__ is array or b.__class__ is array else max(a, b)


def ratio(a, b):
    """a / b of floats."""
    return np.true_divide(a, b)


def dot(a, b):
    return (a * b).sum(0, dtype=a.dtype) if a.shape[1] > 1 or b.shape[1] > 1 else (a * b).sum(dtype=a.dtype)


#: What atomic functions store, from the old value and their arguments.
ATOMICS: dict[str, Callable] = {
    "add": operator.add, "sub": operator.sub, "inc": operator.add, "dec": operator.sub, "min": min, "max": max,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "xchg": lambda old, x: x,
    "cmpxchg": lambda old, compare, x: x if old == compare else old,
}  # fmt: skip
#: Functions of floats, by their names in OpenCL C.
FUNCTIONS = {
    "sqrt": np.sqrt, "exp": np.exp, "exp2": np.exp2, "log": np.log, "log2": np.log2, "sin": np.sin, "cos": np.cos,
    "tan": np.tan, "tanh": np.tanh, "pow": np.power, "fabs": np.abs, "floor": np.floor, "ceil": np.ceil,
    "trunc": np.trunc, "rint": np.rint, "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "fmod": np.fmod, "fmin": np.fmin, "fmax": np.fmax, "rsqrt": lambda x: (1 / np.sqrt(x)), "copysign": np.copysign,
}  # fmt: skip
