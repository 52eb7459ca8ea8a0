"""Expressions of OpenCL C become expressions of Python. Loads become lines of their own, in the
order of the text.
"""

from __future__ import annotations

from dataclasses import dataclass

from . import tree
from .meaning import COMPARISONS, has_place, known
from .text import UnknownError
from .tree import Expr, Node, plain, written
from .types import (
    BOOL,
    INT,
    LONG,
    ULONG,
    Array,
    Pointer,
    Scalar,
    Struct,
    Type,
    Vector,
    layout,
    length,
    scalar_of,
    stride,
)
from .writer import Holder, Value, Writer

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


# ---- where a value can lie: something that can be stored to, or has an address
@dataclass
class Named:
    """A variable."""

    type: Type
    variable: Holder


#: Of a value that lies nowhere.
NOBODY = Holder("", "", INT)


@dataclass
class Element:
    """A named array by as many indices as are given: one of its elements, a row, or all of it."""

    type: Type
    variable: Holder
    indices: tuple[str, ...] = ()


@dataclass
class Pointed:
    """The element `index` from where `base` points."""

    type: Type
    base: str
    index: str = "0"


@dataclass
class Some:
    """The numbers `at` of the vector in another place; `at` may be the text of one number."""

    type: Type
    vector: Place
    at: tuple[int, ...] | str


Place = Named | Element | Pointed | Some


