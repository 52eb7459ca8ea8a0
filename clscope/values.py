"""Values of all work-items at once: the vocabulary of the Python text that a kernel becomes.

A number that is the same for all work-items is a plain number (int, bool, np.float32 ...); one that
differs is an array with an entry per work-item, a *lane*. So sizes and loop counters cost next to
nothing, and a loop that all work-items go through alike is an ordinary loop. Whole numbers are
Python's, or int64 in arrays: large enough that an int which overflows is seen; `uint` is cut to its
32 bits, and a `ulong` is held as the int64 of the same bits. A vector of n numbers is an array of n
rows; one column stands for all lanes.

A mask says which lanes take part: None for all, False for none, else an array of bool.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np

from .types import BOOL, DOUBLE, Scalar, Type, Vector, words

array = np.ndarray
Lanes = Any  # a number, or an array with an entry per lane
Mask = Any  # None, False or an array of bool


def nothing(of: Type) -> Lanes:
    """What a variable holds before it has a value."""
    zero = 0 if of.scalar.whole else of.scalar.dtype.type(0)
    return np.full((of.n, 1), zero) if isinstance(of, Vector) else zero


def spoiled(of: Scalar, sign: int) -> Lanes:
    """Return an improbable value, to be read where there is none."""
    if not of.whole:
        return of.dtype.type(sign * 12345.5)
    return sign > 0 if of is BOOL else cut(sign * 0x4747474747474747, of)


def extremes(x: np.ndarray) -> tuple[int, int]:
    """The smallest and the largest number, five times as fast as min() and max()."""
    return x.item(x.argmin()), x.item(x.argmax())


def some(x: Lanes) -> bool:
    """Whether any number is not 0; np.any takes twenty times as long for one."""
    return bool(x.any() if x.__class__ is array else x)


def pick(condition: Lanes, yes: Lanes, no: Lanes) -> Lanes:
    """condition ? yes : no of computed sides; one is None if no lane wants it."""
    if yes is None or no is None:
        return no if yes is None else yes
    if condition.__class__ is array:
        return np.where(condition, yes, no)
    return yes if condition else no


def one_of(x: Lanes, numbers: range) -> Lanes:
    """Whether a value is one of some numbers, without gaps."""
    if len(numbers) == 1:
        return x == numbers[0]
    return (x >= numbers.start) & (x < numbers.stop)


def union(whole: Mask, a: Mask, b: Mask) -> Mask:
    """The lanes of both masks; `whole` itself if all: masks are compared by identity."""
    if a is False:
        both = b
    elif b is False:
        both = a
    else:
        both = None if a is None or b is None else a | b
    if both.__class__ is not array or both is whole:
        return both
    is_all = both.all() if whole is None else (both == whole).all()
    return whole if is_all else both


def without(mask: Mask, gone: Mask) -> Mask:
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
def cut(x: Lanes, of: Scalar) -> Lanes:
    """The lower bits of a whole number as a type reads them; a ulong is held as a long."""
    if of.kind == "uint" and of.size < 8:
        return x & of.most
    if x.__class__ is array and of.size == 8:
        return x.view(np.int64)
    half = 1 << (of.bits - 1)
    return ((x + half) & (2 * half - 1)) - half


def unsigned(x: Lanes) -> Lanes:
    """The number that the bits of a ulong mean."""
    return x.view(np.uint64) if x.__class__ is array else x & (2**64 - 1)


def floating(x: Lanes, of: Scalar) -> Lanes:
    """A number as float, half or double: the nearest there is."""
    # an array without lanes, such as np.where makes of two numbers, is a number
    return x.astype(of.dtype)[()] if x.__class__ is array else of.dtype.type(x)


def converted(x: Lanes, of: Scalar, to: Scalar) -> Lanes:
    """A number or vector as C converts it; floats are truncated, and nan becomes 0."""
    if not to.whole:
        return floating(unsigned(x) if of.name == "ulong" else x, to)
    if x.__class__ is array:
        return cut(np.where(np.isfinite(x), x, 0).astype(np.int64), to)
    return cut(int(x) if math.isfinite(x) else 0, to)


def bits_as(x: Lanes, of: Scalar, to: Scalar, n: int = 0) -> Lanes:
    """as_uint(x): the same bytes as `n` numbers of another type; 0: no vector."""
    lanes = np.atleast_1d(np.asarray(x)).astype(of.dtype).T
    bits = np.ascontiguousarray(lanes)  # a row for each lane
    if bits.ndim == 2 and bits.shape[1] == 3:
        bits = np.pad(bits, ((0, 0), (0, 1)))
    new = bits.view(to.dtype) if bits.ndim == 2 else bits.reshape(-1, 1).view(to.dtype)
    if n:
        return np.ascontiguousarray(new.T[:n]).astype(to.held)
    if x.__class__ is array and x.shape[-1] > 1:
        return new[:, 0].astype(to.held)
    return cut(new[0, 0].item(), to) if to.whole else new[0, 0]


def rounded_by(x: Lanes, rounding: str) -> Lanes:
    return {"rte": np.rint, "rtz": np.trunc, "rtp": np.ceil, "rtn": np.floor}[rounding](x)


def converted_by(x: Lanes, of: Scalar, to: Scalar, rounding: str, saturated: bool) -> Lanes:
    """convert_...: saturated, or rounded in an unusual direction."""
    if of.name == "ulong":
        x = unsigned(x)
    if to.whole:
        x = x if of.whole else rounded_by(np.asarray(x, np.float64), rounding)
        limited = np.frompyfunc(lambda v: 0 if v != v else _saturated(v, to), 1, 1)(x)
        return of_python(limited, to)
    near = floating(x, to)
    found, exact = np.asarray(near, np.longdouble), np.asarray(x, np.longdouble)
    further = {"rtn": found > exact, "rtp": found < exact, "rtz": abs(found) > abs(exact)}
    back = to.dtype.type({"rtn": -np.inf, "rtp": np.inf}.get(rounding, 0))
    return np.where(further.get(rounding, False), np.nextafter(near, back), near)[()]


def of_python(x: Lanes, to: Scalar) -> Lanes:
    """Python's numbers, one or an array of objects, as lanes hold those of a type."""
    if not to.whole:
        return floating(x, to)
    wrapped = np.frompyfunc(lambda v: ((int(v) + 2**63) & (2**64 - 1)) - 2**63, 1, 1)(x)
    return cut(wrapped.astype(np.int64) if wrapped.__class__ is array else wrapped, to)


