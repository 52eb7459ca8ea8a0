"""What the catalog says of a kernel: its parameters and rules, and what follows from them.

Rules are strings that read the same in C and in Python, because the kernel's file states each of them as an `#if`.
Everything that follows from the parameters (tiles, work-groups, memory, loads) is a method that takes the complete
parameters as a mapping, such as ``{"TS": 32, "WPT": 8}``. No device is needed.
"""

from __future__ import annotations

import difflib
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import lcm, prod
from numbers import Integral
from pathlib import PurePath
from types import CodeType

from . import sources
from .specialise import Specialised, specialise

#: What a kernel is called: a number on the ladder, a name in production.
Key = int | str
#: Complete parameters of a kernel: the value of each macro by its name.
Params = Mapping[str, int]

#: Combinations of offered values up to which a kernel's space is searched whole; beyond, it is sampled.
LISTED = 20_000


class ParameterError(ValueError):
    """Parameters that a kernel or a device cannot take; the message has one sentence per problem."""


@dataclass(frozen=True)
class Param:
    """One macro of a kernel: its default, its meaning, the values that an explorer offers, and the least legal one."""

    name: str
    default: int
    meaning: str
    choices: tuple[int, ...]
    least: int = 1


@dataclass(frozen=True)
class Limits:
    """What a device allows.

    Attributes:
        name: the device, for messages.
        work_group: work-items per work-group.
        per_dimension: work-items per work-group in dimensions 0, 1, 2.
        local_memory: bytes per work-group.
        vector: numbers in the widest vector that its compiler takes.
        complex_bytes: bytes in the widest vector of complex numbers that it takes.
        unroll: steps of a loop that its compiler lays out in good time.
        asynchronous: whether it has asynchronous copies and TF32 (NVIDIA's, from compute capability 8.0 on).
        warpgroups: whether it has the instructions of warpgroups (compute capability 9.0 alone).
    """

    name: str
    work_group: int
    per_dimension: tuple[int, ...]
    local_memory: int
    vector: int = 16
    complex_bytes: int = 64
    unroll: int = 16
    asynchronous: bool = True
    warpgroups: bool = True


@dataclass(frozen=True)
class Rule:
    """A constraint: `test` reads the same in C and in Python; `broken` says what is wrong when it fails."""

    test: str
    broken: str

    @cached_property
    def code(self) -> CodeType:
        return compile(self.test, f"<{self.test}>", "eval")

    @cached_property
    def names(self) -> frozenset[str]:
        """The parameters that the rule is about."""
        return frozenset(self.code.co_names)

    def holds(self, params: Params) -> bool:
        return bool(eval(self.code, {"__builtins__": {}}, params))


@dataclass(frozen=True)
class Switch:
    """A parameter that, set to 1, asks for a feature of the device; `path` names what runs, by feature.

    Where the attribute `needs` of `Limits` is False, the device's compiler refuses the switch, and `lacking` says
    what is missing.
    """

    param: str
    path: tuple[tuple[str, str], ...]
    needs: str = ""
    lacking: str = ""


Parameters = tuple[Param, ...]
Rules = tuple[Rule, ...]


