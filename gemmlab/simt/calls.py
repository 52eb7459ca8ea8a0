"""Calls: the functions that OpenCL C has built in, and those that the text defines."""

from __future__ import annotations

import re
from collections.abc import Callable

from . import tree
from .expressions import Expressions, Place, full, held_as
from .text import near
from .tree import written
from .types import (
    BOOL,
    DOUBLE,
    FLOAT,
    INT,
    UINT,
    ULONG,
    VOID,
    Pointer,
    Scalar,
    Type,
    Vector,
    an,
    length,
    named,
    scalar_of,
)  # fmt: skip
from .values import FUNCTIONS
from .writer import Value

IDENTIFIERS = {
    "get_global_id": "global_id", "get_local_id": "local_id", "get_group_id": "group_id",
    "get_local_size": "local_size", "get_global_size": "global_size", "get_num_groups": "num_groups",
    "get_global_offset": "global_offset",
}  # fmt: skip
FENCES = {"mem_fence", "read_mem_fence", "write_mem_fence", "prefetch"}
ATOMICS = {"add": 1, "sub": 1, "inc": 0, "dec": 0, "min": 1, "max": 1, "and": 1, "or": 1, "xor": 1, "xchg": 1,
           "cmpxchg": 2}  # fmt: skip
_VECTOR_ACCESS = re.compile(r"v(load|store)(2|3|4|8|16)")