# ---- vectors
def spread(x: Lanes, n: int) -> Lanes:
    return np.broadcast_to(x, (n, x.shape[-1])) if x.__class__ is array else np.full((n, 1), x)


def vector(parts: Iterable[Lanes], of: Scalar) -> Lanes:
    rows: list[Any] = []
    for part in parts:
        rows.extend(part if part.__class__ is array and part.ndim == 2 else (part,))
    lanes = max(row.shape[0] if row.__class__ is array else 1 for row in rows)
    out = np.empty((len(rows), lanes), of.held)
    for i, row in enumerate(rows):
        out[i] = row
    return out


def element(v: Lanes, i: int) -> Lanes:
    if v.shape[1] > 1:
        return v[i]
    return v[i, 0] if v.dtype.kind == "f" else int(v[i, 0])


def numbers_of(x: Lanes) -> Lanes:
    """A row with one entry as one number for all lanes."""
    return x if x.shape[0] > 1 else x[0] if x.dtype.kind == "f" else x[0].item()


def shuffled(vectors: Sequence[Lanes], at: Lanes, n: int) -> Lanes:
    """shuffle and shuffle2: numbers of vectors by their places; n of them in all."""
    lanes = max(x.shape[1] for x in (*vectors, at))
    parts = [np.broadcast_to(v, (len(v), lanes)) for v in vectors]
    parts = [np.pad(v, ((0, 1), (0, 0))) if len(v) == 3 else v for v in parts]
    return np.take_along_axis(np.concatenate(parts), np.broadcast_to(at, (len(at), lanes)) % n, 0)


def changed(old: Lanes, at: Lanes, new: Lanes) -> Lanes:
    """The vector `old` with new numbers at these places."""
    lanes = max(x.shape[-1] for x in (new, old) if x.__class__ is array)
    out = np.empty((len(old), lanes), old.dtype)
    out[:] = old
    out[at] = new
    return out


