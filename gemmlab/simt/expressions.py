"""Expressions of OpenCL C become expressions of Python. Loads become lines of their own, in the order of the text."""

from __future__ import annotations

from dataclasses import dataclass

from . import tree
from .parse import CONSTANT
from .tree import Node, written
from .types import (
    BOOL,
    CHAR,
    FLOAT,
    INT,
    LONG,
    SHORT,
    UINT,
    ULONG,
    Array,
    Pointer,
    Scalar,
    Type,
    Vector,
    Void,
    an,
    length,
    scalar_of,
    stride,
)
from .values import cut
from .writer import Value, Variable, Writer

COMPARISONS = {"<", ">", "<=", ">=", "==", "!="}
WHOLE_ONLY = {"%", "&", "|", "^", "<<", ">>", "~"}
NAMED_NUMBERS: dict[str, tuple[float, Scalar]] = {
    "CLK_LOCAL_MEM_FENCE": (1, UINT), "CLK_GLOBAL_MEM_FENCE": (2, UINT), "true": (1, INT), "false": (0, INT),
    "INT_MAX": (INT.most, INT), "INT_MIN": (INT.least, INT), "UINT_MAX": (UINT.most, UINT),
    "LONG_MAX": (LONG.most, LONG), "LONG_MIN": (LONG.least, LONG),
    "INFINITY": (float("inf"), FLOAT), "NAN": (float("nan"), FLOAT), "M_PI_F": (3.14159274101257, FLOAT),
    "FLT_MAX": (3.4028234663852886e38, FLOAT), "FLT_MIN": (2.0**-126, FLOAT), "FLT_EPSILON": (2.0**-23, FLOAT),
    "MAXFLOAT": (3.4028234663852886e38, FLOAT),
}  # fmt: skip
PURE = (tree.Number, tree.Name, tree.Member, tree.Unary, tree.Binary, tree.Choice, tree.Cast, tree.VectorLiteral)


# ---- where a value can lie: something that can be stored to, or has an address
@dataclass
class Named:
    """A variable."""

    type: Type
    variable: Variable


@dataclass
class Element:
    """A named array by as many indices as are given: one of its elements, a row, or all of it."""

    type: Type
    variable: Variable
    indices: tuple[str, ...] = ()


@dataclass
class Pointed:
    """The element `index` from where `base` points."""

    type: Type
    base: str
    index: str = "0"


@dataclass
class Part:
    """The numbers `at` of the vector in another place."""

    type: Type
    vector: Place
    at: tuple[int, ...]


Place = Named | Element | Pointed | Part


