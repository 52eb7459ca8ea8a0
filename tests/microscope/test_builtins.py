"""Every built-in function of numbers beside a real runtime, on special values: zeros, infinities,
NaN, denormals, whole numbers, halves, and the limits of each type.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pytest
from microscope.harness import pocl

import clscope
from clscope.builtins import FUNCTIONS, overloads
from clscope.types import FLOAT, HALF, INT, UINT, Pointer, Scalar, Type, Vector, words

#: Units in the last place by which a result may differ from the exact one (OpenCL 1.2, section
#: 7.4); 0 for all others.
ULPS = {
    name: ulps
    for ulps, names in {
        2: "log1p rsqrt cbrt",
        3: "exp exp2 exp10 expm1 log log2 log10 sqrt recip divide",
        4: "acos asin acosh asinh cos sin cosh sinh cospi sinpi sincos hypot",
        5: "acospi asinpi atan atanpi atanh tan tanh",
        6: "atan2 atan2pi tanpi",
        16: "erf erfc pow powr pown rootn tgamma "
        # without a bound in the specification
        "degrees radians mix smoothstep mad lgamma lgamma_r dot length distance normalize cross",
    }.items()
    for name in words(names)
}
#: Functions that may be inexact: compared for plain numbers.
LOOSE, LOOSE_ULPS = ("native_", "half_", "fast_"), 8192
#: Functions whose terms may overflow or cancel: compared to the size of their arguments.
MODERATE = {*words("mix mad smoothstep dot cross lgamma lgamma_r length distance normalize")}
#: Functions of which PoCL computes one element of a vector badly if another one is huge.
PERIODIC = {"sin", "cos", "tan", "sincos"}
#: Functions of which runtimes return a zero of either sign.
ANY_ZERO = {"fract", "fmin", "fmax", "remquo"}
#: Functions whose results for NaN are undefined ...
NO_NAN = {"ilogb", "min", "max", "clamp", "step"} | MODERATE
#: ... and those of which an argument has to be less than another one.
ORDERED = {"clamp": (1, 2), "smoothstep": (0, 1)}


class Version(NamedTuple):
    """Functions with the same types."""

    result: Type
    params: tuple[Type, ...]
    names: tuple[str, ...]

    @property
    def inputs(self) -> list[Type]:
        return [p for p in self.params if not isinstance(p, Pointer)]

    @property
    def second(self) -> Type | None:
        """What is stored where a pointer points."""
        return next((p.to for p in self.params if isinstance(p, Pointer)), None)

    def __str__(self) -> str:
        return f"{self.result}({','.join(map(str, self.params))})"


def fits(of: Type) -> bool:
    """Numbers, and vectors of some types; but half, which few CPUs have."""
    if isinstance(of, Pointer):
        return of.space == "private" and fits(of.to)
    if isinstance(of, Vector):
        return of.n == 3 and of.scalar in (FLOAT, INT, UINT)
    return isinstance(of, Scalar) and of is not HALF


def versions() -> list[Version]:
    """All functions of numbers, by their types."""
    found: dict[tuple[Type, tuple[Type, ...]], list[str]] = {}
    for name in FUNCTIONS:
        for result, params in overloads(name):
            if not name.startswith("get_") and all(map(fits, (result, *params))):
                found.setdefault((result, params), []).append(name)
    return [Version(*types, tuple(names)) for types, names in found.items()]


def special(of: Scalar, few: bool) -> np.ndarray:
    """Numbers of a type at which functions go wrong."""
    if of.whole:
        ends = [of.least, of.least + 1, of.most // 3, of.most - 1, of.most]
        inner = [0, 1, 2, 5, -1, -3] if few else [0, 1, 2, 3, 5, 31, of.bits - 1, -1, -2, -5]
        return np.array(
            [x for x in dict.fromkeys(ends + inner) if of.least <= x <= of.most], of.code
        )
    f, one = np.finfo(of.dtype), of.dtype.type(1)
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, f.smallest_subnormal, -f.tiny, f.max]
    inner = [1, -1, 2, -2.5, 0.5, np.pi, -4]
    more = [
        f.tiny,
        -3 * f.smallest_subnormal,
        f.tiny * 0.75,
        -f.max,
        0.5 / f.eps + 0.5,
        1 / f.eps + 1,
    ]
    more += [-0.5, 0.25, -0.75, 1.5, -2, 2.5, 3, -3, 4, 5, -5, 8, 33, 88.5, -100, -103, 1e5, -1e10]
    more += [np.nextafter(one * x, one * y) for x, y in ((0.5, 0), (8, 0), (1, 0), (1, 2))]
    return np.array(ends + inner + more * (not few), of.dtype)


def arguments(version: Version) -> list[np.ndarray]:
    """All combinations of special values, or vectors of such: a row for each call."""
    inputs = version.inputs
    values = (special(of.scalar, len(inputs) == 3) for of in inputs)
    grid = [x.ravel() for x in np.meshgrid(*values, indexing="ij")]
    return [
        np.stack([np.roll(x, i) for i in range(of.length)], 1)
        for x, of in zip(grid, inputs, strict=True)
    ]


def text(version: Version, count: int) -> str:
    """A kernel that calls each function once in each work-item."""

    def load(number: int, of: Type) -> str:
        return f"vload3(i, a{number})" if isinstance(of, Vector) else f"a{number}[i]"

    def store(value: str, to: str, place: str, of: Type) -> str:
        if isinstance(of, Vector):
            return f"vstore3({value}, {place}, {to});"
        return f"{to}[{place}] = {value};"

    second = version.second
    given = [load(number, of) for number, of in enumerate(version.inputs)]
    params = [f"__global const {of.scalar}* a{i}" for i, of in enumerate(version.inputs)]
    params.append(f"__global {version.result.scalar}* r")
    lines = ["size_t i = get_global_id(0);"]
    if second:
        params.append(f"__global {second.scalar}* s")
        lines.append(f"{second} t = 0;")
        given.append("&t")
    for number, name in enumerate(version.names):
        place = f"i + {number * count}"
        lines.append(store(f"{name}({', '.join(given)})", "r", place, version.result))
        if second:
            lines.append(store("t", "s", place, second))
    body = "\n    ".join(lines)
    return f"__kernel void f({', '.join(params)}) {{\n    {body}\n}}\n"


def both(version: Version, given: list[np.ndarray]) -> list[list[np.ndarray]]:
    """The results of the simulator, and those of PoCL: by function, call, and element."""
    names, count = version.names, len(given[0])
    source = text(version, count)
    kinds = [version.result, *[version.second] * (version.second is not None)]
    empty = [np.zeros((len(names), count, of.length), of.scalar.dtype) for of in kinds]
    run = clscope.run(source, "f", (count,), (count,), [*given, *empty])
    inputs = map(np.ascontiguousarray, given)
    after = pocl().launch(source, "f", (count,), (1,), [*inputs, *empty])
    ours = [run.arrays[name].reshape(x.shape) for name, x in zip("rs", empty, strict=False)]
    return [ours, after[len(given) :]]


def defined(name: str, given: list[np.ndarray]) -> np.ndarray:
    """For which arguments the specification defines a function's result."""
    every = np.ones(len(given[0]), bool)
    floats = [x for x in given if x.dtype.kind == "f"]
    for x in floats:
        size = abs(x)
        if name in NO_NAN or name.startswith(LOOSE):
            every &= ~np.isnan(x).any(1)
        if name.startswith(LOOSE):
            every &= ((x == 0) | (size > 1e-3) & (size < 50)).all(1)
        if name in MODERATE or (name in PERIODIC and x.shape[1] > 1):
            every &= (size < 1e6).all(1)
    if name in ORDERED:
        low, high = (given[number] for number in ORDERED[name])
        every &= (low < high).all(1)
    if name in ("mul24", "mad24"):
        for x in given[:2]:
            least = 0 if x.dtype.kind == "u" else -(2**23)
            every &= ((x >= least) & (x < least + 2**24)).all(1)
    return every


