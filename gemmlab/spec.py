"""What a record of the catalog holds, and what follows from it: legal parameters, work-groups, launch sizes.

Expressions such as ``"TS // WPT"`` are plain Python over the kernel's parameters.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from numbers import Integral

from .choices import Choices, Limits, Param

__all__ = ["KernelSpec", "Limits", "Param", "ParameterError", "Rule", "Switch"]


class ParameterError(ValueError):
    """Parameters that a kernel or a device cannot take; the message holds one sentence a problem."""


@dataclass(frozen=True)
class Rule:
    """A constraint: `test` reads the same in C and in Python; `broken` says what is wrong when it fails."""

    test: str
    broken: str


@dataclass(frozen=True)
class Switch:
    """A parameter that, set to 1, asks for a feature of the device; `path` names what runs, by feature.

    Where `Limits` says that the device's compiler refuses it (`needs` is False there), `lacking` says what is missing.
    """

    param: str
    path: tuple[tuple[str, str], ...]
    needs: str = ""
    lacking: str = ""


@dataclass(frozen=True)
class KernelSpec(Choices):
    """One kernel of the ladder.

    Attributes:
        number: its number; chapter, file and tests share it.
        file: its file in ``kernels/``.
        idea: the idea in one sentence.
        params: its parameters.
        rules: constraints on the parameters.
        tile: rows and columns of C that a work-group computes (expressions).
        step: steps of k that it takes at a time (expression).
        local_size: work-items of a work-group in dimension 0 and 1 (expressions).
        local_memory: bytes of local memory a work-group (expression).
        global_loads, local_loads: loads of one float per multiply-add (expressions).
        before: the number of the kernel that this one changes, 0 for none.
        b_transposed: whether the kernel wants B as N x K instead of K x N (expression: 0 or 1).
        edges: what it does where the matrix does not fit the tiles: "pad" (nothing: sizes must be whole tiles),
            "guard" (any size), or "shift" (any size from one tile on, any K).
        aligned: A's columns, and B's as it lies, begin at multiples of so many floats (expressions).
        product_error: what a product of two floats may be off, relative to it, beside the rounding to float32
            (expression).
        pieces: floats of memory beside A, B and C, where the kernel may share a tile among work-groups (expression).
            Such a kernel takes it as a seventh argument, numbers its work-groups along dimension 0, and GROUPS
            (0: one a tile) says how many; see `joins` for who adds the pieces up. They end in GROUPS counters,
            which must be zero at the first launch.
        wide: whether it indexes with 64 bits.
        switches: parameters that ask for a feature which only some devices have.
    """

    number: int
    file: str
    idea: str
    params: tuple[Param, ...]
    rules: tuple[Rule, ...]
    tile: tuple[str, str]
    step: str
    local_size: tuple[str, str]
    local_memory: str
    global_loads: str
    local_loads: str
    before: int = 0
    b_transposed: str = "0"
    edges: str = "pad"
    aligned: tuple[str, str] = ("1", "1")
    product_error: str = "0"
    pieces: str = ""
    wide: bool = False
    switches: tuple[Switch, ...] = ()

    @property
    def name(self) -> str:
        return self.file.removesuffix(".cl").split("_", 1)[1].replace("_", " ")

    @property
    def defaults(self) -> dict[str, int]:
        return {p.name: p.default for p in self.params}

    def value(self, expression: str, params: Mapping[str, int]):
        """Evaluate one of this record's expressions for complete `params`."""
        return eval(_compiled(expression), {"__builtins__": {}}, dict(params))

    @cached_property
    def tensor(self) -> bool:
        """Whether it multiplies in TF32."""
        return "PARTS" in self.defaults

    def multiples(self, params: Mapping[str, int]) -> tuple[int, int, int]:
        """What M, N and K must be multiples of: whole tiles, or 1 if the kernel treats edges itself."""
        return self.tiles(params) if self.edges == "pad" else (1, 1, 1)

    def strides(self, m: int, n: int, k: int, params: Mapping[str, int]) -> tuple[int, int]:
        """From one column to the next, in floats: of A, and of B as the kernel wants it."""
        multiples = (self.value(e, params) for e in self.aligned)
        sizes = m, n if self.wants_transposed(params) else k
        lda, ldb = (-(-size // multiple) * multiple for size, multiple in zip(sizes, multiples, strict=True))
        return lda, ldb

    def suits(self, m: int, n: int, k: int, params: Mapping[str, int]) -> bool:
        """Whether the kernel takes compact matrices of these sizes as they are, without a copy for their edges."""
        whole = all(s % multiple == 0 for s, multiple in zip((m, n, k), self.multiples(params), strict=True))
        return whole and self.strides(m, n, k, params) == (m, n if self.wants_transposed(params) else k)

    def wants_transposed(self, params: Mapping[str, int]) -> bool:
        """Whether the kernel wants B as N x K instead of K x N."""
        return bool(self.value(self.b_transposed, params))

    def tiles(self, params: Mapping[str, int]) -> tuple[int, int, int]:
        """Rows and columns of C that a work-group computes, and steps of k that it takes at a time."""
        return tuple(self.value(e, params) for e in (*self.tile, self.step))

    def least(self, params: Mapping[str, int]) -> tuple[int, int, int]:
        """The smallest M, N and K."""
        return (*self.tiles(params)[:2], 1) if self.edges == "shift" else self.multiples(params)

    def local(self, params: Mapping[str, int]) -> tuple[int, int]:
        """Work-items of a work-group in dimensions 0 and 1."""
        return tuple(self.value(e, params) for e in self.local_size)

    def global_size(self, m: int, n: int, params: Mapping[str, int]) -> tuple[int, int]:
        """Work-items of the whole launch for an m x n result: a work-group for each tile, or GROUPS, and the `sums`."""
        tm, tn, _ = self.tiles(params)
        lm, ln = self.local(params)
        if "ORDER" in params:  # tiles numbered along dimension 0
            rows, cols = self.tiled(m, n, params)
            groups = params.get("GROUPS") or rows * cols
            return (groups + self.sums(m, n, params)) * lm, 1
        return -(-m // tm) * lm, -(-n // tn) * ln

    def tiled(self, m: int, n: int, params: Mapping[str, int]) -> tuple[int, int]:
        """Rows and columns of tiles of an m x n result: rounded up, but for what SPLIT leaves."""
        split = params.get("SPLIT", 0)
        rows, cols = (
            max(1, -(-(size - split) // side)) for size, side in zip((m, n), self.tiles(params), strict=False)
        )
        return rows, cols

    def behind(self, m: int, n: int, params: Mapping[str, int]) -> tuple[int, int]:
        """Rows and columns of an m x n result that have no tiles (SPLIT)."""
        if not params.get("SPLIT"):
            return 0, 0
        (tm, tn, _), (rows, cols) = self.tiles(params), self.tiled(m, n, params)
        return max(0, m - rows * tm), max(0, n - cols * tn)

    def sums(self, m: int, n: int, params: Mapping[str, int]) -> int:
        """Work-groups that add up those rows and columns: 4 lines of C for a work-item."""
        below, beside = self.behind(m, n, params)
        across = 8 if self.wants_transposed(params) else self.local(params)[0] // 32
        return (-(-n // (4 * across)) if below else 0) + (-(-(m - below) // (4 * 8)) if beside else 0)

    def complete(self, params: Mapping[str, int] | None) -> dict[str, int]:
        """`params` over the defaults. Raises ParameterError for unknown names, TypeError for wrong types."""
        given = {} if params is None else params
        if not isinstance(given, Mapping):
            raise TypeError(f"params must be a dict such as {self.defaults}, not {type(given).__name__}: {given!r}")
        full = self.defaults
        for name, value in given.items():
            if name not in full:
                near = difflib.get_close_matches(str(name).upper(), full, n=1, cutoff=0.3)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise ParameterError(f"kernel {self.number} has no parameter {name!r} (it has {', '.join(full)}){hint}")
            if isinstance(value, bool) or not isinstance(value, Integral):
                raise TypeError(f"{name} must be a whole number, not {type(value).__name__}: {value!r}")
            full[name] = int(value)
        return full

    def problems(self, params: Mapping[str, int], limits: Limits | None = None) -> list[str]:
        """One sentence for each constraint that complete `params` break, on a device with `limits`."""
        found = [
            f"{p.name}={params[p.name]} is out of range: it must be from {p.least} to 65536"
            for p in self.params
            if not p.least <= params[p.name] <= 65536
        ]
        if found:
            return found
        found = [rule.broken.format(**params) for rule in self.rules if not self.value(rule.test, params)]
        if found or limits is None:
            return found
        if params.get("WIDTH", 1) > limits.vector:
            found.append(f"WIDTH={params['WIDTH']}: {limits.name} takes vectors of {limits.vector} floats at most")
        if params.get("UNROLL", 1) > limits.unroll:
            found.append(f"UNROLL={params['UNROLL']}: {limits.name} compiles it too slowly; {limits.unroll} at most")
        for switch in self.switches:
            if params[switch.param] and switch.needs and not getattr(limits, switch.needs):
                found.append(f"{switch.param}=1: {limits.name} {switch.lacking}")
        local, memory = self.local(params), self.value(self.local_memory, params)
        shape = " x ".join(map(str, local))
        if local[0] * local[1] > limits.work_group:
            found.append(
                f"a work-group of {shape} = {local[0] * local[1]} work-items is over "
                f"the limit of {limits.work_group} of {limits.name}"
            )
        for dimension, (size, most) in enumerate(zip(local, limits.per_dimension, strict=False)):
            if size > most:
                found.append(
                    f"a work-group of {shape} work-items has {size} in dimension {dimension}, over "
                    f"the limit of {most} of {limits.name}"
                )
        if memory > limits.local_memory:
            found.append(
                f"{memory:,} bytes of local memory a work-group are over "
                f"the limit of {limits.local_memory:,} of {limits.name}"
            )
        return found

    def validate(self, params: Mapping[str, int] | None = None, limits: Limits | None = None) -> dict[str, int]:
        """Complete and check `params`; raise ParameterError with every problem in words."""
        full = self.complete(params)
        problems = self.problems(full, limits)
        if problems:
            raise ParameterError(f"kernel {self.number}: " + "; ".join(problems))
        return full

    def joins(self, params: Mapping[str, int], features: frozenset[str]) -> bool:
        """Whether `join.cl` adds up pieces of tiles: where there are any, and the kernel does not do it itself."""
        return bool(self.pieces and params["GROUPS"]) and not (params["LAST"] and "nvidia" in features)

    def path(self, params: Mapping[str, int], features: frozenset[str]) -> str:
        """Which of the kernel's paths runs on a device with `features`: those switched on and there, or "plain"."""
        on = [s for s in self.switches if params[s.param]]
        return ", ".join(name for s in on for feature, name in s.path if feature in features) or "plain"


@cache
def _compiled(expression: str):
    return compile(expression, f"<{expression}>", "eval")