# ---- arithmetic
def mad(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """a*b + c in double, which holds the product of two floats exactly."""
    return np.multiply(a, b, dtype=np.float64) + c


def fma(a: Lanes, b: Lanes, c: Lanes) -> Lanes:
    """a*b + c, rounded once: an inexact sum in double is made odd, so it is not half-way."""
    if np.result_type(a, b, c) == np.float64:
        return of_python(np.frompyfunc(_fused, 3, 1)(a, b, c), DOUBLE)
    return _odd_sum(np.multiply(a, b, dtype=np.float64), c)


def _odd_sum(x: Lanes, y: Lanes) -> Lanes:
    """The sum of doubles; one that is inexact is rounded to the neighbour with an odd last bit."""
    total = np.asarray(x + y)
    back = total - x
    error = (x - (total - back)) + (y - back)
    if not np.any(error):
        return total[()]
    even = (total.view(np.int64) & 1) == 0
    inexact = np.isfinite(total) & (error != 0)
    return np.where(even & inexact, np.nextafter(total, np.copysign(np.inf, error)), total)[()]


def _fused(a: float, b: float, c: float) -> float:
    """a*b + c of doubles, whose product a double cannot hold, by fractions."""
    if not (math.isfinite(a) and math.isfinite(b)):
        return a * b + c
    if not math.isfinite(c):
        return c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c  # with the right sign
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def dot(a: Lanes, b: Lanes) -> Lanes:
    return numbers_of((a * b).sum(0, dtype=a.dtype))


#: What atomic functions store, from the old value and their arguments.
ATOMICS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "inc": operator.add,
    "dec": operator.sub,
    "min": min,
    "max": max,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "xchg": lambda old, x: x,
    "cmpxchg": lambda old, compare, x: x if old == compare else old,
}


def _smooth(a: Lanes, b: Lanes, x: Lanes) -> Lanes:
    t = np.clip((x - a) / (b - a), 0, 1)
    return t * t * (3 - 2 * t)


def _extreme(larger: bool, a: Lanes, b: Lanes) -> Lanes:
    x, y = np.abs(a), np.abs(b)
    first, second = (x > y, x < y) if larger else (x < y, x > y)
    return np.where(first, a, np.where(second, b, (np.fmax if larger else np.fmin)(a, b)))


def _length(x: Lanes) -> Lanes:
    return numbers_of(np.hypot.reduce(x, 0)) if x.ndim == 2 else np.abs(x)


def _normalized(x: Lanes) -> Lanes:
    if x.ndim != 2:
        return _sign(x)
    length = _length(x)
    return np.where(length == 0, x, x / length)


def _sign(x: Lanes) -> Lanes:
    return np.where(x == 0, x, np.sign(x))


def _of_half_turns(x: Lanes, quarters: int) -> Lanes:
    """sin(pi*x + quarters*pi/2), exact where that is 0 or 1."""
    x = np.fmod(x, 2)
    nearest = np.rint(2 * x)
    rest = np.pi * (x - nearest / 2)
    at = (nearest + quarters) % 4
    sine, cosine = np.sin(rest), np.cos(rest)
    return np.select([at == 0, at == 1, at == 2, at == 3], [sine, cosine, -sine, -cosine], np.nan)


def _sinpi(x: Lanes) -> Lanes:
    y = _of_half_turns(x, 0)
    return np.where(y == 0, np.copysign(0, x), y)


def _cospi(x: Lanes) -> Lanes:
    return _of_half_turns(x, 1) + 0.0  # never -0


def _rootn(x: Lanes, n: Lanes) -> Lanes:
    root = np.power(np.abs(x), 1 / np.longdouble(n)).astype(float)  # 1/n as a double is too coarse
    is_odd = n % 2 == 1
    return np.where(
        (n == 0) | (~is_odd & (x < 0)), np.nan, np.where(is_odd, np.copysign(root, x), root)
    )


def _powr(x: Lanes, y: Lanes) -> Lanes:
    """exp(y * log(x)), and NaN where that is 0 * inf."""
    unclear = np.where(y == 0, (x == 0) | np.isinf(x), (x == 1) & np.isinf(y))
    unclear = unclear | (x < 0) | np.isnan(x) | np.isnan(y)
    return np.where(unclear, np.nan, np.power(np.abs(x), y))