def differ(name: str, given: list[np.ndarray], ours: np.ndarray, theirs: np.ndarray) -> np.ndarray:
    """Where two results are further apart than both may be from the exact one."""
    if theirs.dtype.kind != "f":
        return (ours != theirs).any(1)
    ulps = LOOSE_ULPS if name.startswith(LOOSE) else ULPS.get(name, 0)
    with np.errstate(all="ignore"):
        limits, exact = np.finfo(theirs.dtype), theirs.astype(np.longdouble)
        size = np.maximum(abs(exact), limits.tiny)
        if name in MODERATE:
            size = np.maximum(size, np.prod([1 + abs(x).max(1) for x in given], 0)[:, None])
        unit = 2.0 ** (np.floor(np.log2(size)) - limits.nmant)
        near = abs(ours.astype(np.longdouble) - exact) <= 2 * ulps * unit
    same = (ours == theirs) | (np.isnan(ours) & np.isnan(theirs))
    if not ulps and name not in ANY_ZERO:
        same &= (np.signbit(ours) == np.signbit(theirs)) | np.isnan(ours)
    return ~(same | near).all(1)


@pytest.mark.sampled(3)
@pytest.mark.optimised(False)
@pytest.mark.parametrize("version", versions(), ids=str)
def test_built_in_functions_compute_what_a_runtime_does(version):
    given = arguments(version)
    ours, theirs = both(version, given)
    wrong = []
    for number, name in enumerate(version.names):
        counts = defined(name, given)
        for x, y in zip(ours, theirs, strict=True):
            for i in np.flatnonzero(counts & differ(name, given, x[number], y[number]))[:3]:
                call = f"{name}({', '.join(str(value[i]) for value in given)})"
                wrong.append(f"{call}: {x[number, i]}, not {y[number, i]}")
    assert not wrong


@pytest.mark.parametrize(
    ("call", "value"),
    [
        ("sinpi(-3.0f)", -0.0), ("sinpi(3.0f)", 0.0), ("cospi(2.5f)", 0.0), ("tanpi(3.0f)", -0.0),
        ("rootn(-4.0f, 2)", np.nan), ("powr(1.0f, INFINITY)", np.nan),
        ("logb(0x1.fffffffffffffp+2)", 2.0), ("(float)isnormal((half)0x1p-14f)", 1.0),
        ("(float)isnormal((half)0x1p-15f)", 0.0),
        ("fma(1 + 0x1p-52, 1 - 0x1p-52, -1.0)", -(2.0**-104)),
    ],
)  # fmt: skip
def test_results_that_the_specification_states(call, value):
    """Signs of zeros, in which runtimes differ, and half, which few have."""
    source = f"__kernel void f(__global double* r) {{ r[0] = {call}; }}"
    (found,) = clscope.run(source, "f", (1,), (1,), [np.zeros(1)]).arrays["r"]
    assert repr(float(found)) == repr(float(value))
