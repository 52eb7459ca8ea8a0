"""64-bit integers, which WGSL does not have.

They are translated as 32-bit ones. `check` refuses a kernel where that may change a result. The
lower 32 bits of sums, differences, products and bitwise operations do not depend on the upper ones;
so these are never refused, nor are indices and conversions to 32 bits. Operations that do
depend on the upper bits are comparisons, divisions, shifts to the right and conversions to float.
Their operands must fit into 32 bits: by the bounds of their parts, or as index arithmetic, which
starts from the position of a work-item or from a loop's counter.
"""

from __future__ import annotations

from math import inf
from typing import NamedTuple

from .. import tree
from ..arithmetic import COMPARISONS
from ..meaning import known
from ..tree import Expr, plain, written
from ..types import BOOL, INT, UINT, Array, Scalar, Type, Vector, leaf_of
from .memory import refuse

#: The most work-groups that WebGPU launches in a dimension.
MOST_GROUPS = 65535


class Bounds(NamedTuple):
    """The least and the greatest value of an integer, and whether it is index arithmetic."""

    least: float
    most: float
    indexing: bool = False


BIT = Bounds(0, 1)
#: Of what may need all 64 bits.
WIDE = Bounds(-inf, inf)


def wide(of: Type) -> bool:
    """Whether a type is, or consists of, 64-bit integers."""
    return isinstance(of, (Scalar, Vector)) and of.scalar.whole and of.scalar.bits == 64


def narrowed(of: Scalar) -> Bounds:
    """The values that WGSL has for a type of integers."""
    if of.bits == 64:
        of = INT if of.kind == "int" else UINT
    return Bounds(of.least, of.most)


def inside(bounds: Bounds, of: Scalar) -> bool:
    least, most, _ = narrowed(of)
    return least <= bounds.least and bounds.most <= most


def fit(bounds: Bounds, of: Scalar) -> bool:
    """Whether a value of a type is taken to be the same in 32 bits."""
    return bounds.indexing or inside(bounds, of)


def limited(bounds: Bounds, of: Scalar) -> Bounds:
    """The bounds of a result of a type: index arithmetic is taken to remain in 32 bits."""
    if inside(bounds, of):
        return bounds
    if of.bits == 64 and not bounds.indexing:
        return WIDE
    return narrowed(of)._replace(indexing=bounds.indexing)


def union(items: list[Bounds]) -> Bounds:
    least, most = min(b.least for b in items), max(b.most for b in items)
    return Bounds(least, most, all(b.indexing for b in items))


def functions_of(kernel: tree.Function) -> list[tree.Function]:
    """Return a kernel and the functions that it calls, directly or not."""
    found = [kernel]
    for function in found:
        calls = (node.target for node in function.walk() if isinstance(node, tree.Call))
        found += {f: None for f in calls if f is not None and f not in found}
    return found


