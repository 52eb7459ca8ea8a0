"""The types of OpenCL C that a kernel may use, and how they convert. (NumPy is only needed for
`Scalar.dtype`.)
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np


def words(text: str) -> frozenset[str]:
    return frozenset(text.split())


class Laid:
    """How the values of a type lie in memory, of all types in one place."""

    @property
    def scalar(self) -> Scalar:
        """The type of a number or of those in a vector; of a pointer, ULONG; of a struct, bytes."""
        if isinstance(self, Vector):
            return self.of
        if isinstance(self, Struct):
            return UCHAR
        return self if isinstance(self, Scalar) else ULONG

    @property
    def length(self) -> int:
        """How many numbers a value has: 1, those of a vector, or the bytes of a struct."""
        return self.n if isinstance(self, Vector) else self.size if isinstance(self, Struct) else 1

    @property
    def stride(self) -> int:
        """Bytes from one to the next."""
        if isinstance(self, Vector):
            return self.of.size * (4 if self.n == 3 else self.n)
        if isinstance(self, Array):
            return self.n * self.of.stride
        if isinstance(self, (Scalar, Struct)):
            return self.size
        return 1 if self is VOID else 8

    @property
    def alignment(self) -> int:
        if isinstance(self, Array):
            return self.of.alignment
        return self.align if isinstance(self, Struct) else self.stride


@dataclass(frozen=True, eq=False)
class Scalar(Laid):
    """A type of numbers: size in bytes, kind ("bool", "int", "uint", "float") and rank."""

    name: str
    size: int
    kind: str
    rank: int
    code: str  # of NumPy

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        """Each type is one object, also in a run that came from another process."""
        return named, (self.name,)

    @cached_property
    def dtype(self) -> np.dtype:
        import numpy

        return numpy.dtype(self.code)

    @cached_property
    def whole(self) -> bool:
        return self.kind != "float"

    @property
    def bits(self) -> int:
        return 8 * self.size

    @cached_property
    def least(self) -> int:
        return -(2 ** (self.bits - 1)) if self.kind == "int" else 0

    @cached_property
    def most(self) -> int:
        return 2 ** (self.bits - (self.kind == "int")) - 1

    @cached_property
    def held(self) -> type:
        """As what an array over work-items holds such numbers."""
        import numpy

        return numpy.int64 if self.whole else self.dtype.type


@dataclass(frozen=True)
class Vector(Laid):
    """2, 3, 4, 8 or 16 numbers of one type."""

    of: Scalar
    n: int

    def __str__(self) -> str:
        return f"{self.of}{self.n}"


@dataclass(frozen=True)
class Pointer(Laid):
    """Where values of another type lie.

    `space` is "global", "constant", "local" or "private"; `const` says whether they may only be
    read.
    """

    to: Type
    space: str = "private"
    const: bool = False

    def __str__(self) -> str:
        shown = f"{'' if self.space == 'private' else self.space + ' '}"
        if isinstance(self.to, Array):
            leaf, sizes = leaf_of(self.to)
            return f"{shown}{leaf} (*){''.join(f'[{n}]' for n in sizes)}"
        return f"{shown}{self.to}*"


@dataclass(frozen=True)
class Array(Laid):
    """n values of another type, one after the other; n is 0 while it is not known."""

    of: Type
    n: int

    def __str__(self) -> str:
        leaf, sizes = leaf_of(self)
        return f"{leaf}{''.join(f'[{n}]' for n in sizes)}"


@dataclass(frozen=True)
class Field:
    """A part of a structure, and how many bytes after its beginning."""

    name: str
    type: Type
    offset: int = 0
    align: int = 1  # what an attribute asks for


@dataclass(eq=False)
class Struct(Laid):
    """A struct or union; `complete` once its fields are known."""

    name: str
    union: bool = False
    fields: list[Field] = field(default_factory=list)
    size: int = 0
    align: int = 1
    complete: bool = False

    def __str__(self) -> str:
        return self.name

    def lay_out(self, packed: bool, align: int) -> None:
        """Set the fields' offsets, multiples of their alignments, and the size. `align` is at least
        1.
        """
        for number, one in enumerate(self.fields):
            own = max(one.align, 1 if packed else one.type.alignment)
            offset = 0 if self.union else -(-self.size // own) * own
            self.fields[number] = Field(one.name, one.type, offset)
            self.size = max(self.size, offset + one.type.stride)
            align = max(align, own)
        self.align = align
        self.size = -(-self.size // align) * align
        self.complete = True

    def find(self, name: str) -> Field | None:
        """The field of this name, also inside a field without a name."""
        for one in self.fields:
            if one.name == name:
                return one
            inner = one.type.find(name) if not one.name and isinstance(one.type, Struct) else None
            if inner:
                return replace(inner, offset=one.offset + inner.offset)
        return None


@dataclass(frozen=True)
class Opaque(Laid):
    """A type whose values are unknown to this simulator (images, samplers, events), or void."""

    name: str

    def __str__(self) -> str:
        return self.name


Type = Scalar | Vector | Pointer | Array | Struct | Opaque

BOOL = Scalar("bool", 1, "bool", 0, "?")
CHAR, UCHAR = Scalar("char", 1, "int", 1, "i1"), Scalar("uchar", 1, "uint", 1, "u1")
SHORT, USHORT = Scalar("short", 2, "int", 2, "i2"), Scalar("ushort", 2, "uint", 2, "u2")
INT, UINT = Scalar("int", 4, "int", 3, "i4"), Scalar("uint", 4, "uint", 4, "u4")
LONG, ULONG = Scalar("long", 8, "int", 5, "i8"), Scalar("ulong", 8, "uint", 6, "u8")
HALF = Scalar("half", 2, "float", 7, "f2")
FLOAT, DOUBLE = Scalar("float", 4, "float", 8, "f4"), Scalar("double", 8, "float", 9, "f8")
VOID, EVENT = Opaque("void"), Opaque("event_t")

NUMBERS = (CHAR, UCHAR, SHORT, USHORT, INT, UINT, LONG, ULONG, FLOAT, DOUBLE)
WIDTHS = (2, 3, 4, 8, 16)
SCALARS: dict[str, Scalar] = {s.name: s for s in (BOOL, *NUMBERS, HALF)} | {
    "size_t": ULONG,
    "uintptr_t": ULONG,
    "ptrdiff_t": LONG,
    "intptr_t": LONG,
    "cl_mem_fence_flags": UINT,
}
#: What the words of a type mean together, in the order of the alphabet.
WORDS: dict[str, Scalar] = {
    "char": CHAR, "char signed": CHAR, "char unsigned": UCHAR,
    "short": SHORT, "short signed": SHORT, "int short": SHORT, "int short signed": SHORT,
    "short unsigned": USHORT, "int short unsigned": USHORT,
    "int": INT, "signed": INT, "int signed": INT, "unsigned": UINT, "int unsigned": UINT,
    "long": LONG, "long signed": LONG, "int long": LONG, "int long signed": LONG,
    "long unsigned": ULONG, "int long unsigned": ULONG,
    "float": FLOAT, "double": DOUBLE,
}  # fmt: skip
WORDS |= {words.replace("long", "long long"): of for words, of in WORDS.items() if "long" in words}
OPAQUE = words(
    "event_t sampler_t image1d_t image1d_array_t image1d_buffer_t image2d_t image2d_array_t "
    "image3d_t"
)
_VECTOR = re.compile(r"([a-z]+)(2|3|4|8|16)")


@cache
def named(name: str) -> Type | None:
    """The type of a name such as "float4", or None."""
    if name in SCALARS:
        return SCALARS[name]
    if name == "void":
        return VOID
    if name in OPAQUE:
        return Opaque(name)
    match = _VECTOR.fullmatch(name)
    if match and match[1] in SCALARS and match[1] != "bool":
        return Vector(SCALARS[match[1]], int(match[2]))
    return None


def unreadable(t: Type) -> bool:
    """Whether a pointer to this type is all that a kernel can have of it."""
    return isinstance(t, Opaque) and t != EVENT


def leaf_of(t: Type) -> tuple[Type, tuple[int, ...]]:
    """What an array, or an array of arrays, is made of, and its sizes; anything else has none."""
    sizes: tuple[int, ...] = ()
    while isinstance(t, Array):
        sizes = (*sizes, t.n)
        t = t.of
    return t, sizes


def layout(t: Type) -> tuple[Scalar, tuple[int, ...]]:
    """How an array is held: the type of its numbers, and its sizes, a vector's last."""
    leaf, sizes = leaf_of(t)
    wide = leaf.stride // leaf.scalar.size
    return leaf.scalar, sizes if wide == 1 else (*sizes, wide)


def with_size(t: Type, scalar: Scalar) -> Type:
    return Vector(scalar, t.n) if isinstance(t, Vector) else scalar


def compared(t: Type) -> Type:
    """What comparisons of a type give: an int, or for vectors whole numbers of the same size."""
    return Vector(as_signed(t.of), t.n) if isinstance(t, Vector) else INT


def as_signed(scalar: Scalar) -> Scalar:
    return {1: CHAR, 2: SHORT, 4: INT, 8: LONG}[scalar.size]


def as_unsigned(scalar: Scalar) -> Scalar:
    return {1: UCHAR, 2: USHORT, 4: UINT, 8: ULONG}[scalar.size]


def promoted(scalar: Scalar) -> Scalar:
    """What numbers smaller than int become in an expression."""
    return INT if scalar.rank < INT.rank else scalar


def an(t: Type) -> str:
    """A type with its article: "an int", "a float"."""
    return f"an {t}" if str(t)[0] in "ie" else f"a {t}"
