"""The types of OpenCL C that a kernel may use: numbers, vectors of them, pointers, arrays."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np


@dataclass(frozen=True, eq=False)
class Scalar:
    """A type of numbers: its bytes, its kind ("bool", "int", "uint" or "float"), and which of two types wins."""

    name: str
    size: int
    kind: str
    rank: int
    dtype: np.dtype

    def __str__(self) -> str:
        return self.name

    @cached_property
    def whole(self) -> bool:
        return self.kind != "float"

    @property
    def bits(self) -> int:
        return 8 * self.size

    @cached_property
    def least(self) -> int:
        """The smallest whole number of this type."""
        return -(2 ** (self.bits - 1)) if self.kind == "int" else 0

    @cached_property
    def most(self) -> int:
        """The largest whole number of this type."""
        return 2 ** (self.bits - (self.kind == "int")) - 1

    @property
    def held(self) -> type:
        """As what an array over work-items holds such numbers."""
        return np.int64 if self.whole else self.dtype.type


@dataclass(frozen=True)
class Vector:
    """2, 3, 4, 8 or 16 numbers of one type."""

    of: Scalar
    n: int

    def __str__(self) -> str:
        return f"{self.of}{self.n}"


@dataclass(frozen=True)
class Pointer:
    """Where values of another type lie; `space` is "global", "local" or "private"."""

    to: Type
    space: str = "private"

    def __str__(self) -> str:
        return f"{'' if self.space == 'private' else self.space + ' '}{self.to}*"


@dataclass(frozen=True)
class Array:
    """n values of another type, one behind the other."""

    of: Type
    n: int

    def __str__(self) -> str:
        leaf, sizes = leaf_of(self)
        return f"{leaf}{''.join(f'[{n}]' for n in sizes)}"


@dataclass(frozen=True)
class Void:
    """Nothing: what a kernel returns."""

    def __str__(self) -> str:
        return "void"


Type = Scalar | Vector | Pointer | Array | Void


def _scalar(name: str, kind: str, rank: int, dtype: str) -> Scalar:
    return Scalar(name, np.dtype(dtype).itemsize, kind, rank, np.dtype(dtype))


BOOL = _scalar("bool", "bool", 0, "?")
INT = _scalar("int", "int", 3, "i4")
UINT = _scalar("uint", "uint", 4, "u4")
LONG = _scalar("long", "int", 5, "i8")
ULONG = _scalar("ulong", "uint", 6, "u8")
HALF = _scalar("half", "float", 7, "f2")
FLOAT = _scalar("float", "float", 8, "f4")
DOUBLE = _scalar("double", "float", 9, "f8")
CHAR, UCHAR = _scalar("char", "int", 1, "i1"), _scalar("uchar", "uint", 1, "u1")
SHORT, USHORT = _scalar("short", "int", 2, "i2"), _scalar("ushort", "uint", 2, "u2")
VOID = Void()

SCALARS: dict[str, Scalar] = {
    s.name: s for s in (BOOL, CHAR, UCHAR, SHORT, USHORT, INT, UINT, LONG, ULONG, HALF, FLOAT, DOUBLE)
} | {"size_t": ULONG, "uintptr_t": ULONG, "ptrdiff_t": LONG, "intptr_t": LONG}
_VECTOR = re.compile(r"([a-z]+)(2|3|4|8|16)")


@cache
def named(name: str) -> Type | None:
    """The type of a name such as "float4", or None."""
    if name in SCALARS:
        return SCALARS[name]
    if name == "void":
        return VOID
    match = _VECTOR.fullmatch(name)
    if match and match[1] in SCALARS and match[1] != "bool" and "_" not in match[1]:
        return Vector(SCALARS[match[1]], int(match[2]))
    return None


def scalar_of(t: Type) -> Scalar:
    """The type of the numbers in a scalar or vector; of a pointer, ULONG."""
    if isinstance(t, Vector):
        return t.of
    return t if isinstance(t, Scalar) else ULONG


def length(t: Type) -> int:
    """How many numbers a value has: 1, or those of a vector."""
    return t.n if isinstance(t, Vector) else 1


def stride(t: Type) -> int:
    """From one value of this type to the next in memory, in bytes."""
    if isinstance(t, Vector):
        return t.of.size * (4 if t.n == 3 else t.n)
    if isinstance(t, Array):
        return t.n * stride(t.of)
    return t.size if isinstance(t, Scalar) else 1 if isinstance(t, Void) else 8


def leaf_of(t: Type) -> tuple[Type, tuple[int, ...]]:
    """What an array, or an array of arrays, is made of, and its sizes; anything else has none."""
    sizes: tuple[int, ...] = ()
    while isinstance(t, Array):
        sizes = (*sizes, t.n)
        t = t.of
    return t, sizes


def layout(t: Type) -> tuple[Scalar, tuple[int, ...]]:
    """How an array lies in memory: the type of its numbers, and its sizes with that of a vector as the last."""
    leaf, sizes = leaf_of(t)
    wide = stride(leaf) // scalar_of(leaf).size
    return scalar_of(leaf), sizes if wide == 1 else (*sizes, wide)


def an(t: Type) -> str:
    """A type with its article: "an int", "a float"."""
    return f"an {t}" if str(t).startswith("int") else f"a {t}"