class Widths:
    """The bounds of a kernel's integers."""

    def __init__(self, kernel: tree.Function):
        self.size = (*kernel.size, 1, 1, 1)[:3]
        self.functions = functions_of(kernel)
        # of each variable: its first values, and its assignments, true for the step of a loop
        self.values: dict[tree.Variable, list[Expr]] = {}
        self.updates: dict[tree.Variable, list[tuple[tree.Assign, bool]]] = {}
        self.returns: dict[tree.Function, list[Expr]] = {}
        self.done: dict[tree.Variable | tree.Function, Bounds] = {}
        for function in self.functions:
            self.collect(function)

    def collect(self, function: tree.Function) -> None:
        steps = {
            id(node)
            for loop in function.walk()
            if isinstance(loop, tree.Loop) and loop.step is not None
            for node in loop.step.walk()
        }
        for node in function.walk():
            if isinstance(node, tree.Declaration) and node.value is not None:
                self.values.setdefault(node.variable, []).append(node.value)
            elif isinstance(node, tree.Assign) and isinstance(node.target, tree.Name):
                update = (node, id(node) in steps)
                self.updates.setdefault(node.target.variable, []).append(update)
            elif isinstance(node, tree.Jump) and node.word == "return" and node.value is not None:
                self.returns.setdefault(function, []).append(node.value)
            elif isinstance(node, tree.Call) and node.target is not None:
                for param, arg in zip(node.target.params, node.args, strict=True):
                    self.values.setdefault(param, []).append(arg)

    # ---- bounds
    def fits(self, node: tree.Node) -> bool:
        """Whether an integer is the same in 32 bits."""
        if not isinstance(node, Expr) or not isinstance(node.type, Scalar) or not wide(node.type):
            return True
        return fit(self.bounds(node), node.type)

    def bounds(self, node: Expr) -> Bounds:
        """The bounds of an expression that is an integer."""
        of = node.type
        if not isinstance(of, Scalar) or not of.whole:
            return WIDE
        value = known(node)
        if value is not None:
            return Bounds(value, value)
        match node:
            case tree.Name(variable=variable) | tree.Assign(target=tree.Name(variable=variable)):
                return self.variable(variable)
            case tree.Call():
                return limited(self.call(node), of)
            case tree.Cast():
                return self.cast(node.operand, of)
            case tree.Binary():
                return self.binary(node.op, node.left, node.right, of)
            case tree.Unary():
                return self.unary(node.op, node.operand, of)
            case tree.Choice():
                return limited(union([self.bounds(node.yes), self.bounds(node.no)]), of)
        return narrowed(of)

    def unary(self, op: str, operand: Expr, of: Scalar) -> Bounds:
        bounds = self.bounds(operand)
        if op == "!":
            return BIT
        if op not in ("-", "~"):
            return bounds
        one = op == "~"
        return limited(Bounds(-bounds.most - one, -bounds.least - one), of)

    def binary(self, op: str, left: Expr, right: Expr, of: Scalar) -> Bounds:
        if op in COMPARISONS or op in ("&&", "||"):
            return BIT
        if op == ",":
            return self.bounds(right)
        a, b = self.bounds(left), self.bounds(right)
        masks = [one.most for one in (a, b) if one.least >= 0 and one.most != inf]
        index = a.indexing or b.indexing
        if op == "&" and masks:
            return Bounds(0, min(masks), index)
        if not fit(a, of) or (not fit(b, of) and op not in ("<<", ">>")):
            return limited(WIDE, of)
        if op in ("<<", ">>"):
            if not 0 <= b.least <= b.most < of.bits:
                return limited(WIDE, of)
            times = 2 ** int(b.least), 2 ** int(b.most)
            ends = [x * t if op == "<<" else x // t for x in a[:2] for t in times]
            return limited(Bounds(min(ends), max(ends), a.indexing), of)
        if op == "+":
            return limited(Bounds(a.least + b.least, a.most + b.most, index), of)
        if op == "-":
            return limited(Bounds(a.least - b.most, a.most - b.least, index), of)
        if op == "*":
            ends = [x * y for x in a[:2] for y in b[:2]]
            return limited(Bounds(min(ends), max(ends), index), of)
        if op in ("/", "%"):  # never further from 0 than the left operand
            least, most = min(a.least, 0), max(a.most, 0)
            if op == "/" and b.least < 0:
                least, most = min(least, -most), max(most, -least)
            return limited(Bounds(least, most, index), of)
        return narrowed(of)._replace(indexing=index)  # & | ^ of two that fit

    def cast(self, operand: Expr, to: Scalar) -> Bounds:
        of = operand.type
        if not isinstance(of, Scalar) or not of.whole:
            return limited(WIDE, to)
        bounds = self.bounds(operand)
        if to is BOOL:
            return BIT
        if to.bits == 64 and to.kind == "uint" and of.kind == "int" and bounds.least < 0:
            bounds = bounds._replace(least=0, most=max(bounds.most, 0))  # sizes are not negative
        return limited(bounds, to)

    def call(self, node: tree.Call) -> Bounds:
        if node.target is not None:
            return self.result(node.target)
        of = node.type.scalar
        if node.name.startswith("get_"):
            which = known(node.args[0]) if node.args else None
            size = self.size[int(which)] if which in (0, 1, 2) else max(self.size)
            most = {
                "get_local_id": size - 1,
                "get_local_size": size,
                "get_group_id": MOST_GROUPS - 1,
                "get_num_groups": MOST_GROUPS,
            }.get(node.name, MOST_GROUPS * size)
            return Bounds(0, most, True)
        if node.name in ("min", "max", "clamp") and all(map(self.fits, node.args)):
            return union([self.bounds(arg) for arg in node.args])
        if node.name.startswith("convert_"):
            return self.cast(node.args[0], of)
        return WIDE if of.bits == 64 else narrowed(of)

    def result(self, function: tree.Function) -> Bounds:
        if function not in self.done:
            of = function.type.scalar
            self.done[function] = limited(WIDE, of)  # while it is computed
            values = [self.bounds(value) for value in self.returns.get(function, ())]
            self.done[function] = limited(union(values), of) if values else narrowed(of)
        return self.done[function]

    def variable(self, variable: tree.Variable) -> Bounds:
        if variable not in self.done:
            of = variable.type.scalar
            self.done[variable] = limited(WIDE, of)  # while it is computed
            self.done[variable] = limited(self.history(variable, of), of)
        return self.done[variable]

    def history(self, variable: tree.Variable, of: Scalar) -> Bounds:
        """The bounds of all values that a variable has."""
        values = [self.bounds(value) for value in self.values.get(variable, ())]
        if not values or variable.addressed:  # an argument of the kernel, or stored to by pointers
            values.append(narrowed(of))
        counts = False
        for node, step in self.updates.get(variable, ()):
            op, value = node.op, node.value
            again = plain(value)
            if not op and isinstance(again, tree.Binary):  # v = v + 1 is v += 1
                first = plain(again.left)
                if isinstance(first, tree.Name) and first.variable is variable:
                    op, value = again.op, again.right
            if not op:
                values.append(self.bounds(value))
            elif self.counts(op, value, step):
                counts = True
            else:
                return WIDE
        if not all(fit(b, of) for b in values):
            return WIDE
        return narrowed(of)._replace(indexing=True) if counts else union(values)

    def counts(self, op: str, value: Expr, step: bool) -> bool:
        """Whether an update keeps a counter in 32 bits, as index arithmetic does."""
        if not self.fits(value):
            return False
        if op in ("+", "-"):
            return step or known(value) is not None or self.bounds(value).indexing
        if op in ("*", "<<"):
            return step
        return True

    # ---- what is refused
    def check(self) -> None:
        for function in self.functions:
            self.check_node(function)

    def check_node(self, node: tree.Node) -> None:
        for child in node.children():
            self.check_node(child)
        self.check_types(node)
        for one in self.dependent(node):
            if not self.fits(one):
                raise refuse(f"{written(one)} may need more than the 32 bits of WGSL", one)
        self.check_shift(node)

    def check_types(self, node: tree.Node) -> None:
        """64-bit vectors, memory, and what becomes a 64-bit integer only by a conversion."""
        if isinstance(node, tree.Cast) and known(node) is None:
            of = node.operand.type
            if wide(node.type) and isinstance(of, Scalar) and not of.whole:
                raise refuse(f"{of} to {node.type} is not translated; convert to int", node)
        if isinstance(node, Expr) and isinstance(node.type, Vector) and wide(node.type):
            raise refuse(f"WGSL has no {node.type}", node)
        if isinstance(node, tree.Declaration):
            variable = node.variable
            leaf, _ = leaf_of(variable.type)
            shared = variable.space == "local" or variable.addressed
            if wide(leaf) and (shared or isinstance(variable.type, Array)):
                raise refuse(f"{variable.name!r}: WGSL has no memory of {leaf}", node)

    def dependent(self, node: tree.Node) -> list[tree.Node]:
        """The operands on whose upper bits a result depends."""
        match node:
            case tree.Binary(op=op) if op in ("/", "%", "&&", "||") or op in COMPARISONS:
                return [node.left, node.right]
            case tree.Binary(op=">>"):
                return [node.left]
            case tree.Assign(op=op) if op in ("/", "%"):
                return [node.target, node.value]
            case tree.Assign(op=">>"):
                return [node.target]
            case tree.Unary(op="!"):
                return [node.operand]
            case tree.If() | tree.Choice():
                return [node.condition]
            case tree.Loop() if node.condition is not None:
                return [node.condition]
            case tree.Cast() if not node.type.scalar.whole or node.type is BOOL:
                return [node.operand]
            case tree.Call(target=None):
                return self.dependent_arguments(node)
        return []

    def dependent_arguments(self, node: tree.Call) -> list[tree.Node]:
        """The arguments of a built-in function on whose upper bits its result depends."""
        if node.name in ("min", "max", "clamp", "abs"):
            return list(node.args)
        if node.name.startswith("convert_"):
            if wide(node.type) and not node.args[0].type.scalar.whole:
                raise refuse(f"{node.name} of a float is not translated; use convert_int", node)
            return [] if node.type.scalar.whole else list(node.args)
        if node.name in ("popcount", "clz") and wide(node.type):
            raise refuse(f"{node.name} of 64-bit integers is not translated", node)
        return []

    def check_shift(self, node: tree.Node) -> None:
        """A shift by 32 bits or more moves the upper half."""
        if isinstance(node, tree.Binary):
            of, count = node.type, node.right
        elif isinstance(node, tree.Assign):
            of, count = node.common, node.value
        else:
            return
        if node.op in ("<<", ">>") and wide(of) and known(node) is None:
            least, most, _ = self.bounds(count)
            if not 0 <= least <= most < 32:
                raise refuse(f"{written(node)} may need more than the 32 bits of WGSL", node)


def check(kernel: tree.Function) -> None:
    """Refuse a kernel whose 64-bit integers do not do the same in 32 bits.

    Raises:
        RefusedError: names the first such expression, with its line.
    """
    Widths(kernel).check()