class Expressions(Writer):
    """One method per kind of node; each returns a `Value` of the node's type."""

    def expression(self, node: Expr) -> Value:
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
            holder = self.holders.get(node.variable)
            return holder is not None and not holder.in_memory and not holder.unset
        return all(self.harmless(child) for child in node.children())

    # ---- from one type to another
    def number(self, value: float, of: Scalar) -> Value:
        """A number that is known; a float, which must be NumPy's, by a name in the Python text."""
        if of is BOOL:
            return Value(str(bool(value)), of)
        if of.whole:
            held = int(value) - 2**64 * (value > LONG.most)
            return Value(f"{held}" if held >= 0 else f"({held})", of)
        name = f"f{len(self.constants)}"
        self.constants[name] = of.dtype.type(value)
        return Value(name, of)

    def as_int(self, truth: Value) -> Value:
        return Value(f"converted({truth.code}, bool_type, int_type)", INT)

    def converted_value(self, value: Value, to: Type, node: Node) -> Value:
        of = value.type
        if of == to:
            return value
        if isinstance(to, Pointer) or isinstance(of, Pointer):
            if to is BOOL:
                return Value(f"({value.code} != 0)", BOOL)
            if isinstance(to, Scalar) and to.size < 8:
                return Value(f"cut({value.code}, {to}_type)", to)
            return Value(value.code, to)
        if isinstance(to, Vector) and isinstance(of, Scalar):
            return Value(f"spread({self.converted_value(value, to.of, node).code}, {to.n})", to)
        if not isinstance(to, (Scalar, Vector)):
            return Value(value.code, to)
        return self.number_as(value, to, node)

    def number_as(self, value: Value, to: Type, node: Node) -> Value:
        a, b = scalar_of(value.type), scalar_of(to)
        if b is BOOL:
            return Value(f"({value.code} != 0)", to)
        # a long and a ulong are held as the same 64 bits
        same = b.size == 8 or (b.least <= a.least and a.most <= b.most)
        if a.whole and b.whole and same and a is not BOOL:
            return Value(value.code, to)
        if b.whole and not a.whole:
            site = self.site("overflow", node.spot, written(node))
            return Value(f"wave.rounded({value.code}, {a}_type, {b}_type, mask, {site})", to)
        return Value(f"converted({value.code}, {a}_type, {b}_type)", to)

    def truth(self, node: Expr) -> Value:
        """Whether an expression is not 0, as a bool of Python or an array of them."""
        decided = known(node)
        if decided is not None:
            return Value(str(bool(decided)), BOOL)
        if not isinstance(node.type, Vector):
            if isinstance(node, tree.Binary) and node.op in ("&&", "||"):
                return self.logical(node)
            if isinstance(node, tree.Binary) and node.op in COMPARISONS:
                left = self.expression(node.left)
                if not self.harmless(node.right):
                    left = self.named(left)
                sides = left, self.expression(node.right)
                a, b = (f"unsigned({x.code})" if x.type is ULONG else x.code for x in sides)
                return Value(f"({a} {node.op} {b})", BOOL)
            if isinstance(node, tree.Unary) and node.op == "!":
                return Value(f"({self.truth(node.operand).code} ^ True)", BOOL)
        value = self.expression(node)
        if isinstance(value.type, Pointer):
            return Value(f"({value.code} != 0)", BOOL)
        return self.number_as(value, BOOL, node)

    def _convert(self, node: tree.Convert) -> Value:
        if isinstance(node.operand, tree.Text):
            return self.expression(node.operand)
        if isinstance(node.operand.type, Array) and isinstance(node.type, Pointer):
            return Value(self.pointer_to(self.place(node.operand), node).code, node.type)
        return self._cast(node)

    def _cast(self, node: tree.Cast | tree.Convert) -> Value:
        if node.type is BOOL:
            return self.truth(node.operand)
        if self.drops(node):
            self.becomes_float = plain(node.operand)
        return self.converted_value(self.expression(node.operand), node.type, node.operand)

    becomes_float: Node | None = None  # the last quotient of whole numbers that does

    # ---- places
    def place(self, node: Expr) -> Place:
        if isinstance(node, tree.Name):
            holder = self.holder(node)
            return (Element if holder.in_memory else Named)(node.type, holder)
        if isinstance(node, tree.Index):
            index = self.expression(node.index)
            if isinstance(node.array.type, Vector):
                one = known(node.index)
                at = (int(one),) if one is not None else self.keep(index.code)
                return Some(node.type, self.place_of(node.array), at)
            return self.target(node.array, index.code, node.type)
        if isinstance(node, tree.Unary) and node.op == "*":
            return self.target(node.operand, "0", node.type)
        if isinstance(node, tree.Member):
            return Some(node.type, self.place(node.vector), node.at)
        if isinstance(node, tree.Part):
            base = self.pointer_to(self.place_of(node.of), node).code
            number = scalar_of(node.type) if isinstance(node.type, Vector) else node.type
            simple = isinstance(node.type, (Scalar, Vector, Pointer))
            if simple and node.field.offset % stride(number):
                what = f"{written(node)}, which does not lie at a multiple of its size,"
                raise UnknownError(what, node.spot)
            offset = f" + {node.field.offset}" if node.field.offset else ""
            return Pointed(node.type, f"({base}{offset})")
        if isinstance(node, tree.Compound):
            return Element(node.type, self.compound(node))
        self.fail(node, f"{written(node)} has no place")

    def place_of(self, node: Expr) -> Place:
        """The same for any value; one without an address is put into memory."""
        if has_place(node):
            return self.place(node)
        value = self.expression(node)
        scalar, sizes = layout(node.type)
        name = self.keep(f"wave.private({written(node)!r}, {scalar}_type, {sizes}, True)")
        self.emit(f"{name}.give(0, {length(node.type)}, {value.code})")
        return Pointed(node.type, f"wave.address({name})")

    def compound(self, node: tree.Compound) -> Holder:
        raise NotImplementedError

    def target(self, pointer: Expr, index: str, of: Type) -> Place:
        """The element `index` of an array, or from where a pointer points."""
        array = pointer.operand if isinstance(pointer, tree.Convert) else pointer
        if isinstance(array.type, Array):
            place = self.place(array)
            if isinstance(place, Element):
                return Element(of, place.variable, (*place.indices, index))
            return Pointed(of, self.pointer_to(place, pointer).code, index)
        return Pointed(of, self.expression(pointer).code, index)

    def pointer_to(self, place: Place, node: Node) -> Value:
        """A pointer is a number that holds which array, and how many bytes behind its begin."""
        if isinstance(place, Pointed):
            step = f" + ({place.index})*{stride(place.type)}" if place.index != "0" else ""
            return Value(f"({place.base}{step})", Pointer(place.type))
        if not isinstance(place, Element):
            raise UnknownError(f"the address of {written(node)}", node.spot)
        code, of = f"wave.address({place.variable.python})", place.variable.type
        for index in place.indices:
            assert isinstance(of, Array)
            of = of.of
            code += f" + ({index})*{stride(of)}"
        return Value(f"({code})", Pointer(place.type, place.variable.space))

    def read(self, place: Place, node: Expr) -> Value:
        if isinstance(place, Named):
            return Value(self.given(place, node), place.type)
        if not isinstance(place, Some):
            return Value(self.keep(self.access("load", place, node)), place.type)
        vector = place.vector
        if isinstance(vector, Some):
            return self.part(self.read(vector, node), place)
        if isinstance(vector, Named):
            return self.part(Value(self.given(vector, node, place.at), vector.type), place)
        if isinstance(place.at, str) or _side_by_side(place.at):
            return Value(self.keep(self.access("load", place, node)), place.type)
        one = scalar_of(place.type)
        parts = [self.keep(self.access("load", Some(one, vector, (i,)), node)) for i in place.at]
        return Value(f"vector(({', '.join(parts)},), {one}_type)", place.type)

    def given(self, place: Named, node: Node, at: tuple[int, ...] | str = ()) -> str:
        """A variable's value; if it may have none, code that checks it, or some of its numbers."""
        code = place.variable.python
        if not place.variable.unset:
            return code
        site = self.site("unset", node.spot, place.variable.name, place.type)
        return (
            f"wave.given({code}, mask, {site}{f', {at}' if at and not isinstance(at, str) else ''})"
        )

    def part(self, vector: Value, place: Some) -> Value:
        at = place.at
        if isinstance(at, str):
            return Value(f"chosen({vector.code}, {at})", place.type)
        code = vector.code
        if max(at) >= length(vector.type):  # the fourth number of three
            code = f"vector(({code}, 0), {scalar_of(place.type)}_type)"
        one = f"element({code}, {at[0]})" if len(at) == 1 else f"{code}[{list(at)}]"
        return Value(one, place.type)

    def access(
        self, kind: str, place: Place, node: Node, value: str = "", packed: bool = False
    ) -> str:
        """Python text that loads from a place in memory, or stores there."""
        more = f", {value}" if kind == "store" else ""
        whole, of, inner, lead = place, place.type, "", 0
        if isinstance(place, Some):
            whole, at = place.vector, place.at
            lead = at[0] if isinstance(at, tuple) else 0
            inner = at if isinstance(at, str) else str(at[0])
            packed |= isinstance(at, str)
        packed |= isinstance(of, Struct)
        wide = 0 if packed else 4 if length(whole.type) == 3 else length(whole.type)
        text = written(node)
        if isinstance(whole, Element):
            array, size = whole.variable.type, scalar_of(of).size
            shape: tuple[tuple[int, int], ...] = ()
            while isinstance(array, Array):
                shape += ((array.n, stride(array.of) // size),)
                array = array.of
            shape += ((length(whole.type), 1),) if inner else ()
            site = self.site(kind, node.spot, text, of, shape=shape, wide=wide, lead=lead)
            indices = "".join(f"{i}, " for i in (*whole.indices, inner) if i)
            return f"wave.{kind}({site}, {whole.variable.python}, ({indices}), mask{more})"
        assert isinstance(whole, Pointed)
        site = self.site(kind, node.spot, text, of, wide=wide, lead=lead)
        step = length(of) if packed and not inner else stride(whole.type) // scalar_of(of).size
        index = whole.index if step == 1 or whole.index == "0" else f"({whole.index})*{step}"
        index = f"{index} + {inner}" if inner and index != "0" else inner or index
        return f"wave.{kind}_at({site}, {whole.base}, {index}, mask{more})"

    def write(self, place: Place, value: Value, node: Node) -> None:
        if isinstance(place, Named):
            name = place.variable.python
            # where exactly the lanes that were there when it was declared are here, one value may
            # stay one for all
            new = self.named(value).code
            self.emit(f"{name} = {new} if mask is mask_{name} else assign(mask, {new}, {name})")
        elif isinstance(place, Some):
            self.write_some(place, value, node)
        else:
            self.emit(self.access("store", place, node, value.code))

    def write_some(self, place: Some, value: Value, node: Node) -> None:
        """Store some numbers of a vector; in memory only these."""
        vector, at = place.vector, place.at
        if isinstance(vector, Some):
            assert isinstance(vector.at, tuple) and isinstance(at, tuple)
            self.write_some(
                Some(place.type, vector.vector, tuple(vector.at[i] for i in at)), value, node
            )
        elif isinstance(vector, Named):
            of = vector.type
            shown = at if isinstance(at, str) else str(at[0] if len(at) == 1 else list(at))
            given = f"{vector.variable.python}, {shown}, {value.code}"
            new = self.keep(f"changed({given}, {length(of)}, {scalar_of(of)}_type)")
            self.write(vector, Value(new, of), node)
        elif isinstance(at, str) or _side_by_side(at):
            self.emit(self.access("store", place, node, value.code))
        else:
            name = self.named(value).code
            for number, i in enumerate(at):
                one = Some(scalar_of(place.type), vector, (i,))
                self.emit(self.access("store", one, node, f"element({name}, {number})"))

    def named(self, value: Value) -> Value:
        """The same value under a name, so that it is computed once, and now."""
        if value.code.isidentifier():
            return value
        return Value(self.keep(value.code), value.type)

    def _text(self, node: tree.Text) -> Value:
        raise UnknownError("a string that is not printf's", node.spot)

    def _braces(self, node: tree.Braces) -> Value:
        self.fail(node, "values in { } can only be given where something is declared")

    def _name(self, node: tree.Name) -> Value:
        return self.read(self.place(node), node)

    _index = _part = _compound = _name

    def _member(self, node: tree.Member) -> Value:
        if has_place(node.vector):
            return self.read(self.place(node), node)
        nowhere = Some(node.type, Named(node.vector.type, NOBODY), node.at)
        return self.part(self.expression(node.vector), nowhere)

    # ---- operations
    def _unary(self, node: tree.Unary) -> Value:
        if node.op == "*":
            return self.read(self.place(node), node)
        if node.op == "&":
            return Value(self.pointer_to(self.place(node.operand), node.operand).code, node.type)
        if node.op == "!" and not isinstance(node.type, Vector):
            return self.as_int(self.truth(node))
        value = self.expression(node.operand)
        if node.op == "!":
            return Value(f"-converted({value.code} == 0, bool_type, int_type)", node.type)
        if node.op == "~":
            return Value(f"cut(~{value.code}, {scalar_of(value.type)}_type)", value.type)
        return value if node.op == "+" else self.result(f"(-{value.code})", value.type, node)

    def result(self, code: str, of: Type, node: Node) -> Value:
        """The result of arithmetic: an int must fit, other whole types wrap around."""
        scalar = scalar_of(of)
        if scalar is INT:
            code = f"wave.fits({code}, mask, {self.site('overflow', node.spot, written(node))})"
        elif scalar.whole:
            code = f"cut({code}, {scalar}_type)"
        return self.short(Value(code, of))

    def short(self, value: Value) -> Value:
        """The same value, under a name if it is long: Python limits nested brackets."""
        return self.named(value) if value.code.count("(") > 50 else value

    def _binary(self, node: tree.Binary) -> Value:
        if not _arithmetic(node):
            return self.as_int(self.truth(node))
        chain = [node]  # of operations whose left side is one as well; a + b + c + ... may be long
        while isinstance(chain[-1].left, tree.Binary) and _arithmetic(chain[-1].left):
            chain.append(chain[-1].left)
        left = self.expression(chain[-1].left)
        for one in reversed(chain):
            left = self.short(self.combined(one, left))
        return left

    def combined(self, node: tree.Binary, left: Value) -> Value:
        if node.op == ",":
            self.named(left)
            return self.expression(node.right)
        if not self.harmless(node.right):
            left = self.named(left)  # what the right side does must come after it
        right = self.expression(node.right)
        if node.op in ("&&", "||"):
            sign = "&" if node.op == "&&" else "|"
            code = f"-converted(({left.code} != 0) {sign} ({right.code} != 0), bool_type, int_type)"
            return Value(code, node.type)
        return self.operation(node.op, left, right, node, node.type, (node.left, node.right))

    def operation(self, op: str, left: Value, right: Value, node: Node, to: Type,
                  sides: tuple[Node, Node]) -> Value:  # fmt: skip
        """An operation of two values of one type, except for pointers and shifts."""
        if isinstance(left.type, Pointer) or isinstance(right.type, Pointer):
            return self.pointer_operation(op, left, right, to)
        scalar = scalar_of(left.type)
        if op == "/" and node is self.becomes_float:
            site = self.site("whole division", node.spot, written(node))
            left, right = self.named(left), self.named(right)
            self.emit(f"wave.drops({left.code}, {right.code}, mask, {site})")
        a, b = (f"unsigned({x.code})" if scalar is ULONG else x.code for x in (left, right))
        if op in COMPARISONS:  # of vectors: -1 where it holds
            return Value(f"-converted({a} {op} {b}, bool_type, int_type)", to)
        if not scalar.whole:
            products = [x for x in map(plain, sides) if isinstance(x, tree.Binary) and x.op == "*"]
            if op in "+-" and products:
                self.multiply_add(node, to)
            if op == "/":
                site = self.site("ratio", node.spot, written(node))
                return Value(f"wave.ratio({a}, {b}, mask, {site})", to)
            return Value(f"({a} {op} {b})", to)
        if op in ("/", "%"):
            return self.divided(op, a, b, known(sides[1]), node, to)
        if op in ("<<", ">>"):  # by the amount modulo the bits; what is shifted out is gone
            amount = f"unsigned({right.code})" if scalar is ULONG else right.code
            return Value(f"cut({a} {op} ({amount} & {scalar.bits - 1}), {scalar}_type)", to)
        code = f"({left.code} {op} {right.code})"
        return Value(code, to) if op in "&|^" else self.result(code, to, node)

    def divided(self, op: str, a: str, b: str, by: float | None, node: Node, to: Type) -> Value:
        scalar = scalar_of(to)
        function = "quotient_of" if op == "/" else "remainder_of"
        if by == 0:
            self.fail(node, f"{written(node)}: division by zero")
        if by is None:
            b = f"wave.divisor({b}, mask, {self.site('division', node.spot, written(node))})"
        code = f"{function}({a}, {b})"
        fits = by is not None and by > 0 and scalar is not ULONG
        return Value(code if fits else f"cut({code}, {scalar}_type)", to)

    def pointer_operation(self, op: str, left: Value, right: Value, to: Type) -> Value:
        a, b = left.type, right.type
        if isinstance(a, Pointer) and isinstance(b, Pointer):
            return Value(f"(({left.code} - {right.code})//{stride(a.to)})", to)
        if isinstance(b, Pointer):
            left, right = right, left
        assert isinstance(left.type, Pointer)
        return Value(f"({left.code} {op} ({right.code})*{stride(left.type.to)})", to)

    def multiply_add(self, node: Node, of: Type) -> None:
        self.emit(
            f"wave.multiply_add({self.site('multiply-add', node.spot, written(node), of)}, mask)"
        )

    # ---- what only some lanes compute
    def branch(self, condition: str, node: Node, text: str) -> tuple[str, str]:
        """The names of two masks: of the lanes for which a condition holds, and of the others."""
        yes, no = self.fresh("yes"), self.fresh("no")
        self.emit(
            f"{yes}, {no} = wave.branch(mask, {condition}, {self.site('branch', node.spot, text)})"
        )
        return yes, no

    def logical(self, node: tree.Binary) -> Value:
        """&& and ||: the right side is only for lanes that the left one has not decided."""
        if known(node.left) is not None:  # and has decided nothing
            return self.truth(node.right)
        left = self.truth(node.left)
        sign = "&" if node.op == "&&" else "|"
        if self.harmless(node.right):
            return self.short(Value(f"({left.code} {sign} {self.truth(node.right).code})", BOOL))
        result, before = self.keep(left.code), self.keep("mask")
        yes, no = self.branch(result, node, written(node))
        side = yes if node.op == "&&" else no
        with self.under(f"if {side} is not False:", side):
            self.emit(f"{result} = {result} {sign} {self.truth(node.right).code}")
        self.emit(f"mask = {before}")
        return Value(result, BOOL)

    def _choice(self, node: tree.Choice) -> Value:
        to, of = node.type, node.condition.type
        if isinstance(of, Vector):
            condition = self.named(self.expression(node.condition))
            yes, no = self.named(self.expression(node.yes)), self.expression(node.no)
            return Value(f"pick({self.highest(condition)}, {yes.code}, {no.code})", to)
        constant = known(node.condition)
        if constant is not None:
            return self.expression(node.yes if constant else node.no)
        condition = self.truth(node.condition)
        if self.harmless(node.yes) and self.harmless(node.no):
            yes, no = self.expression(node.yes), self.expression(node.no)
            return self.short(Value(f"pick({condition.code}, {yes.code}, {no.code})", to))
        decided, before = self.keep(condition.code), self.keep("mask")
        masks = self.branch(decided, node, written(node.condition))
        names = (self.keep("None"), self.keep("None"))
        for name, mask, side in zip(names, masks, (node.yes, node.no), strict=True):
            with self.under(f"if {mask} is not False:", mask):
                self.emit(f"{name} = {self.expression(side).code}")
        self.emit(f"mask = {before}")
        return Value(f"pick({decided}, {', '.join(names)})", to)

    @staticmethod
    def highest(value: Value) -> str:
        """Which numbers of a vector have their highest bit set."""
        scalar = scalar_of(value.type)
        signed = scalar.kind == "int" or scalar is ULONG  # a ulong is held as a long
        return f"({value.code} < 0)" if signed else f"({value.code} > {scalar.most >> 1})"

    # ---- assignments
    def _assign(self, node: tree.Assign) -> Value:
        place = self.place(node.target)
        value = self.expression(node.value)
        if node.op:
            old = self.read(place, node.target)
            if not isinstance(node.common, Pointer):
                old = self.converted_value(old, node.common, node.target)
            value = self.operation(
                node.op, old, value, node, node.common, (node.target, node.value)
            )
            value = self.converted_value(value, node.type, node.value)
        value = self.named(value)
        self.write(place, value, node.target)
        return Value(value.code, node.type)

    def _step(self, node: tree.Step) -> Value:
        place = self.place(node.target)
        before = Value(self.keep(self.read(place, node.target).code), place.type)
        of: Type = place.type
        if isinstance(of, Scalar) and of.rank < INT.rank:
            of = INT
        one, start = self.number(1, INT), before
        if not isinstance(of, Pointer):
            one = self.converted_value(self.number(1, scalar_of(of)), of, node)
            start = self.converted_value(before, of, node)
        after = self.operation(node.op[0], start, one, node, of, (node.target, node.target))
        after = self.named(self.converted_value(after, place.type, node))
        self.write(place, after, node.target)
        return after if node.before else before

    def _vectorliteral(self, node: tree.VectorLiteral) -> Value:
        parts = [self.expression(part) for part in node.parts]
        return Value(
            f"vector(({', '.join(p.code for p in parts)},), {scalar_of(node.type)}_type)", node.type
        )


def _side_by_side(at: tuple[int, ...]) -> bool:
    return all(b == a + 1 for a, b in zip(at, at[1:], strict=False))


def _arithmetic(node: tree.Binary) -> bool:
    return isinstance(node.type, Vector) or not (node.op in COMPARISONS or node.op in ("&&", "||"))