class KernelSpec:
    """One kernel of the ladder. Each kernel is a subclass that states what is its own.

    Attributes:
        number: its number; chapter, file and tests share it. What `matmul` runs in production has a name instead,
            such as "warp_tiling".
        before: the number of the kernel that this one changes, 0 for none.
        file: its file in ``kernels/``.
        params: its parameters.
        rules: constraints on the parameters.
        edges: what it does where the matrix does not fit the tiles: "pad" (nothing: sizes must be whole tiles),
            "guard" (any size), or "shift" (any size from one tile on, any K).
        wide: whether it indexes with 64 bits.
        tensor: whether it multiplies in TF32.
        specialised: whether the compiler is given only what the parameters need of its file (see `text`).
        turns: whether it can store the transpose of C (see `text`).
        takes_workspace: whether it has a seventh argument, memory for partial tiles (see `workspace`).
        switches: parameters that ask for a feature which only some devices have.
    """

    number: Key
    before: Key = 0
    file: str
    params: Parameters
    rules: Rules = ()
    edges: str = "pad"
    wide: bool = False
    tensor: bool = False
    specialised: bool = False
    turns: bool = False
    takes_workspace: bool = False
    switches: tuple[Switch, ...] = ()

    def __repr__(self) -> str:
        return f"<kernel {self.number}, {self.name}>"

    @property
    def name(self) -> str:
        """Such as "register blocking"."""
        return PurePath(self.file).stem.lstrip("0123456789_").replace("_", " ")

    @property
    def defaults(self) -> dict[str, int]:
        return {p.name: p.default for p in self.params}

    # What each kernel states.

    def tiles(self, p: Params) -> tuple[int, int, int]:
        """Rows and columns of C that a work-group computes, and the steps of k that it takes at a time."""
        raise NotImplementedError

    def local_size(self, p: Params) -> tuple[int, int]:
        """Work-items of a work-group in dimensions 0 and 1."""
        raise NotImplementedError

    def local_memory(self, p: Params) -> int:
        """Bytes of local memory per work-group."""
        return 0

    def global_loads(self, p: Params) -> float:
        """Floats loaded from global memory per multiply-add, as the text asks for them."""
        raise NotImplementedError

    def local_loads(self, p: Params) -> float:
        """Floats loaded from local memory per multiply-add, as the text asks for them."""
        return 0.0

    def wants_transposed(self, p: Params) -> bool:
        """Whether the kernel wants B as N x K instead of K x N."""
        return False

    def alignment(self, p: Params) -> tuple[int, int]:
        """The leading dimensions of A and of B are rounded up to these multiples, in floats."""
        return 1, 1

    def product_error(self, p: Params) -> float:
        """What a product of two floats may be off, relative to it, besides the rounding to float32."""
        return 0.0

    def workspace(self, p: Params) -> int:
        """Floats of memory for partial tiles (and their counters, which start at zero) beside A, B and C."""
        return 0

    def needs_fixup(self, p: Params, features: frozenset[str]) -> bool:
        """Whether a second launch (`fixup.cl`) adds up partial tiles, on a device with `features`."""
        return False

    def global_size(self, m: int, n: int, p: Params) -> tuple[int, int]:
        """Work-items of the whole launch for an m x n result: one work-group per tile."""
        rows, cols = self.tile_grid(m, n, p)
        across, down = self.local_size(p)
        return rows * across, cols * down

    def tile_grid(self, m: int, n: int, p: Params) -> tuple[int, int]:
        """Rows and columns of tiles that cover an m x n result."""
        rows, cols, _ = self.tiles(p)
        return tiles_over(m, rows), tiles_over(n, cols)

    def macros(self, m: int, n: int, p: Params) -> dict[str, int]:
        """The macros that the kernel is compiled with for an m x n result: its parameters, or more."""
        return dict(p)

    # What follows.

    def multiples(self, p: Params) -> tuple[int, int, int]:
        """What M, N and K must be multiples of: whole tiles, or 1 if the kernel treats edges itself."""
        return self.tiles(p) if self.edges == "pad" else (1, 1, 1)

    def minimum_sizes(self, p: Params) -> tuple[int, int, int]:
        """The smallest M, N and K."""
        return (*self.tiles(p)[:2], 1) if self.edges == "shift" else self.multiples(p)

    def units(self, p: Params) -> tuple[int, int, int]:
        """What M, N and K are multiples of where compact matrices need no copy: of whole tiles, and aligned columns."""
        (m, n, k), (a, b) = self.multiples(p), self.alignment(p)
        return (lcm(m, a), lcm(n, b), k) if self.wants_transposed(p) else (lcm(m, a), n, lcm(k, b))

    def leading_dimensions(self, m: int, n: int, k: int, p: Params) -> tuple[int, int]:
        """Floats from one column to the next: of A (M x K), and of B as the kernel wants it."""
        a, b = self.alignment(p)
        return round_up(m, a), round_up(n if self.wants_transposed(p) else k, b)

    def runs_unpadded(self, m: int, n: int, k: int, p: Params) -> bool:
        """Whether the kernel takes compact matrices of these sizes as they are, without a copy for their edges."""
        return all(size % unit == 0 for size, unit in zip((m, n, k), self.units(p), strict=True))

    def path(self, p: Params, features: frozenset[str]) -> str:
        """Which of the kernel's paths runs on a device with `features`: those switched on and there, or "plain"."""
        on = [s for s in self.switches if p[s.param]]
        return ", ".join(name for s in on for feature, name in s.path if feature in features) or "plain"

    def text(self, p: Params, features: frozenset[str] = frozenset(), turned: bool = False) -> Specialised:
        """The OpenCL C that runs with these parameters on a device with `features`, and where its lines come from.

        With `turned` it stores the transpose of C, if the kernel `turns`.
        """
        text = sources.read(self.file)
        if not self.specialised:
            return Specialised(text, tuple(range(1, text.count("\n") + 1)))
        values = {**p, "TURNED": int(turned)} if self.turns else p
        return specialise(text, values, {"__NV_CL_C_VERSION": "nvidia" in features})

    # Parameters: complete, legal, in words.

    def complete(self, params: Params | None) -> dict[str, int]:
        """`params` over the defaults. Raises ParameterError for unknown names, TypeError for wrong types."""
        return complete(f"kernel {self.number}", self.defaults, params)

    def validate(self, params: Params | None = None, limits: Limits | None = None) -> dict[str, int]:
        """Complete and check `params`; raise ParameterError with every problem in words."""
        full = self.complete(params)
        problems = self.problems(full, limits)
        if problems:
            raise ParameterError(f"kernel {self.number}: " + "; ".join(problems))
        return full

    def problems(self, params: Params, limits: Limits | None = None) -> list[str]:
        """One sentence for each constraint that complete `params` break, on a device with `limits`."""
        found = [
            f"{p.name}={params[p.name]} is out of range: it must be from {p.least} to 65536"
            for p in self.params
            if not p.least <= params[p.name] <= 65536
        ]
        found = found or [rule.broken.format(**params) for rule in self.rules if not rule.holds(params)]
        if found or limits is None:
            return found
        return [sentence for sentence, _ in self._beyond(params, limits)]

    def _beyond(self, params: Params, limits: Limits) -> Iterator[tuple[str, set[str]]]:
        """What passes a device's limits, in words, and the parameters that decide it."""
        if params.get("WIDTH", 1) > limits.vector:
            yield f"WIDTH={params['WIDTH']}: {limits.name} takes vectors of {limits.vector} floats at most", {"WIDTH"}
        if params.get("UNROLL", 1) > limits.unroll:
            words = f"UNROLL={params['UNROLL']}: {limits.name} compiles it too slowly; {limits.unroll} at most"
            yield words, {"UNROLL"}
        for switch in self.switches:
            if params[switch.param] and switch.needs and not getattr(limits, switch.needs):
                yield f"{switch.param}=1: {limits.name} {switch.lacking}", {switch.param}
        read = _Read(params)
        items = self.local_size(read)
        shape = " x ".join(map(str, items))
        if prod(items) > limits.work_group:
            over = f"over the limit of {limits.work_group} of {limits.name}"
            yield f"a work-group of {shape} = {prod(items)} work-items is {over}", read.names
        for dimension, (size, most) in enumerate(zip(items, limits.per_dimension, strict=False)):
            if size > most:
                over = f"over the limit of {most} of {limits.name}"
                yield f"a work-group of {shape} work-items has {size} in dimension {dimension}, {over}", read.names
        read = _Read(params)
        memory = self.local_memory(read)
        if memory > limits.local_memory:
            over = f"over the limit of {limits.local_memory:,} of {limits.name}"
            yield f"{memory:,} bytes of local memory per work-group are {over}", read.names

    def _conflict(self, params: Params, limits: Limits | None) -> set[str] | None:
        """The parameters of the first constraint that `params` break, or None if they are legal."""
        for p in self.params:
            if not p.least <= params[p.name] <= 65536:
                return {p.name}
        for rule in self.rules:
            if not rule.holds(params):
                return set(rule.names)
        if limits is not None:
            for _, names in self._beyond(params, limits):
                return names
        return None

    # The space of settings: all combinations of the offered values.

    def nearest_legal(
        self, params: Params, moved: str, limits: Limits | None = None
    ) -> tuple[dict[str, int], list[str]]:
        """Move the other parameters as little as possible, so that `moved` may keep its value.

        Returns:
            The new parameters, and one sentence for each that had to move, with what would be broken if it had not.
            If nothing legal keeps the value of `moved`, the parameters as they came, with the problems as sentences.
        """
        full = self.complete(params)
        problems = self.problems(full, limits)
        if not problems:
            return full, []
        new = self._nearest(full, {moved}, limits)
        if new is None:
            return full, problems
        notes = []
        for name in (name for name in new if new[name] != full[name]):
            left = self.problems({**new, name: full[name]}, limits)  # if only this one had stayed
            why = [problem for problem in problems if problem in left] or left or problems
            notes.append(f"{name} moved from {full[name]} to {new[name]}, because {'; '.join(why)}")
        return new, notes

    def fit(self, limits: Limits) -> dict[str, int]:
        """The defaults, or where a device cannot take them the nearest offered values that it can."""
        return self._nearest(self.defaults, set(), limits) or self.defaults

    def _nearest(self, params: dict[str, int], kept: set[str], limits: Limits | None) -> dict[str, int] | None:
        """The legal setting that differs from `params` in the fewest parameters but `kept`, and by the fewest steps."""

        def distance(other: Params) -> tuple:
            places = [(_place(p.choices, other[p.name]), _place(p.choices, params[p.name])) for p in self.params]
            return sum(abs(new - old) for new, old in places), [new for new, _ in places]

        states = [(params, frozenset(kept))]  # settings, and the parameters of each that may not change any more
        looked_at = 0
        while states and looked_at < LISTED:  # a device that can take none of them would take for ever
            looked_at += len(states)
            conflicts = [self._conflict(setting, limits) for setting, _ in states]
            legal = [setting for (setting, _), broken in zip(states, conflicts, strict=True) if broken is None]
            if legal:
                return min(legal, key=distance)
            repaired = (self._repairs(*state, broken or set()) for state, broken in zip(states, conflicts, strict=True))
            unique = {(tuple(s.values()), settled): (s, settled) for found in repaired for s, settled in found}
            states = list(unique.values())
        return None

    def _repairs(
        self, params: dict[str, int], settled: frozenset[str], conflict: set[str]
    ) -> Iterator[tuple[dict[str, int], frozenset[str]]]:
        """All ways to change one parameter of a broken constraint: it stays broken until one of its own changes."""
        for p in self.params:
            if p.name in conflict and p.name not in settled:
                for value in p.choices:
                    if value != params[p.name]:
                        yield {**params, p.name: value}, settled | {p.name}

    def search_space(self, limits: Limits | None = None) -> Iterator[dict[str, int]]:
        """Every legal combination of offered values, one after the other.

        A rule is asked as soon as all of its parameters have a value, so that most illegal combinations are never
        made.
        """
        asked: list[list[Rule]] = [[] for _ in self.params]
        order = [p.name for p in self.params]
        for rule in self.rules:
            asked[max(order.index(name) for name in rule.names)].append(rule)
        yield from self._combinations({}, asked, limits)

    def _combinations(
        self, chosen: dict[str, int], asked: Sequence[Iterable[Rule]], limits: Limits | None
    ) -> Iterator[dict[str, int]]:
        if len(chosen) == len(self.params):
            if limits is None or not any(True for _ in self._beyond(chosen, limits)):
                yield chosen
            return
        param = self.params[len(chosen)]
        for value in param.choices:
            more = {**chosen, param.name: value}
            if all(rule.holds(more) for rule in asked[len(chosen)]):
                yield from self._combinations(more, asked, limits)

    def sample(self, limits: Limits | None = None, count: int | None = None, seed: int = 0) -> list[dict[str, int]]:
        """Some legal combinations of offered values, none twice.

        Args:
            count: how many; by default all if they are at most 200, otherwise so many that every pair of values that
                can occur together does.
            seed: of the choice.
        """
        if prod(len(p.choices) for p in self.params) <= LISTED:
            left = list(self.search_space(limits))
            random.Random(seed).shuffle(left)
            return left[:count] if count is not None or len(left) <= 200 else list(_covering(left))
        drawn = self._drawn(limits, seed)
        return [s for s, _ in zip(drawn, range(count), strict=False)] if count is not None else list(_covering(drawn))

    def _drawn(self, limits: Limits | None, seed: int) -> Iterator[dict[str, int]]:
        """Legal settings drawn at random, none twice; it ends after 20,000 draws in which nothing was legal and new."""
        rng, seen, barren = random.Random(seed), set(), 0
        while barren < LISTED:
            setting = {p.name: rng.choice(p.choices) for p in self.params}
            key = tuple(setting.values())
            if key in seen or self._conflict(setting, limits) is not None:
                barren += 1
                continue
            seen.add(key)
            barren = 0
            yield setting


