"""Calls: the functions that OpenCL C has built in."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar

import numpy as np

from . import tree, values
from .builtins import FENCES, IDENTIFIERS
from .expressions import Expressions, Place, Value, as_int
from .finding import Site
from .meaning import known
from .text import UnknownError
from .tree import written
from .types import EVENT, FLOAT, HALF, Pointer, Scalar, Vector, as_unsigned
from .wave import Wave

#: Plain names of functions that are the same but for how exact they must be.
_LOOSE = re.compile("(native|half|fast)_")


class Calls(Expressions):
    """Build calls of built-in functions: a method per function, or family of functions."""

    def built_in(self, node: tree.Call) -> Value:
        name = node.name
        if name in self.BY_NAME:
            return self.BY_NAME[name](self, node)
        for prefix, build in self.FAMILIES.items():
            if name.startswith(prefix):
                return build(self, node)
        plain, to = _LOOSE.sub("", name), node.type.scalar
        if plain in values.FUNCTIONS and not to.whole:
            function = values.FUNCTIONS[plain]

            def computed(*x: Any) -> Any:
                return values.floating(function(*[np.asarray(v, float) for v in x]), to)

            return self.applied(node, computed)
        if plain in values.EACH:
            return self.each(node, plain)
        if name not in FENCES:
            raise UnknownError(f"the function {name!r}", node.spot)
        return self.applied(node, lambda *x: None)

    def args(self, node: tree.Call) -> list[Value]:
        return [self.value(arg) for arg in node.args]

    def applied(self, node: tree.Call, function: Callable[..., Any]) -> Value:
        """A function of the arguments."""
        args = self.args(node)
        return lambda w: function(*[arg(w) for arg in args])

    def work_dim(self, node: tree.Call) -> Value:
        return lambda w: w.machine.dimensions

    def identifier(self, node: tree.Call) -> Value:
        what, (which,) = node.name.removeprefix("get_"), self.args(node)
        outside = int(what in ("local_size", "global_size", "num_groups"))

        def found(w: Wave) -> Any:
            number, of = which(w), w.ids[what]
            if isinstance(number, int):
                return of[number] if 0 <= number <= 2 else outside
            result: Any = outside
            for d in range(3):
                result = values.pick(number == d, of[d], result)
            return result

        return found

    # ---- by name
    def barrier(self, node: tree.Call) -> Value:
        return self.with_flags(node, "barrier", Wave.barrier)

    def fence(self, node: tree.Call) -> Value:
        return self.with_flags(node, "fence", Wave.record)

    def with_flags(self, node: tree.Call, kind: str, do: Callable[[Wave, Site], None]) -> Value:
        """What orders the memory that its argument names."""
        (arg,), flags = self.args(node), known(node.args[0])
        site = self.site(kind, node.spot, node.name, fence=3 if flags is None else int(flags))

        def run(w: Wave) -> None:
            arg(w)
            do(w, site)

        return run

    def wait_group_events(self, node: tree.Call) -> Value:
        count, events = self.args(node)
        site = self.site("barrier", node.spot, "wait_group_events")
        load = self.site("load", node.spot, written(node.args[1]), EVENT)

        def wait(w: Wave) -> None:
            begin, event = events(w), 0
            for number in range(int(np.max(count(w)))):
                event = w.load(load, w.reach(load, begin + number * EVENT.stride))
                w.wait_for(event)
            w.barrier(site, event)

        return wait

    def asynchronous_copy(self, node: tree.Call) -> Value:
        """All work-items of the group copy together, each some of the elements."""
        to, of, count, *rest = self.args(node)
        target, source = (arg.type for arg in node.args[:2])
        assert isinstance(target, Pointer) and isinstance(source, Pointer)
        element, text = target.to, written(node)
        load, store = (
            self.site(kind, node.spot, text, element, wide=element.length, copy=True)
            for kind in ("load", "store")
        )
        event, strided, size = rest[-1], len(rest) > 1, element.stride

        def copy(w: Wave) -> Any:
            step = rest[0](w) if strided else 1
            steps = (step, 1) if source.space == "global" else (1, step)
            far = steps[0] * size, steps[1] * size
            return w.copy_together((load, store), of(w), to(w), count(w), far, event(w))

        return copy

    def counted(self, node: tree.Call, function: Callable[..., Any]) -> Value:
        """A function of the arguments that is a multiply-add of each of their numbers."""
        args, of = self.args(node), node.args[0].type
        site = self.site("multiply-add", node.spot, written(node), of)

        def run(w: Wave) -> Any:
            x = [arg(w) for arg in args]
            w.record(site)
            return function(*x)

        return run

    def multiply_add(self, node: tree.Call) -> Value:
        to, function = node.type.scalar, values.fma if node.name == "fma" else values.mad
        return self.counted(node, lambda *x: values.floating(function(*x), to))

    def nextafter(self, node: tree.Call) -> Value:
        return self.applied(node, np.nextafter)

    def bitselect(self, node: tree.Call) -> Value:
        of = node.type.scalar
        n = node.type.length if isinstance(node.type, Vector) else 0
        bits = as_unsigned(of)

        def selected(*x: Any) -> Any:
            a, b, c = (values.bits_as(one, of, bits, n) for one in x)
            return values.bits_as((a & ~c) | (b & c), bits, of, n)

        return self.applied(node, selected)

    def select(self, node: tree.Call) -> Value:
        of = node.args[2].type
        chosen = self.highest(of) if isinstance(of, Vector) else lambda x: x != 0
        return self.applied(
            node, lambda no, yes, condition: values.pick(chosen(condition), yes, no)
        )

    def any_or_all(self, node: tree.Call) -> Value:
        if not isinstance(node.args[0].type, Vector):
            return self.applied(node, lambda x: as_int(x < 0))
        reduce = np.any if node.name == "any" else np.all
        return self.applied(node, lambda x: as_int(values.numbers_of(reduce(x < 0, 0))))

    def dot(self, node: tree.Call) -> Value:
        if isinstance(node.args[0].type, Vector):
            return self.counted(node, values.dot)
        return self.applied(node, operator.mul)

    def shuffle(self, node: tree.Call) -> Value:
        n = sum(4 if v.type.length == 3 else v.type.length for v in node.args[:-1])
        return self.applied(node, lambda *x: values.shuffled(x[:-1], x[-1], n))

    def printf(self, node: tree.Call) -> Value:
        form, *texts = [tree.plain(arg) for arg in node.args]
        assert isinstance(form, tree.Text)
        said = form.value
        args: list[Value | str] = [
            text.value if isinstance(text, tree.Text) else self.value(arg)
            for text, arg in zip(texts, node.args[1:], strict=True)
        ]
        kinds = [str(arg.type.scalar) for arg in node.args[1:]]

        def prints(w: Wave) -> int:
            w.printf(said, [arg if isinstance(arg, str) else arg(w) for arg in args], kinds)
            return 0

        return prints

    # ---- families
    def each(self, node: tree.Call, name: str) -> Value:
        """A function that is computed lane by lane, with Python's numbers."""
        args, types = self.args(node), [arg.type for arg in node.args]
        results, vector = [node.type.scalar], isinstance(node.type, Vector)
        of = types[-1].to if isinstance(types[-1], Pointer) else None
        if of is None:
            given = [t.scalar for t in types]
            return self.applied(node, lambda *x: values.each(name, x, given, results, vector)[0])
        place = Place(of, base=args.pop())  # where the second result is stored
        store, given = self.access("store", place, node), [t.scalar for t in types[:-1]]
        find = place.finder()
        results.append(of.scalar)

        def run(w: Wave) -> Any:
            one, two = values.each(name, [arg(w) for arg in args], given, results, vector)
            store(w, find(w), two)
            return one

        return run

    def reinterpreted(self, node: tree.Call) -> Value:
        of, to = node.args[0].type.scalar, node.type.scalar
        n = node.type.length if isinstance(node.type, Vector) else 0
        return self.applied(node, lambda x: values.bits_as(x, of, to, n))

    def converted(self, node: tree.Call) -> Value:
        match = re.search("(_sat)?(_rt[ezpn])?$", node.name)
        saturated, rounding = (bool(match[1]), (match[2] or "")[1:]) if match else (False, "")
        (x,), of, to = self.args(node), node.args[0].type.scalar, node.type.scalar
        usual = "rtz" if to.whole else "rte"
        if not saturated and rounding in ("", usual):
            change = self.conversion(node.args[0].type, node.type, node.args[0])
            return lambda w: change(w, x(w))
        if to.whole and not of.whole and not saturated:
            site = self.site("overflow", node.spot, written(node))
            return lambda w: w.rounded(values.rounded_by(x(w), rounding), of, to, site)
        return lambda w: values.converted_by(x(w), of, to, rounding or usual, saturated)

    def vector_access(self, node: tree.Call) -> Value:
        """vloadN(i, p) and vstoreN(v, i, p): N numbers from element i*N on, at any address."""
        *value, at, base = self.args(node)
        pointer, held = node.args[-1].type, node.args[0].type if value else node.type
        assert isinstance(pointer, Pointer) and isinstance(pointer.to, Scalar)
        scalar, half = pointer.to, pointer.to is HALF
        to = Vector(scalar, held.n) if isinstance(held, Vector) else scalar
        aligned = node.name.startswith(("vloada", "vstorea"))
        far = 4 if to.length == 3 and aligned else to.length
        place = Place(to, base=base, indices=((at, far * scalar.size, 0, 0),))
        access = self.access("store" if value else "load", place, node, packed=True)
        find = place.finder()
        rounding = re.search("_(rt[zpn])$", node.name)
        change: Callable[[Any], Any] = lambda x: x  # noqa: E731
        if half:
            change = partial(values.floating, of=HALF if value else FLOAT)
        if half and rounding and isinstance(held, (Scalar, Vector)):
            change = partial(
                values.converted_by,
                of=held.scalar, to=HALF, rounding=rounding[1], saturated=False,
            )  # fmt: skip
        if value:
            return lambda w: access(w, find(w), change(value[0](w)))
        return lambda w: change(access(w, find(w)))

    def atomic(self, node: tree.Call) -> Value:
        op = node.name.split("_", 1)[1]
        pointer, *values = self.args(node)
        site = self.site("atomic", node.spot, written(node), node.type, exchange=op == "cmpxchg")

        def run(w: Wave) -> Any:
            base = pointer(w)
            return w.atomic(site, base, op, [value(w) for value in values] or [1])

        return run

    BY_NAME: ClassVar[dict[str, Callable[[Calls, tree.Call], Value]]] = {
        "get_work_dim": work_dim,
        "barrier": barrier,
        "mem_fence": fence,
        "write_mem_fence": fence,
        "wait_group_events": wait_group_events,
        "async_work_group_copy": asynchronous_copy,
        "async_work_group_strided_copy": asynchronous_copy,
        "fma": multiply_add,
        "mad": multiply_add,
        "nextafter": nextafter,
        "bitselect": bitselect,
        "select": select,
        "any": any_or_all,
        "all": any_or_all,
        "dot": dot,
        "shuffle": shuffle,
        "shuffle2": shuffle,
        "printf": printf,
        **dict.fromkeys(IDENTIFIERS - {"get_work_dim"}, identifier),
    }
    FAMILIES: ClassVar[dict[str, Callable[[Calls, tree.Call], Value]]] = {
        "as_": reinterpreted, "convert_": converted, "vload": vector_access,
        "vstore": vector_access, "atomic_": atomic, "atom_": atomic,
    }  # fmt: skip
