"""Calls: the functions that OpenCL C has built in, and those that the text defines."""

from __future__ import annotations

import re
from collections.abc import Callable

from . import tree
from .builtins import BARRIERS, FENCES, IDENTIFIERS
from .expressions import Expressions, Place
from .meaning import known
from .text import UnknownError
from .tree import written
from .types import HALF, ULONG, Pointer, Scalar, Vector, length, scalar_of, stride
from .values import EACH, FUNCTIONS, WHOLE

#: Plain names of functions that are the same but for how exact they must be.
_LOOSE = re.compile("(native|half|fast)_")


class Calls(Expressions):
    """One method per function, or family of functions."""

    functions: dict[str, tree.Function]

    def __init__(self) -> None:
        super().__init__()
        self._waits: dict[str, bool] = {}  # by the key of a function

    def _call(self, node: tree.Call) -> str:
        name = node.name
        if node.target is not None:
            return self.own(node, node.target)
        special: Callable[[tree.Call], str] | None = getattr(self, f"call_{name}", None)
        if special is not None:
            return special(node)
        if name in IDENTIFIERS:
            return self.identifier(node)
        for prefix, build in self.families.items():
            if name.startswith(prefix):
                return build(self, node)
        plain = _LOOSE.sub("", name)
        if plain in FUNCTIONS and not scalar_of(node.type).whole:
            return self.floating(node, plain)
        if plain in WHOLE:
            return self.whole(node, WHOLE[plain].__name__)
        if plain in EACH:
            return self.each(node, plain)
        if name not in FENCES:
            raise UnknownError(f"the function {name!r}", node.spot)
        self.args(node)
        return "None"

    def args(self, node: tree.Call) -> list[str]:
        """The arguments, each computed before the next if that matters."""
        values: list[str] = []
        for number, arg in enumerate(node.args):
            code = self.expression(arg)
            later = node.args[number + 1 :]
            values.append(code if all(map(self.harmless, later)) else self.named(code))
        return values

    def identifier(self, node: tree.Call) -> str:
        what = node.name.removeprefix("get_")
        if what == "work_dim":
            return "wave.machine.dimensions"
        which, one = self.args(node)[0], known(node.args[0])
        if what == "global_offset":
            return "0"
        outside = "1" if what in ("local_size", "global_size", "num_groups") else "0"
        if one is not None:
            return f"wave.{what}[{int(one)}]" if 0 <= one <= 2 else outside
        which, code = self.named(which), outside
        for d in (2, 1, 0):
            code = f"pick({which} == {d}, wave.{what}[{d}], {code})"
        return code

    def own(self, node: tree.Call, function: tree.Function) -> str:
        """A function of the text: a function of Python, which waits at barriers if it has any."""
        given = ", ".join(["wave", "mask", *self.args(node)])
        wait = "yield from " if self.waits(function) else ""
        return self.keep(f"{wait}f_{function.key}({given})")

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
    def call_barrier(self, node: tree.Call) -> str:
        self.args(node)
        flags, copied = known(node.args[0]), node.name == "wait_group_events"
        fence = 3 if flags is None or copied else int(flags)
        site = self.site("barrier", node.spot, "barrier", fence=fence)
        self.emit(f"wave.barrier({site}, mask, gone)")
        self.emit(f"yield {site}")
        if copied:
            self.emit("wave.filled()")
        return "None"

    call_work_group_barrier = call_wait_group_events = call_barrier

    def call_async_work_group_copy(self, node: tree.Call) -> str:
        """All work-items of the group copy together, each some of the elements."""
        to, of, count, *stride_of = self.args(node)[:-1]
        target, source = (arg.type for arg in node.args[:2])
        assert isinstance(target, Pointer) and isinstance(source, Pointer)
        element, text = target.to, written(node)
        load, store = (
            self.site(kind, node.spot, text, element, wide=length(element))
            for kind in ("load", "store")
        )
        step = stride_of[0] if stride_of else "1"
        steps = f"({step}, 1)" if source.space == "global" else f"(1, {step})"
        places = f"{of}, {to}, {count}, {steps}, {stride(element)}"
        self.emit(f"wave.copy_together({load}, {store}, {places}, mask)")
        return "0"

    call_async_work_group_strided_copy = call_async_work_group_copy

    def call_fma(self, node: tree.Call) -> str:
        result = self.floating(node, node.name)
        self.multiply_add(node, node.type)
        return result

    call_mad = call_fma

    def call_mul24(self, node: tree.Call) -> str:
        a, b, *c = self.args(node)
        return self.result(f"({a} * {b}{f' + {c[0]}' if c else ''})", node.type, node)

    call_mad24 = call_mul24

    def call_select(self, node: tree.Call) -> str:
        no, yes, condition = self.args(node)
        of = node.args[2].type
        chosen = self.highest(condition, of) if isinstance(of, Vector) else f"({condition} != 0)"
        return f"pick({chosen}, {yes}, {no})"

    def call_any(self, node: tree.Call) -> str:
        (x,) = self.args(node)
        if not isinstance(node.args[0].type, Vector):
            return self.as_int(f"({x} < 0)")
        return self.as_int(f"numbers_of(({x} < 0).{node.name}(0))")

    call_all = call_any

    def call_dot(self, node: tree.Call) -> str:
        a, b = self.args(node)
        of = node.args[0].type
        if not isinstance(of, Vector):
            return f"({a} * {b})"
        self.multiply_add(node, of)
        return f"dot({a}, {b})"

    def call_shuffle(self, node: tree.Call) -> str:
        *vectors, at = self.args(node)
        widths = [4 if length(v.type) == 3 else length(v.type) for v in node.args[:-1]]
        return f"shuffled(({', '.join(vectors)},), {at}, {sum(widths)})"

    call_shuffle2 = call_shuffle

    def call_printf(self, node: tree.Call) -> str:
        form, *_ = texts = [tree.plain(arg) for arg in node.args]
        assert isinstance(form, tree.Text)
        codes = ""
        for text, arg in zip(texts[1:], node.args[1:], strict=True):
            if isinstance(text, tree.Text):
                codes += f"{text.value!r}, "
            else:
                codes += f"{self.named(self.expression(arg))}, "
        kinds = [str(scalar_of(arg.type)) for arg in node.args[1:]]
        site = self.site("printf", node.spot, written(node))
        self.emit(f"wave.printf({site}, {form.value!r}, ({codes}), {kinds}, mask)")
        return "0"

    # ---- families
    def floating(self, node: tree.Call, name: str) -> str:
        """A function of floats, for all lanes at once."""
        codes = ", ".join(self.args(node))
        return self.short(f"floating(np_{name}({codes}), {scalar_of(node.type)}_type)")

    def whole(self, node: tree.Call, name: str) -> str:
        """A function of whole numbers, for all lanes at once."""
        codes = self.args(node)
        if scalar_of(node.type) is not ULONG:
            return f"{name}({', '.join(codes)})"
        return f"cut({name}({', '.join(f'unsigned({code})' for code in codes)}), ulong_type)"

    def each(self, node: tree.Call, name: str) -> str:
        """A function that is computed lane by lane, with Python's numbers."""
        codes, types = self.args(node), [arg.type for arg in node.args]
        results = f"{scalar_of(node.type)}_type, "
        of = types[-1].to if isinstance(types[-1], Pointer) else None
        pointer = codes.pop() if of else ""  # to where the second result is stored
        results += f"{scalar_of(of)}_type, " if of else ""
        given = "".join(f"{scalar_of(t)}_type, " for t in types[: len(codes)])
        values = "".join(f"{code}, " for code in codes)
        vector = isinstance(node.type, Vector)
        found = self.keep(f"each({name!r}, ({values}), ({given}), ({results}), {vector})")
        if of:
            self.emit(self.access("store", Place(of, base=pointer), node, f"{found}[1]"))
        return f"{found}[0]"

    def reinterpreted(self, node: tree.Call) -> str:
        (code,) = self.args(node)
        of, to = scalar_of(node.args[0].type), scalar_of(node.type)
        n = length(node.type) if isinstance(node.type, Vector) else 0
        return f"bits_as({code}, {of}_type, {to}_type, {n})"

    def converted(self, node: tree.Call) -> str:
        (code,) = self.args(node)
        match = re.search("(_sat)?(_rt[ezpn])?$", node.name)
        saturated, rounding = (bool(match[1]), (match[2] or "")[1:]) if match else (False, "")
        of, to = scalar_of(node.args[0].type), scalar_of(node.type)
        usual = "rtz" if to.whole else "rte"
        if not saturated and rounding in ("", usual):
            return self.as_type(code, node.args[0].type, node.type, node.args[0])
        if to.whole and not of.whole and not saturated:
            site = self.site("overflow", node.spot, written(node))
            rounded = f"rounded_by({code}, {rounding!r})"
            return f"wave.rounded({rounded}, {of}_type, {to}_type, mask, {site})"
        rounding = rounding or usual
        return f"converted_by({code}, {of}_type, {to}_type, {rounding!r}, {saturated})"

    def vector_access(self, node: tree.Call) -> str:
        """vloadN(i, p) and vstoreN(v, i, p): N numbers from element i*N on, at any address."""
        *value, at, base = self.args(node)
        pointer, held = node.args[-1].type, node.args[0].type if value else node.type
        assert isinstance(pointer, Pointer) and isinstance(pointer.to, Scalar)
        scalar = pointer.to
        if re.search("_rt[zpn]$", node.name):
            raise UnknownError(node.name, node.spot)
        to = Vector(scalar, held.n) if isinstance(held, Vector) else scalar
        parts = Place(to, None, (at,), base)
        if length(to) == 3 and node.name.startswith(("vloada", "vstorea")):  # as if it had four
            parts = Place(to, base=f"({base} + ({at})*{4 * scalar.size})")
        if value:
            code = f"floating({value[0]}, half_type)" if scalar is HALF else value[0]
            self.emit(self.access("store", parts, node, code, packed=True))
            return "None"
        code = self.keep(self.access("load", parts, node, packed=True))
        return f"floating({code}, float_type)" if scalar is HALF else code

    def atomic(self, node: tree.Call) -> str:
        op = node.name.split("_", 1)[1]
        pointer, *values = self.args(node)
        codes = ", ".join(values or ["1"])
        site = self.site("atomic", node.spot, written(node), node.type)
        return self.keep(f"wave.atomic({site}, {pointer}, {op!r}, ({codes},), mask)")

    families: dict[str, Callable] = {
        "as_": reinterpreted, "convert_": converted, "vload": vector_access,
        "vstore": vector_access, "atomic_": atomic, "atom_": atomic,
    }  # fmt: skip
