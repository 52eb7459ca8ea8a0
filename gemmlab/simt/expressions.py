"""Expressions of OpenCL C become expressions of Python. Loads become lines of their own, in the
order of the text.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from . import tree
from .meaning import COMPARISONS, address_of, known
from .text import UnknownError
from .tree import Expr, Node, Variable, plain, written
from .types import (
    BOOL,
    INT,
    LONG,
    ULONG,
    VOID,
    Array,
    Pointer,
    Scalar,
    Struct,
    Type,
    Vector,
    layout,
    length,
    promoted,
    scalar_of,
    stride,
)
from .writer import Writer

PURE = (
    tree.Number,
    tree.Name,
    tree.Member,
    tree.Unary,
    tree.Binary,
    tree.Choice,
    tree.Cast,
    tree.Convert,
    tree.VectorLiteral,
)


@dataclass
class Place:
    """Where a value is stored: it can be assigned to, or has an address.

    Attributes:
        variable: it is this, or an element of this array by as many `indices` as are given (a row,
            or all of it, if some are left out).
        base: otherwise, the Python text of a pointer; one index says how far from there.
        at: if not empty, only these numbers of a `vector`; or the text of one number.
    """

    type: Type
    variable: Variable | None = None
    indices: tuple[str, ...] = ()
    base: str = ""
    at: tuple[int, ...] | str = ()
    vector: Type = VOID

    @property
    def whole(self) -> Type:
        return self.vector if self.at else self.type

    @property
    def at_once(self) -> bool:
        """Whether one access can reach it: its numbers lie side by side."""
        at = self.at
        return isinstance(at, str) or all(b == a + 1 for a, b in zip(at, at[1:], strict=False))

    def ones(self) -> list[Place]:
        """The numbers of a vector, each alone."""
        return [replace(self, type=scalar_of(self.type), at=(int(i),)) for i in self.at]


class Expressions(Writer):
    """One method per kind of node; each returns the Python text of the node's value."""

    def __init__(self) -> None:
        super().__init__()
        self.computed: dict[int, str] = {}  # values of nodes, by id, that come next

    def expression(self, node: Expr) -> str:
        if id(node) in self.computed:
            return self.computed.pop(id(node))
        value = known(node)
        if value is not None and isinstance(node.type, Scalar) and not self.drops(node):
            return self.number(value, node.type)
        return getattr(self, f"_{type(node).__name__.lower()}")(node)

    def drops(self, node: Expr) -> bool:
        """Whether this is a quotient of whole numbers that becomes a float."""
        if not isinstance(node, (tree.Cast, tree.Convert)):
            return node is self.becomes_float
        inner = plain(node.operand)
        divides = isinstance(inner, tree.Binary) and inner.op == "/"
        return divides and scalar_of(node.operand.type).whole and not scalar_of(node.type).whole

    becomes_float: Node | None = None  # the last quotient of whole numbers that does

    def harmless(self, node: Node) -> bool:
        """Whether other lanes may compute this, too: no loads, stores or divisions."""
        if not isinstance(node, PURE) or (isinstance(node, tree.Unary) and node.op in "*&"):
            return False
        if isinstance(node, tree.Binary) and node.op in ("/", "%"):
            return isinstance(plain(node.right), tree.Number) and self.harmless(node.left)
        if isinstance(node, (tree.Cast, tree.Convert)):
            to, of = node.type, node.operand.type
            if isinstance(of, (Array, Struct)) or (scalar_of(to).whole and not scalar_of(of).whole):
                return False  # of a float that may be too large for it
        if isinstance(node, tree.Name) and node.variable.constant is None:
            variable = node.variable
            return variable in self.names and not (variable.in_memory or variable in self.unset)
        return all(self.harmless(child) for child in node.children())

    # ---- from one type to another
    def number(self, value: float, of: Scalar) -> str:
        """A number that is known; a float, which must be NumPy's, by a name in the Python text."""
        if of is BOOL:
            return str(bool(value))
        if of.whole:
            held = int(value) - 2**64 * (value > LONG.most)
            return f"{held}" if held >= 0 else f"({held})"
        name = f"f{len(self.constants)}"
        self.constants[name] = of.dtype.type(value)
        return name

    def as_int(self, truth: str) -> str:
        return f"converted({truth}, bool_type, int_type)"

    def as_type(self, code: str, of: Type, to: Type, node: Node) -> str:
        """A value of one type as another."""
        if of == to:
            return code
        if to is BOOL:
            return f"({code} != 0)"
        if isinstance(to, Pointer) or isinstance(of, Pointer):
            small = isinstance(to, Scalar) and to.size < 8
            return f"cut({code}, {to}_type)" if small else code
        if isinstance(to, Vector) and isinstance(of, Scalar):
            return f"spread({self.as_type(code, of, to.of, node)}, {to.n})"
        if not isinstance(to, (Scalar, Vector)):
            return code
        a, b = scalar_of(of), scalar_of(to)
        # a long and a ulong are held as the same 64 bits
        same = b.size == 8 or (b.least <= a.least and a.most <= b.most)
        if a.whole and b.whole and same and a is not BOOL:
            return code
        if b.whole and not a.whole:
            site = self.site("overflow", node.spot, written(node))
            return f"wave.rounded({code}, {a}_type, {b}_type, mask, {site})"
        return f"converted({code}, {a}_type, {b}_type)"

    def truth(self, node: Expr) -> str:
        """Whether an expression is not 0, as a bool of Python or an array of them."""
        decided = known(node)
        if decided is not None:
            return str(bool(decided))
        if not isinstance(node.type, Vector):
            if isinstance(node, tree.Binary) and node.op in ("&&", "||"):
                return self.logical(node)
            if isinstance(node, tree.Binary) and node.op in COMPARISONS:
                left = self.expression(node.left)
                if not self.harmless(node.right):
                    left = self.named(left)
                sides = (left, node.left.type), (self.expression(node.right), node.right.type)
                a, b = (f"unsigned({code})" if of is ULONG else code for code, of in sides)
                return f"({a} {node.op} {b})"
            if isinstance(node, tree.Unary) and node.op == "!":
                return f"({self.truth(node.operand)} ^ True)"
        return f"({self.expression(node)} != 0)"

    def _convert(self, node: tree.Convert) -> str:
        if isinstance(node.operand, tree.Text):
            return self.expression(node.operand)
        if isinstance(node.operand.type, Array) and isinstance(node.type, Pointer):
            return self.pointer_to(self.place(node.operand), node)
        return self._cast(node)

    def _cast(self, node: tree.Cast | tree.Convert) -> str:
        if node.type is BOOL:
            return self.truth(node.operand)
        if self.drops(node):
            self.becomes_float = plain(node.operand)
        operand = node.operand
        return self.as_type(self.expression(operand), operand.type, node.type, operand)

    # ---- places
    def place(self, node: Expr) -> Place:
        if isinstance(node, tree.Name):
            if node.variable not in self.names:
                self.fail(node, f"{node.name!r} is read in its own declaration")
            return Place(node.type, node.variable)
        if isinstance(node, tree.Index):
            index = self.expression(node.index)
            if not isinstance(node.array.type, Vector):
                return self.element(node.array, index, node.type)
            one = known(node.index)
            return self.numbers(node, node.array, self.keep(index) if one is None else (int(one),))
        if isinstance(node, tree.Unary) and node.op == "*":
            return self.element(node.operand, "0", node.type)
        if isinstance(node, tree.Member):
            return self.numbers(node, node.vector, node.at)
        if isinstance(node, tree.Part):
            base = self.pointer_to(self.place_of(node.of), node)
            number = scalar_of(node.type) if isinstance(node.type, Vector) else node.type
            simple = isinstance(node.type, (Scalar, Vector, Pointer))
            if simple and node.field.offset % stride(number):
                what = f"{written(node)}, which does not lie at a multiple of its size,"
                raise UnknownError(what, node.spot)
            return Place(node.type, base=f"({base} + {node.field.offset})")
        if isinstance(node, tree.Compound):
            self.private(tree.Declaration(node.spot, node.variable, node.value), None)
            return Place(node.type, node.variable)
        self.fail(node, f"{written(node)} has no place")

    def place_of(self, node: Expr) -> Place:
        """The same for any value; one without an address is put into memory."""
        if address_of(node):
            return self.place(node)
        code = self.expression(node)
        scalar, sizes = layout(node.type)
        name = self.keep(f"wave.private({written(node)!r}, {scalar}_type, {sizes}, True)")
        self.emit(f"{name}.give(0, {length(node.type)}, {code})")
        return Place(node.type, base=f"wave.address({name})")

    def private(self, node: tree.Declaration, code: str | None) -> None:
        raise NotImplementedError

    def element(self, pointer: Expr, index: str, of: Type) -> Place:
        """The element `index` of an array, or from where a pointer points."""
        array = pointer.operand if isinstance(pointer, tree.Convert) else pointer
        if not isinstance(array.type, Array):
            return Place(of, None, (index,), self.expression(pointer))
        place = self.place(array)
        if place.variable:
            return Place(of, place.variable, (*place.indices, index))
        return Place(of, None, (index,), self.pointer_to(place, pointer))

    def numbers(self, node: Expr, vector: Expr, at: tuple[int, ...] | str) -> Place:
        """Some numbers of a vector."""
        place = self.place_of(vector)
        if not place.at:
            return replace(place, type=node.type, at=at, vector=vector.type)
        if isinstance(at, str) or isinstance(place.at, str):
            raise UnknownError(f"a variable number of {written(vector)}", node.spot)
        return replace(place, type=node.type, at=tuple(place.at[i] for i in at))

    def pointer_to(self, place: Place, node: Node) -> str:
        """A pointer is a number that holds which array, and how many bytes behind its begin."""
        code = place.base
        of: Type = Array(place.type, 0)
        if place.variable is not None:
            if not place.variable.in_memory:
                raise UnknownError(f"the address of {written(node)}", node.spot)
            code, of = f"wave.address({self.names[place.variable]})", place.variable.type
        for index in place.indices:
            assert isinstance(of, Array)
            of = of.of
            code += f" + ({index})*{stride(of)}"
        return f"({code})"

    def read(self, place: Place, node: Expr) -> str:
        variable = place.variable
        if variable and not variable.in_memory:
            code = self.names[variable]
            if variable in self.unset:
                site = self.site("unset", node.spot, variable.name, place.whole)
                at = f", {place.at}" if place.at and isinstance(place.at, tuple) else ""
                code = f"wave.given({code}, mask, {site}{at})"
            return self.part(code, place.vector, place.at) if place.at else code
        if place.at_once:
            return self.keep(self.access("load", place, node))
        one = scalar_of(place.type)
        parts = [self.keep(self.access("load", p, node)) for p in place.ones()]
        return f"vector(({', '.join(parts)},), {one}_type)"

    def part(self, code: str, of: Type, at: tuple[int, ...] | str) -> str:
        """Some numbers of a vector's value."""
        if isinstance(at, str):
            return f"chosen({code}, {at})"
        if max(at) >= length(of):  # the fourth number of three
            code = f"vector(({code}, 0), {scalar_of(of)}_type)"
        return f"element({code}, {at[0]})" if len(at) == 1 else f"{code}[{list(at)}]"

    def access(
        self, kind: str, place: Place, node: Node, value: str = "", packed: bool = False
    ) -> str:
        """Python text that loads from a place in memory, or stores there."""
        of, whole, at = place.type, place.whole, place.at
        varies = isinstance(at, str)
        lead = at[0] if at and not varies else 0
        inner = str(at if varies else lead) if at else ""
        packed |= varies or isinstance(of, Struct)
        wide = 0 if packed else 4 if length(whole) == 3 else length(whole)
        text, more = written(node), f", {value}" if kind == "store" else ""
        if place.variable:
            array, size = place.variable.type, scalar_of(of).size
            shape: tuple[tuple[int, int], ...] = ()
            while isinstance(array, Array):
                shape += ((array.n, stride(array.of) // size),)
                array = array.of
            shape += ((length(whole), 1),) if inner else ()
            site = self.site(kind, node.spot, text, of, shape=shape, wide=wide, lead=lead)
            indices = "".join(f"{i}, " for i in (*place.indices, inner) if i)
            name = self.names[place.variable]
            return f"wave.{kind}({site}, {name}, ({indices}), mask{more})"
        site = self.site(kind, node.spot, text, of, wide=wide, lead=lead)
        step = length(of) if packed and not inner else stride(whole) // scalar_of(of).size
        index = place.indices[0] if place.indices else "0"
        index = index if step == 1 else f"({index})*{step}"
        index += f" + {inner}" * bool(inner)
        return f"wave.{kind}_at({site}, {place.base}, {index}, mask{more})"

    def write(self, place: Place, code: str, node: Node) -> None:
        variable, at = place.variable, place.at
        if variable and not variable.in_memory:
            name = self.names[variable]
            if at:
                shown = at if isinstance(at, str) else at[0] if len(at) == 1 else list(at)
                code = f"changed({name}, {shown}, {code})"
            # where exactly the lanes that were there when it was declared are here, one value may
            # stay one for all
            new = self.named(code)
            self.emit(f"{name} = {new} if mask is mask_{name} else assign(mask, {new}, {name})")
        elif place.at_once:
            self.emit(self.access("store", place, node, code))
        else:
            name = self.named(code)
            for number, one in enumerate(place.ones()):
                self.emit(self.access("store", one, node, f"element({name}, {number})"))

    def _text(self, node: tree.Text) -> str:
        raise UnknownError("a string that is not printf's", node.spot)

    def _braces(self, node: tree.Braces) -> str:
        self.fail(node, "values in { } can only be given where something is declared")

    def _name(self, node: Expr) -> str:
        return self.read(self.place(node), node)

    _part = _compound = _name

    def _index(self, node: tree.Index) -> str:
        if isinstance(node.array, tree.Member) and known(node.index) is None:
            return f"chosen({self.expression(node.array)}, {self.expression(node.index)})"
        return self.read(self.place(node), node)

    def _member(self, node: tree.Member) -> str:
        if address_of(node.vector):
            return self.read(self.place(node), node)
        return self.part(self.expression(node.vector), node.vector.type, node.at)

    # ---- operations
    def _unary(self, node: tree.Unary) -> str:
        if node.op == "*":
            return self.read(self.place(node), node)
        if node.op == "&":
            return self.pointer_to(self.place(node.operand), node.operand)
        if node.op == "!" and not isinstance(node.type, Vector):
            return self.as_int(self.truth(node))
        code = self.expression(node.operand)
        if node.op == "!":
            return f"-converted({code} == 0, bool_type, int_type)"
        if node.op == "~":
            return f"cut(~{code}, {scalar_of(node.type)}_type)"
        return code if node.op == "+" else self.result(f"(-{code})", node.type, node)

    def result(self, code: str, of: Type, node: Node) -> str:
        """The result of arithmetic: an int must fit, other whole types wrap around."""
        scalar = scalar_of(of)
        if scalar is INT:
            code = f"wave.fits({code}, mask, {self.site('overflow', node.spot, written(node))})"
        elif scalar.whole:
            code = f"cut({code}, {scalar}_type)"
        return self.short(code)

    def short(self, code: str) -> str:
        """The same value, under a name if it is long: Python limits nested brackets."""
        return self.named(code) if code.count("(") > 50 else code

    def _binary(self, node: tree.Binary) -> str:
        if not _arithmetic(node):
            return self.as_int(self.truth(node))
        chain = [node]  # of operations whose left side is one as well; a + b + c + ... may be long
        while isinstance(chain[-1].left, tree.Binary) and _arithmetic(chain[-1].left):
            chain.append(chain[-1].left)
        left = self.expression(chain[-1].left)
        for one in reversed(chain):
            left = self.short(self.combined(one, left))
        return left

    def combined(self, node: tree.Binary, left: str) -> str:
        """An operation whose left side has been computed."""
        if node.op == ",":
            self.named(left)
            return self.expression(node.right)
        if not self.harmless(node.right):
            left = self.named(left)  # what the right side does must come after it
        right = self.expression(node.right)
        if node.op in ("&&", "||"):
            sign = "&" if node.op == "&&" else "|"
            return f"-converted(({left} != 0) {sign} ({right} != 0), bool_type, int_type)"
        if isinstance(node.left.type, Pointer) or isinstance(node.right.type, Pointer):
            return self.of_pointers(node, left, right)
        scalar = scalar_of(node.left.type)
        return (self.of_whole if scalar.whole else self.of_floats)(node, scalar, left, right)

    def of_pointers(self, node: tree.Binary, left: str, right: str) -> str:
        a, b = node.left.type, node.right.type
        if isinstance(a, Pointer) and isinstance(b, Pointer):
            return f"(({left} - {right})//{stride(a.to)})"
        if isinstance(a, Pointer):
            return f"({left} {node.op} ({right})*{stride(a.to)})"
        assert isinstance(b, Pointer)
        return f"({right} + ({left})*{stride(b.to)})"

    def of_floats(self, node: tree.Binary, scalar: Scalar, left: str, right: str) -> str:
        op = node.op
        if op in COMPARISONS:  # of vectors: -1 where it holds
            return f"-converted({left} {op} {right}, bool_type, int_type)"
        sides = map(plain, (node.left, node.right))
        if op in "+-" and any(isinstance(x, tree.Binary) and x.op == "*" for x in sides):
            self.multiply_add(node, node.type)
        if op == "/":
            site = self.site("ratio", node.spot, written(node))
            return f"wave.ratio({left}, {right}, mask, {site})"
        return f"({left} {op} {right})"

    def of_whole(self, node: tree.Binary, scalar: Scalar, left: str, right: str) -> str:
        op, to = node.op, node.type
        if op == "/" and node is self.becomes_float:
            site = self.site("whole division", node.spot, written(node))
            left, right = self.named(left), self.named(right)
            self.emit(f"wave.drops({left}, {right}, mask, {site})")
        if op in "+-*":
            return self.result(f"({left} {op} {right})", to, node)
        if op in "&|^":
            return f"({left} {op} {right})"
        if scalar is ULONG:
            left, right = f"unsigned({left})", f"unsigned({right})"
        if op in COMPARISONS:
            return f"-converted({left} {op} {right}, bool_type, int_type)"
        if op in ("<<", ">>"):  # by the amount modulo the bits; what is shifted out is gone
            return f"cut({left} {op} ({right} & {scalar.bits - 1}), {scalar}_type)"
        by = known(node.right)
        if by == 0:
            self.fail(node, f"{written(node)}: division by zero")
        if by is None:
            site = self.site("division", node.spot, written(node))
            right = f"wave.divisor({right}, mask, {site})"
        code = f"{'quotient_of' if op == '/' else 'remainder_of'}({left}, {right})"
        fits = by is not None and by > 0 and scalar is not ULONG
        return code if fits else f"cut({code}, {scalar}_type)"

    def multiply_add(self, node: Node, of: Type) -> None:
        site = self.site("multiply-add", node.spot, written(node), of)
        self.emit(f"wave.record({site}, mask)")

    # ---- what only some lanes compute
    def branch(self, condition: str, node: Node, text: str) -> tuple[str, str]:
        """The names of two masks: of the lanes for which a condition holds, and of the others."""
        yes, no = self.fresh("yes"), self.fresh("no")
        site = self.site("branch", node.spot, text)
        self.emit(f"{yes}, {no} = wave.branch(mask, {condition}, {site})")
        return yes, no

    def logical(self, node: tree.Binary) -> str:
        """&& and ||: the right side is only for lanes that the left one has not decided."""
        if known(node.left) is not None:  # and has decided nothing
            return self.truth(node.right)
        left = self.truth(node.left)
        sign = "&" if node.op == "&&" else "|"
        if self.harmless(node.right):
            return self.short(f"({left} {sign} {self.truth(node.right)})")
        result, before = self.keep(left), self.keep("mask")
        yes, no = self.branch(result, node, written(node))
        side = yes if node.op == "&&" else no
        with self.under(f"if {side} is not False:", side):
            self.emit(f"{result} = {result} {sign} {self.truth(node.right)}")
        self.emit(f"mask = {before}")
        return result

    def _choice(self, node: tree.Choice) -> str:
        of = node.condition.type
        if isinstance(of, Vector):
            condition = self.highest(self.named(self.expression(node.condition)), of)
            yes, no = self.named(self.expression(node.yes)), self.expression(node.no)
            return f"pick({condition}, {yes}, {no})"
        constant = known(node.condition)
        if constant is not None:
            return self.expression(node.yes if constant else node.no)
        condition = self.truth(node.condition)
        if self.harmless(node.yes) and self.harmless(node.no):
            yes, no = self.expression(node.yes), self.expression(node.no)
            return self.short(f"pick({condition}, {yes}, {no})")
        decided, before = self.keep(condition), self.keep("mask")
        masks = self.branch(decided, node, written(node.condition))
        names = (self.keep("None"), self.keep("None"))
        for name, mask, side in zip(names, masks, (node.yes, node.no), strict=True):
            with self.under(f"if {mask} is not False:", mask):
                self.emit(f"{name} = {self.expression(side)}")
        self.emit(f"mask = {before}")
        return f"pick({decided}, {', '.join(names)})"

    @staticmethod
    def highest(code: str, of: Type) -> str:
        """Which numbers of a vector have their highest bit set."""
        scalar = scalar_of(of)
        signed = scalar.kind == "int" or scalar is ULONG  # a ulong is held as a long
        return f"({code} < 0)" if signed else f"({code} > {scalar.most >> 1})"

    # ---- assignments
    def _assign(self, node: tree.Assign) -> str:
        place, code = self.place(node.target), self.expression(node.value)
        if node.op:
            self.computed[id(node.value)] = code
            old = self.read(place, node.target)
            code = self.updated(node, old, node.op, node.value, node.common)
        code = self.named(code)
        self.write(place, code, node.target)
        return code

    def _step(self, node: tree.Step) -> str:
        place, of = self.place(node.target), node.type
        before = self.keep(self.read(place, node.target))
        common = promoted(of) if isinstance(of, Scalar) else of
        number = INT if isinstance(of, Pointer) else scalar_of(common)
        one: Expr = tree.Number(node.spot, 1, type=number)
        one = _converted(one, common) if isinstance(of, Vector) else one
        after = self.named(self.updated(node, before, node.op[0], one, common))
        self.write(place, after, node.target)
        return after if node.before else before

    def updated(
        self, node: tree.Assign | tree.Step, old: str, op: str, value: Expr, common: Type
    ) -> str:
        """What an operation, carried out in the type `common`, makes of the old value."""
        self.computed[id(node.target)] = old
        left = _converted(node.target, common)
        new = tree.Binary(node.spot, op, left, value, type=common, source=node.source)
        return self.expression(_converted(new, node.type))

    def _vectorliteral(self, node: tree.VectorLiteral) -> str:
        parts = ", ".join(self.expression(part) for part in node.parts)
        return f"vector(({parts},), {scalar_of(node.type)}_type)"


def _converted(node: Expr, to: Type) -> Expr:
    return node if node.type == to else tree.Convert(node.spot, node, type=to)


def _arithmetic(node: tree.Binary) -> bool:
    return isinstance(node.type, Vector) or not (node.op in COMPARISONS or node.op in ("&&", "||"))
