"""Memory in WGSL: arrays, what a pointer points to, and the values that an expression has.

WGSL has no pointers that move. A pointer is followed to its array when the kernel is translated;
what remains of it at run time is an offset, counted in numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from .. import tree
from ..text import TextError
from ..types import (
    BOOL,
    FLOAT,
    INT,
    LONG,
    UINT,
    ULONG,
    VOID,
    Array,
    Pointer,
    Scalar,
    Type,
    Vector,
    leaf_of,
)
from .names import unused

#: How tightly an expression binds: what needs no brackets as the operand of what.
ATOM, UNARY, PRODUCT, SUM, COMPARISON, LOOSE = 9, 8, 7, 6, 5, 0
#: The least and the greatest value of a whole number.
Range = tuple[int, int]
#: Lines of WGSL, each with the line of the kernel's text that it comes from.
Lines = list[tuple[str, int]]
#: What a refusal points to.
Node = tree.Node | tree.Variable
_Result = TypeVar("_Result")


class RefusedError(TextError):
    """Valid OpenCL C that WGSL cannot say; the message names what and why."""

    kind = "refused"


def refuse(message: str, node: Node) -> RefusedError:
    return RefusedError(message, node.spot)


@dataclass
class Snippet:
    """What an expression became: its WGSL code.

    `range` bounds a whole number where both ends are proved. `ref` is what a pointer points to;
    the code of a pointer that moves is the variable that holds its offset. `fixed` says that WGSL
    computes the code, or an element of it, when it compiles: there, overflow is an error.
    """

    code: str
    type: Type
    level: int = ATOM
    constant: float | None = None
    range: Range | None = None
    named: bool = False  # a name or a number: using it twice costs nothing
    ref: Ref | None = None
    fixed: bool = False

    def at_least(self, level: int) -> str:
        """The code, in brackets unless it binds at least as tightly as `level`."""
        return self.code if self.level >= level else f"({self.code})"


@dataclass(eq=False)
class ShaderArray:
    """An array of WGSL.

    Attributes:
        width: numbers per element: 1, 2 or 4.
        shape: elements per dimension; () for a buffer, whose length only the host knows.
        kept: how many dimensions are the kernel's own; those after them are one, in numbers.
        written: whether the kernel stores to it.
        variable: whose array it is; None for a buffer.
    """

    name: str
    scalar: Scalar
    width: int
    space: str
    shape: tuple[int, ...] = ()
    kept: int = 0
    written: bool = False
    variable: tree.Variable | None = None


@dataclass
class Ref:
    """Something in memory, or what a pointer points to: the indices of the dimensions kept, then a
    sum of unit*value, in numbers.
    """

    memory: ShaderArray
    type: Type
    indices: tuple[Snippet, ...] = ()
    terms: tuple[tuple[int, Snippet], ...] = ()


class KeptError(Exception):
    """An array cannot keep so many dimensions, as a pointer moves in them: begin again with fewer.

    A pointer to a row must provably stay in that row; if it may leave it, no dimension is kept.
    """

    def __init__(self, memory: ShaderArray, kept: int):
        self.variable, self.kept = memory.variable, kept


def numbers_of(of: Type) -> int:
    """How many numbers a value or an array has."""
    leaf, sizes = leaf_of(of)
    return math.prod(sizes) * leaf.length


def plus(code: str, i: int) -> str:
    if i == 0:
        return code
    return str(int(code) + i) if code.lstrip("-").isdigit() else f"{code} + {i}"


@dataclass(frozen=True)
class Style:
    """How a kernel is written in WGSL.

    Attributes:
        laid_out: loops over private arrays become as many statements. naga, the compiler of
            Firefox, counts the iterations of every loop, and keeps no array of such a loop in
            registers.
        watched: every index is checked and every loop counted; the first mistake is reported.
        counted: a loop that is not proved to end is counted. One that goes on for too long ends,
            is reported, and no later work-group begins.
    """

    laid_out: bool = False
    watched: bool = False
    counted: bool = False


class Writer:
    """Emits lines, names variables, and reads and writes memory."""

    def __init__(self, style: Style, kept: Mapping[tree.Variable | None, int]):
        self.style = style
        self.kept = kept  # of arrays that do not keep all dimensions: how many they keep
        self.size = 1, 1, 1  # of a work-group
        self.local_bytes = 0
        # the module: what comes before its functions, these, and the names of those written
        self.top: Lines = []
        self.bodies: Lines = []
        self.special: dict[tuple[Any, ...], tuple[str, set[str]]] = {}
        self.counted: list[int] = []  # lines of the loops whose iterations are counted
        # a function: its lines, and the line of the text that they come from
        self.lines: Lines = []
        self.depth = 1
        self.line = 0
        self.result: Type = VOID
        self.loops = False  # whether it counts iterations
        self.ids: set[str] = set()
        self.scopes: list[set[str]] = [set()]
        self.entries: dict[tree.Variable, Snippet | Ref] = {}  # a Ref for what is in memory

    # ---- lines and names
    def emit(self, code: str) -> None:
        self.lines.append(("    " * self.depth + code, self.line))

    def claim(self, name: str, module: bool = False) -> str:
        """A name that nothing visible has; the module's names are visible everywhere."""
        chosen = unused(name, self.scopes)
        self.scopes[0 if module else -1].add(chosen)
        return chosen

    def keep(self, value: Snippet) -> Snippet:
        """The same value under a name."""
        if value.named or value.ref is not None:
            return value
        name = self.claim("t")
        self.emit(f"let {name} = {value.code};")
        return replace(value, code=name, level=ATOM, named=True)

    def computed(self, value: Snippet) -> Snippet:
        """Return the same value, computed when the kernel runs."""
        if not value.fixed:
            return value
        name = self.claim("t")
        self.emit(f"var {name} = {value.code};")
        return Snippet(name, value.type, named=True)

    def captured(self, work: Callable[[], _Result]) -> tuple[Lines, _Result]:
        """The lines that `work` emits, which are not emitted yet, and its result."""
        outer, self.lines = self.lines, []
        try:
            result = work()
            return self.lines, result
        finally:
            self.lines = outer

    # ---- types and numbers
    def scalar_type(self, of: Scalar, node: Node) -> str:
        names = {BOOL: "bool", INT: "i32", LONG: "i32", UINT: "u32", ULONG: "u32", FLOAT: "f32"}
        if of not in names:
            hint = "; write float constants with an f, as in 2.0f" if of.name == "double" else ""
            raise refuse(f"WGSL has no {of}{hint}", node)
        return names[of]

    def value_type(self, of: Type, node: Node) -> str:
        if not isinstance(of, (Scalar, Vector)):
            raise refuse(f"WGSL has no variable of type {of}", node)
        scalar, n = self.scalar_type(of.scalar, node), of.length
        if n not in (1, 2, 4):
            raise refuse(f"vectors of {n} numbers are not translated; use two or four", node)
        return scalar if n == 1 else f"vec{n}<{scalar}>"

    def literal(self, value: float, of: Scalar, node: Node) -> Snippet:
        kind = self.scalar_type(of, node)
        if not of.whole:
            if not math.isfinite(value):  # no constant of WGSL is, but a variable may be
                name, bits = self.claim("bits"), 0x7FC00000 if math.isnan(value) else 0x7F800000
                self.emit(f"var {name} = {bits:#x}u;")
                return Snippet(f"{'-' if value < 0 else ''}bitcast<f32>({name})", of, UNARY)
            code = f"{float(value)!r}f"
            code = code if value >= 0 else f"({code})"
            return Snippet(code, of, ATOM, value, named=True, fixed=True)
        whole = int(value)
        least, end = (-(2**31), 2**31) if kind == "i32" else (0, 2**32)
        if not least <= whole < end:
            raise refuse(f"{whole} does not fit into the 32 bits of WGSL's integers", node)
        if of is BOOL:
            code = "true" if whole else "false"
        elif kind == "u32":
            code = f"{whole}u"
        else:
            code = f"{whole}" if whole >= 0 else f"({whole})"
        return Snippet(code, of, ATOM, whole, (whole, whole), named=True, fixed=True)

    # ---- arrays
    def array(
        self, name: str, of: Type, space: str, kept: int | None, node: tree.Variable
    ) -> tuple[ShaderArray, str]:
        """The memory of an array, and its type in WGSL.

        `kept`: how many dimensions remain the kernel's own, None for all. The others become one
        dimension of numbers, of which pointers may read one or several.
        """
        leaf, shape = leaf_of(of)
        kind, scalar, width = self.value_type(leaf, node), leaf.scalar, leaf.length
        if kept is None:
            kept = len(shape)
        else:
            shape = (*shape[:kept], math.prod(shape[kept:]) * width)
            kind, width = self.value_type(scalar, node), 1
        for size in reversed(shape):
            kind = f"array<{kind}, {size}>"
        return ShaderArray(name, scalar, width, space, shape, kept, variable=node), kind

    # ---- from a reference to elements
    @staticmethod
    def element(ref: Ref, index: Snippet) -> Ref:
        """An element of an array."""
        assert isinstance(ref.type, Array)
        of = ref.type.of
        if len(ref.indices) < ref.memory.kept:
            return Ref(ref.memory, of, (*ref.indices, index), ref.terms)
        return Ref(ref.memory, of, ref.indices, (*ref.terms, (numbers_of(of), index)))

    @staticmethod
    def further(ref: Ref, index: Snippet, sign: int = 1) -> Ref:
        """The element that many positions further on."""
        return replace(ref, terms=(*ref.terms, (sign * numbers_of(ref.type), index)))

    def sum(self, terms: Any, unit: int) -> tuple[str, int, Range | None]:
        """A sum of terms in multiples of `unit`, or of what divides all of them; and its range."""
        for times, value in terms:
            factor = 1 if value.constant is None else int(value.constant)
            unit = math.gcd(unit, times * factor)
        total, codes = 0, []
        ranges = [
            value.range and sorted(times * end for end in value.range) for times, value in terms
        ]
        span = None
        if all(ranges):
            span = sum(ends[0] for ends in ranges), sum(ends[1] for ends in ranges)
        for times, value in terms:
            if value.constant is not None:
                total += times * int(value.constant) // unit
            elif times == unit:
                codes.append(value.at_least(SUM))
            else:
                codes.append(f"{value.at_least(UNARY)} * {times // unit}")
        if total or not codes:
            codes.append(str(total))
        return " + ".join(codes).replace("+ -", "- "), unit, span

    def index(self, code: str, size: str, proved: bool, node: Node) -> str:
        """An index as it stands between [ and ]; watched, it is checked first."""
        if self.style.watched:
            return code if proved else f"inside({code}, {size}, {self.line})"
        number = code.strip("()")
        if number.lstrip("-").isdigit():  # compilers of WGSL refuse a constant index outside
            at = int(number)
            if at < 0 or (size.isdigit() and at >= int(size)):
                count = f" of {size}" if size.isdigit() else ""
                raise refuse(f"element {at} of an array{count} does not exist", node)
        return code

    def elements(self, ref: Ref, node: Node) -> list[str]:
        """The WGSL names of the elements that hold the numbers of `ref`."""
        memory, n, width = ref.memory, ref.type.length, ref.memory.width
        base = memory.name
        for value, most in zip(ref.indices, memory.shape, strict=False):
            proved = value.range is not None and value.range[0] >= 0 and value.range[1] < most
            base += f"[{self.index(value.code, str(most), proved, node)}]"
        if memory.kept and memory.kept == len(memory.shape):
            return [base]
        code, unit, span = self.sum(ref.terms, width)
        if unit != width or n % width:
            held = memory.scalar if width == 1 else f"{memory.scalar}{width}"
            raise refuse(f"memory of {held} read as {ref.type} is not translated", node)
        size = str(memory.shape[-1]) if memory.shape else f"i32(arrayLength(&{memory.name}))"
        proved = False
        if memory.shape and span is not None:
            proved = span[0] >= 0 and span[1] + n <= memory.shape[-1] * width
        if memory.kept and not proved:
            raise KeptError(memory, 0)
        if n > width and not code.isdigit():
            code = self.keep(Snippet(code, INT, named=code.isidentifier())).code
        codes = (plus(code, i) for i in range(n // width))
        return [f"{base}[{self.index(code, size, proved, node)}]" for code in codes]

    def load(self, ref: Ref, node: Node) -> Snippet:
        if isinstance(ref.type, Array):
            return self.decay(ref)
        codes = self.elements(ref, node)
        if len(codes) == 1:
            return Snippet(codes[0], ref.type)
        return Snippet(f"{self.value_type(ref.type, node)}({', '.join(codes)})", ref.type)

    @staticmethod
    def decay(ref: Ref) -> Snippet:
        """An array, or a row of one, as a pointer to its first element."""
        assert isinstance(ref.type, Array)
        of, depth = ref.type.of, len(ref.indices)
        if ref.memory.kept > depth:
            raise KeptError(ref.memory, depth)
        return Snippet("", Pointer(of, ref.memory.space), ref=replace(ref, type=of))

    def store(self, ref: Ref, value: Snippet, node: Node, op: str = "") -> None:
        ref.memory.written = True
        codes, width = self.elements(ref, node), ref.memory.width
        if len(codes) == 1:
            self.emit(f"{codes[0]} {op}= {value.code};")
            return
        value = self.keep(value)
        for i, code in enumerate(codes):
            self.emit(f"{code} {op}= {value.code}.{'xyzw'[i * width : (i + 1) * width]};")
