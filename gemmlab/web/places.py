"""Memory in WGSL: arrays, what a pointer points to, and the values that an expression has.

WGSL has no pointers that move. A pointer is followed to its array when the kernel is translated;
what is left of it at run time is an offset, counted in numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from ..simt import tree
from ..simt.text import Spot, TextError
from ..simt.types import (
    BOOL,
    FLOAT,
    INT,
    LONG,
    UINT,
    ULONG,
    Array,
    Pointer,
    Scalar,
    Type,
    Vector,
    leaf_of,
    length,
    scalar_of,
)

#: How tightly an expression binds: what needs no brackets as the operand of what.
ATOM, UNARY, PRODUCT, SUM, COMPARISON, LOOSE = 9, 8, 7, 6, 5, 0
Range = tuple[int, int]


class RefusedError(TextError):
    """Valid OpenCL C that WGSL cannot say; the message names what and why."""

    kind = "refused"


def refuse(message: str, node: tree.Node | Spot) -> RefusedError:
    return RefusedError(message, node if isinstance(node, Spot) else node.spot)


@dataclass
class Value:
    """What an expression became: its WGSL code, in parts of at most four numbers.

    `range` bounds a whole number where both ends are proved; `ref` is what a pointer points to.
    """

    parts: list[str]
    type: Type
    level: int = ATOM
    constant: float | None = None
    range: Range | None = None
    named: bool = False  # a name or a number: using it twice costs nothing
    ref: Ref | None = None

    @property
    def code(self) -> str:
        return self.parts[0]

    def at_least(self, level: int) -> list[str]:
        """The parts, in brackets unless they bind at least as tightly as `level`."""
        return self.parts if self.level >= level else [f"({part})" for part in self.parts]


@dataclass(eq=False)
class Memory:
    """An array of WGSL.

    Attributes:
        width: numbers per element: 1, 2 or 4.
        shape: elements per dimension; () for a buffer, whose length only the host knows.
        kept: how many dimensions are the kernel's own; those after them are one, in numbers.
        variable: the kernel's variable, for an array that may have to be made flat.
        written: whether the kernel stores to it.
    """

    name: str
    scalar: Scalar
    width: int
    space: str
    shape: tuple[int, ...] = ()
    kept: int = 0
    variable: tree.Variable | None = None
    written: bool = False


@dataclass
class Ref:
    """Something in memory, or what a pointer points to: the indices of the dimensions kept, then a
    sum of unit*value, in numbers.
    """

    memory: Memory
    type: Type
    indices: tuple[Value, ...] = ()
    terms: tuple[tuple[int, Value], ...] = ()


class NotProvedError(Exception):
    """A pointer to a row that may leave it: the array has to become flat."""

    def __init__(self, variable: tree.Variable):
        super().__init__(variable.name)
        self.variable = variable


def parts_of(of: Type) -> list[int]:
    """The sizes of the WGSL values that hold a value: float16 is four vectors of four."""
    n = length(of)
    return [n] if n <= 4 else [4] * (n // 4)


def numbers_of(of: Type) -> int:
    """How many numbers a value or an array has."""
    leaf, sizes = leaf_of(of)
    return math.prod(sizes) * length(leaf)


def plus(code: str, i: int) -> str:
    if i == 0:
        return code
    return str(int(code) + i) if code.lstrip("-").isdigit() else f"{code} + {i}"


class Places:
    """Emits lines, names variables, and reads and writes memory."""

    def __init__(self, watched: bool):
        self.watched = watched
        self.lines: list[tuple[str, int]] = []
        self.depth = 1
        self.line = 0
        self.scopes: list[set[str]] = [set()]
        self.notes: list[str] = []

    # ---- lines and names
    def emit(self, code: str) -> None:
        self.lines.append(("    " * self.depth + code, self.line))

    def claim(self, name: str, module: bool = False) -> str:
        """A name that nothing visible has; the module's names are visible everywhere."""
        stem = f"{name}_" if name in RESERVED or name.startswith("__") or name == "_" else name
        chosen, number = stem, 1
        while any(chosen in scope for scope in self.scopes):
            number += 1
            chosen = f"{stem}_{number}"
        self.scopes[0 if module else -1].add(chosen)
        return chosen

    def keep(self, value: Value) -> Value:
        """The same value under a name."""
        if value.named or value.constant is not None or value.ref is not None:
            return value
        names = []
        for part in value.parts:
            names.append(self.claim("t"))
            self.emit(f"let {names[-1]} = {part};")
        return replace(value, parts=names, level=ATOM, named=True)

    def captured(self, work):
        """The lines that `work` emits, which are not emitted yet, and its result."""
        outer, self.lines = self.lines, []
        try:
            result = work()
            return self.lines, result
        finally:
            self.lines = outer

    def note(self, text: str) -> None:
        if text not in self.notes:
            self.notes.append(text)

    # ---- types
    def scalar_type(self, of: Scalar, node: tree.Node | Spot) -> str:
        if of in (LONG, ULONG):
            self.note("64-bit integers become 32-bit ones: a buffer has fewer than 2^32 bytes")
        names = {BOOL: "bool", INT: "i32", LONG: "i32", UINT: "u32", ULONG: "u32", FLOAT: "f32"}
        if of not in names:
            hint = "; write float constants with an f, as in 2.0f" if of.name == "double" else ""
            raise refuse(f"WGSL has no {of}{hint}", node)
        return names[of]

    def part_type(self, of: Type, node: tree.Node | Spot, count: int | None = None) -> str:
        """The type of one part of a value."""
        count = parts_of(of)[0] if count is None else count
        if count == 3:
            raise refuse("vectors of three numbers are not translated; use four", node)
        scalar = self.scalar_type(scalar_of(of), node)
        return scalar if count == 1 else f"vec{count}<{scalar}>"

    def value_type(self, of: Type, node: tree.Node | Spot) -> str:
        if not isinstance(of, (Scalar, Vector)):
            raise refuse(f"WGSL has no variable of type {of}", node)
        count = len(parts_of(of))
        part = self.part_type(of, node)
        return part if count == 1 else f"array<{part}, {count}>"

    # ---- numbers
    def literal(self, value: float, of: Scalar, node: tree.Node) -> Value:
        if of.whole:
            whole = int(value)
            if not -(2**31) <= whole < 2**32:
                raise refuse(f"{whole} does not fit into the 32 bits of WGSL's integers", node)
            if of is BOOL:
                code = "true" if whole else "false"
            elif of in (UINT, ULONG):
                code = f"{whole & 0xFFFFFFFF}u"
            else:
                code = f"{whole}" if whole >= 0 else f"({whole})"
            return Value([code], of, ATOM, whole, (whole, whole), named=True)
        if math.isinf(value) or math.isnan(value):
            # a constant of WGSL cannot be infinite, a variable can
            name = self.claim("bits")
            bits = "0x7fc00000u" if math.isnan(value) else "0x7f800000u"
            self.emit(f"var {name} = {bits};")
            return Value([f"{'-' if value < 0 else ''}bitcast<f32>({name})"], of, UNARY)
        self.scalar_type(of, node)
        code = f"{float(value)!r}f"
        return Value([code if value >= 0 else f"({code})"], of, ATOM, value, named=True)

    def int_literal(self, value: int) -> Value:
        return self.literal(value, INT, tree.Node(Spot(self.line)))

    # ---- arrays
    def array(
        self, name: str, of: Type, space: str, flat: int | None, node: tree.Node
    ) -> tuple[Memory, str]:
        """The memory of an array, and its type in WGSL.

        `flat`: how many dimensions stay the kernel's own; None for all. Vectors in local memory
        that are also read float by float are held so: tint proves more about them.
        """
        leaf, sizes = leaf_of(of)
        if not isinstance(leaf, (Scalar, Vector)):
            raise refuse(f"an array of {leaf} is not translated", node)
        n = length(leaf)
        width = 1 if space == "local" and flat is not None else min(4, n)
        if flat is None:
            kept, shape = len(sizes), sizes if n <= 4 else (*sizes, n // width)
        else:
            kept = flat
            shape = (*sizes[:kept], math.prod(sizes[kept:]) * n // width)
        kind = self.part_type(leaf, node, width)
        for size in reversed(shape):
            kind = f"array<{kind}, {size}>"
        return Memory(name, scalar_of(leaf), width, space, shape, kept), kind

    # ---- from a reference to elements
    @staticmethod
    def element(ref: Ref, index: Value) -> Ref:
        """An element of an array."""
        assert isinstance(ref.type, Array)
        of = ref.type.of
        if len(ref.indices) < ref.memory.kept:
            return Ref(ref.memory, of, (*ref.indices, index), ref.terms)
        return Ref(ref.memory, of, ref.indices, (*ref.terms, (numbers_of(of), index)))

    @staticmethod
    def further(ref: Ref, index: Value, sign: int = 1) -> Ref:
        """What lies so many elements further on."""
        return replace(ref, terms=(*ref.terms, (sign * numbers_of(ref.type), index)))

    def sum(self, terms, unit: int) -> tuple[str, int, Range | None]:
        """A sum of terms in multiples of `unit`, or of what divides all of them; and its range."""
        for times, value in terms:
            unit = math.gcd(
                unit, times * int(value.constant) if value.constant is not None else times
            )
        total, codes = 0, []
        least: int | None = 0
        most = 0
        for times, value in terms:
            if value.range is None:
                least = None
            elif least is not None:
                ends = [times * end for end in value.range]
                least, most = least + min(ends), most + max(ends)
            if value.constant is not None:
                total += times * int(value.constant) // unit
                continue
            factor = times // unit
            codes.append(
                value.at_least(SUM)[0] if factor == 1 else f"{value.at_least(UNARY)[0]} * {factor}"
            )
        if total or not codes:
            codes.append(str(total))
        if len(codes) == 1 and len(terms) == 1 and terms[0][0] == unit:
            codes = [terms[0][1].code]
        code = " + ".join(codes).replace("+ -", "- ")
        return code, unit, None if least is None else (least, most)

    def index(self, code: str, size: str, proved: bool) -> str:
        """An index as it stands between [ and ]; watched, it is checked first."""
        return code if proved or not self.watched else f"inside({code}, {size}, {self.line})"

    def elements(self, ref: Ref, node: tree.Node) -> list[tuple[str, int]]:
        """The WGSL names of the numbers of `ref`, each with how many numbers it has."""
        memory, n, width = ref.memory, length(ref.type), ref.memory.width
        base = memory.name
        for value, most in zip(ref.indices, memory.shape, strict=False):
            proved = value.range is not None and value.range[0] >= 0 and value.range[1] < most
            base += f"[{self.index(value.code, str(most), proved)}]"
        if memory.kept and memory.kept == len(memory.shape):
            return [(base, n)]
        whole, unit, span = self.sum(ref.terms, width if n >= width else 1)
        if memory.shape:
            size = str(memory.shape[-1])
            numbers = memory.shape[-1] * width
            proved = span is not None and span[0] >= 0 and span[1] + n <= numbers
        else:
            proved, size = False, f"i32(arrayLength(&{memory.name}))"
        if not proved and memory.kept and memory.variable is not None and ref.terms:
            raise NotProvedError(memory.variable)
        if n >= width and unit == width:
            return self.whole_elements(base, whole, size, proved, n // width, width)
        if width == 1:
            return self.whole_elements(base, whole, size, proved, n, 1)
        name = self.name_of(self.sum(ref.terms, 1)[0])
        shift, mask = {2: 1, 4: 2}[width], width - 1
        found = []
        for i in range(n):
            at = plus(name, i)
            if at.isdigit():
                found.append((f"{base}[{int(at) >> shift}][{int(at) & mask}]", 1))
                continue
            at = at if at.isidentifier() else f"({at})"
            element = self.index(f"{at} >> {shift}u", size, proved)
            found.append((f"{base}[{element}][{at} & {mask}]", 1))
        return found

    def whole_elements(self, base, code, size, proved, count, width) -> list[tuple[str, int]]:
        if count > 1:
            code = self.name_of(code)
        return [(f"{base}[{self.index(plus(code, i), size, proved)}]", width) for i in range(count)]

    def name_of(self, code: str) -> str:
        if code.isidentifier() or code.lstrip("-").isdigit():
            return code
        return self.keep(Value([code], INT)).code

    def load(self, ref: Ref, node: tree.Node) -> Value:
        if isinstance(ref.type, Array):
            return self.decay(ref)
        places = self.elements(ref, node)
        parts = []
        for count in parts_of(ref.type):
            taken, got = [], 0
            while got < count:
                code, n = places.pop(0)
                taken.append(code)
                got += n
            whole = len(taken) == 1
            kind = self.part_type(ref.type, node, count)
            parts.append(taken[0] if whole else f"{kind}({', '.join(taken)})")
        return Value(parts, ref.type)

    @staticmethod
    def decay(ref: Ref) -> Value:
        """An array, or a row of one, as a pointer to its first element."""
        assert isinstance(ref.type, Array)
        of = ref.type.of
        return Value([], Pointer(of, ref.memory.space), ref=replace(ref, type=of))

    def store(self, ref: Ref, value: Value, node: tree.Node, op: str = "") -> None:
        ref.memory.written = True
        places = self.elements(ref, node)
        for count, part in zip(parts_of(ref.type), value.parts, strict=True):
            if places[0][1] == count:
                self.emit(f"{places.pop(0)[0]} {op}= {part};")
                continue
            part = part if part.isidentifier() else self.keep(Value([part], ref.type)).code
            at = 0
            while at < count:
                code, n = places.pop(0)
                self.emit(f"{code} {op}= {part}.{'xyzw'[at : at + n]};")
                at += n


#: Words that WGSL keeps for itself, its types and built-in functions, and names that we give.
_RESERVED = """
NULL Self abstract active alignas alignof as asm asm_fragment async attribute auto await become
cast catch class co_await co_return co_yield coherent column_major common compile compile_fragment
concept const_cast consteval constexpr constinit crate debugger decltype delete demote
demote_to_helper do dynamic_cast enum explicit export extends extern external fallthrough filter
final finally friend from fxgroup get goto groupshared highp impl implements import inline
instanceof interface layout lowp macro macro_rules match mediump meta mod module move mut mutable
namespace new nil noexcept noinline nointerpolation non_coherent noncoherent noperspective null
nullptr of operator package packoffset partition pass patch pixelfragment precise precision
premerge priv protected pub public readonly ref regardless register reinterpret_cast require
resource restrict self set shared sizeof smooth snorm static static_assert static_cast std
subroutine super target template this thread_local throw trait try type typedef typeid typename
typeof union unless unorm unsafe unsized use using varying virtual volatile wgsl where with
writeonly yield alias break case const const_assert continue continuing default diagnostic discard
else enable false fn for if let loop override requires return struct switch true var while
array atomic bool f16 f32 i32 u32 ptr sampler vec2 vec3 vec4 bitcast select min max clamp fma dot
abs arrayLength workgroupBarrier storageBarrier
args lid wid gid nwg inside turns watch bits
"""
RESERVED = frozenset(_RESERVED.split())
