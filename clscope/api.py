"""Run a kernel in Python, and see everything it does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from math import prod
from numbers import Integral, Real

import numpy as np

from . import count, values
from .budget import OutOfBudget
from .finding import Finding, Site, distinct
from .lint import slips
from .machine import Local, Machine, Order
from .memory import Memory
from .translate import Program, compile_kernel
from .tree import Variable
from .types import Array, Pointer, Scalar, Struct, Type, Vector, an, leaf_of, unreadable
from .values import cut
from .watch import first_difference, races
from .wave import Entry, Spoil

#: One access of `width` neighbouring numbers by one work-item. `step` counts a work-item's own
#: accesses, `phase` the barriers that it has passed, `index` numbers from the array's beginning
#: (in memory, so column-major for matrices); `entry` is the access's number in `Run.log`: all
#: work-items that made it in step have the same.
EVENT = np.dtype(
    [(name, "i4") for name in ("group", "item", "step", "phase")]
    + [("store", "?"), ("array", "U16"), ("space", "U7"), ("index", "i8")]
    + [("width", "i4"), ("entry", "i4")]
)

#: What C does not allow, and is right on all devices.
HARMLESS = ("unset", "row", "wraps", "handed over")
#: Kinds of notes.
NOTES = ("ratio", "cut", "slip", "whole division", *HARMLESS)
#: Runs a kernel again with other values where there are none.
Again = Callable[[Spoil], Machine]


class Empty:
    """A buffer of `size` numbers that nobody has stored to: reading it before that is a finding."""

    def __init__(self, size: int, dtype: str = "float32"):
        self.size, self.dtype = size, np.dtype(dtype)


class Run:
    """What a kernel did.

    Attributes:
        text: the kernel's.
        arrays: every buffer after the run, by the name of the kernel's parameter, flat.
        findings: what was wrong; notes: what C allows and is rarely meant, such as a float divided
            by zero, or a fraction that is lost; see `Finding`.
        stop: the finding after which the kernel could not go on, or None.
        unfinished: the limit that ended the run or the search for races, or None. What was found
            until then is true.
        log: every step of all work-items in step, as `Entry`; accesses to private arrays, which are
            registers for the most part, are left out.
        printed: what printf said.
        global_size, local_size: work-items of the launch and of a work-group.
        shapes: of each local array its rows, and the numbers of a row, padding included.
    """

    def __init__(self, machine: Machine, args: Sequence[object]):
        memories = (a for a in args if isinstance(a, Memory))
        self.arrays = {m.name: m.view(m.scalar)[: m.sizes[0]] for m in memories}
        self.text = machine.program.text
        self.log: list[Entry] = machine.log
        unordered, missed = find_races(machine)
        seen = [*unordered, *machine.findings, *slips(machine.program.functions)]
        self.findings: list[Finding] = distinct(f for f in seen if f.kind not in NOTES)
        self.notes = distinct(f for f in seen if f.kind in NOTES)
        self.stop, self.printed = machine.stop, machine.printed
        self.unfinished = machine.unfinished or missed
        self.global_size = machine.global_size
        self.local_size = machine.local_size[: len(machine.global_size)]
        self.shapes = {a.name: _rows(a.type) for a in machine.program.locals}

    @property
    def ok(self) -> bool:
        """Whether it ran to its end, and nothing was found."""
        return not self.findings and not self.unfinished

    @property
    def verdict(self) -> str:
        """The outcome, in a sentence."""
        if not self.findings:
            unfinished = f"not finished: {self.unfinished}"
            return unfinished if self.unfinished else self.nothing
        others = len(self.findings) - 1
        more = f" (and {others} more finding{'s' * (others > 1)})" if others else ""
        return f"{self.findings[0]}{more}"

    @property
    def nothing(self) -> str:
        """What is to be said of a run without findings."""
        note = next((note for note in self.notes if note.kind in HARMLESS), None)
        return f"no mistake was seen, but note {note}" if note else "nothing suspicious was seen"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.verdict}>"

    @cached_property
    def lines(self) -> dict[int, count.Counts]:
        """What each line has cost, by its number."""
        return count.by_line(self.log)

    @cached_property
    def counts(self) -> count.Counts:
        """What all lines have cost together."""
        return count.total(self.lines)

    @cached_property
    def table(self) -> np.ndarray:
        """All accesses, as a table with the fields of `EVENT`.

        It has one row per work-item, in the order in which they happened. (`views.select` chooses
        among them.)
        """
        steps: dict[int, np.ndarray] = {}
        parts = [np.empty(0, EVENT)]
        for number, e in enumerate(self.log):
            if e.memory is None:
                continue
            step = steps.setdefault(id(e.wave), np.full(e.wave.lanes, -1, np.int32))
            step += e.active
            rows = np.empty(len(e.of(step)), EVENT)
            of_lanes = {"group": e.wave.group_number, "item": e.wave.items, "step": step}
            for name, lanes in {**of_lanes, "phase": e.phase, "index": e.at}.items():
                rows[name] = e.of(lanes)
            rows["store"], rows["entry"], rows["width"] = e.site.stores, number, e.site.width
            rows["array"], rows["space"] = e.memory.name, e.memory.space
            parts.append(rows)
        return np.concatenate(parts)


def judge_unset(machine: Machine, again: Again) -> None:
    """Make a note of each value that is read where there is none and that nothing depends on.

    The kernel runs again with other values in such places. Only if it then stores something else to
    global memory, branches otherwise, or accesses other elements, the values matter.
    """
    unset = [f for f in machine.findings if f.kind == "uninitialised"]
    names = list(dict.fromkeys(f.array for f in unset))
    if not names or machine.unfinished:
        return
    try:
        guilty = _guilty(machine, names, again)
    except OutOfBudget:  # nobody knows whether they matter
        return
    for f in unset:
        site, at = guilty.get(f.array), machine.findings.index(f)
        if site is None:
            text = f"{f.message}; nothing depends on it"
            machine.findings[at] = replace(f, kind="unset", message=text)
        elif site.line != f.line:
            text = f"{f.message}; what line {site.line} does depends on it"
            machine.findings[at] = replace(f, message=text)


def _guilty(machine: Machine, names: Sequence[str], again: Again) -> dict[str, Site | None]:
    """Return for each array or variable the first place that depends on its unset values."""
    alike = [dict.fromkeys(names, sign) for sign in (1, -1, 0)]
    first = _first_difference(machine, alike, again)
    together: dict[str, Site | None] = dict.fromkeys(names, first)
    if first is None or len(names) == 1:
        return together
    other = again(alike[0])
    alone: dict[str, Site | None] = {
        name: _first_difference(other, [{**alike[0], name: sign} for sign in (-1, 0)], again)
        for name in names
    }
    return alone if any(alone.values()) else together


def _first_difference(machine: Machine, spoils: Iterable[Spoil], again: Again) -> Site | None:
    return next(filter(None, (_difference(machine, again(spoil)) for spoil in spoils)), None)


def _difference(machine: Machine, other: Machine) -> Site | None:
    """Return where two runs differ first, as far as anybody outside can tell."""
    if other.unfinished:
        raise OutOfBudget(str(other.unfinished))
    stops = [m.stop and (m.stop.line, m.stop.column) for m in (machine, other)]
    if machine.printed != other.printed or stops[0] != stops[1]:
        log = machine.log
        return first_difference(log, other.log) or (log[-1].site if log else None)
    return first_difference(machine.log, other.log)


def find_races(machine: Machine) -> tuple[list[Finding], Finding | None]:
    """The races of a run, and the limit that ended the search for them, if one did."""
    found = list[Finding]()
    try:
        for race in races(machine.log, machine.budget):
            found.append(race)
    except OutOfBudget as error:
        return found, Finding("unfinished", f"{error}, in its search for races")
    return found, None


def _rows(array: Type) -> tuple[int, int]:
    """Rows, and the numbers of a row."""
    leaf, sizes = leaf_of(array)
    *rows, row = sizes or (1,)
    return prod(rows), row * (leaf.stride // leaf.scalar.size)


def run(  # noqa: PLR0913
    text: str,
    name: str | None,
    global_size: Sequence[int],
    local_size: Sequence[int] | None,
    args: Sequence[object],
    defines: Mapping[str, object] | None = None,
    *,
    order: Order = "lockstep",
    seed: int = 0,
    limit: int = 5_000,
) -> Run:
    """Run any kernel.

    Args:
        text: OpenCL C; name: the `__kernel` in it, None for the first.
        global_size: work-items of the launch; local_size: of a work-group, None if the text
            requires a size.
        args: in the order of the kernel's parameters: numbers, sequences of them for vectors, NumPy
            arrays (which are copied) and `Empty`; for a pointer to local memory `Empty` or its size
            in bytes; for a structure its bytes, such as a NumPy scalar of a structured dtype.
        defines: macros.
        order: "lockstep", all work-items in step, or "warps": of 32 work-items, which take turns
            between barriers in an order drawn from `seed`. A race is found in both; in the second
            one may also see what it does.
        limit: how often a loop may iterate; the run is `unfinished` after that.

    Raises:
        TextError: (a ValueError) if the text is not a kernel, with line and column.
        ValueError, TypeError: for arguments that do not fit; the message names them.
    """
    program = compile_kernel(text, name, defines)
    sizes = _sizes(program, global_size, local_size)
    if len(args) != len(program.params):
        wanted = ", ".join(p.name for p in program.params)
        takes = f"{program.name} has {len(program.params)} parameters: {wanted}"
        raise ValueError(f"args has {len(args)} entries, but {takes}")

    def launched(spoil: Spoil | None = None) -> tuple[Machine, list[object]]:
        memories = [_argument(p, a) for p, a in zip(program.params, args, strict=True)]
        machine = Machine(program, *sizes, limit)
        machine.spoil = spoil or {}
        machine.run(memories, order, seed)
        return machine, memories

    machine, memories = launched()
    judge_unset(machine, lambda spoil: launched(spoil)[0])
    return Run(machine, memories)


def _sizes(
    program: Program, global_size: Sequence[int], local_size: Sequence[int] | None
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    if local_size is None:
        if not program.size:
            raise ValueError(f"local_size is missing: {program.name} requires no size")
        local_size = program.size[: len(global_size)]
    whole, local = tuple(map(int, global_size)), tuple(map(int, local_size))
    if not 1 <= len(whole) <= 3 or len(local) != len(whole):
        both = f"global_size {whole} and local_size {local}"
        raise ValueError(f"{both} must have 1, 2 or 3 entries, and the same number")
    if program.size and (*local, 1, 1)[:3] != program.size:
        requires = f"{program.name} requires work-groups of {program.size}"
        raise ValueError(f"local_size is {local}, but {requires}")
    if any(size < 1 or g < 1 or g % size for g, size in zip(whole, local, strict=True)):
        raise ValueError(f"global_size {whole} is not made of whole work-groups of {local}")
    return whole, local


def _argument(param: Variable, value: object) -> object:
    """Return an argument as kernels take it: a number, a `Memory`, or what is `Local`."""
    name, of = param.name, param.type
    if isinstance(of, Scalar):
        return _number(name, of, value)
    if isinstance(of, Vector):
        numbers = np.asarray(value)
        if numbers.shape != (of.n,):
            raise TypeError(f"{name} is {an(of)} and needs {of.n} numbers, not {value!r}")
        return values.vector([_number(name, of.of, x.item()) for x in numbers], of.of)
    if isinstance(of, Struct):
        data = value.tobytes() if isinstance(value, (np.ndarray, np.void)) else value
        if not isinstance(data, bytes) or len(data) != of.size:
            raise TypeError(f"{name} is {an(of)} and needs its {of.size} bytes, not {value!r}")
        return np.frombuffer(data, np.uint8)[:, None].astype(np.int64)
    if not isinstance(of, Pointer) or unreadable(of.to):
        raise TypeError(f"{name}: arguments of type {of} are not supported")
    return _array(name, of, value)


def _number(name: str, of: Scalar, value: object) -> object:
    if not isinstance(value, Integral if of.whole else Real):
        number = "a whole number" if of.whole else "a number"
        raise TypeError(f"{name} is {an(of)} and needs {number}, not {value!r}")
    if not of.whole:
        return of.dtype.type(value)
    if not of.least <= int(value) <= of.most:  # type: ignore[call-overload]
        raise ValueError(f"{name}={value} does not fit {an(of)}")
    return cut(int(value), of)  # type: ignore[call-overload]


def _array(name: str, of: Pointer, value: object) -> object:
    leaf, _ = leaf_of(of.to)
    scalar = leaf.scalar
    if of.space == "local":
        if isinstance(value, Empty):
            value = value.size * value.dtype.itemsize
        if not isinstance(value, Integral) or int(value) < 1:
            raise TypeError(
                f"{name} is in local memory and needs Empty or a size in bytes, not {value!r}"
            )
        if int(value) % leaf.stride:
            raise ValueError(f"{name}={value} must be a multiple of {leaf.stride} bytes")
        return Local(Array(leaf, int(value) // leaf.stride))
    if not isinstance(value, (np.ndarray, Empty)):
        kind = type(value).__name__
        raise TypeError(f"{name} is a pointer and needs a NumPy array, not {kind}")
    size = value.size * value.dtype.itemsize
    if isinstance(leaf, Struct):
        if size % leaf.size:
            raise TypeError(f"{name} needs whole elements of {leaf}, of {leaf.size} bytes each")
    elif value.dtype.itemsize != scalar.size or (value.dtype.kind == "f") == scalar.whole:
        raise TypeError(f"{name} needs an array of {scalar.dtype}, not of {value.dtype}")
    data = np.ravel(value).view(scalar.dtype) if isinstance(value, np.ndarray) else None
    return Memory(name, "global", Array(scalar, size // scalar.size), data=data)
