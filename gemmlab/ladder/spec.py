"""What the catalog knows about a kernel, and what follows from it. No device is needed.

Parameters and rules are read from the header of the kernel's file (see `header`). A `KernelSpec`
states the rest: tiles, work-groups, local memory and loads, as expressions of the parameters.
Methods take the complete parameters as a mapping, such as ``{"TS": 32, "WPT": 8}``.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from math import prod
from numbers import Integral
from pathlib import PurePath
from typing import NamedTuple

from . import header, sources, space
from .header import LARGEST, Param, Params, Rule

#: What a kernel is called: a number on the ladder, a name in production.
Key = int | str


class ParameterError(ValueError):
    """Parameters that a kernel or a device does not support: one sentence for each problem."""

    __module__ = "gemmlab"  # as users import it, and as tracebacks show it


@dataclass(frozen=True)
class Limits:
    """What a device allows."""

    name: str  # the device, for messages
    work_group: int  # work-items per work-group
    per_dimension: tuple[int, ...]  # the same in dimensions 0, 1, 2
    local_memory: int  # bytes per work-group
    vector: int = 16  # numbers in the widest vector that its compiler supports
    vector_bytes: int = 64  # bytes in the widest vector
    unroll: int = 16  # iterations that its compiler can unroll without taking seconds
    asynchronous: bool = True  # it has asynchronous copies and TF32 (compute capability 8.0)
    warpgroups: bool = True  # it has the instructions of warpgroups (compute capability 9.0 only)


@dataclass(frozen=True)
class Switch:
    """A parameter that turns on a feature of the device; `path` names what runs then, by feature.

    Where the attribute `needs` of `Limits` is False, the device's compiler refuses the switch, and
    `lacking` says what is missing.
    """

    param: str
    path: tuple[tuple[str, str], ...]
    needs: str = ""
    lacking: str = ""


class Broken(NamedTuple):
    """A constraint that a setting violates: the parameters involved, and the reason in words."""

    names: frozenset[str]
    sentence: str


@dataclass(frozen=True, eq=False, repr=False)
class KernelSpec:
    """One kernel: what its file cannot state."""

    file: str  # in ``kernels/``
    # Expressions of the parameters:
    tile: str  # rows and columns of C that a work-group computes, and steps of k per iteration
    block: str = "1, 1"  # the same of a work-item, or a warp with tensor cores; "" if of neither
    work_group: str = ""  # work-items in dimensions 0 and 1, where tile and block do not say so
    local_floats: str = ""  # of local memory per work-group, if not those of the file's arrays
    alignments: str = "1, 1"  # the leading dimensions of A and of B are multiples of these, floats
    workspace_floats: str = ""  # floats for partial tiles, the seventh argument; "" for none
    b_transposed: bool = False  # it expects B as N x K; a parameter TRANSPOSED has precedence
    warps: bool = False  # its work-items are numbered along dimension 0 alone
    one_dimensional: bool = False  # its work-groups, too: as many as tiles, or GROUPS
    # How it treats sizes that are not multiples of the tile: "pad" (it needs multiples), "guard"
    # (it takes any size), or "shift" (any size of at least one tile, and any K).
    edges: str = "pad"
    wide: bool = False  # it indexes with 64 bits
    tensor: bool = False  # it multiplies in TF32
    turns: bool = False  # it can store the transpose of C (see `text`)
    fixup: bool = False  # a second launch (`fixup.cl`) adds up the parts of shared tiles
    adds_up: bool = False  # on NVIDIA's GPUs the last work-group of a tile does so instead
    switches: tuple[Switch, ...] = ()  # parameters for features that only some devices have

    def __repr__(self) -> str:
        return f"<kernel {self.number}, {self.name}>"

    # Read from the file and its name.

    @cached_property
    def number(self) -> Key:
        """The number that chapter, file and tests share, or the name of a production kernel."""
        return key(PurePath(self.file).stem)

    @cached_property
    def before(self) -> Key:
        """The number or name of the kernel that this one changes, 0 for none."""
        return key(header.predecessor(sources.read(self.file)) or "0")

    @property
    def idea(self) -> str:
        """The idea in a sentence."""
        return header.idea(sources.read(self.file))

    @property
    def name(self) -> str:
        """Such as "register blocking"."""
        return PurePath(self.file).stem.lstrip("0123456789_").replace("_", " ")

    @cached_property
    def params(self) -> tuple[Param, ...]:
        """Its parameters."""
        return header.parameters(sources.read(self.file))

    @cached_property
    def rules(self) -> tuple[Rule, ...]:
        """Constraints on its parameters."""
        return header.rules(sources.read(self.file))

    @property
    def defaults(self) -> dict[str, int]:
        return {p.name: p.default for p in self.params}

    # What follows from the parameters.

    def tiles(self, p: Params) -> tuple[int, int, int]:
        """Rows and columns of C that a work-group computes, and steps of k per iteration."""
        return header.evaluated(self.tile, p)

    @cached_property
    def _items(self) -> str:
        """Work-items of a work-group in dimensions 0 and 1, as an expression."""
        if self.work_group:
            return self.work_group
        sides = zip(self.tile.split(", "), self.block.split(", "), strict=False)
        down, across = (f"{side} // {part}" for side, part in sides)
        if not self.warps:
            return f"{down}, {across}"
        return f"{down} * ({across}){' * 32' if self.tensor else ''}, 1"

    def local_size(self, p: Params) -> tuple[int, int]:
        """Work-items of a work-group in dimensions 0 and 1."""
        return header.evaluated(self._items, p)

    @cached_property
    def _local_floats(self) -> str:
        """Floats of local memory per work-group, as an expression."""
        return self.local_floats or header.local_floats(sources.read(self.file))

    def local_memory(self, p: Params) -> int:
        """Bytes of local memory per work-group."""
        return 4 * header.evaluated(self._local_floats, p)

    def global_loads(self, p: Params) -> float:
        """Floats that the text loads from global memory per multiply-add."""
        rows, cols, *_ = self.tiles(p) if self.local_memory(p) else header.evaluated(self.block, p)
        return 1 / rows + 1 / cols

    def local_loads(self, p: Params) -> float:
        """Floats that the text loads from local memory per multiply-add."""
        if not self.block or not self.local_memory(p):
            return 0.0
        rows, cols = header.evaluated(self.block, p)
        return 1 / rows + 1 / cols

    def wants_transposed(self, p: Params) -> bool:
        """Whether the kernel expects B as N x K instead of K x N."""
        return bool(p.get("TRANSPOSED", self.b_transposed))

    def alignment(self, p: Params) -> tuple[int, int]:
        """The leading dimensions of A and of B are rounded up to these multiples, in floats."""
        return header.evaluated(self.alignments, p)

    def product_error(self, p: Params) -> float:
        """The relative error of a product of two floats, before it is rounded to float32."""
        if not self.tensor:
            return 0.0
        return 2.0**-10 if p["PARTS"] == 1 else 2.0**-21

    @property
    def takes_workspace(self) -> bool:
        """Whether it has a seventh argument, memory for partial tiles (see `workspace`)."""
        return bool(self.workspace_floats)

    def workspace(self, p: Params) -> int:
        """Floats of memory for partial tiles and their counters, which start at zero."""
        return header.evaluated(self.workspace_floats or "0", p)

    def needs_fixup(self, p: Params, features: frozenset[str]) -> bool:
        """Whether a second launch (`fixup.cl`) adds up partial tiles on this device."""
        return self.fixup and bool(p["GROUPS"]) and not (self.adds_up and "nvidia" in features)

    def tile_grid(self, m: int, n: int, p: Params) -> tuple[int, int]:
        """Rows and columns of tiles that cover an m x n result."""
        rows, cols, _ = self.tiles(p)
        return tiles_over(m, rows), tiles_over(n, cols)

    def global_size(self, m: int, n: int, p: Params) -> tuple[int, int]:
        """Work-items of the whole launch for an m x n result."""
        rows, cols = self.tile_grid(m, n, p)
        across, down = self.local_size(p)
        if self.one_dimensional:
            return (p.get("GROUPS", 0) or rows * cols) * across, 1
        return rows * across, cols * down

    def multiples(self, p: Params) -> tuple[int, int, int]:
        """What M, N and K must be multiples of: a tile, or 1 if the kernel handles edges itself."""
        return self.tiles(p) if self.edges == "pad" else (1, 1, 1)

    def minimum_sizes(self, p: Params) -> tuple[int, int, int]:
        """The smallest M, N and K."""
        return (*self.tiles(p)[:2], 1) if self.edges == "shift" else self.multiples(p)

    def supported_sizes(self, m: int, n: int, k: int, p: Params) -> tuple[int, int, int]:
        """The smallest sizes from `m`, `n` and `k` on that the kernel supports."""
        limits = zip((m, n, k), self.multiples(p), self.minimum_sizes(p), strict=True)
        m, n, k = (max(round_up(size, multiple), least) for size, multiple, least in limits)
        return m, n, k

    def check_sizes(self, m: int, n: int, k: int, p: Params, names: str = "MNK") -> None:
        """Raise ParameterError for sizes that the kernel does not support. `names` are those of
        the sizes in the message, a letter each.
        """
        limits = zip(names, (m, n, k), self.multiples(p), self.minimum_sizes(p), strict=True)
        for name, size, multiple, least in limits:
            if size < 1 or size % multiple:
                problem = f"is not a positive multiple of {multiple}"
            elif size < least:
                problem = f"is less than the {least} of a tile"
            else:
                continue
            params = ", ".join(f"{param}={value}" for param, value in p.items())
            others = "; edges='pad', edges='guard' and kernel 12 support any size"
            hint = "" if size % multiple else others
            raise ParameterError(
                f"{name}={size} {problem}, as kernel {self.number} needs with {params}{hint}"
            )

    def leading_dimensions(self, m: int, n: int, k: int, p: Params) -> tuple[int, int]:
        """Floats from one column to the next: of A (M x K), and of B as the kernel expects it."""
        a, b = self.alignment(p)
        return round_up(m, a), round_up(n if self.wants_transposed(p) else k, b)

    def path(self, p: Params, features: frozenset[str]) -> str:
        """Which path runs on a device: the `features` that are switched on, or "plain"."""
        on = [s for s in self.switches if p[s.param]]
        return (
            ", ".join(name for s in on for feature, name in s.path if feature in features)
            or "plain"
        )

    def text(self, p: Params, features: frozenset[str] = frozenset(), turned: bool = False) -> str:
        """Return the OpenCL C that runs with these parameters on a device with `features`; it
        compiles without options. With `turned` it stores the transpose of C, if the kernel `turns`.
        """
        values = {**p, "NVIDIA": int("nvidia" in features), "TURNED": int(turned)}
        return sources.with_values(sources.read_for(self.file, values), p)

    # Which parameters are legal.

    def complete(self, params: Params | None) -> dict[str, int]:
        """`params` over `defaults`. Raises ParameterError for unknown names, TypeError if `params`
        is not a mapping, or a value is not an integer.
        """
        return complete(f"kernel {self.number}", self.defaults, params)

    def validate(
        self, params: Params | None = None, limits: Limits | None = None
    ) -> dict[str, int]:
        """Complete and check `params`; raise ParameterError with every problem in words."""
        full = self.complete(params)
        problems = self.problems(full, limits)
        if problems:
            raise ParameterError(f"kernel {self.number}: " + "; ".join(problems))
        return full

    def problems(self, params: Params, limits: Limits | None = None) -> list[str]:
        """One sentence for each constraint that complete `params` break."""
        return [broken.sentence for broken in self._broken(params, limits)]

    def _broken(self, params: Params, limits: Limits | None) -> Iterator[Broken]:
        """The constraints that `params` break: ranges, else rules, else the limits of a device."""
        legal = True
        for p in self.params:
            if not p.least <= params[p.name] <= LARGEST:
                legal = False
                words = f"it must be from {p.least} to {LARGEST}"
                yield Broken(
                    frozenset({p.name}), f"{p.name}={params[p.name]} is out of range: {words}"
                )
        if not legal:
            return
        for rule in self.rules:
            if not rule.holds(params):
                legal = False
                yield Broken(rule.names, rule.broken.format(**params))
        if legal and limits is not None:
            yield from self._over_limits(params, limits)

    def _over_limits(self, params: Params, limits: Limits) -> Iterator[Broken]:
        """The limits of a device that legal `params` exceed."""
        if params.get("WIDTH", 1) > limits.vector:
            words = f"{limits.name} takes vectors of {limits.vector} floats at most"
            yield Broken(frozenset({"WIDTH"}), f"WIDTH={params['WIDTH']}: {words}")
        if params.get("UNROLL", 1) > limits.unroll:
            words = f"{limits.name} compiles it too slowly; {limits.unroll} at most"
            yield Broken(frozenset({"UNROLL"}), f"UNROLL={params['UNROLL']}: {words}")
        for switch in self.switches:
            if params[switch.param] and switch.needs and not getattr(limits, switch.needs):
                yield Broken(
                    frozenset({switch.param}), f"{switch.param}=1: {limits.name} {switch.lacking}"
                )
        for sentence in too_many_items(self.local_size(params), limits):
            yield Broken(header.names_in(self._items), sentence)
        for sentence in too_much_memory(self.local_memory(params), limits):
            yield Broken(header.names_in(self._local_floats), sentence)

    # Settings: combinations of the offered values.

    def nearest_legal(
        self, params: Params, moved: str, limits: Limits | None = None
    ) -> tuple[dict[str, int], list[str]]:
        """Change the other parameters as little as possible, so that `moved` may keep its value.

        Returns:
            The new parameters, and one sentence for each that changed, with what would be broken if
            it had not. If nothing legal keeps the value of `moved`, the parameters as they came,
            with the problems as sentences.
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

    def fit(self, limits: Limits, sizes: tuple[int, int, int] | None = None) -> dict[str, int]:
        """The nearest values to the defaults that a device allows, and that support M, N and K."""
        return self._nearest(self.defaults, set(), limits, sizes) or self.defaults

    def _nearest(
        self,
        start: dict[str, int],
        kept: set[str],
        limits: Limits | None,
        sizes: tuple[int, int, int] | None = None,
    ) -> dict[str, int] | None:
        def conflict(setting: Params) -> frozenset[str] | None:
            names = self._conflict(setting, limits)
            if names is None and sizes and self.supported_sizes(*sizes, setting) != sizes:
                return header.names_in(self.tile)
            return names

        return space.nearest(self.params, start, kept, conflict)

    def _conflict(self, params: Params, limits: Limits | None) -> frozenset[str] | None:
        """The parameters of the first constraint that `params` break, or None if they are legal."""
        broken = next(self._broken(params, limits), None)
        return None if broken is None else broken.names

    def sample(
        self, limits: Limits | None = None, count: int = 200, seed: int = 0
    ) -> list[dict[str, int]]:
        """At most so many legal combinations of offered values, none twice, chosen by a seed."""
        settings = space.drawn(self.params, lambda one: self._conflict(one, limits), seed)
        return list(islice(settings, count))


