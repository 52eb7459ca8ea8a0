"""What expressions mean: their types, the conversions that C makes by itself, which function a call
is of.

`Meaning` builds typed nodes (see `tree`) from their parts, by the rules of the C standard and of
OpenCL C 1.2, and refuses what has no meaning. The parser calls it.
"""

from __future__ import annotations

import math
import re
import struct
from dataclasses import replace
from typing import NoReturn

from . import builtins, tree
from .arithmetic import BINARY, COMPARISONS, UNARY
from .text import Spot, TextError, UnknownError, near
from .tree import Expr, owner, plain, written
from .types import (
    BOOL,
    DOUBLE,
    FLOAT,
    HALF,
    INT,
    LONG,
    VOID,
    WIDTHS,
    Array,
    Opaque,
    Pointer,
    Scalar,
    Struct,
    Type,
    Vector,
    an,
    compared,
    leaf_of,
    promoted,
    unreadable,
    with_size,
)

WHOLE_ONLY = {"%", "&", "|", "^", "<<", ">>", "~"}


def wrapped(value: int, of: Scalar) -> int:
    value &= (1 << of.bits) - 1
    return value - (1 << of.bits) if value > of.most else value


def as_number(value: float, of: Scalar) -> float:
    if of is BOOL:
        return int(bool(value))
    if of.whole:
        return wrapped(int(value), of) if abs(value) < 2.0**200 else 0
    if of is not DOUBLE:
        code = "f" if of is FLOAT else "e"
        try:
            return struct.unpack(code, struct.pack(code, value))[0]
        except OverflowError:
            return float("inf") if value > 0 else float("-inf")
    return float(value)


def known(node: tree.Node) -> float | None:
    """The value of an expression if it is a number that is known before the kernel runs, else None.

    It is None, too, where C does not define the result.
    """
    if isinstance(node, tree.Number):
        return node.value
    if isinstance(node, tree.Name):
        return node.variable.constant
    if not isinstance(node, Expr) or not isinstance(node.type, Scalar):
        return None
    if isinstance(node, tree.Choice):
        condition = known(node.condition)
        return None if condition is None else known(node.yes if condition else node.no)
    if isinstance(node, tree.Binary) and node.op in BINARY:
        return _known_operation(node, node.type)
    if isinstance(node, (tree.Cast, tree.Unary)):
        value = known(node.operand)
        if value is None or (isinstance(node, tree.Unary) and node.op not in UNARY):
            return None
        if isinstance(node, tree.Unary):
            value = UNARY[node.op](value)
        elif isinstance(value, float) and node.type.whole and node.type is not BOOL:
            fits = node.type.least - 1 < value < node.type.most + 1
            return as_number(value, node.type) if fits else None
        return as_number(value, node.type)
    return None


def _known_operation(node: tree.Binary, to: Scalar) -> float | None:
    left = known(node.left)
    if left is not None and node.op in ("&&", "||") and bool(left) == (node.op == "||"):
        return int(bool(left))
    right = known(node.right)
    if left is None or right is None:
        return None
    of = node.left.type.scalar
    if node.op == "/" and not of.whole:
        return as_number(left / right, of) if right else None
    if node.op in "/%" and right == 0:
        raise TextError(f"{written(node)}: division by zero", node.spot)
    if node.op in ("<<", ">>"):
        return as_number(BINARY[node.op](left, int(right) & (to.bits - 1)), to)
    value = BINARY[node.op](left, right)
    if value != value:
        return math.nan  # without the sign that some processors give it
    return None if to is INT and not to.least <= value <= to.most else as_number(value, to)


def constant(node: tree.Node) -> int:
    """The value of a whole expression that must be known before the kernel runs."""
    value = known(node)
    whole = isinstance(node, Expr) and isinstance(node.type, Scalar) and node.type.whole
    if value is None or not whole:
        raise TextError(f"expected a constant, but {written(node)} is not one", node.spot)
    return int(value)


