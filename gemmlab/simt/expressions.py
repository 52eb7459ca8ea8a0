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
    VOID,
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
)  # fmt: skip
from .writer import Value, Variable, Writer

#: A magnitude that an int may have without being looked at: the product of two ints fits 64 bits.
ROOM = 62
COMPARISONS = {"<", ">", "<=", ">=", "==", "!="}
WHOLE_ONLY = {"%", "&", "|", "^", "<<", ">>", "~"}
NAMED_NUMBERS: dict[str, tuple[float, Scalar]] = {
    "CLK_LOCAL_MEM_FENCE": (1, UINT), "CLK_GLOBAL_MEM_FENCE": (2, UINT), "true": (1, INT), "false": (0, INT),
    "INT_MAX": (2**31 - 1, INT), "INT_MIN": (-(2**31), INT), "UINT_MAX": (2**32 - 1, UINT),
    "LONG_MAX": (2**63 - 1, LONG), "LONG_MIN": (-(2**63), LONG),
    "INFINITY": (float("inf"), FLOAT), "NAN": (float("nan"), FLOAT), "M_PI_F": (3.14159274101257, FLOAT),
    "FLT_MAX": (3.4028234663852886e38, FLOAT), "FLT_MIN": (2.0**-126, FLOAT), "FLT_EPSILON": (2.0**-23, FLOAT),
    "MAXFLOAT": (3.4028234663852886e38, FLOAT),
}  # fmt: skip
PURE = (tree.Number, tree.Name, tree.Member, tree.Unary, tree.Binary, tree.Choice, tree.Cast, tree.VectorLiteral)


@dataclass
class Place:
    """Something that can be stored to.

    kind is "value" (a variable), "array" (an array's element by its indices), "pointer" (the element `index` from
    where `base` points), or "elements" (the numbers `at` of the vector in another place).
    """

    kind: str
    type: Type
    name: str = ""
    variable: Variable | None = None
    indices: tuple[str, ...] = ()
    base: str = ""
    index: str = "0"
    inner: Place | None = None
    at: tuple[int, ...] = ()