def too_many_items(items: tuple[int, ...], limits: Limits) -> Iterator[str]:
    """A sentence for each limit that the work-items of a work-group exceed."""
    shape = " x ".join(map(str, items))
    if prod(items) > limits.work_group:
        words = f"over the limit of {limits.work_group} of {limits.name}"
        yield f"a work-group of {shape} = {prod(items)} work-items is {words}"
    for dimension, (size, most) in enumerate(zip(items, limits.per_dimension, strict=False)):
        if size > most:
            words = f"over the limit of {most} of {limits.name}"
            yield f"a work-group of {shape} work-items has {size} in dimension {dimension}, {words}"


def too_much_memory(size_bytes: int, limits: Limits) -> Iterator[str]:
    """A sentence if a work-group needs more local memory than there is."""
    if size_bytes > limits.local_memory:
        words = f"over the limit of {limits.local_memory:,} of {limits.name}"
        yield f"{size_bytes:,} bytes of local memory per work-group are {words}"


def key(text: str) -> Key:
    """The key of a kernel that a text begins with, such as 3 of "3" and of "03_work_per_thread"; a
    name is its own key. There may be no such kernel.
    """
    number = re.match(r"\d+", text)
    return int(number[0]) if number else text


def complete(whose: str, defaults: Params, params: Params | None) -> dict[str, int]:
    """`params` over `defaults`; `whose` they are is for messages.

    Raises:
        ParameterError: for unknown names.
        TypeError: if `params` is not a mapping, or a value is not an integer.
    """
    given = {} if params is None else params
    if not isinstance(given, Mapping):
        raise TypeError(
            f"params must be a dict such as {defaults}, not {type(given).__name__}: {given!r}"
        )
    full = dict(defaults)
    for name, value in given.items():
        if name not in full:
            similar = difflib.get_close_matches(str(name).upper(), full, n=1, cutoff=0.3)
            hint = f"; did you mean {similar[0]}?" if similar else ""
            raise ParameterError(
                f"{whose} has no parameter {name!r} (it has {', '.join(full)}){hint}"
            )
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise TypeError(f"{name} must be a whole number, not {type(value).__name__}: {value!r}")
        full[name] = int(value)
    return full


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