def is_zero(node: Expr) -> bool:
    """Whether this is a pointer to nothing: 0, or (void*)0."""
    node = plain(node)  # type: ignore[assignment]
    if isinstance(node, tree.Cast) and isinstance(node.type, Pointer):
        return node.type.to is VOID and is_zero(node.operand)
    return isinstance(node, tree.Number) and node.value == 0 and node.type.scalar.whole


def address_of(node: Expr) -> Pointer | None:
    """The type of a pointer to what an expression names, or None if that has no address."""
    root = owner(node)
    if isinstance(root, tree.Compound):
        return Pointer(node.type)
    if isinstance(root, tree.Text):
        return Pointer(node.type, "constant", True)
    if isinstance(root, tree.Name):
        space, const = root.variable.space, root.variable.const
    elif isinstance(root, tree.Index):
        of = root.array.type if isinstance(root.array.type, Pointer) else address_of(root.array)
        assert of is not None
        space, const = of.space, of.const
    else:
        return None
    return Pointer(node.type, space, const or space == "constant")


class Meaning:
    """Builds expressions from their parts."""

    functions: dict[str, list[tree.Function]]

    def fail(self, message: str, spot: Spot) -> NoReturn:
        raise TextError(message, spot)

    def unfit(self, spot: Spot, op: str, a: Expr, b: Expr, why: str = "") -> NoReturn:
        self.fail(f"{op!r} cannot be applied to {an(a.type)} and {an(b.type)}{why}", spot)

    def wrong_kind(self, node: Expr, what: str, spot: Spot | None = None) -> NoReturn:
        self.fail(f"{written(node)} is {an(node.type)}, not {what}", spot or node.spot)

    # ---- from one type to another
    def convert(self, node: Expr, to: Type) -> Expr:
        """An expression as another type, as C converts it where one is assigned to another."""
        node = self.decayed(node)
        of = node.type
        if isinstance(to, Pointer) and isinstance(plain(node), tree.Compound):
            self.fail(f"{written(node)} has no address", node.spot)
        if of == to:
            return node
        self.allow(node, to, node.spot)
        if isinstance(to, Vector) and isinstance(of, Scalar) and of != to.of:
            node = tree.Cast(node.spot, node, type=to.of)
        return tree.Cast(node.spot, node, type=to)

    def cast(self, spot: Spot, to: Type, node: Expr) -> Expr:
        node = self.decayed(node)
        if to is not VOID:
            self.allow(node, to, spot, cast=True)
        if isinstance(to, Vector) and isinstance(node.type, Scalar):
            node = self.convert(node, to.of)
        return tree.Cast(spot, node, type=to)

    def allow(self, node: Expr, to: Type, spot: Spot, cast: bool = False) -> None:
        """Refuse what cannot become another type by itself or, if the text has one, by a cast."""
        of, why = node.type, ""
        if isinstance(of, Pointer) and isinstance(to, Pointer):
            fits = of.space == to.space or is_zero(node)
            why = f": {of.space} memory is not {to.space} memory"
        elif isinstance(of, Pointer) or isinstance(to, Pointer):
            number = to if isinstance(of, Pointer) else of
            by_itself = is_zero(node) or to is BOOL
            fits = isinstance(number, Scalar) and number.whole if cast else by_itself
        elif isinstance(of, Vector) and isinstance(to, (Scalar, Vector)):
            fits = of == to
            why = f"; convert_{to} does it" if of.length == to.length else " by itself"
        else:
            numbers = isinstance(of, Scalar) and isinstance(to, (Scalar, Vector))
            fits = numbers or (isinstance(to, Opaque) and is_zero(node))
        if not fits:
            shown = f"a pointer ({of})" if isinstance(of, Pointer) else an(of)
            self.fail(f"{shown} cannot become {an(to)}{why}", spot)

    def decayed(self, node: Expr) -> Expr:
        """An array as the pointer to its first element; anything else as it is."""
        if isinstance(node.type, Array):
            to = replace(address_of(node) or Pointer(VOID), to=node.type.of)
            return tree.Cast(node.spot, node, type=to)
        return node

    def value(self, node: Expr, spot: Spot | None = None) -> Expr:
        """As an operand of arithmetic: a number, at least an int, or a vector."""
        node = self.decayed(node)
        if isinstance(node.type, Scalar):
            return self.convert(node, promoted(node.type))
        if not isinstance(node.type, Vector):
            self.wrong_kind(node, "a number", spot)
        return node

    def whole(self, node: Expr, what: str) -> Expr:
        node = self.decayed(node)
        if not (isinstance(node.type, Scalar) and node.type.whole):
            self.fail(f"{what} must be a whole number, not {an(node.type)}", node.spot)
        return self.value(node)

    def condition(self, node: Expr) -> Expr:
        node = self.decayed(node)
        if isinstance(node.type, (Scalar, Pointer)):
            return node
        self.fail(f"a condition must be one number, not {an(node.type)}", node.spot)

    # ---- operations
    def unary(self, spot: Spot, op: str, node: Expr) -> Expr:
        if op == "&":
            return self.address(spot, node)
        node = self.decayed(node)
        if op == "*":
            return self.pointed(spot, node)
        if op == "!":
            if not isinstance(node.type, (Scalar, Vector, Pointer)):
                self.wrong_kind(node, "a number")
            return tree.Unary(spot, op, node, type=compared(node.type))
        node = self.value(node, spot)
        if op == "~" and not node.type.scalar.whole:
            self.fail(f"~ is for whole numbers, not for {an(node.type)}", spot)
        return tree.Unary(spot, op, node, type=node.type)

    def pointed(self, spot: Spot, node: Expr) -> Expr:
        """*p is p[0]."""
        if not isinstance(node.type, Pointer):
            self.wrong_kind(node, "a pointer")
        return self.index(spot, node, tree.Number(spot, 0, type=INT))

    def address(self, spot: Spot, node: Expr) -> Expr:
        of_vector = isinstance(node, tree.Index) and isinstance(node.array.type, Vector)
        if isinstance(node, tree.Member) or of_vector:
            self.fail("an element of a vector has no address", spot)
        to, root = address_of(node), owner(node)
        if to is None or isinstance(root, tree.Compound):
            self.fail(f"{written(node)} has no address", spot)
        if isinstance(root, tree.Name):
            root.variable.addressed = True
        return tree.Unary(spot, "&", node, type=to)

    def binary(self, spot: Spot, op: str, left: Expr, right: Expr) -> Expr:
        left, right = self.decayed(left), self.decayed(right)
        logical, types = op in ("&&", "||"), (left.type, right.type)
        to: Type = right.type
        if op == ",":
            return tree.Binary(spot, op, left, right, type=to)
        if logical and not any(isinstance(of, Vector) for of in types):
            left, right, to = self.condition(left), self.condition(right), INT
        elif any(isinstance(of, Pointer) for of in types):
            to = self.of_pointers(spot, op, left, right)
        else:
            left, right = self.value(left), self.value(right)
            if op in WHOLE_ONLY and not (left.type.scalar.whole and right.type.scalar.whole):
                both = f"{an(left.type)} and {an(right.type)}"
                self.fail(f"{op!r} is for whole numbers, not for {both}", spot)
            if op not in ("<<", ">>"):
                left, right = self.common(spot, op, left, right)
            elif isinstance(right.type, Vector) and right.type.length != left.type.length:
                self.unfit(spot, op, left, right)
            elif isinstance(left.type, Vector) and isinstance(right.type, Scalar):
                right = self.convert(right, left.type)
            to = compared(left.type) if logical or op in COMPARISONS else left.type
        return tree.Binary(spot, op, left, right, type=to)

    def of_pointers(self, spot: Spot, op: str, left: Expr, right: Expr) -> Type:
        """What comes of two pointers, or of a pointer and a number."""
        a, b = left.type, right.type
        if isinstance(a, Pointer) and isinstance(b, Pointer):
            if op == "-" and a.to == b.to:
                return LONG
            if op in COMPARISONS and (a.space == b.space or is_zero(left) or is_zero(right)):
                return INT
            self.unfit(spot, op, left, right)
        pointer, number = (left, right) if isinstance(a, Pointer) else (right, left)
        assert isinstance(pointer.type, Pointer)
        if op in ("==", "!=") and is_zero(number):
            return INT
        if op != "+" and not (op == "-" and pointer is left):
            self.wrong_kind(pointer, "a number")
        if not isinstance(number.type, Scalar) or not number.type.whole:
            of = an(number.type)
            self.fail(f"a pointer moves by a whole number of elements, not by {of}", spot)
        self.complete(pointer.type.to, spot)
        return pointer.type

    def common(self, spot: Spot, op: str, a: Expr, b: Expr) -> tuple[Expr, Expr]:
        """Both operands in the type in which C computes; a number beside a vector is widened."""
        if isinstance(a.type, Vector) and isinstance(b.type, Vector):
            if a.type != b.type:
                self.unfit(spot, op, a, b)
            return a, b
        if isinstance(a.type, Vector) or isinstance(b.type, Vector):
            vector, one = (a, b) if isinstance(a.type, Vector) else (b, a)
            written_as = plain(one)
            assert isinstance(written_as, Expr)
            to, of = vector.type.scalar, written_as.type.scalar
            if (to.whole and not of.whole) or (of.rank > to.rank and of.whole == to.whole):
                why = ": the number must not be of a larger type than those of the vector"
                self.unfit(spot, op, a, b, why)
            return self.convert(a, vector.type), self.convert(b, vector.type)
        to_type = max(a.type.scalar, b.type.scalar, key=lambda t: t.rank)
        return self.convert(a, to_type), self.convert(b, to_type)

    def choice(self, spot: Spot, condition: Expr, yes: Expr, no: Expr) -> Expr:
        condition, yes, no = self.decayed(condition), self.decayed(yes), self.decayed(no)
        of = condition.type  # a vector chooses number by number
        if not isinstance(of, Vector):
            condition = self.condition(condition)
        if isinstance(of, Scalar) and not of.whole:
            self.fail(f"the condition of '? :' must be an integer, not {an(of)}", condition.spot)
        a, b = yes.type, no.type
        to, numbers = a, all(isinstance(one, (Scalar, Vector)) for one in (a, b))
        same_space = isinstance(a, Pointer) and isinstance(b, Pointer) and a.space == b.space
        if numbers or isinstance(of, Vector):
            yes, no = self.common(spot, "? :", self.value(yes), self.value(no))
            to = yes.type
        elif isinstance(a, Pointer) and (is_zero(no) or same_space):
            to = replace(a, const=a.const or (isinstance(b, Pointer) and b.const))
        elif isinstance(b, Pointer) and is_zero(yes):
            to = b
        elif a != b:
            self.unfit(spot, "? :", yes, no)
        if isinstance(of, Vector):
            to = to if isinstance(to, Vector) else with_size(of, to.scalar)
            if not of.of.whole or to.length != of.n or to.scalar.size != of.of.size:
                needed = "a vector of as many whole numbers of that size"
                why = f": the condition is {an(of)}, not {needed}"
                self.unfit(spot, "? :", yes, no, why)
        yes, no = self.convert(yes, to), self.convert(no, to)
        return tree.Choice(spot, condition, yes, no, type=to)

    # ---- assignments
    def changeable(self, node: Expr) -> Expr:
        spot = node.spot
        if isinstance(node.type, Array) or node.type is VOID:
            self.fail(f"{written(node)} is {an(node.type)} and cannot be changed as a whole", spot)
        at = address_of(node)
        if at is None:
            self.fail(f"{written(node)} is not something that can be stored to", spot)
        if isinstance(node, tree.Member) and len(set(node.at)) < len(node.at):
            self.fail(f"{written(node)} names an element twice and cannot be stored to", spot)
        if at.const:
            self.fail(f"{written(node)!r} is const and cannot be changed", spot)
        root = owner(node)
        if isinstance(root, tree.Name):
            root.variable.assigned = True
        return node

    def assign(self, spot: Spot, op: str, target: Expr, value: Expr) -> Expr:
        target = self.changeable(target)
        to = target.type
        if not op:
            return tree.Assign(spot, op, target, self.convert(value, to), type=to)
        combined = self.binary(spot, op, target, value)
        assert isinstance(combined, tree.Binary)
        self.allow(combined, to, spot)
        return tree.Assign(spot, op, target, combined.right, combined.left.type, type=to)

    def step(self, spot: Spot, op: str, target: Expr, step: str) -> Expr:
        of = self.changeable(target).type
        if not isinstance(of, (Scalar, Pointer)) and not (isinstance(of, Vector) and of.of.whole):
            self.fail(f"{op} cannot be applied to {an(of)}", spot)
        common = promoted(of) if isinstance(of, Scalar) else of
        one = tree.Number(spot, 1, type=INT if isinstance(of, Pointer) else common.scalar)
        return tree.Assign(spot, op[0], target, one, common, step, type=of)

    def vector(self, spot: Spot, to: Vector, parts: list[Expr], exact: bool = False) -> Expr:
        """(float4)(a, b) of numbers and vectors; a single number fills it, unless `exact`."""
        parts = [self.decayed(part) for part in parts]
        for part in parts:
            if not isinstance(part.type, (Scalar, Vector)):
                self.wrong_kind(part, "a number")
        if len(parts) == 1 and isinstance(parts[0].type, Scalar) and not exact:
            return tree.Cast(spot, self.convert(parts[0], to.of), type=to)
        if len(parts) == 1 and parts[0].type == to:
            return parts[0]
        count = sum(part.type.length for part in parts)
        if count != to.n:
            self.fail(f"{an(to)} needs {to.n} numbers, not {count}", spot)
        for part in parts:
            if isinstance(part.type, Vector) and part.type.of != to.of:
                does = f"convert_{with_size(part.type, to.of)} does it"
                self.fail(f"{an(part.type)} does not become part of {an(to)}; {does}", part.spot)
        parts = [p if isinstance(p.type, Vector) else self.convert(p, to.of) for p in parts]
        return tree.VectorLiteral(spot, parts, type=to)

    # ---- parts of something
    def index(self, spot: Spot, array: Expr, index: Expr) -> Expr:
        if isinstance(index.type, (Pointer, Array)) and isinstance(array.type, Scalar):
            array, index = index, array
        index = self.whole(index, "an index")
        of = array.type
        if isinstance(of, Vector):
            value = known(index)
            if value is not None and not 0 <= value < of.n:
                self.fail(f"{an(of)} has no element {int(value)}", spot)
            if value is not None:
                return tree.Member(spot, array, "", (int(value),), type=of.of)
            root = owner(array)
            if isinstance(root, tree.Name):  # it becomes an array
                root.variable.addressed = True
            return tree.Index(spot, array, index, type=of.of)
        if not isinstance(of, (Array, Pointer)):
            more = "; there is one index too many" if isinstance(array, tree.Index) else ""
            self.wrong_kind(array, f"an array or a pointer{more}")
        to = of.of if isinstance(of, Array) else of.to
        if unreadable(to):
            self.fail(f"a {of} cannot be read", spot)
        self.complete(to, spot)
        return tree.Index(spot, array, index, type=to)

    def member(self, spot: Spot, of: Expr, name: str, arrow: bool) -> Expr:
        if arrow:
            of = self.pointed(spot, self.decayed(of))
            if not isinstance(of.type, (Struct, Vector)):
                self.fail(f"'->' is for pointers to structures, not to {an(of.type)}", spot)
        if isinstance(of.type, Struct):
            self.complete(of.type, spot)
            found = of.type.find(name)
            if found is None:
                guess = near(name, [f.name for f in of.type.fields])
                self.fail(f"{of.type} has no field {name!r}{guess}", spot)
            return tree.Part(spot, of, found, type=found.type)
        if not isinstance(of.type, Vector):
            self.fail(f"{written(of)} is {an(of.type)}: it has no elements to name", spot)
        at = self.members(spot, of.type, name)
        to: Type = of.type.of if len(at) == 1 else Vector(of.type.of, len(at))
        return tree.Member(spot, of, name, at, type=to)

    def members(self, spot: Spot, of: Vector, name: str) -> tuple[int, ...]:
        """Which numbers of a vector .x, .hi or .s0123 names."""
        n = of.n
        even = 4 if n == 3 else n  # a vector of 3 numbers has room for a fourth
        parts = {"lo": range(even // 2), "hi": range(even // 2, even), "even": range(0, even, 2),
                 "odd": range(1, even, 2)}  # fmt: skip
        if name in parts:
            at = tuple(parts[name])
        elif re.fullmatch("[sS][0-9a-fA-F]+", name):
            at = tuple(int(c, 16) for c in name[1:])
        elif re.fullmatch("[xyzw]+", name):
            at = tuple("xyzw".index(c) for c in name)
        else:
            self.fail(f"{an(of)} has no element {name!r}", spot)
        if max(at) >= even or (max(at) >= n and name not in parts):
            self.fail(f"{an(of)} has {n} elements; there is no {name!r}", spot)
        if len(at) not in (1, *WIDTHS):
            self.fail(f"vectors have 2, 3, 4, 8 or 16 elements, not {len(at)}", spot)
        return at

    def complete(self, of: Type, spot: Spot) -> None:
        leaf, _ = leaf_of(of)
        if isinstance(leaf, Struct) and not leaf.complete:
            self.fail(f"{leaf} has not been defined", spot)

    # ---- calls
    def call(self, spot: Spot, name: str, args: list[Expr]) -> Expr:
        args = [self.decayed(arg) for arg in args]
        for arg in args:
            if arg.type is VOID:
                self.fail(f"{written(arg)} has no value", arg.spot)
        own = self.functions.get(name, [])
        versions = [(f.type, tuple(p.type for p in f.params)) for f in own]
        versions = versions or builtins.overloads(name)
        if not versions:
            if name == "printf":
                return self.call_printf(spot, args)
            if name.startswith(builtins.UNKNOWN):
                raise UnknownError(f"the function {name!r}", spot)
            every = [*self.functions, *builtins.FUNCTIONS, "vload4", "vstore4", "atomic_add"]
            self.fail(f"there is no function {name!r}{near(name, [*every, 'printf'])}", spot)
        number = self.version(spot, name, args, [params for _, params in versions])
        result, params = versions[number]
        given = [self.convert(a, p) for a, p in zip(args, params, strict=True)]
        return tree.Call(spot, name, given, own[number] if own else None, type=result)

    def version(
        self, spot: Spot, name: str, args: list[Expr], versions: list[tuple[Type, ...]]
    ) -> int:
        """The number of the version that a call means; `versions` are their parameters."""
        counts, types = sorted(set(map(len, versions))), tuple(arg.type for arg in args)
        if len(args) not in counts:
            plural = "" if counts == [1] else "s"
            count = f"{' or '.join(map(str, counts))} argument{plural}"
            self.fail(f"{name} takes {count}, not {len(args)}", spot)
        if len(versions) == 1:
            return 0
        fitting = builtins.best(name, versions, types, tuple(map(is_zero, args)))
        if len(fitting) == 1:
            return fitting[0]

        def call_with(params: tuple[Type, ...]) -> str:
            return f"{name}({', '.join(map(str, params))})"

        given = call_with(types)
        if fitting:
            one, other = (call_with(versions[number]) for number in fitting[:2])
            self.fail(f"{given} is ambiguous: {one} or {other}; a cast decides", spot)
        like = next(params for params in versions if len(params) == len(args))
        self.fail(f"there is no {given}, but for example {call_with(like)}", spot)

    def call_printf(self, spot: Spot, args: list[Expr]) -> Expr:
        if not args or not isinstance(plain(args[0]), tree.Text):
            self.fail("printf takes a text first", spot)
        given = [args[0]]
        for arg in args[1:]:
            of = arg.type
            if isinstance(of, Scalar):
                arg = self.convert(arg, DOUBLE if of in (FLOAT, HALF) else promoted(of))
            given.append(arg)
        return tree.Call(spot, "printf", given, type=INT)