def _covering(settings: Iterable[dict[str, int]]) -> Iterator[dict[str, int]]:
    """Those that bring a new pair of values; it gives up after 1,000 settings in a row that bring none."""
    seen: set[frozenset] = set()
    idle = 0
    for setting in settings:
        pairs = {frozenset(pair) for pair in combinations(setting.items(), 2)} or {frozenset(setting.items())}
        idle = 0 if pairs - seen else idle + 1
        if idle == 0:
            seen |= pairs
            yield setting
        elif idle > 1000:
            return


def complete(whose: str, defaults: Params, params: Params | None) -> dict[str, int]:
    """`params` over the `defaults` of `whose`. Raises ParameterError for unknown names, TypeError for wrong types."""
    given = {} if params is None else params
    if not isinstance(given, Mapping):
        raise TypeError(f"params must be a dict such as {defaults}, not {type(given).__name__}: {given!r}")
    full = dict(defaults)
    for name, value in given.items():
        if name not in full:
            near = difflib.get_close_matches(str(name).upper(), full, n=1, cutoff=0.3)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise ParameterError(f"{whose} has no parameter {name!r} (it has {', '.join(full)}){hint}")
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise TypeError(f"{name} must be a whole number, not {type(value).__name__}: {value!r}")
        full[name] = int(value)
    return full


class _Read(dict):
    """Parameters that remember which of them were asked for."""

    def __init__(self, params: Params):
        super().__init__(params)
        self.names: set[str] = set()

    def __getitem__(self, name: str) -> int:
        self.names.add(name)
        return super().__getitem__(name)


def _place(choices: tuple[int, ...], value: int) -> float:
    """Where a value stands among the choices; half-way between two if it is none of them."""
    return sum(choice < value for choice in choices) + (0 if value in choices else 0.5)


def positive(name: str, value: object) -> int:
    """A size or a count, if it is a whole number from 1 on. Raises ValueError."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name} must be a positive whole number, not {value!r}")
    return int(value)


def round_up(size: int, multiple: int) -> int:
    """The next multiple of `multiple` from `size` on."""
    return -(-size // multiple) * multiple


def tiles_over(size: int, side: int) -> int:
    """How many tiles of that side it takes to cover `size` elements."""
    return -(-size // side)