class Calls(Expressions):
    """One method per family of functions."""

    functions: dict[str, tree.Function]

    def _call(self, node: tree.Call) -> Value:
        name = node.name
        if name in self.functions:
            return self.own(node)
        if name in IDENTIFIERS:
            return self.identifier(node)
        known: Callable[[tree.Call], Value] | None = getattr(self, f"call_{name}", None)
        if known is not None:
            return known(node)
        if name in FENCES:
            return Value("None", VOID)
        if _VECTOR_ACCESS.fullmatch(name):
            return self.vector_access(node)
        if name.startswith(("atomic_", "atom_")) and name.split("_", 1)[1] in ATOMICS:
            return self.atomic(node)
        if name.startswith("as_") and named(name[3:]):
            return self.reinterpreted(node)
        if name.startswith("convert_"):
            return self.converted(node)
        plain = name.removeprefix("native_").removeprefix("half_")
        if plain in FUNCTIONS:
            return self.of_floats(node, plain)
        every = [*self.functions, *IDENTIFIERS, *FUNCTIONS, *FENCES]
        every += [n.removeprefix("call_") for n in dir(self) if n.startswith("call_")]
        self.fail(node, f"the function {name!r} is not known{near(name, every)}")

    def args(self, node: tree.Call, count: int) -> list[Value]:
        if len(node.args) != count:
            self.fail(node, f"{node.name} takes {count} argument{'s' * (count != 1)}, not {len(node.args)}")
        return [self.expression(arg) for arg in node.args]

    def identifier(self, node: tree.Call) -> Value:
        (which,) = self.args(node, 1)
        if which.constant not in (0, 1, 2):
            self.fail(node, f"{node.name} takes 0, 1 or 2")
        return Value(f"wave.{IDENTIFIERS[node.name]}[{int(which.constant)}]", ULONG, None, 31)

    def own(self, node: tree.Call) -> Value:
        """A function of the text: a function of Python, which waits at barriers if it has any."""
        function = self.functions[node.name]
        values = self.args(node, len(function.params))
        codes = []
        for value, param, arg in zip(values, function.params, node.args, strict=True):
            assert isinstance(param, tree.Declaration)
            codes.append(f", {self.convert(value, param.type, arg).code}")
        wait = "yield from " if self.waits(function) else ""
        result = self.keep(f"{wait}f_{node.name}(wave, mask{''.join(codes)})")
        return Value(result, function.type, None, full(function.type) if isinstance(
            function.type, (Scalar, Vector)) else 64)  # fmt: skip

    def waits(self, function: tree.Function) -> bool:
        """Whether a function, or one that it calls, has a barrier."""
        calls = {n.name for n in function.body.walk() if isinstance(n, tree.Call)}
        return bool(calls & {"barrier", "work_group_barrier"}) or any(
            self.waits(self.functions[name]) for name in calls if name in self.functions
        )

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

    def call_get_work_dim(self, node: tree.Call) -> Value:
        self.args(node, 0)
        return Value("wave.dimensions", UINT, None, 2)

    def call_fma(self, node: tree.Call) -> Value:
        values = [self.promoted(v, a) for v, a in zip(self.args(node, 3), node.args, strict=True)]
        to = self.floats(values)
        codes = ", ".join(self.convert(v, to, a).code for v, a in zip(values, node.args, strict=True))
        self.multiply_add(node, to)
        return Value(f"fma({codes}, {held_as(to)})", to)

    call_mad = call_fma

    def floats(self, values: list[Value]) -> Type:
        """The type in which a function of floats computes."""
        vectors = [v.type for v in values if isinstance(v.type, Vector)]
        if vectors:
            return vectors[0]
        scalars = [scalar_of(v.type) for v in values if not scalar_of(v.type).whole]
        return max(scalars, key=lambda t: t.rank) if scalars else FLOAT

    def smaller_or_larger(self, node: tree.Call) -> Value:
        one, other = self.args(node, 2)
        a, b, to = self.common(node.name, one, other, node)
        a, b = self.fitted(a, node.args[0]), self.fitted(b, node.args[1])
        function = "least" if node.name == "min" else "greatest"
        if scalar_of(to) is ULONG and max(a.bits, b.bits) > 63:
            return Value(f"signed({function}(unsigned({a.code}), unsigned({b.code})))", to)
        return Value(f"{function}({a.code}, {b.code})", to, None, max(a.bits, b.bits))

    call_min = call_max = smaller_or_larger

    def call_clamp(self, node: tree.Call) -> Value:
        if len(node.args) != 3:
            self.fail(node, f"clamp takes 3 arguments, not {len(node.args)}")
        x, low, high = node.args
        return self.expression(tree.Call(node.spot, "min", [tree.Call(node.spot, "max", [x, low]), high]))

    def call_abs(self, node: tree.Call) -> Value:
        (value,) = self.args(node, 1)
        value = self.fitted(self.promoted(value, node.args[0]), node.args[0])
        if not scalar_of(value.type).whole:
            self.fail(node, f"abs is for whole numbers, not for {an(value.type)}; fabs is for floats")
        to = UINT if scalar_of(value.type).size == 4 else ULONG
        return Value(f"abs({value.code})", to if isinstance(value.type, Scalar) else Vector(to, length(value.type)))

    def call_mul24(self, node: tree.Call) -> Value:
        a, b = (self.promoted(v, x) for v, x in zip(self.args(node, 2), node.args, strict=True))
        return self.operation("*", a, b, node, *node.args)

    def call_mad24(self, node: tree.Call) -> Value:
        a, b, c = (self.promoted(v, x) for v, x in zip(self.args(node, 3), node.args, strict=True))
        product = self.operation("*", a, b, node, *node.args[:2])
        return self.operation("+", product, c, node, tree.Call(node.spot, "mul24", node.args[:2]), node.args[2])

    def call_select(self, node: tree.Call) -> Value:
        no, yes, condition = self.args(node, 3)
        to = self.either(yes, no, node)
        yes, no = self.convert(yes, to, node.args[1]), self.convert(no, to, node.args[0])
        if isinstance(condition.type, Vector):
            return Value(f"pick({condition.code} < 0, {yes.code}, {no.code})", to, None, full(to))
        asked = self.convert(condition, BOOL, node.args[2])
        return Value(f"pick({asked.code}, {yes.code}, {no.code})", to, None, full(to))

    def call_dot(self, node: tree.Call) -> Value:
        a, b = self.args(node, 2)
        if not isinstance(a.type, Vector) or a.type != b.type or a.type.of.whole:
            self.fail(node, f"dot takes two vectors of floats, not {an(a.type)} and {an(b.type)}")
        self.multiply_add(node, a.type)
        return Value(f"dot({a.code}, {b.code})", a.type.of)

    def call_printf(self, node: tree.Call) -> Value:
        if not node.args or not isinstance(node.args[0], tree.Text):
            self.fail(node, "printf takes a text first")
        codes = [self.fitted(self.expression(arg), arg).code for arg in node.args[1:]]
        self.emit(f"wave.printf({node.args[0].value!r}, ({''.join(c + ', ' for c in codes)}), mask)")
        return Value("None", VOID)

    # ---- families
    def of_floats(self, node: tree.Call, name: str) -> Value:
        count = 2 if name in ("pow", "fmod", "fmin", "fmax", "copysign") else 1
        values = [self.promoted(v, a) for v, a in zip(self.args(node, count), node.args, strict=True)]
        to = self.floats(values)
        codes = ", ".join(self.convert(v, to, a).code for v, a in zip(values, node.args, strict=True))
        return Value(f"floating({name}({codes}), {held_as(to)})", to)

    def reinterpreted(self, node: tree.Call) -> Value:
        to = named(node.name[3:])
        assert to is not None
        (value,) = self.args(node, 1)
        value = self.fitted(self.promoted(value, node.args[0]), node.args[0])
        if scalar_of(value.type).size != scalar_of(to).size or length(value.type) != length(to):
            self.fail(node, f"{node.name} of {an(value.type)}: the sizes differ")
        of = scalar_of(value.type)
        return Value(f"bits_as({value.code}, {of.name}_type, {scalar_of(to).name}_type)", to, None, full(to))

    def converted(self, node: tree.Call) -> Value:
        to = named(re.sub(r"(_sat)?(_rt[ezpn])?$", "", node.name[8:]))
        (value,) = self.args(node, 1)
        if to is None or length(to) != length(value.type) or "_sat" in node.name or "_rt" in node.name:
            self.fail(node, f"{node.name} of {an(value.type)} is not known to this simulator")
        if isinstance(value.type, Scalar) and value.type is BOOL:
            value = self.convert(value, INT, node)
        return self.convert(value, to, node.args[0], cast=True)

    def vector_access(self, node: tree.Call) -> Value:
        """vloadN(i, p) and vstoreN(v, i, p): N numbers from element i*N on, which may begin anywhere."""
        loads, n = node.name.startswith("vload"), int(node.name.lstrip("vloadstre"))
        if len(node.args) != (2 if loads else 3):
            self.fail(node, f"{node.name} takes {2 if loads else 3} arguments, not {len(node.args)}")
        at = self.pointer(node.args[-1])
        if at.kind == "array":
            at = Place("pointer", at.type.of, at.name, base=self.address(at, node))  # type: ignore[union-attr]
        if not isinstance(at.type, Scalar):
            self.fail(node, f"{node.name} takes a pointer to numbers, not to {an(at.type)}")
        index = self.promoted(self.expression(node.args[-2]), node.args[-2])
        of = Vector(at.type, n)
        base = self.address(at, node)
        place = Place("pointer", of, at.name, base=base, index=index.code)
        if loads:
            return Value(self.keep(self.access("load", place, node, packed=True)), of, None, full(of))
        value = self.convert(self.expression(node.args[0]), of, node.args[0])
        self.emit(self.access("store", place, node, value.code, packed=True))
        return Value("None", VOID)

    def atomic(self, node: tree.Call) -> Value:
        op = node.name.split("_", 1)[1]
        if len(node.args) != ATOMICS[op] + 1:
            self.fail(node, f"{node.name} takes {ATOMICS[op] + 1} arguments, not {len(node.args)}")
        pointer = self.expression(node.args[0])
        to = pointer.type.to if isinstance(pointer.type, Pointer) else VOID
        if not isinstance(to, Scalar) or not (to.whole or op == "xchg"):
            self.fail(node, f"{node.name} takes a pointer to int or uint, not {an(pointer.type)}")
        codes = [self.convert(self.expression(a), to, a).code for a in node.args[1:]] or ["1"]
        site = self.site("atomic", node.spot, written(node), to)
        result = self.keep(f"wave.atomic({site}, {pointer.code}, {op!r}, ({', '.join(codes)},), mask)")
        return Value(result, to, None, full(to))


#: Names that the Python text of a kernel finds beside those of `values`: the types of numbers.
TYPES = {s.name: s.dtype.type for s in (DOUBLE, FLOAT, named("half")) if isinstance(s, Scalar)}
