"""Expressions of OpenCL C become functions of a wave, which compute what all its work-items have of
a value. Operands come in the order of the text.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, NoReturn

import numpy as np

from . import tree, values
from .arithmetic import BINARY, COMPARISONS
from .finding import Site
from .meaning import address_of, known
from .text import Spot, TextError, UnknownError, unescaped
from .tree import Expr, Node, Variable, plain, written
from .types import (
    BOOL,
    CHAR,
    INT,
    LONG,
    UCHAR,
    ULONG,
    VOID,
    Array,
    Pointer,
    Scalar,
    Struct,
    Type,
    Vector,
)
from .wave import Wave

Value = Callable[[Wave], Any]
#: From one or two values, or the indices of a place and a value, to another.
Change = Callable[..., Any]

#: A side of ? : that has one of these makes a compiler branch; else it selects without a branch.
BRANCHING = (tree.Index, tree.Call, tree.Assign)
#: An odd constant factor of an int from here on belongs to a hash, whose products wrap around.
HASH = 1 << 16
#: An index of an array: its value, the bytes from one element to the next, the number of elements,
#: 0 if the index is not checked, and the number of elements up to the end of the whole array.
Index = tuple[Value, int, int, int]


@dataclass
class Place:
    """Where a value is stored: it can be assigned to, or has an address.

    Attributes:
        variable: a variable without an address, or None.
        base: otherwise a pointer, to which the `indices` are added.
        named: whether the base is a variable of the text, and `indices` has all of its indices.
        at: if not empty, only these numbers of a `vector`.
        flat: elements of the whole array per element here, if all indices so far are a constant 0:
            t[0][i] is then an element of all rows.
        packed: whether it is a part of a packed structure, and may begin at any byte.
    """

    type: Type
    variable: Variable | None = None
    base: Value | None = None
    indices: tuple[Index, ...] = ()
    named: bool = False
    at: tuple[int, ...] = ()
    vector: Type = VOID
    flat: int = 1
    packed: bool = False

    @property
    def whole(self) -> Type:
        return self.vector if self.at else self.type

    def indexed(self, of: Type, index: Value, count: int, constant: float | None = None) -> Place:
        """Return an element of an array of `count` elements; its index may be a `constant`."""
        most = self.flat * count
        last = most if constant is None else count
        index_of = (index, of.stride, count if self.named else 0, last)
        flat = most if constant == 0 else 1
        return replace(self, type=of, indices=(*self.indices, index_of), flat=flat)

    def ones(self) -> list[Place]:
        """What one access each can reach: all, if its numbers are neighbours, or each alone."""
        if all(b == a + 1 for a, b in pairwise(self.at)):
            return [self]
        return [replace(self, type=self.type.scalar, at=(i,)) for i in self.at]

    def finder(self) -> Callable[[Wave], list[Any]]:
        """What must be computed once for a load and a store: pointer and indices."""
        parts = [index for index, *_ in self.indices]
        if self.base:
            parts.insert(0, self.base)
        return lambda w: [part(w) for part in parts]


def as_int(truth: Any) -> Any:
    return truth.astype(np.int64) if truth.__class__ is values.array else int(truth)


def mask_of(truth: Any) -> Any:
    """What comparisons of vectors give: -1 where they hold."""
    return -as_int(truth)


class Expressions:
    """One method per kind of node; each returns a function that computes the node's value."""

    def __init__(self) -> None:
        self.sites: list[Site] = []
        self.tables: list[Value] = []  # what fills constant memory
        self.declared: set[Variable] = set()
        self.unset: set[Variable] = set()  # declared without a value

    def fail(self, node: Node, message: str) -> NoReturn:
        raise TextError(message, node.spot)

    def site(self, kind: str, spot: Spot, text: str = "", of: Type = INT, **more: Any) -> Site:
        """A new site; `more` are other attributes of `Site`."""
        number, struct = len(self.sites), isinstance(of, Struct)
        found = Site(number, kind, spot, text, of.scalar, of.length, struct, **more)
        self.sites.append(found)
        return found

    def value(self, node: Expr) -> Value:
        value = known(node)
        if value is not None and isinstance(node.type, Scalar):
            number = self.number(value, node.type)
            return lambda w: number
        match node:
            case tree.Name() | tree.Part() | tree.Compound():
                return self.fetched(node)
            case tree.Index():
                return self.index(node)
            case tree.Member():
                return self.member(node)
            case tree.Unary():
                return self.unary(node)
            case tree.Binary():
                return self.binary(node)
            case tree.Assign():
                return self.assign(node)
            case tree.Choice():
                return self.choice(node)
            case tree.Cast():
                return self.cast(node)
            case tree.VectorLiteral():
                return self.vector_literal(node)
            case tree.Call():
                return self.call(node)
        raise UnknownError(written(node), node.spot)

    def call(self, node: tree.Call) -> Value:
        raise NotImplementedError

    # ---- from one type to another
    @staticmethod
    def number(value: float, of: Scalar) -> Any:
        """A number that is known, as lanes hold it."""
        if of is BOOL:
            return bool(value)
        if of.whole:
            return int(value) - 2**64 * (value > LONG.most)
        return of.dtype.type(value)

    def conversion(self, of: Type, to: Type, node: Node) -> Change:
        """What makes a value of one type a value of another."""
        if to is BOOL:
            return lambda w, x: x != 0
        if isinstance(to, Pointer) or isinstance(of, Pointer):
            if isinstance(to, Scalar) and to.size < 8:
                return lambda w, x: values.cut(x, to)
            return lambda w, x: x
        if isinstance(to, Vector) and isinstance(of, Scalar):
            one = self.conversion(of, to.of, node)
            return lambda w, x: values.spread(one(w, x), to.n)
        a, b = of.scalar, to.scalar
        # a long and a ulong are held as the same 64 bits
        same = b.size == 8 or (b.least <= a.least and a.most <= b.most)
        as_it_is = a.whole and b.whole and same and a is not BOOL
        if of == to or as_it_is or not isinstance(to, (Scalar, Vector)):
            return lambda w, x: x
        if b.whole and not a.whole:
            site = self.site("overflow", node.spot, written(node))
            return lambda w, x: w.rounded(x, a, b, site)
        return lambda w, x: values.converted(x, a, b)

    def truth(self, node: Expr) -> Value:
        """Whether an expression is not 0, as a bool of Python or an array of them."""
        decided = known(node)
        if decided is not None:
            return lambda w: bool(decided)
        if isinstance(node, tree.Binary) and node.op in ("&&", "||"):
            return self.logical(node)
        x = self.value(node)
        return lambda w: x(w) != 0

    def cast(self, node: tree.Cast) -> Value:
        operand = node.operand
        if isinstance(operand.type, Array):
            return self.pointer_to(self.place(operand), node)
        if node.type is BOOL:
            return self.truth(operand)
        x, change = self.value(operand), self.conversion(operand.type, node.type, operand)
        return lambda w: change(w, x(w))

    # ---- places
    def place(self, node: Expr) -> Place:
        if isinstance(node, tree.Name):
            if node.variable not in self.declared:
                self.fail(node, f"{node.name!r} is read in its own declaration")
            return self.place_of_variable(node.variable)
        if isinstance(node, tree.Index):
            index = self.value(node.index)
            if not isinstance(node.array.type, Vector):
                return self.element(node, index)
            if isinstance(node.array, tree.Member):
                raise UnknownError(f"a variable number of {written(node.array)}", node.spot)
            return self.number_of(self.place_of(node.array), index, node.array.type)
        if isinstance(node, tree.Member):
            place, at = self.place_of(node.vector), node.at
            if place.at:
                return replace(place, type=node.type, at=tuple(place.at[i] for i in at))
            return replace(place, type=node.type, at=at, vector=node.vector.type)
        if isinstance(node, tree.Part):
            return self.field(node)
        if isinstance(node, tree.Compound):
            return self.unnamed(node.variable, node.value)
        if isinstance(node, tree.Text):
            return self.string(node)
        self.fail(node, f"{written(node)} has no place")

    @staticmethod
    def place_of_variable(variable: Variable) -> Place:
        if not variable.in_memory:
            return Place(variable.type, variable)
        return Place(variable.type, None, lambda w: w.machine.address(w.held[variable]), named=True)

    def field(self, node: tree.Part) -> Place:
        whole, offset = self.place_of(node.of), node.field.offset
        base = self.pointer_to(whole, node)
        packed = whole.packed or node.type.alignment > node.of.type.alignment
        return Place(node.type, base=lambda w: base(w) + offset, packed=packed)

    def string(self, node: tree.Text) -> Place:
        """An array in constant memory."""
        variable = Variable("a string", node.type, node.spot, "constant")
        codes = [*unescaped(node.value[1:-1]).encode(), 0]
        numbers = [tree.Number(node.spot, code, type=CHAR) for code in codes]
        self.tables.append(
            self.memory(variable, tree.Braces(node.spot, filled=list(enumerate(numbers))))
        )
        return self.place_of_variable(variable)

    def place_of(self, node: Expr) -> Place:
        """The same for any value; one without an address is put into memory."""
        if address_of(node):
            return self.place(node)
        return self.unnamed(Variable(written(node), node.type, node.spot, addressed=True), node)

    def unnamed(self, variable: Variable, value: Expr) -> Place:
        """A new variable each time."""
        make = self.memory(variable, value)

        def made(w: Wave) -> int:
            make(w)
            return w.machine.address(w.held[variable])

        return Place(variable.type, base=made)

    def memory(self, variable: Variable, value: Expr | None = None) -> Value:
        """Makes memory for a variable, and fills it with its value or with those in { }."""
        braces = isinstance(value, tree.Braces)
        items = value.filled if isinstance(value, tree.Braces) else [(0, value)] if value else []
        filled = [(at, item.type, self.value(item)) for at, item in items]
        self.declared.add(variable)

        def make(w: Wave) -> None:
            given = [(at, to, item(w)) for at, to, item in filled]
            made = w.held[variable] = w.private(variable, braces)
            for at, to, x in given:
                of = to.scalar
                made.give(at // of.size, to.length, x, of)

        return make

    def element(self, node: tree.Index, index: Value) -> Place:
        """An element of an array, or from where a pointer points."""
        array = node.array.operand if isinstance(node.array, tree.Cast) else node.array
        if isinstance(array.type, Array):
            constant = known(node.index)
            return self.place(array).indexed(node.type, index, array.type.n, constant)
        return Place(VOID, base=self.value(node.array)).indexed(node.type, index, 0)

    @staticmethod
    def number_of(place: Place, index: Value, vector: Type) -> Place:
        """A number of a vector in memory, as if the vector were a row of an array."""
        n = vector.length
        if place.named and not place.indices:  # devices take such an index modulo n
            return place.indexed(vector.scalar, lambda w: index(w) % n, n)
        return place.indexed(vector.scalar, index, n)

    def pointer_to(self, place: Place, node: Node) -> Value:
        """A pointer is a number that holds which array, and how many bytes from its beginning."""
        base, indices = place.base, place.indices
        if base is None:
            raise UnknownError(f"the address of {written(node)}", node.spot)

        def pointer(w: Wave) -> Any:
            begin = base(w)
            for index, step, *_ in indices:
                begin = begin + index(w) * step
            return begin

        return pointer

    def fetched(self, node: Expr, place: Place | None = None) -> Value:
        """The value of something that is stored."""
        place = place or self.place(node)
        load, find = self.loads(place, node), place.finder()
        return (lambda w: load(w, [])) if place.variable else lambda w: load(w, find(w))

    def loads(self, place: Place, node: Expr) -> Change:
        """What computes the value of a place, once it is found."""
        if place.variable:
            return self.register(place.variable, place, node)
        parts = [self.access("load", one, node) for one in place.ones()]
        if len(parts) == 1:
            return parts[0]
        of = place.type.scalar
        return lambda w, where: values.vector([part(w, where) for part in parts], of)

    def register(self, variable: Variable, place: Place, node: Expr) -> Change:
        at, site = place.at, self.site("unset", node.spot, variable.name, place.whole)
        part, unset = self.part(place.vector, at) if at else None, variable in self.unset

        def read(w: Wave, where: list[Any]) -> Any:
            value = w.held[variable]
            if unset:
                w.check(site, w.given[variable])
            return part(value) if part else value

        return read

    @staticmethod
    def part(of: Type, at: tuple[int, ...]) -> Callable[[Any], Any]:
        """What takes some numbers of a vector's value."""
        one, wide, numbers = of.scalar, of.length, list(at)

        def taken(x: Any) -> Any:
            if max(at) >= wide:  # the fourth number of three
                x = values.vector((x, 0), one)
            return values.element(x, at[0]) if len(at) == 1 else x[numbers]

        return taken

    def access_bytes(self, kind: str, place: Place, node: Node) -> Change:
        """An access to numbers that may begin at any byte."""
        of, n = place.type.scalar, place.type.length
        at = tuple(of.size * number for number in place.at)
        whole = replace(place, type=Vector(UCHAR, n * of.size), at=at, packed=False)
        access = self.access(kind, whole, node, packed=True)
        if kind == "store":
            return lambda w, where, x: access(w, where, values.bits_as(x, of, UCHAR, n * of.size))
        n = n if isinstance(place.type, Vector) else 0
        return lambda w, where: values.bits_as(access(w, where), UCHAR, of, n)

    def access(self, kind: str, place: Place, node: Node, packed: bool = False) -> Change:
        """What loads from a place in memory, or stores there, once it is found."""
        of, wide = place.type, place.whole.length
        if place.packed and of.scalar.size > 1:
            return self.access_bytes(kind, place, node)
        if packed or isinstance(of, Struct):
            wide = 0
        elif wide == 3:  # stored as four
            wide = 4
        size = of.scalar.size
        lead = place.at[0] if place.at else 0
        shape = tuple((n, step // size, most) for _, step, n, most in place.indices)
        site = self.site(kind, node.spot, written(node), of, shape=shape, wide=wide, lead=lead)
        if kind == "load":
            return lambda w, where: w.load(site, w.reach(site, *where))
        return lambda w, where, x: w.store(site, w.reach(site, *where), x)

    def stores(self, place: Place, node: Node) -> Change:
        """What gives a place a value, once it is found."""
        variable, at = place.variable, list(place.at)
        if variable:

            def write(w: Wave, where: list[Any], x: Any) -> None:
                w.assign(variable, values.changed(w.held[variable], at, x) if at else x)

            return write
        parts = [self.access("store", one, node) for one in place.ones()]
        if len(parts) == 1:
            return parts[0]

        def write_each(w: Wave, where: list[Any], x: Any) -> None:
            for number, part in enumerate(parts):
                part(w, where, values.element(x, number))

        return write_each

    def index(self, node: tree.Index) -> Value:
        if not isinstance(node.array, tree.Member):
            return self.fetched(node)
        copy = Variable(written(node.array), node.array.type, node.spot, addressed=True)
        place = self.unnamed(copy, node.array)
        at = self.value(node.index)
        return self.fetched(node, self.number_of(place, at, node.array.type))

    def member(self, node: tree.Member) -> Value:
        if address_of(node.vector):
            return self.fetched(node)
        x, part = self.value(node.vector), self.part(node.vector.type, node.at)
        return lambda w: part(x(w))

    # ---- operations
    def unary(self, node: tree.Unary) -> Value:
        if node.op == "&":
            return self.pointer_to(self.place(node.operand), node.operand)
        x, scalar = self.value(node.operand), node.type.scalar
        if node.op == "!":
            decided = mask_of if isinstance(node.type, Vector) else as_int
            return lambda w: decided(x(w) == 0)
        if node.op == "~":
            return lambda w: values.cut(~x(w), scalar)
        result = self.result(node)
        return x if node.op == "+" else lambda w: result(w, -x(w))

    def result(self, node: Expr) -> Change:
        """What makes a result of arithmetic: an int must fit, other whole types wrap around."""
        scalar = node.type.scalar
        if scalar is INT:
            site = self.site("overflow", node.spot, written(node))
            return lambda w, x: w.fits(x, site)
        return (lambda w, x: values.cut(x, scalar)) if scalar.whole else (lambda w, x: x)

    def binary(self, node: tree.Binary) -> Value:
        if not isinstance(node.type, Vector) and node.op in ("&&", "||"):
            truth = self.logical(node)
            return lambda w: as_int(truth(w))
        a, b = self.value(node.left), self.value(node.right)
        operate = self.operation(node)
        return lambda w: operate(w, a(w), b(w))

    def operation(self, node: tree.Binary) -> Change:
        """What an operator makes of the values of its sides."""
        op, a, b = node.op, node.left.type, node.right.type
        apply, scalar = BINARY.get(op, lambda x, y: y), a.scalar
        if op == ",":
            return lambda w, x, y: y
        if op in ("&&", "||"):
            both = operator.and_ if op == "&&" else operator.or_
            return lambda w, x, y: mask_of(both(x != 0, y != 0))
        decided = mask_of if isinstance(node.type, Vector) else as_int
        if scalar is ULONG and op not in "+-*&|^":
            bare, apply = apply, lambda x, y: bare(values.unsigned(x), values.unsigned(y))
        if op in COMPARISONS:
            return lambda w, x, y: decided(apply(x, y))
        if isinstance(a, Pointer) or isinstance(b, Pointer):
            return self.of_pointers(apply, a, b)
        if op in ("<<", ">>"):  # by the amount modulo the bits; what is shifted out is gone
            return lambda w, x, y: values.cut(apply(x, y & scalar.bits - 1), scalar)
        if op in "/%":
            return self.division(node, apply)
        sides = map(plain, (node.left, node.right))
        product = any(isinstance(x, tree.Binary) and x.op == "*" for x in sides)
        if not scalar.whole and op in "+-" and product:
            site = self.site("multiply-add", node.spot, written(node), node.type)

            def multiply_add(w: Wave, x: Any, y: Any) -> Any:
                w.record(site)
                return apply(x, y)

            return multiply_add
        if not scalar.whole or op in "&|^":
            return lambda w, x, y: apply(x, y)
        if scalar is not INT:
            return lambda w, x, y: values.cut(apply(x, y), scalar)
        factors = [abs(known(side) or 0) for side in (node.left, node.right)]
        hashes = op == "*" and max(factors) >= HASH and max(factors) % 2
        kind = "wraps" if hashes else "overflow"
        overflow = self.site(kind, node.spot, written(node))
        return lambda w, x, y: w.fits(apply(x, y), overflow)

    @staticmethod
    def of_pointers(apply: Callable[..., Any], a: Type, b: Type) -> Change:
        """The difference of two pointers in elements, or a pointer that is moved by so many."""
        of_a = a.to.stride if isinstance(a, Pointer) else 1
        of_b = b.to.stride if isinstance(b, Pointer) else 1
        if isinstance(a, Pointer) and isinstance(b, Pointer):
            return lambda w, x, y: (x - y) // of_a
        return lambda w, x, y: apply(x * of_b, y * of_a)

    def division(self, node: tree.Binary, apply: Callable[..., Any]) -> Change:
        scalar, text = node.left.type.scalar, written(node)
        if not scalar.whole:
            ratio = self.site("ratio", node.spot, text)
            return lambda w, x, y: w.ratio(x, y, ratio)
        by = known(node.right)
        if by == 0:
            self.fail(node, f"{text}: division by zero")
        site = self.site("division", node.spot, text)

        too_large = self.site("overflow", node.spot, text)

        def divide(w: Wave, x: Any, y: Any) -> Any:
            result = apply(x, y if by is not None else w.divisor(y, site))
            return w.fits(result, too_large) if scalar is INT else values.cut(result, scalar)

        return divide

    # ---- what only some lanes compute
    def logical(self, node: tree.Binary) -> Value:
        """&& and ||: the right side is only for lanes that the left one has not decided."""
        if known(node.left) is not None:  # and has decided nothing
            return self.truth(node.right)
        left, right = self.truth(node.left), self.truth(node.right)
        sides = (right, None) if node.op == "&&" else (None, right)
        return self.chosen(left, sides, None)

    def choice(self, node: tree.Choice) -> Value:
        of, constant = node.condition.type, known(node.condition)
        if constant is not None:
            return self.value(node.yes if constant else node.no)
        sides = self.value(node.yes), self.value(node.no)
        if isinstance(of, Vector):
            condition, chooses = self.value(node.condition), self.highest(of)
            return lambda w: values.pick(chooses(condition(w)), sides[0](w), sides[1](w))
        truth = self.truth(node.condition)
        site = None
        if any(isinstance(n, BRANCHING) for side in (node.yes, node.no) for n in side.walk()):
            site = self.site("branch", node.spot, written(node.condition))
        return self.chosen(truth, sides, site)

    @staticmethod
    def chosen(truth: Value, sides: tuple[Value | None, Value | None], site: Site | None) -> Value:
        """One of two values, each computed for the lanes that need it; None: the truth itself."""

        def run(w: Wave) -> Any:
            decided = truth(w)
            yes, no = w.both_sides(decided, sides, site)
            return values.pick(decided, yes if sides[0] else decided, no if sides[1] else decided)

        return run

    @staticmethod
    def highest(of: Type) -> Callable[[Any], Any]:
        """Which numbers of a vector have their highest bit set."""
        scalar = of.scalar
        signed = scalar.kind == "int" or scalar is ULONG  # a ulong is held as a long
        return (lambda x: x < 0) if signed else (lambda x: x > scalar.most >> 1)

    # ---- assignments
    def assign(self, node: tree.Assign) -> Value:
        place, value = self.place(node.target), self.value(node.value)
        find, store = place.finder(), self.stores(place, node.target)
        if node.op:
            load, change = self.loads(place, node.target), self.updated(node)

        def run(w: Wave) -> Any:
            where, x, old = find(w), value(w), None
            if node.op:
                old = load(w, where)
                x = change(w, old, x)
            store(w, where, x)
            return old if node.step == "after" else x

        return run

    def updated(self, node: tree.Assign) -> Change:
        """What an operation in the type `common` makes of the old value and another."""
        target, common = node.target, node.common
        left = target if target.type == common else tree.Cast(target.spot, target, type=common)
        new = tree.Binary(node.spot, node.op, left, node.value, type=common, source=node.source)
        widen, operate = self.conversion(target.type, common, target), self.operation(new)
        narrow = self.conversion(common, node.type, new)
        return lambda w, old, x: narrow(w, operate(w, widen(w, old), x))

    def vector_literal(self, node: tree.VectorLiteral) -> Value:
        parts, of = [self.value(part) for part in node.parts], node.type.scalar
        return lambda w: values.vector([part(w) for part in parts], of)