def _logb(x: Lanes) -> Lanes:
    power = np.frexp(x)[1] - 1.0
    return np.where(x == 0, -np.inf, np.where(np.isfinite(x), power, np.abs(x)))


def _cross(a: Lanes, b: Lanes) -> Lanes:
    a, b = np.broadcast_arrays(a, b)
    rows = [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
    return np.array([*rows, *(np.zeros_like(a[0]) for _ in range(len(a) - 3))])


#: Functions of floats for all lanes at once, by their names in OpenCL C. They compute in double.
FUNCTIONS: dict[str, Callable[..., Any]] = {
    name: getattr(np, name)
    for name in words(
        "sqrt floor ceil trunc rint fmod fmin fmax copysign exp exp2 log log2 log10 log1p expm1 "
        "cbrt sin cos tan sinh cosh tanh hypot degrees radians"
    )
}
FUNCTIONS |= {
    f"a{name}": getattr(np, f"arc{name}") for name in words("sin cos tan sinh cosh tanh tan2")
}
FUNCTIONS |= {
    "exp10": lambda x: np.power(10.0, x),
    "sinpi": _sinpi,
    "cospi": _cospi,
    "tanpi": lambda x: _sinpi(x) / _cospi(x),
    "asinpi": lambda x: np.arcsin(x) / np.pi,
    "acospi": lambda x: np.arccos(x) / np.pi,
    "atanpi": lambda x: np.arctan(x) / np.pi,
    "atan2pi": lambda y, x: np.arctan2(y, x) / np.pi,
    "pow": np.power,
    "powr": _powr,
    "pown": np.power,
    "rootn": _rootn,
    "fabs": np.abs,
    "min": np.fmin,
    "max": np.fmax,
    "clamp": lambda x, low, high: np.fmin(np.fmax(x, low), high),
    "round": lambda x: np.copysign(np.trunc(np.abs(x) + np.nextafter(0.5, 0)), x),
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "recip": lambda x: 1 / x,
    "divide": np.true_divide,
    "fdim": lambda a, b: np.where(np.isnan(a) | np.isnan(b), np.nan, np.fmax(a - b, 0)),
    "maxmag": lambda a, b: _extreme(True, a, b),
    "minmag": lambda a, b: _extreme(False, a, b),
    "ldexp": lambda x, n: np.ldexp(x, n.astype(int)),
    "logb": _logb,
    "sign": lambda x: np.where(np.isnan(x), 0, _sign(x)),
    "mix": lambda a, b, t: a + (b - a) * t,
    "step": lambda edge, x: np.where(x < edge, 0.0, 1.0),
    "smoothstep": _smooth,
    "length": _length,
    "distance": lambda a, b: _length(a - b),
    "normalize": _normalized,
    "cross": _cross,
}


# ---- functions that are computed lane by lane, with Python's numbers
def _saturated(x: float, of: Scalar) -> int:
    return int(min(max(x, of.least), of.most))


def _rotated(x: int, by: int, of: Scalar) -> int:
    x, by = x & (2**of.bits - 1), by % of.bits
    return (x << by) | (x >> (of.bits - by))


def _gamma(function: Callable[..., Any], x: float) -> float:
    try:
        return function(x)
    except OverflowError:
        return math.copysign(math.inf, x)
    except ValueError:  # at 0, at negative whole numbers, and at -inf
        if function is math.lgamma:
            return math.inf
        return math.nan if x else math.copysign(math.inf, x)


def _normal(x: float, of: Scalar) -> bool:
    return math.isfinite(x) and abs(x) >= float(np.finfo(of.dtype).tiny)


def _fract(x: float, of: Scalar) -> tuple[float, float]:
    if not math.isfinite(x):
        return (math.copysign(0.0, x) if math.isinf(x) else x), x
    below = math.copysign(math.floor(x), x)
    return min(x - below, 1 - float(np.finfo(of.dtype).epsneg)), below


#: By name: a function of Python's numbers and of the type of the first ...
_TYPED: dict[str, Callable[..., Any]] = {
    "add_sat": lambda a, b, of: _saturated(a + b, of),
    "sub_sat": lambda a, b, of: _saturated(a - b, of),
    "clz": lambda x, of: of.bits - (x & (2**of.bits - 1)).bit_length(),
    "popcount": lambda x, of: bin(x & (2**of.bits - 1)).count("1"),
    "mul_hi": lambda a, b, of: (a * b) >> of.bits,
    "mad_hi": lambda a, b, c, of: ((a * b) >> of.bits) + c,
    "mad_sat": lambda a, b, c, of: _saturated(a * b + c, of),
    "rotate": _rotated,
    "upsample": lambda a, b, of: (a << of.bits) | b,
    "isnormal": _normal,
    "fract": _fract,
}
#: ... or of the numbers alone.
EACH: dict[str, Callable[..., Any]] = _TYPED | {
    "abs": abs,
    "abs_diff": lambda a, b: abs(a - b),
    "min": min,
    "max": max,
    "clamp": lambda x, low, high: min(max(x, low), high),
    "mul24": operator.mul,
    "mad24": lambda a, b, c: a * b + c,
    "hadd": lambda a, b: (a + b) >> 1,
    "rhadd": lambda a, b: (a + b + 1) >> 1,
    "isfinite": math.isfinite,
    "isinf": math.isinf,
    "isnan": math.isnan,
    "signbit": lambda x: math.copysign(1, x) < 0,
    "isequal": operator.eq,
    "isnotequal": operator.ne,
    "isless": operator.lt,
    "isgreater": operator.gt,
    "islessequal": operator.le,
    "isgreaterequal": operator.ge,
    "islessgreater": lambda a, b: a < b or a > b,
    "isordered": lambda a, b: a == a and b == b,
    "isunordered": lambda a, b: a != a or b != b,
    "erf": math.erf,
    "erfc": math.erfc,
    "tgamma": partial(_gamma, math.gamma),
    "lgamma": partial(_gamma, math.lgamma),
    "nan": lambda x: math.nan,
    "ilogb": lambda x: (
        math.frexp(x)[1] - 1 if x and math.isfinite(x) else -(2**31) if x == 0 else 2**31 - 1
    ),
    "remainder": lambda a, b: math.remainder(a, b) if b and math.isfinite(a) else math.nan,
}


_RELATIONS = {name for name in EACH if name.startswith("is") or name == "signbit"}


def _remquo(a: float, b: float) -> tuple[float, int]:
    """The remainder, and the lower seven bits of the quotient with its sign."""
    if not b or not math.isfinite(a) or math.isnan(b):
        return math.nan, 0
    rest = math.remainder(a, b)
    if math.isinf(b):
        return rest, 0
    quotient = int((Fraction(a) - Fraction(rest)) / Fraction(b))
    return rest, (abs(quotient) & 127) * (1 if quotient > 0 else -1)


def _lgamma_r(x: float) -> tuple[float, int]:
    """The logarithm of the absolute value of the gamma function, and the sign of that function."""
    negative = x == 0 and math.copysign(1, x) < 0
    if x < 0 and math.isfinite(x):
        negative = math.floor(x) % 2 == 1
    return _gamma(math.lgamma, x), -1 if negative else 1


#: Functions with two results; the second is stored where a pointer points.
EACH |= {
    "modf": math.modf,
    "sincos": lambda x: (math.sin(x), math.cos(x)) if math.isfinite(x) else (math.nan, math.nan),
    "frexp": math.frexp,
    "lgamma_r": _lgamma_r,
    "remquo": _remquo,
}


def each(
    name: str, given: Sequence[Lanes], types: list[Scalar], results: list[Scalar], vector: bool
) -> list[Lanes]:
    """The one or two results of a function of `EACH`; what compares gives -1 in vectors, else 1."""
    meant = [unsigned(v) if t.name == "ulong" else v for v, t in zip(given, types, strict=True)]
    function = partial(EACH[name], of=types[0]) if name in _TYPED else EACH[name]
    found = np.frompyfunc(function, len(meant), len(results))(*meant)
    if name in _RELATIONS and vector:
        found = found * -1
    columns = [found] if len(results) == 1 else found
    return [of_python(x, to) for x, to in zip(columns, results, strict=True)]
