"""Expressions of OpenCL C as WGSL: operators, conversions, pointers, calls."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from .. import tree
from ..arithmetic import COMPARISONS
from ..builtins import FENCES
from ..meaning import as_number, known
from ..tree import Expr, plain, written
from ..types import (
    BOOL,
    INT,
    UINT,
    ULONG,
    VOID,
    Array,
    Pointer,
    Scalar,
    Type,
    Vector,
    leaf_of,
    with_size,
)
from .memory import (
    ATOM,
    COMPARISON,
    LOOSE,
    PRODUCT,
    SUM,
    UNARY,
    KeptError,
    Lines,
    Node,
    Range,
    Ref,
    Snippet,
    Writer,
    refuse,
)
from .names import SAME

LEVELS = {"*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "+": SUM, "-": SUM}
#: Functions that say where a work-item is: the name of the argument, and the builtin that it is.
IDS = {
    "get_global_id": ("gid", "global_invocation_id"),
    "get_local_id": ("lid", "local_invocation_id"),
    "get_group_id": ("wid", "workgroup_id"),
    "get_num_groups": ("nwg", "num_workgroups"),
}
NOTHING = Snippet("", VOID, named=True)


def combined(op: str, a: Range | None, b: Range | None) -> Range | None:
    """The range of a + b, a * b ..., as far as it is proved."""
    if op == "&":
        masks = [r[0] for r in (a, b) if r is not None and r[0] == r[1] >= 0]
        return (0, masks[0]) if masks else None
    if a is None or b is None:
        return None
    if op == "+":
        return a[0] + b[0], a[1] + b[1]
    if op == "-":
        return a[0] - b[1], a[1] - b[0]
    if op == "*":
        ends = [x * y for x in a for y in b]
        return min(ends), max(ends)
    if op in "/%" and a[0] >= 0 and b[0] == b[1] > 0:
        return (a[0] // b[0], a[1] // b[0]) if op == "/" else (0, min(a[1], b[0] - 1))
    return None


class ExpressionWriter(Writer):
    # ---- any expression
    def expression(self, node: tree.Node) -> Snippet:
        if isinstance(node, Expr) and isinstance(node.type, Scalar):
            value = known(node)
            if value is not None:
                return self.literal(value, node.type, node)
        return self.computed_expression(node)

    def computed_expression(self, node: tree.Node) -> Snippet:
        match node:
            case tree.Name():
                return self.name(node)
            case tree.Index():
                return self.index_of(node)
            case tree.Member():
                return self.member(node)
            case tree.Unary():
                return self.unary(node)
            case tree.Binary():
                return self.binary(node)
            case tree.Choice():
                return self.choice(node)
            case tree.Cast():
                return self.cast(node)
            case tree.VectorLiteral():
                return self.vector_literal(node)
            case tree.Assign():
                return self.assigned(node)
            case tree.Call():
                return self.call(node)
        raise refuse(f"{written(node)} is not translated", node)

    def condition(self, node: tree.Node) -> Snippet:
        """An expression as a bool of WGSL."""
        decided = known(node)
        if decided is not None:
            return self.literal(bool(decided), BOOL, node)
        inner = plain(node)
        if isinstance(inner, tree.Binary) and not isinstance(inner.type, Vector):
            if inner.op in ("&&", "||"):
                return self.logical(inner)
            if inner.op in COMPARISONS:
                return self.comparison(inner)
        if isinstance(inner, tree.Unary) and inner.op == "!":
            return Snippet(f"!{self.condition(inner.operand).at_least(UNARY)}", BOOL, UNARY)
        value = self.expression(inner)
        if value.ref is not None:
            return self.literal(True, BOOL, node)
        return self.converted(value, BOOL, node)

    def whole(self, node: tree.Node) -> Snippet:
        """An index, as an i32."""
        return self.converted(self.expression(node), INT, node)

    def name(self, node: tree.Name) -> Snippet:
        entry = self.entries.get(node.variable)
        if entry is None:
            raise refuse(f"{node.name!r} is not translated", node)
        return entry if isinstance(entry, Snippet) else self.load(entry, node)

    def index_of(self, node: tree.Index) -> Snippet:
        if isinstance(node.array.type, Vector):
            raise refuse("an element of a vector by its number is not translated; use .s0", node)
        return self.load(self.reference(node), node)

    def member(self, node: tree.Member) -> Snippet:
        letters = "".join("xyzw"[i] for i in node.at)
        vector = self.expression(node.vector)
        return Snippet(f"{vector.at_least(ATOM)}.{letters}", node.type, fixed=vector.fixed)

    # ---- operators
    def unary(self, node: tree.Unary) -> Snippet:
        if node.op == "&":
            return self.address(self.reference(node.operand), node.type)
        if node.op == "!":
            return self.truth(self.condition(node), node)
        value = self.expression(node.operand)
        if node.op == "+":
            return value
        span = combined("-", (0, 0), value.range) if node.op == "-" else None
        if node.op == "-" and node.type.scalar.kind == "uint":  # WGSL negates no unsigned integer
            zero = Snippet(f"{self.value_type(node.type, node)}()", node.type)
            return replace(self.operation("-", zero, value, node), range=span)
        # -(-x) is not --x
        code = f"{node.op}{value.at_least(ATOM)}"
        return Snippet(code, node.type, UNARY, range=span, fixed=value.fixed)

    def truth(self, value: Snippet, node: Expr) -> Snippet:
        """A bool as the 0 or 1 that C makes of it."""
        return Snippet(f"{self.value_type(node.type, node)}({value.code})", node.type, range=(0, 1))

    def binary(self, node: tree.Binary) -> Snippet:
        if node.op == ",":
            self.effect(node.left)
            return self.expression(node.right)
        if isinstance(node.type, Pointer) or isinstance(node.left.type, Pointer):
            return self.moved(node)
        if node.op in ("&&", "||", *COMPARISONS):
            if isinstance(node.type, Vector):
                raise refuse(f"{node.op} of vectors is not translated", node)
            return self.truth(self.condition(node), node)
        left, right = self.both(node.left, node.right)
        return self.operation(node.op, left, right, node)

    def both(self, left: tree.Node, right: tree.Node) -> tuple[Snippet, Snippet]:
        """Two operands, the left one first where the right one has effects."""
        a = self.expression(left)
        lines, b = self.captured(lambda: self.expression(right))
        if lines:
            a = self.keep(a)
            self.lines += lines
        return a, b

    def operation(self, op: str, a: Snippet, b: Snippet, node: Expr) -> Snippet:
        to = node.common if isinstance(node, tree.Assign) else node.type
        b = self.right_operand(op, b, to, node)
        if a.fixed and b.fixed:  # WGSL would refuse it if the result overflows
            a = self.computed(a)
        level = LEVELS.get(op, LOOSE)
        code = f"{a.at_least(level or UNARY)} {op} {b.at_least(level + 1 if level else UNARY)}"
        return Snippet(code, to, level, range=combined(op, a.range, b.range))

    def right_operand(self, op: str, b: Snippet, to: Type, node: Expr) -> Snippet:
        """Return the right operand of an operation in a type, as WGSL accepts it."""
        if op in ("<<", ">>"):
            if b.constant is not None:
                return self.literal(int(b.constant) & 31, UINT, node)
            b = self.converted(b, with_size(to, UINT), node)
            return self.computed(b)
        if op not in ("/", "%") or not to.scalar.whole:
            return b
        if b.constant == 0:
            raise refuse("division by zero", node)
        return self.computed(b) if isinstance(to, Vector) else b

    def comparison(self, node: tree.Binary) -> Snippet:
        if isinstance(node.left.type, Pointer):
            return self.moved(node)
        a, b = self.both(node.left, node.right)
        return Snippet(f"{a.at_least(SUM)} {node.op} {b.at_least(SUM)}", BOOL, COMPARISON)

    def logical(self, node: tree.Binary) -> Snippet:
        left = self.condition(node.left)
        lines, right = self.captured(lambda: self.condition(node.right))
        if not lines:
            code = f"{left.at_least(COMPARISON)} {node.op} {right.at_least(COMPARISON)}"
            return Snippet(code, BOOL, LOOSE)
        name = self.claim("t")
        self.emit(f"var {name} = {left.code};")
        self.branch(f"if ({'' if node.op == '&&' else '!'}{name}) {{", name, lines, right)
        self.emit("}")
        return Snippet(name, BOOL, named=True)

    def choice(self, node: tree.Choice) -> Snippet:
        """A choice as an if: only the side that is chosen is computed."""
        if isinstance(node.type, Pointer):
            raise refuse("a pointer that is chosen at run time is not translated", node)
        if isinstance(node.condition.type, Vector):
            raise refuse("a choice by a vector is not translated", node)
        condition = self.condition(node.condition)
        name, kind = self.claim("t"), self.value_type(node.type, node)
        # with a value always: `var t: f32;` in a loop keeps that of the iteration before
        self.emit(f"var {name} = {kind}();")
        for head, side in ((f"if ({condition.code}) {{", node.yes), ("} else {", node.no)):
            self.branch(head, name, *self.captured(partial(self.expression, side)))
        self.emit("}")
        return Snippet(name, node.type, named=True)

    def branch(self, head: str, name: str, lines: Lines, value: Snippet) -> None:
        """A branch of an if that gives a variable its value."""
        self.emit(head)
        self.lines += [("    " + code, line) for code, line in lines]
        self.emit(f"    {name} = {value.code};")

    # ---- conversions
    def cast(self, node: tree.Cast) -> Snippet:
        if node.type is VOID:
            self.effect(node.operand)
            return NOTHING
        if isinstance(node.operand.type, Array):
            return self.expression(node.operand)
        if isinstance(node.type, Pointer):
            return self.as_pointer(node)
        if node.type is BOOL:
            return self.condition(node.operand)
        return self.converted(self.expression(node.operand), node.type, node)

    def as_pointer(self, node: Any) -> Snippet:
        value = self.expression(node.operand)
        if value.ref is None:
            raise refuse("a pointer that is not the address of anything is not translated", node)
        self.same_scalar(value.ref, node.type.to, node)
        return Snippet("", node.type, ref=replace(value.ref, type=node.type.to))

    def same_scalar(self, ref: Ref, of: Type, node: Node) -> None:
        held = ref.memory.scalar
        if leaf_of(of)[0].scalar is not held:
            raise refuse(f"memory of {held} read as {of} is not translated", node)

    def converted(self, value: Snippet, to: Type, node: Node) -> Snippet:
        of = value.type
        if of == to or to is VOID:
            return value
        a, b = of.scalar, to.scalar
        if value.constant is not None and isinstance(to, Scalar):
            number = value.constant
            if a.whole or not b.whole or b is BOOL or b.least - 1 < number < b.most + 1:
                return self.literal(as_number(number, to), to, node)
            value = self.computed(value)
        if b is BOOL:
            return Snippet(f"{value.at_least(SUM)} != {self.literal(0, a, node).code}", BOOL,
                         COMPARISON)  # fmt: skip
        kind = self.value_type(to, node)
        if isinstance(to, Vector) and isinstance(of, Scalar):
            one = self.converted(value, b, node)
            return Snippet(f"{kind}({one.code})", to, fixed=one.fixed)
        if self.scalar_type(a, node) == self.scalar_type(b, node):
            return replace(value, type=to)
        span = value.range if b.whole and value.range and value.range[0] >= 0 else None
        return Snippet(f"{kind}({self.computed(value).code})", to, range=span)

    def vector_literal(self, node: tree.VectorLiteral) -> Snippet:
        parts = [self.expression(part) for part in node.parts]
        code = f"{self.value_type(node.type, node)}({', '.join(part.code for part in parts)})"
        return Snippet(code, node.type, fixed=any(part.fixed for part in parts))

    # ---- memory and pointers
    def reference(self, node: tree.Node) -> Ref:
        """Which element of an array this is."""
        if isinstance(node, tree.Name):
            entry = self.entries.get(node.variable)
            if isinstance(entry, Ref):
                return entry
            raise refuse(f"a pointer to {node.name!r} is not translated; use an array", node)
        if isinstance(node, tree.Index):
            if isinstance(node.array.type, Array):
                return self.element(self.reference(node.array), self.whole(node.index))
            return self.further(self.pointee(node.array), self.whole(node.index))
        raise refuse(f"{written(node)} is not translated as something in memory", node)

    @staticmethod
    def address(ref: Ref, of: Type) -> Snippet:
        """A pointer to something in memory, which moves in the last dimension."""
        if ref.indices and not ref.terms:
            raise KeptError(ref.memory, len(ref.indices) - 1)
        return Snippet("", of, ref=ref)

    def pointee(self, node: tree.Node) -> Ref:
        """What a pointer points to."""
        value = self.expression(node)
        if value.ref is None:
            raise refuse(f"{written(node)} is not translated as a pointer", node)
        return value.ref

    def moved(self, node: tree.Binary) -> Snippet:
        """A pointer plus or minus a number."""
        if node.op not in "+-" or not isinstance(node.type, Pointer):
            raise refuse("pointers are not compared or subtracted in WGSL; use indices", node)
        left, right = self.both(node.left, node.right)
        pointer, number = (left, right) if left.ref is not None else (right, left)
        assert pointer.ref is not None
        sign = 1 if node.op == "+" else -1
        ref = self.further(pointer.ref, self.converted(number, INT, node), sign)
        return Snippet("", node.type, ref=ref)

    # ---- assignments
    def effect(self, node: tree.Node) -> None:
        """An expression of which only the effects count."""
        if isinstance(node, tree.Assign):
            self.assign(node)
        elif isinstance(node, tree.Binary) and node.op == ",":
            self.effect(node.left)
            self.effect(node.right)
        else:
            value = self.expression(node)
            if value.type is not VOID:
                self.keep(value)

    def assigned(self, node: tree.Assign) -> Snippet:
        if node.step != "after":
            return self.read(self.assign(node), node.target)
        old = self.expression(node.target)
        if old.ref is not None:
            value, unit = self.pointer(node.target)
            assert value.ref is not None
            before = self.keep(Snippet(value.code, INT))
            old = replace(old, ref=replace(value.ref, terms=((unit, before),)))
        else:
            old = self.keep(replace(old, named=False))
        self.assign(node)
        return old

    def assign(self, node: tree.Assign) -> Ref | None:
        """Returns the element that is assigned; None for a variable of WGSL."""
        target, op = node.target, node.op
        if isinstance(target.type, Pointer):
            self.move(node)
            return None
        if isinstance(target, tree.Member):
            self.assign_member(node)
            return None
        ref = self.element_of(target)
        if node.step and ref is None and isinstance(target.type, Scalar) and target.type.whole:
            self.emit(f"{self.expression(target).code}{op}{op};")
            return None
        value = self.expression(node.value)
        if op:
            value = self.right_operand(op, value, node.common, node)
        if op not in ("<<", ">>"):
            if op and node.common != target.type:
                old = self.converted(self.read(ref, target), node.common, node)
                value, op = self.operation(op, old, value, node), ""
            value = self.converted(value, target.type, node)
        if ref is not None:
            self.store(ref, value, node, op)
        else:
            self.emit(f"{self.expression(target).code} {op}= {value.code};")
        return ref

    def element_of(self, target: Expr) -> Ref | None:
        """The element of an array that a target is; None for a variable of WGSL."""
        if isinstance(target, tree.Name) and isinstance(self.entries[target.variable], Snippet):
            return None
        return self.reference(target)

    def read(self, ref: Ref | None, target: Expr) -> Snippet:
        return self.expression(target) if ref is None else self.load(ref, target)

    def assign_member(self, node: Any) -> None:
        vector, at = node.target.vector, node.target.at
        ref = self.element_of(vector)
        value = self.expression(node.value)
        if node.op:
            value = self.right_operand(node.op, value, node.common, node)
        value = self.keep(value)
        if ref is None:
            code = self.expression(vector).code
        else:
            ref.memory.written = True
            code, *more = self.elements(ref, node)
            if more:
                raise refuse("a number of a vector in an array of numbers is not translated", node)
        for number, i in enumerate(at):
            piece = value.code if len(at) == 1 else f"{value.code}.{'xyzw'[number]}"
            self.emit(f"{code}.{'xyzw'[i]} {node.op}= {piece};")

    def move(self, node: tree.Assign) -> None:
        """A pointer that is assigned: it must stay in its array."""
        pointer, unit = self.pointer(node.target)
        assert pointer.ref is not None
        if node.op:
            number = self.converted(self.expression(node.value), INT, node)
            code, got, _ = self.sum([(pointer.ref.type.length, number)], unit)
        else:
            ref = self.expression(node.value).ref
            memory = pointer.ref.memory
            if ref is None or ref.memory is not memory:
                words = f"{written(node.target)} must keep pointing into {memory.name}"
                raise refuse(words, node)
            code, got, _ = self.sum(ref.terms, unit)
        if got != unit:
            raise refuse("a pointer that is not aligned is not translated", node)
        self.emit(f"{pointer.code} {node.op}= {code};")

    def pointer(self, target: Expr) -> tuple[Snippet, int]:
        """A pointer that moves, and the numbers that its offset counts as one."""
        if not isinstance(target, tree.Name):
            raise refuse(f"{written(target)} is not translated as a pointer that moves", target)
        value = self.entries[target.variable]
        assert isinstance(value, Snippet) and value.ref is not None
        return value, value.ref.terms[0][0]

    # ---- calls
    def call(self, node: tree.Call) -> Snippet:
        name = node.name
        if node.target is not None:
            return self.own_call(node)
        if name in IDS or name in ("get_local_size", "get_global_size"):
            return self.identifier(node)
        if name == "barrier":
            return self.call_barrier(node)
        if name in FENCES:
            return NOTHING
        if name == "abs":
            return self.call_abs(node)
        if name.startswith(("vload", "vstore")):
            return self.vector_access(node)
        if name.startswith("convert_"):
            return self.call_convert(node)
        if name.startswith("as_"):
            return self.call_as(node)
        plain_name = name.removeprefix("native_").removeprefix("half_")
        if plain_name in SAME:
            return self.applied(SAME[plain_name], node)
        what = "atomic functions are" if name.startswith("atom") else f"the function {name!r} is"
        raise refuse(f"{what} not translated", node)

    def own_call(self, node: tree.Call) -> Snippet:
        raise NotImplementedError

    def applied(self, function: str, node: Any) -> Snippet:
        values = [self.expression(arg) for arg in node.args]
        if isinstance(node.type, Vector):  # clamp(v, 0.0f, 1.0f)
            values = [self.converted(value, node.type, node) for value in values]
        # WGSL would refuse what has no result, and limits in the wrong order
        if all(value.fixed for value in values):
            values[0] = self.computed(values[0])
        if function == "clamp" and all(value.fixed for value in values[1:]):
            low, high = (value.constant for value in values[1:])
            if low is None or high is None or low > high:
                values[1] = self.computed(values[1])
        code = f"{function}({', '.join(value.code for value in values)})"
        return Snippet(code, node.type)

    def call_barrier(self, node: tree.Call) -> Snippet:
        flags = int(known(node.args[0]) or 0)
        if flags & 1 or not flags:
            self.emit("workgroupBarrier();")
        if flags & 2:
            self.emit("storageBarrier();")
        return NOTHING

    def call_abs(self, node: tree.Call) -> Snippet:
        value = self.applied("abs", node)
        return self.converted(replace(value, type=node.args[0].type), node.type, node)

    def identifier(self, node: tree.Call) -> Snippet:
        which = known(node.args[0])
        if which is None:
            raise refuse(f"{node.name} takes a number that is known before the kernel runs", node)
        at = int(which)
        letter = "xyz"[at]
        if node.name == "get_local_size":
            return self.literal(self.size[at], ULONG, node)
        if node.name == "get_global_size":
            self.ids.add("nwg")
            return Snippet(f"nwg.{letter} * {self.size[at]}u", ULONG, PRODUCT)
        short, _ = IDS[node.name]
        self.ids.add(short)
        span = (0, self.size[at] - 1) if short == "lid" else None
        return Snippet(f"{short}.{letter}", ULONG, range=span, named=True)

    def call_convert(self, node: tree.Call) -> Snippet:
        if "_sat" in node.name or "_rt" in node.name:
            raise refuse(f"{node.name} is not translated; convert_{node.type} is", node)
        return self.converted(self.expression(node.args[0]), node.type, node)

    def call_as(self, node: tree.Call) -> Snippet:
        value = self.expression(node.args[0])
        if node.type.length != value.type.length:
            raise refuse(f"{node.name} of {value.type} is not translated", node)
        code = f"bitcast<{self.value_type(node.type, node)}>({self.computed(value).code})"
        return Snippet(code, node.type)

    def vector_access(self, node: tree.Call) -> Snippet:
        if "half" in node.name:
            raise refuse(f"{node.name} is not translated", node)
        *stored, index, pointer = node.args
        value = [self.expression(arg) for arg in stored]
        ref = self.pointee(pointer)
        to = Vector(ref.memory.scalar, int("".join(c for c in node.name if c.isdigit())))
        ref = replace(ref, type=to, terms=(*ref.terms, (to.n, self.whole(index))))
        if not value:
            return self.load(ref, node)
        self.store(ref, value[0], node)
        return NOTHING