class Expressions(Writer):
    """One method per kind of node; each returns a `Value`."""

    def expression(self, node: Node) -> Value:
        return getattr(self, f"_{type(node).__name__.lower()}")(node)

    def harmless(self, node: Node) -> bool:
        """Whether it does no harm to compute this for lanes that do not want it: no loads, stores or divisions."""
        if not isinstance(node, PURE) or (isinstance(node, tree.Unary) and node.op in "*&"):
            return False
        if isinstance(node, tree.Binary) and node.op in ("/", "%") and not isinstance(node.right, tree.Number):
            return False
        if isinstance(node, tree.Cast) and scalar_of(node.type).whole:
            return False  # of a float that may be too large for it
        if isinstance(node, tree.Name):
            variable = self.find(node.name)
            return variable is None or not (variable.in_memory or variable.unset)
        return all(self.harmless(child) for child in node.children())

    # ---- from one type to another
    def number(self, value: float, of: Scalar) -> Value:
        """A number that is known. The Python text calls floats by names, because they are NumPy's."""
        if of.whole:
            held = cut(int(value), of)
            return Value(f"{held}" if held >= 0 else f"({held})", of, None if of is ULONG and held < 0 else held)
        name = f"f{len(self.constants)}"
        self.constants[name] = of.dtype.type(value)
        return Value(name, of, float(value))

    def promoted(self, value: Value, node: Node) -> Value:
        """As an operand: types smaller than int become int."""
        if isinstance(value.type, Scalar) and value.type.rank < INT.rank:
            return self.convert(value, INT, node)
        if not isinstance(value.type, (Scalar, Vector)):
            self.fail(node, f"{written(node)} is of type {value.type}: that is no number")
        return value

    def convert(self, value: Value, to: Type, node: Node, cast: bool = False) -> Value:
        """A value as another type, as C converts it where one is assigned to another."""
        of = value.type
        if of == to:
            return value
        if isinstance(to, Pointer) and (isinstance(of, Pointer) or (value.constant == 0 and scalar_of(of).whole)):
            return Value(value.code, to)
        if isinstance(of, Pointer) and not isinstance(to, Pointer):
            if isinstance(to, Scalar) and to.size == 8 and to.whole:
                return Value(value.code, to)
            self.fail(node, f"a pointer ({of}) cannot become {an(to)}")
        if not (isinstance(of, (Scalar, Vector)) and isinstance(to, (Scalar, Vector))):
            self.fail(node, f"{an(of)} cannot become {an(to)}")
        if isinstance(of, Vector) and not cast:
            hint = f"; convert_{to} does it" if length(of) == length(to) else ""
            self.fail(node, f"{an(of)} does not become {an(to)} by itself{hint}")
        if isinstance(to, Vector) and isinstance(of, Scalar):
            return Value(f"spread({self.convert(value, to.of, node).code}, {to.n})", to)
        return self.number_as(value, to, node)

    def number_as(self, value: Value, to: Type, node: Node) -> Value:
        """The same between numbers, or between vectors of one length."""
        a, b, known = scalar_of(value.type), scalar_of(to), value.constant
        if b is BOOL:
            known = None if known is None else bool(known)
            return Value(f"({value.code} != 0)" if known is None else str(known), to, known)
        if known is not None and isinstance(to, Scalar) and abs(known) < 2.0**64:
            return self.number(known, b)
        # a long and a ulong are held as the same 64 bits
        same = b.size == 8 or (b.least <= a.least and a.most <= b.most)
        if a.whole and b.whole and same and a is not BOOL:
            return Value(value.code, to)
        if b.whole and not a.whole:
            site = self.site("overflow", node.spot, written(node))
            return Value(f"wave.rounded({value.code}, {a}_type, {b}_type, mask, {site})", to)
        return Value(f"converted({value.code}, {a}_type, {b}_type)", to)

    def condition(self, node: Node) -> Value:
        value = self.expression(node)
        if isinstance(value.type, Vector):
            self.fail(node, f"a condition must be one number, not {an(value.type)}")
        if isinstance(value.type, Pointer):
            return Value(f"({value.code} != 0)", BOOL)
        return self.convert(value, BOOL, node)

    # ---- places
    def place(self, node: Node) -> Place:
        """Where an expression's value lies."""
        if isinstance(node, tree.Name):
            variable = self.lookup(node, node.name)
            return (Element if variable.in_memory else Named)(variable.type, variable)
        if isinstance(node, tree.Index):
            index = self.promoted(self.expression(node.index), node.index)
            if not isinstance(index.type, Scalar) or not index.type.whole:
                self.fail(node.index, f"an index must be a whole number, not {an(index.type)}")
            return self.target(node.array, index.code)
        if isinstance(node, tree.Unary) and node.op == "*":
            return self.target(node.operand, "0")
        if isinstance(node, tree.Member):
            vector = self.place(node.vector)
            at = self.members(node, vector.type)
            return Part(part_of(vector.type, at), vector, at)
        self.fail(node, f"{written(node)} is not something that can be stored to")

    def target(self, pointer: Node, index: str) -> Place:
        """The element `index` of an array, or from where a pointer points."""
        if _has_place(pointer):
            place = self.place(pointer)
            if isinstance(place, Element) and isinstance(place.type, Array):
                return Element(place.type.of, place.variable, (*place.indices, index))
            value = self.read(place, pointer)
        else:
            value = self.expression(pointer)
        if not isinstance(value.type, Pointer):
            extra = "; there is one index too many" if isinstance(pointer, tree.Index) else ""
            self.fail(pointer, f"{written(pointer)} is {an(value.type)}, neither an array nor a pointer{extra}")
        return Pointed(value.type.to, value.code, index)

    def members(self, node: tree.Member, of: Type) -> tuple[int, ...]:
        """Which numbers of a vector .x, .hi or .s0123 names."""
        if not isinstance(of, Vector):
            self.fail(node, f"{written(node.vector)} is {an(of)}: it has no elements to name")
        name, n = node.name, of.n
        half = (n + 1) // 2
        known = {"lo": range(half), "hi": range(half, 2 * half), "even": range(0, n, 2), "odd": range(1, n, 2)}
        if name in known:
            at = tuple(known[name])
        elif name[0] in "sS" and len(name) > 1 and all(c in "0123456789abcdefABCDEF" for c in name[1:]):
            at = tuple(int(c, 16) for c in name[1:])
        elif all(c in "xyzw" for c in name):
            at = tuple("xyzw".index(c) for c in name)
        else:
            self.fail(node, f"{an(of)} has no element {name!r}")
        if max(at) >= n:
            self.fail(node, f"{an(of)} has {n} elements; there is no {name!r}")
        if len(at) not in (1, 2, 3, 4, 8, 16):
            self.fail(node, f"{len(at)} numbers are no vector")
        return at

    def address(self, node: Node) -> Value:
        """The pointer to an expression's place."""
        place = self.place(node)
        if isinstance(place, Part):
            self.fail(node, "the address of an element of a vector is not known to this simulator")
        return self.pointer_to(place, node)

    def pointer_to(self, place: Place, node: Node) -> Value:
        """A pointer is a number that holds which array, and how many bytes behind its begin."""
        if isinstance(place, Pointed):
            return Value(f"({place.base} + ({place.index})*{stride(place.type)})", Pointer(place.type))
        if not isinstance(place, Element):
            self.fail(node, f"{written(node)} has no address here")
        code, of = f"wave.address({place.variable.python})", place.variable.type
        for index in place.indices:
            assert isinstance(of, Array)
            of = of.of
            code += f" + ({index})*{stride(of)}"
        return Value(f"({code})", Pointer(place.type, place.variable.space))

    def read(self, place: Place, node: Node) -> Value:
        """The value that lies in a place; of an array, the pointer to its first element."""
        if isinstance(place, Named):
            code = place.variable.python
            if place.variable.unset:
                site = self.site("unset", node.spot, place.variable.name, place.type)
                code = f"wave.given({code}, mask, {site})"
            return Value(code, place.type)
        if isinstance(place, Part):
            return self.part(self.read(place.vector, node), place.at)
        if isinstance(place.type, Array):
            pointer = self.pointer_to(place, node)
            assert isinstance(pointer.type, Pointer)
            return Value(pointer.code, Pointer(place.type.of, pointer.type.space))
        if isinstance(place.type, Void):
            self.fail(node, "a void* cannot be read")
        return Value(self.keep(self.access("load", place, node)), place.type)

    def part(self, vector: Value, at: tuple[int, ...]) -> Value:
        code = f"element({vector.code}, {at[0]})" if len(at) == 1 else f"{vector.code}[{list(at)}]"
        return Value(code, part_of(vector.type, at))

    def access(self, kind: str, place: Place, node: Node, value: str = "", packed: bool = False) -> str:
        """Python text that loads from a place in memory, or stores there."""
        more = f", {value}" if kind == "store" else ""
        if isinstance(place, Element):
            site = self.site(kind, node.spot, written(node), place.type, place.variable.type)
            indices = "".join(f"{i}, " for i in place.indices)
            return f"wave.{kind}({site}, {place.variable.python}, ({indices}), mask{more})"
        assert isinstance(place, Pointed)
        site = self.site(kind, node.spot, written(node), place.type, packed=packed)
        step = length(place.type) if packed else stride(place.type) // scalar_of(place.type).size
        index = place.index if step == 1 or place.index == "0" else f"({place.index})*{step}"
        return f"wave.{kind}_at({site}, {place.base}, {index}, mask{more})"

    def write(self, place: Place, value: Value, node: Node) -> None:
        """Store a value, which has the place's type."""
        if isinstance(place, Named):
            if place.variable.const:
                self.fail(node, f"{place.variable.name!r} is const and cannot be changed")
            name = place.variable.python
            # where exactly the lanes that were there when it was declared are here, one value may stay one for all
            new = self.named(value).code
            self.emit(f"{name} = {new} if mask is mask_{name} else assign(mask, {new}, {name})")
        elif isinstance(place, Part):
            vector, of = place.vector, place.vector.type
            old = vector.variable.python if isinstance(vector, Named) else self.read(vector, node).code
            at = str(place.at[0] if len(place.at) == 1 else list(place.at))
            new = self.keep(f"changed({old}, {at}, {value.code}, {length(of)}, {scalar_of(of)}_type)")
            self.write(vector, Value(new, of), node)
        else:
            self.emit(self.access("store", place, node, value.code))

    def named(self, value: Value) -> Value:
        """The same value under a name, so that it is computed once, and now."""
        return value if value.code.isidentifier() else Value(self.keep(value.code), value.type, value.constant)

    # ---- names and numbers
    def _number(self, node: tree.Number) -> Value:
        return self.number(node.value, node.type)

    def _text(self, node: tree.Text) -> Value:
        self.fail(node, "a string cannot stand here")

    def _braces(self, node: tree.Braces) -> Value:
        self.fail(node, "values in { } can only be given to an array where it is declared")

    def _name(self, node: tree.Name) -> Value:
        if self.find(node.name) is None and node.name in NAMED_NUMBERS:
            return self.number(*NAMED_NUMBERS[node.name])
        return self.read(self.place(node), node)

    def _index(self, node: tree.Index) -> Value:
        return self.read(self.place(node), node)

    def _member(self, node: tree.Member) -> Value:
        vector = self.expression(node.vector)
        return self.part(vector, self.members(node, vector.type))

    # ---- operations
    def _unary(self, node: tree.Unary) -> Value:
        if node.op == "*":
            return self.read(self.place(node), node)
        if node.op == "&":
            return self.address(node.operand)
        if node.op == "!":
            value = self.condition(node.operand)
            known = None if value.constant is None else not value.constant
            return Value(f"({value.code} ^ True)" if known is None else str(known), BOOL, known)
        value = self.promoted(self.expression(node.operand), node.operand)
        scalar = scalar_of(value.type)
        if node.op == "+":
            return value
        if node.op == "~":
            if not scalar.whole:
                self.fail(node, f"~ is for whole numbers, not for {an(value.type)}")
            return Value(f"cut(~{value.code}, {scalar}_type)", value.type)
        if value.constant is not None:
            return self.number(-value.constant, scalar)
        return self.result(f"(-{value.code})", value.type, node)

    def result(self, code: str, of: Type, node: Node) -> Value:
        """What arithmetic comes to: an int must fit, the other whole types keep their lower bits."""
        scalar = scalar_of(of)
        if scalar is INT:
            code = f"wave.fits({code}, mask, {self.site('overflow', node.spot, written(node))})"
        elif scalar.whole:
            code = f"cut({code}, {scalar}_type)"
        return Value(code, of)

    def _binary(self, node: tree.Binary) -> Value:
        if node.op in ("&&", "||"):
            return self.logical(node)
        left = self.expression(node.left)
        if node.op == ",":
            self.named(left)
            return self.expression(node.right)
        if not self.harmless(node.right):
            left = self.named(left)  # what the right side does must come after it
        return self.operation(node.op, left, self.expression(node.right), node, node.left, node.right)

    def operation(self, op: str, left: Value, right: Value, node: Node, at_left: Node, at_right: Node) -> Value:
        """An operation of two values; `at_left` and `at_right` are the operands in the text."""
        of_pointers = self.pointer_operation(op, left, right, node)
        if of_pointers is not None:
            return of_pointers
        left, right = self.promoted(left, at_left), self.promoted(right, at_right)
        shift = op in ("<<", ">>")
        left, right, to = (left, right, left.type) if shift else self.common(op, node, left, right)
        scalar = scalar_of(to)
        if op in WHOLE_ONLY and not (scalar.whole and scalar_of(right.type).whole):
            self.fail(node, f"{op!r} is for whole numbers, not for {an(left.type)} and {an(right.type)}")
        if op in ("/", "%") and scalar.whole and right.constant == 0:
            self.fail(node, f"{written(node)}: division by zero")
        known = self.folded(op, left.constant, right.constant, to)
        if known is not None:
            return known
        a, b = (f"unsigned({x.code})" if scalar is ULONG else x.code for x in (left, right))
        if op in COMPARISONS:
            if isinstance(to, Vector):  # -1 where it holds
                signed = {1: CHAR, 2: SHORT, 4: INT, 8: LONG}[to.of.size]
                return Value(f"-converted({a} {op} {b}, bool_type, int_type)", Vector(signed, to.n))
            return Value(f"({a} {op} {b})", BOOL)
        if not scalar.whole:
            if op in "+-" and any(isinstance(x, tree.Binary) and x.op == "*" for x in (at_left, at_right)):
                self.multiply_add(node, to)
            return Value(f"ratio({a}, {b})" if op == "/" else f"({a} {op} {b})", to)
        if op in ("/", "%"):
            function = "quotient_of" if op == "/" else "remainder_of"
            if right.constant is None:
                b = f"wave.divisor({b}, mask, {self.site('division', node.spot, written(node))})"
            code = f"{function}({a}, {b})"
            fits = right.constant is not None and right.constant > 0 and scalar is not ULONG
            return Value(code if fits else f"cut({code}, {scalar}_type)", to)
        if shift:  # by the amount modulo the bits of the type; what is shifted out is gone
            return Value(f"cut({a} {op} ({b} & {scalar.bits - 1}), {scalar}_type)", to)
        code = f"({left.code} {op} {right.code})"
        return Value(code, to) if op in "&|^" else self.result(code, to, node)

    def pointer_operation(self, op: str, left: Value, right: Value, node: Node) -> Value | None:
        """Two pointers are compared and subtracted, and a pointer moves; None for anything else."""
        a, b = left.type, right.type
        both = isinstance(a, Pointer) and isinstance(b, Pointer)
        either = isinstance(a, Pointer) or isinstance(b, Pointer)
        if op in COMPARISONS and (both or (either and 0 in (left.constant, right.constant))):
            return Value(f"({left.code} {op} {right.code})", BOOL)
        if isinstance(a, Pointer) and isinstance(b, Pointer) and op == "-":
            return Value(f"(({left.code} - {right.code})//{stride(a.to)})", LONG)
        if isinstance(b, Pointer) and op == "+":
            left, right, a, b = right, left, b, a
        if not isinstance(a, Pointer) or op not in "+-":
            return None
        if not isinstance(b, Scalar) or not b.whole:
            self.fail(node, f"a pointer moves by a whole number of elements, not by {an(b)}")
        return Value(f"({left.code} {op} ({right.code})*{stride(a.to)})", a)

    def common(self, op: str, node: Node, a: Value, b: Value) -> tuple[Value, Value, Type]:
        """Both operands in the type in which C computes; beside a vector, one number is used for each element."""
        to: Type = max(scalar_of(a.type), scalar_of(b.type), key=lambda t: t.rank)
        for vector in (b.type, a.type):
            if isinstance(vector, Vector):
                to = vector
        if isinstance(a.type, Vector) and isinstance(b.type, Vector) and a.type != b.type:
            self.fail(node, f"{op!r} cannot be applied to {an(a.type)} and {an(b.type)}")
        a, b = (x if x.type == to else self.convert(x, scalar_of(to), node) for x in (a, b))
        return a, b, to

    def folded(self, op: str, a: float | None, b: float | None, of: Type) -> Value | None:
        """The result if both operands are known; None for what is better left to run."""
        if a is None or b is None or not isinstance(of, Scalar):
            return None
        if op in COMPARISONS:
            known = CONSTANT[op](a, b)
            return Value(str(known), BOOL, known)
        if not of.whole:
            return None
        result = CONSTANT[op](int(a), int(b) & (of.bits - 1) if op in ("<<", ">>") else int(b))
        return self.number(result, of) if of.least <= result <= of.most else None

    def multiply_add(self, node: Node, of: Type) -> None:
        self.emit(f"wave.multiply_add({self.site('multiply-add', node.spot, written(node), of)}, mask)")

    # ---- what only some lanes compute
    def branch(self, condition: str, node: Node, text: str) -> tuple[str, str]:
        """The names of two masks: of the lanes for which a condition holds, and of the others."""
        yes, no = self.fresh("yes"), self.fresh("no")
        self.emit(f"{yes}, {no} = wave.branch(mask, {condition}, {self.site('branch', node.spot, text)})")
        return yes, no

    def logical(self, node: tree.Binary) -> Value:
        """&& and ||: the right side is only for lanes that the left one has not decided."""
        left = self.condition(node.left)
        sign = "&" if node.op == "&&" else "|"
        if left.constant is not None:
            return left if bool(left.constant) == (node.op == "||") else self.condition(node.right)
        if self.harmless(node.right):
            return Value(f"({left.code} {sign} {self.condition(node.right).code})", BOOL)
        result, before = self.keep(left.code), self.keep("mask")
        yes, no = self.branch(result, node, written(node))
        side = yes if node.op == "&&" else no
        with self.under(f"if {side} is not False:", side):
            self.emit(f"{result} = {result} {sign} {self.condition(node.right).code}")
        self.emit(f"mask = {before}")
        return Value(result, BOOL)

    def _choice(self, node: tree.Choice) -> Value:
        """condition ? yes : no"""
        condition = self.expression(node.condition)
        by_element = isinstance(condition.type, Vector)
        if by_element or isinstance(condition.type, Pointer):
            condition = Value(f"({condition.code} {'<' if by_element else '!='} 0)", BOOL)
        condition = self.convert(condition, BOOL, node.condition)
        if by_element or (self.harmless(node.yes) and self.harmless(node.no)):
            yes, no = self.expression(node.yes), self.expression(node.no)
            to = self.either(node, yes, no)
            yes, no = self.convert(yes, to, node.yes), self.convert(no, to, node.no)
            if condition.constant is not None:
                return yes if condition.constant else no
            return Value(f"pick({condition.code}, {yes.code}, {no.code})", to)
        decided, before = self.keep(condition.code), self.keep("mask")
        masks = self.branch(decided, node, written(node.condition))
        names, values = (self.keep("None"), self.keep("None")), []
        for name, mask, side in zip(names, masks, (node.yes, node.no), strict=True):
            with self.under(f"if {mask} is not False:", mask):
                values.append(self.expression(side))
                self.emit(f"{name} = {values[-1].code}")
        to = self.either(node, *values)
        for name, value, side in zip(names, values, (node.yes, node.no), strict=True):
            code = self.convert(Value(name, value.type), to, side).code
            if code != name:
                self.emit(f"if {name} is not None: {name} = {code}")
        self.emit(f"mask = {before}")
        return Value(f"pick({decided}, {', '.join(names)})", to)

    def either(self, node: Node, yes: Value, no: Value) -> Type:
        """The type of what is either one thing or another."""
        a, b = yes.type, no.type
        if a == b or (isinstance(a, Pointer) and isinstance(b, Pointer)):
            return a
        if isinstance(a, Pointer) or isinstance(b, Pointer):
            self.fail(node, f"'? :' cannot choose between {an(a)} and {an(b)}")
        if isinstance(a, Vector) or isinstance(b, Vector):
            return a if isinstance(a, Vector) else b
        return max(INT, scalar_of(a), scalar_of(b), key=lambda t: t.rank)

    # ---- assignments
    def _assign(self, node: tree.Assign) -> Value:
        place = self.changeable(node.target)
        value = self.expression(node.value)
        if node.op:
            if isinstance(place.type, Pointer) and not (node.op in "+-" and scalar_of(value.type).whole):
                self.fail(node, f"a pointer moves by += or -= a whole number, not by {node.op}= {an(value.type)}")
            old = self.read(place, node.target)
            value = self.operation(node.op, old, value, node, node.target, node.value)
        value = self.named(self.convert(value, place.type, node.value, cast=bool(node.op)))
        self.write(place, value, node.target)
        return Value(value.code, place.type)

    def _step(self, node: tree.Step) -> Value:
        """++i, i++, --i and i--"""
        place = self.changeable(node.target)
        before = Value(self.keep(self.read(place, node.target).code), place.type)
        one = tree.Number(node.spot, 1, INT)
        after = self.operation(node.op[0], before, self.number(1, INT), node, node.target, one)
        after = self.named(self.convert(after, place.type, node, cast=True))
        self.write(place, after, node.target)
        return after if node.before else before

    def changeable(self, node: Node) -> Place:
        place = self.place(node)
        if isinstance(place.type, (Array, Void)):
            self.fail(node, f"{written(node)} is {an(place.type)} and cannot be changed as a whole")
        return place

    def _cast(self, node: tree.Cast) -> Value:
        value = self.expression(node.operand)
        if isinstance(node.type, Pointer):
            if not isinstance(value.type, Pointer) and not scalar_of(value.type).whole:
                self.fail(node, f"{an(value.type)} cannot become {an(node.type)}")
            return Value(value.code, node.type)
        if isinstance(node.type, Vector) and isinstance(value.type, Vector) and value.type != node.type:
            self.fail(node, f"a cast from {value.type} to {node.type} is not allowed; convert_{node.type} does it")
        return self.convert(value, node.type, node.operand)

    def _vectorliteral(self, node: tree.VectorLiteral) -> Value:
        parts = [self.promoted(self.expression(part), part) for part in node.parts]
        of = node.type.of
        if len(parts) == 1 and isinstance(parts[0].type, Scalar):
            return self.convert(parts[0], node.type, node.parts[0])
        count = sum(length(part.type) for part in parts)
        if count != node.type.n:
            self.fail(node, f"{an(node.type)} needs {node.type.n} numbers, not {count}")
        codes = []
        for value, part in zip(parts, node.parts, strict=True):
            to = Vector(of, value.type.n) if isinstance(value.type, Vector) else of
            codes.append(self.convert(value, to, part).code)
        return Value(f"vector(({', '.join(codes)},), {of}_type)", node.type)


def part_of(of: Type, at: tuple[int, ...]) -> Type:
    """The type of some numbers of a vector."""
    return scalar_of(of) if len(at) == 1 else Vector(scalar_of(of), len(at))


def _has_place(node: Node) -> bool:
    return isinstance(node, (tree.Name, tree.Index)) or (isinstance(node, tree.Unary) and node.op == "*")