def full(of: Type) -> int:
    """The most bits that the magnitude of a whole number of this type has."""
    scalar = scalar_of(of)
    return scalar.bits - (scalar.kind == "int")


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
        if isinstance(node, tree.Name):
            variable = self.find(node.name)
            return variable is None or variable.kind in ("value", "constant") and not variable.unset
        return all(self.harmless(child) for child in node.children())

    # ---- from one type to another
    def number(self, value: float, of: Scalar) -> Value:
        if of.whole:
            code = str(int(value)) if value >= 0 else f"({int(value)})"
            return Value(code, of, int(value), int(value).bit_length())
        name = next((n for n, v in self.constants.items() if repr(v) == repr(of.dtype.type(value))), "")
        if not name:
            name = f"f{len(self.constants)}"
            self.constants[name] = of.dtype.type(value)
        return Value(name, of, float(value))

    def fitted(self, value: Value, node: Node) -> Value:
        """An int that arithmetic may have made too large is looked at before it is used."""
        if scalar_of(value.type) is INT and value.bits > 31 and value.constant is None:
            site = self.site("overflow", node.spot, written(node))
            return Value(f"wave.fits({value.code}, mask, {site})", value.type, None, 31)
        return value

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
            return self.fitted(value, node)
        if isinstance(to, Pointer):
            if isinstance(of, Pointer) or (value.constant == 0 and scalar_of(of).whole):
                return Value(value.code, to)
            self.fail(node, f"{an(of)} cannot become {an(to)}")
        if isinstance(of, Pointer):
            if isinstance(to, Scalar) and to.size == 8 and to.whole:
                return Value(value.code, to)
            self.fail(node, f"a pointer ({of}) cannot become {an(to)}")
        if isinstance(of, (Array, Void)) or isinstance(to, (Array, Void)):
            self.fail(node, f"{an(of)} cannot become {an(to)}")
        if isinstance(of, Vector) and not cast:
            hint = f"; convert_{to} does it" if length(of) == length(to) else ""
            self.fail(node, f"{an(of)} does not become {an(to)} by itself{hint}")
        if isinstance(to, Vector) and not isinstance(of, Vector):
            return Value(f"spread({self.convert(value, to.of, node).code}, {to.n})", to, None, full(to))
        return self._converted(self.fitted(value, node), to, node)

    def _converted(self, value: Value, to: Type, node: Node) -> Value:
        """The same between numbers, or between vectors of one length."""
        a, b, code = scalar_of(value.type), scalar_of(to), value.code
        if value.constant is not None and isinstance(to, Scalar) and b is not BOOL and abs(value.constant) < 2.0**64:
            number = value.constant
            if b.whole:
                number = int(number) & (2**b.bits - 1)
                number -= 2**b.bits if b.kind == "int" and number >= 2 ** (b.bits - 1) else 0
            if b is not ULONG or number < 2**63:
                return self.number(number, b)
        if b is BOOL:
            known = None if value.constant is None else bool(value.constant)
            return Value(f"({code} != 0)" if known is None else str(known), to, known, 1)
        if not b.whole:
            code = f"whole({code})" if a is BOOL else f"unsigned({code})" if a is ULONG and value.bits > 63 else code
            return Value(f"floating({code}, {b.name})", to)
        if not a.whole:
            code = f"truncated({code})"
            return Value(f"wrapped({code}, {b.bits})" if b.kind == "int" else f"({code} & {2**b.bits - 1})"
                         if b.size < 8 else code, to, None, full(to))  # fmt: skip
        if a is BOOL:
            return Value(f"whole({code})", to, None, 1)
        if b.kind == "int":
            fits = value.bits <= full(to)
            return Value(code if fits else f"wrapped({code}, {b.bits})", to, None, min(value.bits, full(to)))
        if a.kind == "int":  # a negative number becomes a large one
            return Value(f"({code} & {2**b.bits - 1})" if b.size < 8 else code, to, None, full(to))
        fits = value.bits <= b.bits
        return Value(code if fits else f"({code} & {2**b.bits - 1})", to, None, min(value.bits, full(to)))

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
            kind = "value" if variable.kind in ("value", "constant") else "array"
            return Place(kind, variable.type, node.name, variable)
        if isinstance(node, tree.Index):
            index = self.promoted(self.expression(node.index), node.index)
            if not isinstance(index.type, Scalar) or not index.type.whole:
                self.fail(node.index, f"an index must be a whole number, not {an(index.type)}")
            return self.moved(self.pointer(node.array), index, node)
        if isinstance(node, tree.Unary) and node.op == "*":
            return self.moved(self.pointer(node.operand), Value("0", INT, 0, 0), node)
        if isinstance(node, tree.Member):
            inner = self.place(node.vector)
            if not isinstance(inner.type, Vector):
                self.fail(node, f"{written(node.vector)} is {an(inner.type)}: it has no elements to name")
            at = self.members(node, inner.type)
            of = inner.type.of if len(at) == 1 else Vector(inner.type.of, len(at))
            return Place("elements", of, inner=inner, at=at)
        self.fail(node, f"{written(node)} is not something that can be stored to")

    def members(self, node: tree.Member, of: Vector) -> tuple[int, ...]:
        """Which numbers of a vector .x, .hi or .s0123 names."""
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

    def pointer(self, node: Node) -> Place:
        """What a pointer or an array points to: an array itself, or a place whose type is what is pointed to."""
        if isinstance(node, tree.Cast) and isinstance(node.type, Pointer):
            return Place("pointer", node.type.to, written(node.operand), base=self.expression(node).code)
        if isinstance(node, tree.Unary) and node.op == "&":
            inner = self.place(node.operand)
            if inner.kind == "elements":
                self.fail(node, "the address of an element of a vector is not known to this simulator")
            base = self.address(inner, node)
            return Place("pointer", inner.type, written(node.operand), base=base)
        if isinstance(node, tree.Binary) and node.op in "+-" and self.points(node):
            left, right = (node.left, node.right) if self.points(node.left) else (node.right, node.left)
            by = self.promoted(self.expression(right), right)
            if not isinstance(by.type, Scalar) or not by.type.whole:
                self.fail(node, f"a pointer moves by a whole number of elements, not by {an(by.type)}")
            if node.op == "-":
                by = Value(f"-({by.code})", LONG)
            return self.moved(self.pointer(left), by, node)
        place = None
        if isinstance(node, (tree.Name, tree.Index)) or (isinstance(node, tree.Unary) and node.op == "*"):
            place = self.place(node)
            if place.kind == "array" and isinstance(place.type, Array):
                return place
            if isinstance(place.type, Array):
                return Place("pointer", place.type.of, written(node), base=self.address(place, node))
        value = self.read(place, node) if place else self.expression(node)
        if not isinstance(value.type, Pointer):
            extra = "; there is one index too many" if isinstance(node, tree.Index) else ""
            self.fail(node, f"{written(node)} is {an(value.type)}, neither an array nor a pointer{extra}")
        return Place("pointer", value.type.to, written(node), base=value.code)

    def points(self, node: Node) -> bool:
        """Whether an expression is a pointer or an array."""
        return isinstance(self.kind_of(node), (Pointer, Array))

    def kind_of(self, node: Node) -> Type:
        """The type of an expression as far as pointers go; VOID where it is none."""
        if isinstance(node, tree.Name):
            variable = self.find(node.name)
            return variable.type if variable else VOID
        if isinstance(node, tree.Index) or (isinstance(node, tree.Unary) and node.op == "*"):
            of = self.kind_of(node.array if isinstance(node, tree.Index) else node.operand)
            return of.to if isinstance(of, Pointer) else of.of if isinstance(of, Array) else VOID
        if isinstance(node, tree.Unary) and node.op == "&":
            return Pointer(VOID)
        if isinstance(node, tree.Cast):
            return node.type
        if isinstance(node, tree.Binary) and node.op in ("+", "-"):
            left = self.kind_of(node.left)
            right = self.kind_of(node.right)
            both = isinstance(left, (Pointer, Array)) and isinstance(right, (Pointer, Array))
            return VOID if both else left if isinstance(left, (Pointer, Array)) else right
        if isinstance(node, (tree.Step, tree.Assign)):
            return self.kind_of(node.target)
        return self.kind_of(node.yes) if isinstance(node, tree.Choice) else VOID

    def moved(self, place: Place, by: Value, node: Node) -> Place:
        """The place so many elements further on."""
        if place.kind == "array" and isinstance(place.type, Array):
            return Place("array", place.type.of, place.name, place.variable, (*place.indices, by.code))
        if isinstance(place.type, Array):  # a pointer to arrays
            base = f"({place.base} + ({place.index} + {by.code})*{stride(place.type)})"
            return Place("pointer", place.type.of, place.name, base=base)
        if place.kind != "pointer":
            self.fail(node, f"{place.name} is {an(place.type)}, neither an array nor a pointer")
        if by.constant == 0:
            return place
        index = by.code if place.index == "0" else f"{place.index} + {by.code}"
        return Place("pointer", place.type, place.name, base=place.base, index=index)

    def address(self, place: Place, node: Node) -> str:
        """Python text for where a place is: a number that holds which array, and how many bytes behind its begin."""
        if place.kind == "pointer":
            return place.base if place.index == "0" else f"({place.base} + ({place.index})*{stride(place.type)})"
        if place.kind != "array" or place.variable is None:
            self.fail(node, f"{written(node)} has no address here")
        code, of = f"wave.address({place.variable.python})", place.variable.type
        for index in place.indices:
            assert isinstance(of, Array)
            of = of.of
            code += f" + ({index})*{stride(of)}"
        return f"({code})"

    def read(self, place: Place, node: Node) -> Value:
        """The value that lies in a place."""
        if place.kind == "value" and place.variable is not None:
            code = place.variable.python
            if place.variable.unset:
                code = f"wave.given({code}, mask, {self.site('unset', node.spot, place.name)})"
            bits = full(place.type) if isinstance(place.type, (Scalar, Vector)) else 64
            return Value(code, place.type, None, bits)
        if place.kind == "elements" and place.inner is not None:
            vector = self.read(place.inner, node)
            return self.elements(vector, place.at, place.type)
        if isinstance(place.type, Array):
            return Value(self.address(place, node), Pointer(place.type.of, self.space(place)))
        if isinstance(place.type, Void):
            self.fail(node, "a void* cannot be read")
        name = self.keep(self.access("load", place, node))
        return Value(name, place.type, None, 64 if isinstance(place.type, Pointer) else full(place.type))

    def space(self, place: Place) -> str:
        return place.variable.space if place.variable else "private"

    def access(self, kind: str, place: Place, node: Node, value: str = "", packed: bool = False) -> str:
        """Python text that loads from a place, or stores there."""
        more = f", {value}" if kind == "store" else ""
        if place.kind == "array" and place.variable is not None:
            array = place.variable.type
            site = self.site(kind, node.spot, written(node), place.type, array)
            indices = "".join(f"{i}, " for i in place.indices)
            return f"wave.{kind}({site}, {place.variable.python}, ({indices}), mask{more})"
        site = self.site(kind, node.spot, written(node), place.type, packed=packed)
        scalar = scalar_of(place.type)
        step = length(place.type) if packed else stride(place.type) // scalar.size
        index = place.index if step == 1 or place.index == "0" else f"({place.index})*{step}"
        return f"wave.{kind}_at({site}, {place.base}, {index}, mask{more})"

    def write(self, place: Place, value: Value, node: Node) -> None:
        """Store a value, which has the place's type."""
        if place.kind == "value" and place.variable is not None:
            variable = place.variable
            if variable.const or variable.kind == "constant":
                self.fail(node, f"{variable.name!r} is const and cannot be changed")
            new = value.code if value.code.isidentifier() else self.keep(value.code)
            name = variable.python
            # where exactly the lanes that were there when it was declared are here, one value may stay one for all
            self.emit(f"{name} = {new} if mask is mask_{name} else assign(mask, {new}, {name})")
        elif place.kind == "elements" and place.inner is not None:
            inner = place.inner
            of = inner.type
            assert isinstance(of, Vector)
            raw = inner.kind == "value" and inner.variable is not None
            old = inner.variable.python if raw and inner.variable else self.read(inner, node).code
            at = str(place.at[0] if len(place.at) == 1 else list(place.at))
            new = self.keep(f"changed({old}, {at}, {value.code}, {of.n}, {held_as(of)})")
            self.write(inner, Value(new, of), node)
        else:
            self.emit(self.access("store", place, node, value.code))

    # ---- names and numbers
    def _number(self, node: tree.Number) -> Value:
        return self.number(node.value, node.type)

    def _text(self, node: tree.Text) -> Value:
        self.fail(node, "a string cannot stand here")

    def _name(self, node: tree.Name) -> Value:
        if self.find(node.name) is None and node.name in NAMED_NUMBERS:
            return self.number(*NAMED_NUMBERS[node.name])
        variable = self.lookup(node, node.name)
        if variable.kind == "constant":
            return Value(variable.python, variable.type, None, full(variable.type))
        return self.read(self.place(node), node)

    def _index(self, node: tree.Index) -> Value:
        return self.read(self.place(node), node)

    def _member(self, node: tree.Member) -> Value:
        if isinstance(node.vector, (tree.Name, tree.Index)) or (
            isinstance(node.vector, tree.Unary) and node.vector.op == "*"
        ):
            return self.read(self.place(node), node)
        vector = self.expression(node.vector)
        if not isinstance(vector.type, Vector):
            self.fail(node, f"{written(node.vector)} is {an(vector.type)}: it has no elements to name")
        at = self.members(node, vector.type)
        return self.elements(vector, at, vector.type.of if len(at) == 1 else Vector(vector.type.of, len(at)))

    def elements(self, vector: Value, at: tuple[int, ...], of: Type) -> Value:
        code = f"element({vector.code}, {at[0]})" if len(at) == 1 else f"{vector.code}[{list(at)}]"
        return Value(code, of, None, full(of))

    # ---- operations
    def _comma(self, node: tree.Comma) -> Value:
        left = self.expression(node.left)
        if not left.code.isidentifier():
            self.emit(left.code)
        return self.expression(node.right)

    def _unary(self, node: tree.Unary) -> Value:
        if node.op == "*":
            return self.read(self.place(node), node)
        if node.op == "&":
            place = self.place(node.operand)
            if place.kind == "elements":
                self.fail(node, "the address of an element of a vector is not known to this simulator")
            return Value(self.address(place, node), Pointer(place.type, self.space(place)))
        if node.op == "!":
            value = self.condition(node.operand)
            known = None if value.constant is None else not value.constant
            return Value(f"({value.code} ^ True)" if known is None else str(known), BOOL, known, 1)
        value = self.promoted(self.expression(node.operand), node.operand)
        scalar = scalar_of(value.type)
        if node.op == "+":
            return value
        if node.op == "~":
            if not scalar.whole:
                self.fail(node, f"~ is for whole numbers, not for {an(value.type)}")
            value = self.fitted(value, node.operand)
            code = f"(~{value.code})"
            return self.cut(Value(code, value.type, None, 64 if scalar.kind == "uint" else full(value.type)))
        if value.constant is not None:
            return self.number(-value.constant, scalar) if scalar.kind != "uint" else self.cut(
                Value(f"({-int(value.constant)})", scalar))  # fmt: skip
        return self.cut(Value(f"(-{value.code})", value.type, None, 64 if scalar.kind == "uint" else value.bits + 1))

    def cut(self, value: Value) -> Value:
        """The result of arithmetic: an int is looked at later, the other types are cut to their bits at once."""
        scalar = scalar_of(value.type)
        if not scalar.whole or scalar is INT:
            return value
        if value.bits <= full(value.type) and scalar.kind == "int" or value.bits <= scalar.bits and scalar.size < 8:
            return value
        if scalar.kind == "uint" and scalar.size < 8:
            return Value(f"({value.code} & {2**scalar.bits - 1})", value.type, None, scalar.bits)
        if scalar is ULONG and value.bits <= 63:
            return value
        return Value(f"wrapped({value.code}, {scalar.bits})", value.type, None, full(value.type))

    def _binary(self, node: tree.Binary) -> Value:
        if node.op in ("&&", "||"):
            return self._logical(node)
        if node.op in ("+", "-") and (self.points(node.left) or self.points(node.right)):
            if self.points(node.left) and self.points(node.right):
                left, right = self.expression(node.left), self.expression(node.right)
                to = left.type.to if isinstance(left.type, Pointer) else VOID
                return Value(f"(({left.code} - {right.code})//{stride(to)})", LONG)
            place = self.pointer(node)
            if place.kind == "array":
                return Value(self.address(place, node), Pointer(place.type, self.space(place)))
            return Value(self.address(place, node), Pointer(place.type))
        left = self.expression(node.left)
        if not left.code.isidentifier() and not self.harmless(node.right):
            left.code = self.keep(left.code)  # what the right side does must come after it
        return self.operation(node.op, left, self.expression(node.right), node, node.left, node.right)

    def common(self, op: str, left: Value, right: Value, node: Node) -> tuple[Value, Value, Type]:
        """Both operands in the type in which C computes."""
        a, b = self.promoted(left, node), self.promoted(right, node)
        if isinstance(a.type, Vector) and isinstance(b.type, Vector):
            if a.type != b.type:
                self.fail(node, f"{op!r} cannot be applied to {an(a.type)} and {an(b.type)}")
            return a, b, a.type
        if isinstance(a.type, Vector) or isinstance(b.type, Vector):
            to: Type = a.type if isinstance(a.type, Vector) else b.type
            # one number against a vector: it is used for each element
            return (a if a.type == to else self.convert(a, scalar_of(to), node),
                    b if b.type == to else self.convert(b, scalar_of(to), node), to)  # fmt: skip
        to = max(scalar_of(a.type), scalar_of(b.type), key=lambda t: t.rank)
        return (a if a.type is to else self.convert(a, to, node), b if b.type is to else self.convert(b, to, node), to)

    def operation(self, op: str, left: Value, right: Value, node: Node, at_left: Node, at_right: Node) -> Value:
        """An operation of two numbers; `at_left` and `at_right` are the operands in the text."""
        if op in COMPARISONS:
            return self.comparison(op, left, right, node, at_left, at_right)
        left, right = self.promoted(left, at_left), self.promoted(right, at_right)
        if op in ("<<", ">>"):
            to = left.type
        else:
            left, right, to = self.common(op, left, right, node)
        scalar = scalar_of(to)
        if op in WHOLE_ONLY and not (scalar.whole and scalar_of(right.type).whole):
            self.fail(node, f"{op!r} is for whole numbers, not for {an(left.type)} and {an(right.type)}")
        if left.constant is not None and right.constant is not None and isinstance(to, Scalar) and scalar.whole:
            known = self.folded(op, int(left.constant), int(right.constant), scalar, node)
            if known is not None:
                return known
        if not scalar.whole:
            if op in "+-" and any(isinstance(x, tree.Binary) and x.op == "*" for x in (at_left, at_right)):
                self.multiply_add(node, to)
            return Value(f"ratio({left.code}, {right.code})" if op == "/" else f"({left.code} {op} {right.code})", to)
        if op in ("/", "%"):
            return self.division(op, self.fitted(left, at_left), self.fitted(right, at_right), to, node)
        if op in ("<<", ">>"):
            return self.shift(op, self.fitted(left, at_left), self.fitted(right, at_right), to)
        if op in "&|^":
            left, right = self.fitted(left, at_left), self.fitted(right, at_right)
            bits = min(left.bits, right.bits) if op == "&" and scalar.kind == "uint" else max(left.bits, right.bits)
            if op == "&" and scalar.kind == "int":  # with a constant that is not negative, so is the result
                bits = min([x.bits for x in (left, right) if (x.constant or -1) >= 0], default=bits)
            return Value(f"({left.code} {op} {right.code})", to, None, bits)
        bits = left.bits + right.bits if op == "*" else max(left.bits, right.bits) + 1
        if scalar is INT and bits > ROOM:
            left, right = self.fitted(left, at_left), self.fitted(right, at_right)
            bits = left.bits + right.bits if op == "*" else max(left.bits, right.bits) + 1
        if scalar.kind == "uint" and op == "-":
            bits = 65
        return self.cut(Value(f"({left.code} {op} {right.code})", to, None, bits))

    def folded(self, op: str, a: int, b: int, of: Scalar, node: Node) -> Value | None:
        """The result if both operands are known; None for what is better left to run."""
        if op in "/%" and b == 0:
            self.fail(node, f"{written(node)}: division by zero")
        result = CONSTANT[op](a, b & (of.bits - 1) if op in ("<<", ">>") else b)
        fits = -(2 ** full(of)) <= result < 2 ** full(of) if of.kind == "int" else 0 <= result < 2 ** min(of.bits, 63)
        return self.number(result, of) if fits else None

    def division(self, op: str, left: Value, right: Value, to: Type, node: Node) -> Value:
        if right.constant == 0:
            self.fail(node, f"{written(node)}: division by zero")
        scalar = scalar_of(to)
        large = scalar is ULONG and max(left.bits, right.bits) > 63
        a, b = (f"unsigned({x.code})" if large else x.code for x in (left, right))
        function = "wave.divide" if op == "/" else "wave.remainder"
        code = f"{function}({a}, {b}, mask, {self.site('division', node.spot, written(node))})"
        bits = left.bits + (scalar.kind == "int") if op == "/" else min(left.bits, right.bits)
        if right.constant is not None:
            bits = max(0, left.bits - int(abs(right.constant)).bit_length() + 1) if op == "/" else bits
        return Value(f"signed({code})" if large else code, to, None, min(64, bits))

    def shift(self, op: str, left: Value, right: Value, to: Type) -> Value:
        """OpenCL takes the amount modulo the bits of the type, and lets go what is shifted out."""
        scalar = scalar_of(to)
        known = None if right.constant is None else int(right.constant) & (scalar.bits - 1)
        amount = f"({right.code} & {scalar.bits - 1})" if known is None else str(known)
        if op == ">>":
            if scalar is ULONG and left.bits > 63:
                return Value(f"signed(unsigned({left.code}) >> unsigned({amount}))", to)
            return Value(f"({left.code} >> {amount})", to, None, max(0, left.bits - (known or 0)))
        bits = left.bits + (scalar.bits if known is None else known)
        code = f"({left.code} << {amount})"
        if bits <= full(to):
            return Value(code, to, None, bits)
        if scalar.kind == "uint" and scalar.size < 8:
            return Value(f"({code} & {2**scalar.bits - 1})", to, None, scalar.bits)
        return Value(f"wrapped({code}, {scalar.bits})", to, None, full(to))

    def comparison(self, op: str, left: Value, right: Value, node: Node, at_left: Node, at_right: Node) -> Value:
        pointers = [isinstance(x.type, Pointer) for x in (left, right)]
        if all(pointers) or (any(pointers) and 0 in (left.constant, right.constant)):
            return Value(f"({left.code} {op} {right.code})", BOOL, None, 1)
        left, right, to = self.common(op, self.promoted(left, at_left), self.promoted(right, at_right), node)
        if left.constant is not None and right.constant is not None:
            known = CONSTANT[op](left.constant, right.constant)
            return Value(str(known), BOOL, known, 1)
        left, right = self.fitted(left, at_left), self.fitted(right, at_right)
        large = scalar_of(to) is ULONG and max(left.bits, right.bits) > 63
        a, b = (f"unsigned({x.code})" if large else x.code for x in (left, right))
        if isinstance(to, Vector):  # -1 where it holds
            kind = {1: "char", 2: "short", 4: "int", 8: "long"}[to.of.size]
            return Value(f"-whole({a} {op} {b})", Vector(SIGNED[kind], to.n), None, 1)
        return Value(f"({a} {op} {b})", BOOL, None, 1)

    def multiply_add(self, node: Node, of: Type) -> None:
        self.emit(f"wave.multiply_add({self.site('multiply-add', node.spot, written(node), of)}, mask)")

    def _logical(self, node: tree.Binary) -> Value:
        """&& and ||: the right side is only for lanes that the left one has not decided."""
        left = self.condition(node.left)
        sign = "&" if node.op == "&&" else "|"
        if left.constant is not None:
            if bool(left.constant) == (node.op == "||"):
                return Value(str(bool(left.constant)), BOOL, bool(left.constant), 1)
            return self.condition(node.right)
        if self.harmless(node.right):
            right = self.condition(node.right)
            return Value(f"({left.code} {sign} {right.code})", BOOL, None, 1)
        decided, before, result = self.keep(left.code), self.keep("mask"), self.fresh()
        site = self.site("branch", node.spot, written(node))
        yes, no = self.fresh("yes"), self.fresh("no")
        self.emit(f"{yes}, {no} = wave.branch(mask, {decided}, {site})")
        self.emit(f"{result} = {decided}")
        side = yes if node.op == "&&" else no
        with self.under(f"if {side} is not False:", side):
            self.emit(f"{result} = {decided} {sign} {self.condition(node.right).code}")
        self.emit(f"mask = {before}")
        return Value(result, BOOL, None, 1)

    def _choice(self, node: tree.Choice) -> Value:
        """condition ? yes : no"""
        condition = self.expression(node.condition)
        if isinstance(condition.type, Vector):
            yes, no = self.expression(node.yes), self.expression(node.no)
            to = self.either(yes, no, node)
            yes, no = self.convert(yes, to, node), self.convert(no, to, node)
            return Value(f"pick({condition.code} < 0, {yes.code}, {no.code})", to, None, full(to))
        condition = self.convert(condition, BOOL, node.condition) if isinstance(condition.type, Scalar) else Value(
            f"({condition.code} != 0)", BOOL)  # fmt: skip
        if self.harmless(node.yes) and self.harmless(node.no):
            yes, no = self.expression(node.yes), self.expression(node.no)
            to = self.either(yes, no, node)
            if condition.constant is not None:
                return self.convert(yes if condition.constant else no, to, node)
            yes, no = self.convert(yes, to, node.yes), self.convert(no, to, node.no)
            bits = max(yes.bits, no.bits)
            return Value(f"pick({condition.code}, {yes.code}, {no.code})", to, None, bits)
        decided, before, one, other = self.keep(condition.code), self.keep("mask"), self.fresh(), self.fresh()
        first, second = self.fresh("yes"), self.fresh("no")
        site = self.site("branch", node.spot, written(node.condition))
        self.emit(f"{first}, {second} = wave.branch(mask, {decided}, {site})")
        self.emit(f"{one} = {other} = None")
        sides: list[tuple[str, Value, int, Node]] = []
        for name, side, chosen in ((one, node.yes, first), (other, node.no, second)):
            with self.under(f"if {chosen} is not False:", chosen):
                value = self.expression(side)
                self.emit("")
                sides.append((name, value, len(self.lines) - 1, side))
        to = self.either(sides[0][1], sides[1][1], node)
        for name, value, line, side in sides:  # only now it is known of which type both are
            self.lines[line] += f"{name} = {self.convert(value, to, side).code}"
        self.emit(f"mask = {before}")
        return Value(f"pick({decided}, {one}, {other})", to, None, 64 if isinstance(to, Pointer) else full(to))

    def either(self, yes: Value, no: Value, node: Node) -> Type:
        """The type of what is either one thing or another."""
        a, b = yes.type, no.type
        if a == b:
            return a
        if isinstance(a, Pointer) or isinstance(b, Pointer):
            if isinstance(a, Pointer) and isinstance(b, Pointer):
                return a
            self.fail(node, f"'? :' cannot choose between {an(a)} and {an(b)}")
        if isinstance(a, Vector) or isinstance(b, Vector):
            return a if isinstance(a, Vector) else b
        return max(INT, scalar_of(a), scalar_of(b), key=lambda t: t.rank)

    # ---- assignments
    def _assign(self, node: tree.Assign) -> Value:
        place = self.place(node.target)
        of = place.type
        if isinstance(of, (Array, Void)):
            self.fail(node, f"{written(node.target)} is {an(of)} and cannot be changed as a whole")
        if not node.op:
            value = self.convert(self.expression(node.value), of, node.value)
        elif isinstance(of, Pointer):
            by = self.promoted(self.expression(node.value), node.value)
            if node.op not in "+-" or not scalar_of(by.type).whole:
                self.fail(node, f"a pointer moves by += or -= a whole number, not by {node.op}= {an(by.type)}")
            old = self.read(place, node.target)
            value = Value(f"({old.code} {node.op} ({by.code})*{stride(of.to)})", of)
        else:
            right = self.expression(node.value)
            old = self.read(place, node.target)
            result = self.operation(node.op, old, right, node, node.target, node.value)
            value = self.convert(result, of, node, cast=True)
        if not value.code.isidentifier():
            value = Value(self.keep(value.code), of, None, value.bits)
        self.write(place, value, node.target)
        return Value(value.code, of, None, value.bits)

    def _step(self, node: tree.Step) -> Value:
        """++i, i++, --i and i--"""
        one = tree.Number(node.spot, 1, INT)
        if node.before:
            return self._assign(tree.Assign(node.spot, node.op[0], node.target, one))
        place = self.place(node.target)
        if isinstance(place.type, (Array, Void)):
            self.fail(node, f"{written(node.target)} is {an(place.type)} and cannot be changed as a whole")
        old = self.read(place, node.target)
        before = Value(self.keep(old.code), old.type, None, old.bits)
        if isinstance(place.type, Pointer):
            after = Value(f"({before.code} {node.op[0]} {stride(place.type.to)})", place.type)
        else:
            after = self.operation(node.op[0], before, self.number(1, INT), node, node.target, one)
            after = self.convert(after, place.type, node, cast=True)
        self.write(place, after, node.target)
        return before

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
            to = of if isinstance(value.type, Scalar) else Vector(of, value.type.n) if isinstance(
                value.type, Vector) else VOID  # fmt: skip
            codes.append(self.convert(value, to, part).code)
        return Value(f"vector(({', '.join(codes)},), {held_as(node.type)})", node.type, None, full(node.type))

    def _braces(self, node: tree.Braces) -> Value:
        self.fail(node, "values in { } can only be given to an array where it is declared")

    def _call(self, node: tree.Call) -> Value:
        raise NotImplementedError


def held_as(of: Type) -> str:
    """The Python name of the type in which arrays over lanes hold this type."""
    scalar = scalar_of(of)
    return "int64" if scalar.whole else scalar.name


SIGNED = {"char": CHAR, "short": SHORT, "int": INT, "long": LONG}
