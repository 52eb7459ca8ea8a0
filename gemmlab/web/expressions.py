"""Expressions of OpenCL C as WGSL: operators, conversions, pointers, calls."""

from __future__ import annotations

from dataclasses import dataclass, replace

from ..simt import tree
from ..simt.meaning import COMPARISONS, known
from ..simt.tree import Expr, plain, written
from ..simt.types import (
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
    length,
    scalar_of,
)
from .places import (
    ATOM,
    COMPARISON,
    LOOSE,
    PRODUCT,
    SUM,
    UNARY,
    Memory,
    Places,
    Range,
    Ref,
    Value,
    parts_of,
    refuse,
)

LEVELS = {"*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "+": SUM, "-": SUM}
#: Built-in functions that WGSL has, too, by their names here and there.
SAME = {
    "fma": "fma", "mad": "fma", "sqrt": "sqrt", "fabs": "abs", "exp": "exp", "exp2": "exp2",
    "log": "log", "log2": "log2", "sin": "sin", "cos": "cos", "tan": "tan", "tanh": "tanh",
    "floor": "floor", "ceil": "ceil", "rint": "round", "trunc": "trunc", "pow": "pow",
    "powr": "pow", "fmin": "min", "fmax": "max", "rsqrt": "inverseSqrt", "mix": "mix",
    "sign": "sign", "min": "min", "max": "max", "clamp": "clamp", "popcount": "countOneBits",
    "clz": "countLeadingZeros", "length": "length",
}  # fmt: skip
IDS = {
    "get_global_id": "gid",
    "get_local_id": "lid",
    "get_group_id": "wid",
    "get_num_groups": "nwg",
}


@dataclass
class Entry:
    """What a variable of the kernel is in WGSL: a value, memory (an array), or a pointer."""

    name: str
    type: Type
    value: Value | None = None
    memory: Memory | None = None
    ref: Ref | None = None
    at: str = ""  # the variable that holds the offset of a pointer that moves


def combined(op: str, a: Range | None, b: Range | None) -> Range | None:
    """The range of a + b, a * b ..., if both ranges are proved."""
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


def masked(op: str, a: Value, b: Value) -> Range | None:
    """The range of x & 7, whatever x is."""
    masks = [int(v.constant) for v in (a, b) if v.constant is not None and v.constant >= 0]
    return (0, masks[0]) if op == "&" and masks else None


def loads(node: tree.Node) -> bool:
    """Whether an expression reads memory, or calls what may."""
    return any(
        isinstance(n, (tree.Index, tree.Call)) or (isinstance(n, tree.Unary) and n.op == "*")
        for n in node.walk()
    )


class Expressions(Places):
    size: tuple[int, int, int]

    def __init__(self, watched: bool):
        super().__init__(watched)
        self.entries: dict[tree.Variable, Entry] = {}
        self.ids: set[str] = set()

    # ---- any expression
    def expression(self, node: tree.Node) -> Value:
        if isinstance(node, Expr) and isinstance(node.type, Scalar):
            value = known(node)
            if value is not None:
                return self.literal(value, node.type, node)
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            raise refuse(f"{written(node)} is not translated", node)
        return method(node)

    def condition(self, node: tree.Node) -> Value:
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
            value = self.condition(inner.operand)
            return Value([f"!{value.at_least(UNARY)[0]}"], BOOL, UNARY)
        value = self.expression(inner)
        if value.ref is not None:
            return self.literal(True, BOOL, node)
        return self.converted(value, BOOL, node)

    def whole(self, node: tree.Node) -> Value:
        """An index, as an i32."""
        return self.converted(self.expression(node), INT, node)

    def _number(self, node):
        return self.literal(node.value, node.type, node)

    def _name(self, node):
        entry = self.entries.get(node.variable)
        if entry is None:
            raise refuse(f"{node.name!r} is not translated", node)
        if entry.memory is not None:
            return self.load(Ref(entry.memory, entry.type), node)
        if entry.ref is not None:
            return Value([], entry.type, ref=entry.ref)
        assert entry.value is not None
        return entry.value

    def _index(self, node):
        if isinstance(node.array.type, Vector):
            raise refuse("an element of a vector by its number is not translated; use .s0", node)
        return self.load(self.place(node), node)

    def _member(self, node):
        vector = self.expression(node.vector)
        if vector.level < ATOM:
            vector = self.keep(vector)
        return self.picked(vector, node.at, node.type, node)

    def picked(self, vector: Value, at, to: Type, node) -> Value:
        if len(vector.parts) == 1:
            letters = "".join("xyzw"[i] for i in at)
            return Value([f"{vector.at_least(ATOM)[0]}.{letters}"], to)
        return self.assembled([f"{vector.parts[i // 4]}.{'xyzw'[i % 4]}" for i in at], to, node)

    def assembled(self, numbers: list[str], to: Type, node) -> Value:
        if length(to) == 1:
            return Value(numbers, to)
        parts, kind = [], self.part_type(to, node)
        for count in parts_of(to):
            parts.append(f"{kind}({', '.join(numbers[:count])})")
            numbers = numbers[count:]
        return Value(parts, to)

    # ---- operators
    def _unary(self, node):
        if node.op == "*":
            return self.load(self.place(node), node)
        if node.op == "&":
            return Value([], node.type, ref=self.place(node.operand))
        if node.op == "!":
            return self.truth(self.condition(node), node)
        value = self.expression(node.operand)
        if node.op == "+":
            return value
        # -(-x) is not --x
        parts = [f"{node.op}{part}" for part in value.at_least(ATOM)]
        span = combined("-", (0, 0), value.range) if node.op == "-" else None
        return Value(parts, node.type, UNARY, range=span)

    def truth(self, value: Value, node) -> Value:
        """A bool as the 0 or 1 that C makes of it."""
        kind = self.value_type(node.type, node)
        return Value([f"{kind}({value.code})"], node.type, range=(0, 1))

    def _binary(self, node):
        if node.op == ",":
            self.effect(node.left)
            return self.expression(node.right)
        if isinstance(node.type, Pointer) or isinstance(node.left.type, Pointer):
            return self.moved(node)
        if isinstance(node.type, Vector) and (node.op in COMPARISONS or node.op in ("&&", "||")):
            raise refuse(f"{node.op} of vectors is not translated", node)
        if node.op in ("&&", "||"):
            return self.truth(self.logical(node), node)
        if node.op in COMPARISONS:
            return self.truth(self.comparison(node), node)
        left, right = self.both(node.left, node.right)
        return self.operation(node.op, left, right, node)

    def both(self, left: tree.Node, right: tree.Node) -> tuple[Value, Value]:
        """Two operands, the left one first where the right one has effects."""
        a = self.expression(left)
        lines, b = self.captured(lambda: self.expression(right))
        if lines:
            a = self.keep(a)
            self.lines += lines
        return a, b

    def operation(self, op: str, a: Value, b: Value, node) -> Value:
        to = node.common if isinstance(node, tree.Assign) else node.type
        if op in ("<<", ">>"):
            if b.constant is not None:
                b = self.literal(int(b.constant) & 31, UINT, node)
            else:
                b = self.converted(b, Vector(UINT, length(to)) if length(to) > 1 else UINT, node)
            parts = zip(a.at_least(UNARY), b.at_least(UNARY), strict=True)
            return Value([f"{x} {op} {y}" for x, y in parts], to, LOOSE)
        if isinstance(to, Scalar) and to.whole:
            simple = self.simplified(op, a, b)
            if simple is not None:
                return simple
        level = LEVELS.get(op, LOOSE)
        lefts, rights = a.at_least(level or UNARY), b.at_least(level + 1 if level else UNARY)
        codes = [f"{x} {op} {y}" for x, y in zip(lefts, rights, strict=True)]
        span = combined(op, a.range, b.range) or masked(op, a, b)
        return Value(codes, to, level, range=span)

    @staticmethod
    def simplified(op: str, a: Value, b: Value) -> Value | None:
        """What laid-out loops leave behind: x + 0, x*1, 0*x."""
        if op in "+-|^" and b.constant == 0 or op in "*/" and b.constant == 1:
            return a
        if op in "+|^" and a.constant == 0 or op == "*" and a.constant == 1:
            return b
        if op == "*":
            return next((x for x in (a, b) if x.constant == 0), None)
        return None

    def comparison(self, node) -> Value:
        if isinstance(node.left.type, Pointer):
            raise refuse("pointers are not compared in WGSL; compare indices", node)
        a, b = self.both(node.left, node.right)
        code = f"{a.at_least(SUM)[0]} {node.op} {b.at_least(SUM)[0]}"
        return Value([code], BOOL, COMPARISON)

    def logical(self, node) -> Value:
        left = self.condition(node.left)
        if left.constant is not None:
            decided = bool(left.constant) == (node.op == "||")
            return left if decided else self.condition(node.right)
        lines, right = self.captured(lambda: self.condition(node.right))
        if not lines:
            if right.constant is not None and bool(right.constant) == (node.op == "&&"):
                return left
            code = f"{left.at_least(COMPARISON)[0]} {node.op} {right.at_least(COMPARISON)[0]}"
            return Value([code], BOOL, LOOSE)
        decided = ([], self.literal(node.op == "||", BOOL, node))
        sides = (decided, (lines, right)) if node.op == "||" else ((lines, right), decided)
        return self.branched(BOOL, left, *sides, node)

    def indented(self, lines) -> None:
        self.lines += [("    " + code, line) for code, line in lines]

    def _choice(self, node):
        if isinstance(node.type, Pointer):
            raise refuse("a pointer that is chosen at run time is not translated", node)
        if isinstance(node.condition.type, Vector):
            raise refuse("a choice by a vector is not translated", node)
        condition = self.condition(node.condition)
        if condition.constant is not None:
            return self.expression(node.yes if condition.constant else node.no)
        yes_lines, yes = self.captured(lambda: self.expression(node.yes))
        no_lines, no = self.captured(lambda: self.expression(node.no))
        if not (yes_lines or no_lines or loads(node.yes) or loads(node.no)):
            parts = zip(no.parts, yes.parts, strict=True)
            return Value([f"select({n}, {y}, {condition.code})" for n, y in parts], node.type)
        return self.branched(node.type, condition, (yes_lines, yes), (no_lines, no), node)

    def branched(self, of: Type, condition: Value, yes, no, node) -> Value:
        """A choice as an if: only the side that is chosen is computed."""
        names = [self.claim("t") for _ in yes[1].parts]
        default = no[1].constant is not None and not no[0]
        kind = self.part_type(of, node)
        for name, part in zip(names, no[1].parts, strict=True):
            # with a value always: `var t: f32;` in a loop keeps that of the iteration before
            self.emit(f"var {name}: {kind} = {part if default else f'{kind}()'};")
        for head, (lines, value) in ((f"if ({condition.code}) {{", yes), ("} else {", no)):
            if value is no[1] and default:
                break
            self.emit(head)
            self.indented(lines)
            for name, part in zip(names, value.parts, strict=True):
                self.emit(f"    {name} = {part};")
        self.emit("}")
        return Value(names, of, named=True)

    # ---- conversions
    def _convert(self, node):
        if isinstance(node.operand.type, Array):
            return self.expression(node.operand)
        if isinstance(node.type, Pointer):
            return self.as_pointer(node)
        if node.type is BOOL:
            return self.condition(node.operand)
        return self.converted(self.expression(node.operand), node.type, node)

    def _cast(self, node):
        if node.type is VOID:
            self.effect(node.operand)
            return Value([], VOID, named=True)
        return self._convert(node)

    def as_pointer(self, node) -> Value:
        value = self.expression(node.operand)
        if value.ref is None:
            raise refuse("a pointer that is not the address of anything is not translated", node)
        to, held = node.type.to, value.ref.memory.scalar
        if scalar_of(leaf_of(to)[0]) is not held:
            raise refuse(f"memory of {held} read as {to} is not translated", node)
        return Value([], node.type, ref=replace(value.ref, type=to))

    def converted(self, value: Value, to: Type, node) -> Value:
        of = value.type
        if of == to or to is VOID:
            return value
        a, b = scalar_of(of), scalar_of(to)
        if isinstance(of, Scalar) and value.constant is not None and isinstance(to, Scalar):
            return self.literal(value.constant, to, node)
        if b is BOOL:
            zero = self.literal(0, a, node).code
            return Value([f"{value.at_least(SUM)[0]} != {zero}"], BOOL, COMPARISON)
        if isinstance(to, Vector) and isinstance(of, Scalar):
            value = self.converted(value, b, node)
            value = self.keep(value) if length(to) > 4 else value
            kind = self.part_type(to, node)
            return Value([f"{kind}({value.code})"] * len(parts_of(to)), to)
        if self.scalar_type(a, node) == self.scalar_type(b, node):
            return replace(value, type=to)
        kind = self.part_type(to, node)
        span = value.range if b.whole and value.range and value.range[0] >= 0 else None
        return Value([f"{kind}({p})" for p in value.parts], to, range=span)

    def _vectorliteral(self, node):
        values = [self.expression(part) for part in node.parts]
        same = [length(v.type) for v in values] == parts_of(node.type)
        if same:
            return Value([v.code for v in values], node.type, min(v.level for v in values))
        numbers = []
        for value in values:
            if isinstance(value.type, Vector):
                value = self.keep(value)
                numbers += [
                    self.picked(value, [i], value.type.of, node).code for i in range(value.type.n)
                ]
            else:
                numbers.append(value.code)
        return self.assembled(numbers, node.type, node)

    # ---- memory and pointers
    def place(self, node: tree.Node) -> Ref:
        """Where something lies in an array."""
        if isinstance(node, tree.Name):
            entry = self.entries[node.variable]
            assert entry.memory is not None
            return Ref(entry.memory, entry.type)
        if isinstance(node, tree.Index):
            if isinstance(node.array.type, Array):
                return self.element(self.place(node.array), self.whole(node.index))
            return self.further(self.pointee(node.array), self.whole(node.index))
        if isinstance(node, tree.Unary) and node.op == "*":
            return self.pointee(node.operand)
        raise refuse(f"{written(node)} is not translated as something in memory", node)

    def pointee(self, node: tree.Node) -> Ref:
        """What a pointer points to."""
        value = self.expression(node)
        if value.ref is None:
            raise refuse(f"{written(node)} is not translated as a pointer", node)
        return value.ref

    def moved(self, node) -> Value:
        """A pointer plus or minus a number."""
        if node.op not in "+-" or not isinstance(node.type, Pointer):
            raise refuse("pointers are not compared or subtracted in WGSL; use indices", node)
        left, right = self.both(node.left, node.right)
        pointer, number = (left, right) if left.ref is not None else (right, left)
        assert pointer.ref is not None
        sign = 1 if node.op == "+" else -1
        ref = self.further(pointer.ref, self.converted(number, INT, node), sign)
        return Value([], node.type, ref=ref)

    # ---- assignments
    def effect(self, node: tree.Node) -> None:
        """An expression of which only the effects count."""
        if isinstance(node, tree.Assign):
            self.assign(node)
        elif isinstance(node, tree.Step):
            self.step(node)
        elif isinstance(node, tree.Binary) and node.op == ",":
            self.effect(node.left)
            self.effect(node.right)
        else:
            value = self.expression(node)
            if value.type is not VOID:
                self.keep(value)

    def _assign(self, node):
        ref = self.assign(node)
        return self.read(ref, node.target)

    def assign(self, node) -> Ref | None:
        target = node.target
        if isinstance(target.type, Pointer):
            self.move(node)
            return None
        if isinstance(target, tree.Member):
            self.assign_member(node)
            return None
        ref = self.place_of(target)
        value = self.expression(node.value)
        op = node.op
        if op in ("<<", ">>"):
            value = self.converted(value, UINT, node)
        elif op and node.common != target.type:
            old = self.converted(self.read(ref, target), node.common, node)
            value = self.converted(self.operation(op, old, value, node), target.type, node)
            op = ""
        elif op and value.type != target.type:
            value = self.converted(value, target.type, node)
        self.write(ref, target, value, op, node)
        return ref

    def place_of(self, target) -> Ref | None:
        """Where a target lies; None for a variable that is one in WGSL, too."""
        if isinstance(target, tree.Name) and self.entries[target.variable].memory is None:
            return None
        return self.place(target)

    def read(self, ref: Ref | None, target) -> Value:
        return self.expression(target) if ref is None else self.load(ref, target)

    def write(self, ref: Ref | None, target, value: Value, op: str, node) -> None:
        if ref is not None:
            self.store(ref, value, node, op)
            return
        for name, part in zip(self.expression(target).parts, value.parts, strict=True):
            self.emit(f"{name} {op}= {part};")

    def assign_member(self, node) -> None:
        vector = node.target.vector
        ref = self.place_of(vector)
        value = self.keep(self.expression(node.value))
        if ref is None:
            places = self.expression(vector).parts
        else:
            ref.memory.written = True
            found = self.elements(ref, node)
            if [n for _, n in found] != parts_of(ref.type):
                raise refuse("a number of a vector in an array of numbers is not translated", node)
            places = [code for code, _ in found]
        at = node.target.at
        for number, i in enumerate(at):
            piece = value.code
            if len(at) > 1:
                piece = f"{value.parts[number // 4]}.{'xyzw'[number % 4]}"
            self.emit(f"{places[i // 4]}.{'xyzw'[i % 4]} {node.op}= {piece};")

    def move(self, node) -> None:
        """A pointer that is assigned: it must stay in its array."""
        entry = self.entry_of_pointer(node.target)
        assert entry.ref is not None
        unit = entry.ref.terms[0][0]
        if node.op:
            number = self.converted(self.expression(node.value), INT, node)
            code, _, _ = self.sum([(length(entry.ref.type), number)], unit)
            self.emit(f"{entry.at} {node.op}= {code};")
        else:
            ref = self.expression(node.value).ref
            if ref is None or ref.memory is not entry.ref.memory:
                name = entry.ref.memory.name
                raise refuse(f"{written(node.target)} must keep pointing into {name}", node)
            code, got, _ = self.sum(ref.terms, unit)
            if got != unit:
                raise refuse("a pointer that is not aligned is not translated", node)
            self.emit(f"{entry.at} = {code};")

    def entry_of_pointer(self, target) -> Entry:
        if not isinstance(target, tree.Name):
            raise refuse(f"{written(target)} is not translated as a pointer that moves", target)
        return self.entries[target.variable]

    def _step(self, node):
        if node.before:
            self.step(node)
            return self.expression(node.target)
        old = self.expression(node.target)
        if old.ref is not None:
            entry = self.entry_of_pointer(node.target)
            unit = entry.ref.terms[0][0]
            before = self.keep(Value([entry.at], INT, named=False))
            old = replace(old, ref=replace(entry.ref, terms=((unit, before),)))
        else:
            old = self.keep(replace(old, named=False))
        self.step(node)
        return old

    def step(self, node) -> None:
        """++ and --: one more or less."""
        target, of = node.target, node.target.type
        named = isinstance(target, tree.Name) and self.entries[target.variable].value is not None
        if named and isinstance(of, Scalar) and of.whole:
            self.emit(f"{self.entries[target.variable].name}{node.op};")
            return
        one = tree.Number(node.spot, 1, type=INT if isinstance(of, Pointer) else scalar_of(of))
        self.assign(tree.Assign(node.spot, node.op[0], target, one, of, type=of))

    # ---- calls
    def _call(self, node):
        name = node.name
        if node.target is not None:
            return self.own_call(node)
        if name in IDS or name in ("get_local_size", "get_global_size"):
            return self.identifier(node)
        special = getattr(self, f"call_{name}", None)
        if special is not None:
            return special(node)
        for prefix, method in (
            ("vload", self.vector_access),
            ("vstore", self.vector_access),
            ("convert_", self.call_convert),
            ("as_", self.call_as),
        ):
            if name.startswith(prefix):
                return method(node)
        plain_name = name.removeprefix("native_").removeprefix("half_")
        if plain_name in SAME:
            return self.applied(SAME[plain_name], node)
        if name.startswith("atom"):
            raise refuse("atomic functions are not translated", node)
        raise refuse(f"the function {name!r} is not translated", node)

    def own_call(self, node) -> Value:
        raise NotImplementedError

    def applied(self, function: str, node) -> Value:
        values = [self.expression(arg) for arg in node.args]
        if isinstance(node.type, Vector):  # clamp(v, 0.0f, 1.0f)
            values = [self.converted(value, node.type, node) for value in values]
        parts = zip(*(value.parts for value in values), strict=True)
        return Value([f"{function}({', '.join(codes)})" for codes in parts], node.type)

    def call_barrier(self, node) -> Value:
        flags = int(known(node.args[0]) or 0)
        if flags & 1 or not flags:
            self.emit("workgroupBarrier();")
        if flags & 2:
            self.emit("storageBarrier();")
        return Value([], VOID, named=True)

    call_work_group_barrier = call_barrier

    def call_mem_fence(self, node) -> Value:
        self.note(f"{node.name} is left out")
        return Value([], VOID, named=True)

    call_read_mem_fence = call_write_mem_fence = call_prefetch = call_mem_fence

    def call_printf(self, node):
        raise refuse("a GPU in a browser has no printf; the simulator has", node)

    def call_abs(self, node) -> Value:
        value = self.applied("abs", node)
        return self.converted(replace(value, type=node.args[0].type), node.type, node)

    def call_dot(self, node) -> Value:
        a, b = (self.expression(arg) for arg in node.args)
        if length(a.type) == 1:
            return self.operation("*", a, b, node)
        parts = zip(a.parts, b.parts, strict=True)
        return Value([" + ".join(f"dot({x}, {y})" for x, y in parts)], node.type, SUM)

    def identifier(self, node) -> Value:
        which = known(node.args[0])
        if which is None:
            raise refuse(f"{node.name} takes a number that is known before the kernel runs", node)
        at = int(which)
        letter = "xyz"[at]
        if node.name == "get_local_size":
            return self.literal(self.size[at], ULONG, node)
        if node.name == "get_global_size":
            self.ids.add("nwg")
            return Value([f"nwg.{letter} * {self.size[at]}u"], ULONG, PRODUCT)
        short = IDS[node.name]
        self.ids.add(short)
        span = (0, self.size[at] - 1) if short == "lid" else None
        return Value([f"{short}.{letter}"], ULONG, range=span, named=True)

    def call_convert(self, node) -> Value:
        if "_sat" in node.name or "_rt" in node.name:
            raise refuse(f"{node.name} is not translated; convert_{node.type} is", node)
        return self.converted(self.expression(node.args[0]), node.type, node)

    def call_as(self, node) -> Value:
        value = self.expression(node.args[0])
        to = node.type
        if length(to) != length(value.type):
            raise refuse(f"{node.name} of {value.type} is not translated", node)
        kind = self.part_type(to, node)
        return Value([f"bitcast<{kind}>({part})" for part in value.parts], to)

    def vector_access(self, node) -> Value:
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
        return Value([], VOID, named=True)
