"""Calls: the functions that OpenCL C has built in, and those that the text defines."""

from __future__ import annotations

import re
from collections.abc import Callable

from . import tree
from .expressions import Expressions, Pointed
from .text import near
from .tree import written
from .types import FLOAT, INT, UINT, ULONG, VOID, Pointer, Scalar, Type, Vector, an, length, named, scalar_of
from .values import ATOMICS, FUNCTIONS
from .writer import Value

IDENTIFIERS = {
    "get_global_id": "global_id", "get_local_id": "local_id", "get_group_id": "group_id",
    "get_local_size": "local_size", "get_global_size": "global_size", "get_num_groups": "num_groups",
}  # fmt: skip
FENCES = {"mem_fence", "read_mem_fence", "write_mem_fence", "prefetch"}


class Calls(Expressions):
    """One method per function, or family of functions."""

    functions: dict[str, tree.Function]

    def _call(self, node: tree.Call) -> Value:
        name = node.name
        if name in self.functions:
            return self.own(node)
        known: Callable[[tree.Call], Value] | None = getattr(self, f"call_{name}", None)
        if known is not None:
            return known(node)
        if name in IDENTIFIERS:
            return self.identifier(node)
        if name in FENCES:
            return Value("None", VOID)
        if re.fullmatch(r"v(load|store)(2|3|4|8|16)", name):
            return self.vector_access(node)
        if name.startswith(("atomic_", "atom_")) and name.split("_", 1)[1] in ATOMICS:
            return self.atomic(node)
        if name.startswith("as_") and named(name[3:]):
            return self.reinterpreted(node)
        if name.startswith("convert_"):
            return self.converted(node)
        plain = name.removeprefix("native_").removeprefix("half_")
        if plain in FUNCTIONS:
            return self.of_floats(node, plain, getattr(FUNCTIONS[plain], "nin", 1))
        every = [*self.functions, *IDENTIFIERS, *FUNCTIONS, *FENCES]
        every += [n.removeprefix("call_") for n in dir(self) if n.startswith("call_")]
        self.fail(node, f"the function {name!r} is not known{near(name, every)}")

    def takes(self, node: tree.Call, count: int) -> None:
        if len(node.args) != count:
            self.fail(node, f"{node.name} takes {count} argument{'s' * (count != 1)}, not {len(node.args)}")

    def args(self, node: tree.Call, count: int) -> list[Value]:
        self.takes(node, count)
        return [self.expression(arg) for arg in node.args]

    def numbers(self, node: tree.Call, count: int) -> list[Value]:
        return [self.promoted(value, arg) for value, arg in zip(self.args(node, count), node.args, strict=True)]

    def identifier(self, node: tree.Call) -> Value:
        (which,) = self.args(node, 1)
        if which.constant not in (0, 1, 2):
            self.fail(node, f"{node.name} takes 0, 1 or 2")
        return Value(f"wave.{IDENTIFIERS[node.name]}[{int(which.constant)}]", ULONG)

    def own(self, node: tree.Call) -> Value:
        """A function of the text: a function of Python, which waits at barriers if it has any."""
        function = self.functions[node.name]
        values = self.args(node, len(function.params))
        given = [self.convert(v, p.type, a).code for v, p, a in zip(values, function.params, node.args, strict=True)]
        wait = "yield from " if self.waits(node.name) else ""
        return Value(self.keep(f"{wait}f_{node.name}({', '.join(['wave', 'mask', *given])})"), function.type)

    def calls(self, name: str) -> list[str]:
        """What a function of the text calls, each once, in order."""
        return list(dict.fromkeys(n.name for n in self.functions[name].body.walk() if isinstance(n, tree.Call)))

    def waits(self, name: str) -> bool:
        """Whether this is a barrier, or a function that comes to one."""
        if name not in self.functions:
            return name in ("barrier", "work_group_barrier")
        return any(self.waits(callee) for callee in self.calls(name))

    # ---- by name
    def call_barrier(self, node: tree.Call) -> Value:
        if len(node.args) not in (1, 2):
            self.fail(node, f"{node.name} takes 1 argument, such as CLK_LOCAL_MEM_FENCE, not {len(node.args)}")
        for arg in node.args:
            self.expression(arg)
        site = self.site("barrier", node.spot, "barrier")
        self.emit(f"wave.barrier({site}, mask, gone)")
        self.emit(f"yield {site}")
        return Value("None", VOID)

    call_work_group_barrier = call_barrier

    def call_fma(self, node: tree.Call) -> Value:
        result = self.of_floats(node, "fma", 3)
        self.multiply_add(node, result.type)
        return result

    call_mad = call_fma

    def call_min(self, node: tree.Call) -> Value:
        a, b, to = self.common(node.name, node, *self.numbers(node, 2))
        function = "least" if node.name == "min" else "greatest"
        if scalar_of(to) is ULONG:
            return Value(f"cut({function}(unsigned({a.code}), unsigned({b.code})), ulong_type)", to)
        return Value(f"{function}({a.code}, {b.code})", to)

    call_max = call_min

    def call_clamp(self, node: tree.Call) -> Value:
        self.takes(node, 3)
        x, low, high = node.args
        return self.expression(tree.Call(node.spot, "min", [tree.Call(node.spot, "max", [x, low]), high]))

    def call_abs(self, node: tree.Call) -> Value:
        (value,) = self.numbers(node, 1)
        if not scalar_of(value.type).whole:
            self.fail(node, f"abs is for whole numbers, not for {an(value.type)}; fabs is for floats")
        to = UINT if scalar_of(value.type).size == 4 else ULONG
        return Value(f"abs({value.code})", to if isinstance(value.type, Scalar) else Vector(to, length(value.type)))

    def call_mul24(self, node: tree.Call) -> Value:
        self.takes(node, 2)
        return self.expression(tree.Binary(node.spot, "*", *node.args))

    def call_mad24(self, node: tree.Call) -> Value:
        self.takes(node, 3)
        a, b, c = node.args
        return self.expression(tree.Binary(node.spot, "+", tree.Binary(node.spot, "*", a, b), c))

    def call_select(self, node: tree.Call) -> Value:
        no, yes, condition = self.args(node, 3)
        to = self.either(node, yes, no)
        yes, no = self.convert(yes, to, node.args[1]), self.convert(no, to, node.args[0])
        by_element = isinstance(condition.type, Vector)
        asked = f"{condition.code} < 0" if by_element else self.convert(condition, INT, node.args[2]).code + " != 0"
        return Value(f"pick({asked}, {yes.code}, {no.code})", to)

    def call_dot(self, node: tree.Call) -> Value:
        a, b = self.args(node, 2)
        if not isinstance(a.type, Vector) or a.type != b.type or a.type.of.whole:
            self.fail(node, f"dot takes two vectors of floats, not {an(a.type)} and {an(b.type)}")
        self.multiply_add(node, a.type)
        return Value(f"dot({a.code}, {b.code})", a.type.of)

    def call_printf(self, node: tree.Call) -> Value:
        if not node.args or not isinstance(node.args[0], tree.Text):
            self.fail(node, "printf takes a text first")
        codes = [self.expression(arg).code for arg in node.args[1:]]
        self.emit(f"wave.printf({node.args[0].value!r}, ({''.join(c + ', ' for c in codes)}), mask)")
        return Value("None", VOID)

    # ---- families
    def of_floats(self, node: tree.Call, name: str, count: int) -> Value:
        """A function of floats, in the type of the vector among its arguments, or of the largest float."""
        values = self.numbers(node, count)
        floats = [scalar_of(v.type) for v in values if not scalar_of(v.type).whole]
        to: Type = max(floats, key=lambda t: t.rank, default=FLOAT)
        to = next((v.type for v in values if isinstance(v.type, Vector)), to)
        codes = ", ".join(self.convert(v, to, a).code for v, a in zip(values, node.args, strict=True))
        return Value(f"floating({name}({codes}), {scalar_of(to)}_type)", to)

    def reinterpreted(self, node: tree.Call) -> Value:
        to = named(node.name[3:])
        assert to is not None
        (value,) = self.numbers(node, 1)
        of = scalar_of(value.type)
        if of.size != scalar_of(to).size or length(value.type) != length(to):
            self.fail(node, f"{node.name} of {an(value.type)}: the sizes differ")
        return Value(f"bits_as({value.code}, {of}_type, {scalar_of(to)}_type)", to)

    def converted(self, node: tree.Call) -> Value:
        to = named(node.name.removeprefix("convert_"))
        (value,) = self.args(node, 1)
        if to is None or length(to) != length(value.type):
            self.fail(node, f"{node.name} of {an(value.type)} is not known to this simulator")
        return self.convert(value, to, node.args[0], cast=True)

    def vector_access(self, node: tree.Call) -> Value:
        """vloadN(i, p) and vstoreN(v, i, p): N numbers from element i*N on, which may begin anywhere."""
        loads = node.name.startswith("vload")
        self.takes(node, 2 if loads else 3)
        *value, index, pointer = node.args
        base, at = self.expression(pointer), self.promoted(self.expression(index), index)
        of = base.type.to if isinstance(base.type, Pointer) else base.type
        if not isinstance(base.type, Pointer) or not isinstance(of, Scalar):
            self.fail(node, f"{node.name} takes a pointer to numbers, not to {an(of)}")
        to = Vector(of, int(re.sub(r"\D", "", node.name)))
        place = Pointed(to, base.code, at.code)
        if loads:
            return Value(self.keep(self.access("load", place, node, packed=True)), to)
        stored = self.convert(self.expression(value[0]), to, value[0])
        self.emit(self.access("store", place, node, stored.code, packed=True))
        return Value("None", VOID)

    def atomic(self, node: tree.Call) -> Value:
        op = node.name.split("_", 1)[1]
        self.takes(node, {"inc": 1, "dec": 1, "cmpxchg": 3}.get(op, 2))
        pointer = self.expression(node.args[0])
        to = pointer.type.to if isinstance(pointer.type, Pointer) else VOID
        if not isinstance(to, Scalar) or not (to.whole or op == "xchg"):
            self.fail(node, f"{node.name} takes a pointer to int or uint, not {an(pointer.type)}")
        codes = [self.convert(self.expression(a), to, a).code for a in node.args[1:]] or ["1"]
        site = self.site("atomic", node.spot, written(node), to)
        return Value(self.keep(f"wave.atomic({site}, {pointer.code}, {op!r}, ({', '.join(codes)},), mask)"), to)
