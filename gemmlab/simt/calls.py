"""Calls: the functions that OpenCL C has built in, and those that the text defines."""

from __future__ import annotations

import re
from collections.abc import Callable

from . import tree
from .builtins import BARRIERS, FENCES, IDENTIFIERS
from .expressions import Expressions, Pointed
from .meaning import ROUNDINGS, known
from .text import UnknownError
from .tree import written
from .types import (
    HALF,
    INT,
    ULONG,
    VOID,
    Pointer,
    Scalar,
    Type,
    Vector,
    length,
    scalar_of,
    stride,
)
from .values import EACH, EACH_TWO, FUNCTIONS
from .writer import Value

#: Plain names of functions that are the same but for how exact they must be.
_LOOSE = re.compile("(native|half|fast)_")


class Calls(Expressions):
    """One method per function, or family of functions."""

    functions: dict[str, tree.Function]

    def __init__(self) -> None:
        super().__init__()
        self._waits: dict[str, bool] = {}  # by the key of a function

    def _call(self, node: tree.Call) -> Value:
        name = node.name
        if node.target is not None:
            return self.own(node)
        special: Callable[[tree.Call], Value] | None = getattr(self, f"call_{name}", None)
        if special is not None:
            return special(node)
        if name in IDENTIFIERS:
            return self.identifier(node)
        if name in FENCES:
            return Value("None", VOID)
        for prefix, build in self.families.items():
            if name.startswith(prefix):
                return build(self, node)
        plain = _LOOSE.sub("", name)
        if plain in FUNCTIONS and not scalar_of(node.type).whole:
            return self.of_floats(node, plain)
        if plain in EACH or plain in EACH_TWO:
            return self.each(node, plain)
        raise UnknownError(f"the function {name!r}", node.spot)

    def args(self, node: tree.Call) -> list[Value]:
        """The arguments, each computed before the next if that matters."""
        values: list[Value] = []
        for number, arg in enumerate(node.args):
            value = self.expression(arg)
            later = node.args[number + 1 :]
            values.append(value if all(map(self.harmless, later)) else self.named(value))
        return values

    def identifier(self, node: tree.Call) -> Value:
        what = node.name.removeprefix("get_")
        if what == "work_dim":
            return Value("wave.machine.dimensions", node.type)
        (which,) = self.args(node)
        if what == "global_offset":
            return self.number(0, ULONG)
        outside = 1 if what in ("local_size", "global_size", "num_groups") else 0
        one = known(node.args[0])
        if one is None:
            which = self.named(which)
            code = str(outside)
            for d in (2, 1, 0):
                code = f"pick({which.code} == {d}, wave.{what}[{d}], {code})"
            return Value(code, ULONG)
        if not 0 <= one <= 2:
            return self.number(outside, ULONG)
        return Value(f"wave.{what}[{int(one)}]", ULONG)

    def own(self, node: tree.Call) -> Value:
        """A function of the text: a function of Python, which waits at barriers if it has any."""
        function = node.target
        assert function is not None
        given = ", ".join(["wave", "mask", *(v.code for v in self.args(node))])
        wait = "yield from " if self.waits(function) else ""
        return Value(self.keep(f"{wait}f_{function.key}({given})"), function.type)

    def calls(self, function: tree.Function) -> list[tree.Call]:
        assert function.body is not None
        return [n for n in function.body.walk() if isinstance(n, tree.Call)]

    def waits(self, function: tree.Function) -> bool:
        """Whether a function comes to a barrier, or may, as a kernel."""
        if function.key not in self._waits:
            own = [call.target for call in self.calls(function) if call.target]
            names = {call.name for call in self.calls(function) if not call.target}
            at_once = function.kernel or bool(names & {*BARRIERS, "wait_group_events"})
            self._waits[function.key] = at_once or any(map(self.waits, own))
        return self._waits[function.key]

    # ---- by name
    def call_barrier(self, node: tree.Call) -> Value:
        self.args(node)
        flags, copied = known(node.args[0]), node.name == "wait_group_events"
        site = self.site("barrier", node.spot, "barrier")
        self.sites[-1].fence = 3 if flags is None or copied else int(flags)
        self.emit(f"wave.barrier({site}, mask, gone)")
        self.emit(f"yield {site}")
        if copied:
            self.emit("wave.filled()")
        return Value("None", VOID)

    call_work_group_barrier = call_wait_group_events = call_barrier

    def call_async_work_group_copy(self, node: tree.Call) -> Value:
        """All work-items of the group copy together, each some of the elements."""
        to, of, count, *stride_of = self.args(node)[:-1]
        assert isinstance(to.type, Pointer) and isinstance(of.type, Pointer)
        element, text = to.type.to, written(node)
        load, store = (
            self.site(kind, node.spot, text, element, wide=length(element))
            for kind in ("load", "store")
        )
        step = stride_of[0].code if stride_of else "1"
        steps = f"({step}, 1)" if of.type.space == "global" else f"(1, {step})"
        places = f"{of.code}, {to.code}, {count.code}, {steps}, {stride(element)}"
        self.emit(f"wave.copy_together({load}, {store}, {places}, mask)")
        return Value("0", node.type)

    call_async_work_group_strided_copy = call_async_work_group_copy

    def call_prefetch(self, node: tree.Call) -> Value:
        self.args(node)
        return Value("None", VOID)

    def call_fma(self, node: tree.Call) -> Value:
        result = self.of_floats(node, node.name)
        self.multiply_add(node, result.type)
        return result

    call_mad = call_fma

    def call_min(self, node: tree.Call) -> Value:
        return self.extreme(node.type, node.name, *self.args(node))

    call_max = call_min

    def call_clamp(self, node: tree.Call) -> Value:
        x, low, high = self.args(node)
        return self.extreme(node.type, "min", self.extreme(node.type, "max", x, low), high)

    def extreme(self, of: Type, which: str, a: Value, b: Value) -> Value:
        """The smaller or the larger of two numbers, "min" or "max"."""
        if not scalar_of(of).whole:
            return Value(f"np_f{which}({a.code}, {b.code})", of)
        function = "least" if which == "min" else "greatest"
        if scalar_of(of) is ULONG:
            held = f"{function}(unsigned({a.code}), unsigned({b.code}))"
            return Value(f"cut({held}, ulong_type)", of)
        return Value(f"{function}({a.code}, {b.code})", of)

    def call_mul24(self, node: tree.Call) -> Value:
        a, b = self.args(node)
        return self.result(f"({a.code} * {b.code})", node.type, node)

    def call_mad24(self, node: tree.Call) -> Value:
        a, b, c = self.args(node)
        return self.result(f"({a.code} * {b.code} + {c.code})", node.type, node)

    def call_select(self, node: tree.Call) -> Value:
        no, yes, condition = self.args(node)
        asked = (
            self.highest(condition) if isinstance(node.type, Vector) else f"({condition.code} != 0)"
        )
        return Value(f"pick({asked}, {yes.code}, {no.code})", node.type)

    def call_any(self, node: tree.Call) -> Value:
        (x,) = self.args(node)
        if not isinstance(x.type, Vector):
            return self.as_int(Value(f"({x.code} < 0)", INT))
        return self.as_int(Value(f"numbers_of(({x.code} < 0).{node.name}(0))", INT))

    call_all = call_any

    def call_dot(self, node: tree.Call) -> Value:
        a, b = self.args(node)
        if not isinstance(a.type, Vector):
            return Value(f"({a.code} * {b.code})", node.type)
        self.multiply_add(node, a.type)
        return Value(f"dot({a.code}, {b.code})", node.type)

    def call_shuffle(self, node: tree.Call) -> Value:
        *vectors, at = self.args(node)
        codes = ", ".join(v.code for v in vectors)
        widths = [4 if length(v.type) == 3 else length(v.type) for v in vectors]
        return Value(f"shuffled(({codes},), {at.code}, {sum(widths)})", node.type)

    call_shuffle2 = call_shuffle

    def call_printf(self, node: tree.Call) -> Value:
        form, *_ = texts = [tree.plain(arg) for arg in node.args]
        assert isinstance(form, tree.Text)
        codes = ""
        for text, arg in zip(texts[1:], node.args[1:], strict=True):
            if isinstance(text, tree.Text):
                codes += f"{text.value!r}, "
            else:
                codes += f"{self.named(self.expression(arg)).code}, "
        kinds = [(str(scalar_of(arg.type)), length(arg.type)) for arg in node.args[1:]]
        site = self.site("printf", node.spot, written(node))
        self.emit(f"wave.printf({site}, {form.value!r}, ({codes}), {kinds}, mask)")
        return self.number(0, INT)

    # ---- families
    def of_floats(self, node: tree.Call, name: str) -> Value:
        """A function of floats, for all lanes at once."""
        scalar = scalar_of(node.type)
        codes = ", ".join(v.code for v in self.args(node))
        return self.short(Value(f"floating(np_{name}({codes}), {scalar}_type)", node.type))

    def each(self, node: tree.Call, name: str) -> Value:
        """A function that is computed lane by lane, with Python's numbers."""
        values = self.args(node)
        pointer = values.pop() if isinstance(values[-1].type, Pointer) else None
        types = "".join(f"{scalar_of(v.type)}_type, " for v in values)
        codes = "".join(f"{v.code}, " for v in values)
        given = f"{name!r}, ({codes}), ({types}), {scalar_of(node.type)}_type"
        if pointer is None:
            return Value(f"each({given}, {isinstance(node.type, Vector)})", node.type)
        assert isinstance(pointer.type, Pointer)
        of = pointer.type.to
        names = self.keep(f"each_two({given}, {scalar_of(of)}_type)")
        self.emit(self.access("store", Pointed(of, pointer.code), node, f"{names}[1]"))
        return Value(f"{names}[0]", node.type)

    def reinterpreted(self, node: tree.Call) -> Value:
        (value,) = self.args(node)
        of, to = scalar_of(value.type), scalar_of(node.type)
        n = length(node.type) if isinstance(node.type, Vector) else 0
        return Value(f"bits_as({value.code}, {of}_type, {to}_type, {n})", node.type)

    def converted(self, node: tree.Call) -> Value:
        (value,) = self.args(node)
        match = re.search(ROUNDINGS + "$", node.name)
        saturated, rounding = (bool(match[1]), (match[2] or "")[1:]) if match else (False, "")
        of, to = scalar_of(value.type), scalar_of(node.type)
        usual = "rtz" if to.whole else "rte"
        if not saturated and rounding in ("", usual):
            return self.converted_value(value, node.type, node.args[0])
        code = (
            f"converted_by({value.code}, {of}_type, {to}_type, {rounding or usual!r}, {saturated})"
        )
        if to.whole and not of.whole and not saturated:
            site = self.site("overflow", node.spot, written(node))
            rounded = f"rounded_by({value.code}, {of}_type, {rounding!r})"
            code = f"wave.rounded({rounded}, {of}_type, {to}_type, mask, {site})"
        return Value(code, node.type)

    def vector_access(self, node: tree.Call) -> Value:
        """vloadN(i, p) and vstoreN(v, i, p): N numbers from element i*N on, at any address."""
        loads, aligned = node.name.startswith("vload"), node.name.startswith(("vloada", "vstorea"))
        *value, at, base = self.args(node)
        assert isinstance(base.type, Pointer) and isinstance(base.type.to, Scalar)
        held = node.type if loads else value[0].type
        assert isinstance(held, (Scalar, Vector))
        scalar = base.type.to
        to = Vector(scalar, held.n) if isinstance(held, Vector) else scalar
        rounding = re.search("_rt[zpn]$", node.name)
        if rounding:
            raise UnknownError(node.name, node.spot)
        parts = Pointed(to, base.code, at.code)
        if aligned and length(to) == 3:  # as if it had four numbers
            parts = Pointed(to, f"({base.code} + ({at.code})*{4 * scalar.size})")
        if loads:
            code = self.keep(self.access("load", parts, node, packed=True))
            return Value(f"floating({code}, float_type)" if scalar is HALF else code, node.type)
        code = f"floating({value[0].code}, half_type)" if scalar is HALF else value[0].code
        self.emit(self.access("store", parts, node, code, packed=True))
        return Value("None", VOID)

    def atomic(self, node: tree.Call) -> Value:
        op = node.name.split("_", 1)[1]
        pointer, *values = self.args(node)
        codes = ", ".join([v.code for v in values] or ["1"])
        site = self.site("atomic", node.spot, written(node), node.type)
        code = f"wave.atomic({site}, {pointer.code}, {op!r}, ({codes},), mask)"
        return Value(self.keep(code), node.type)

    families: dict[str, Callable] = {
        "as_": reinterpreted, "convert_": converted, "vload": vector_access,
        "vstore": vector_access, "atomic_": atomic, "atom_": atomic,
    }  # fmt: skip
