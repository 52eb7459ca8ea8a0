"""A parameter, what a device allows, and the search among settings: legal, offered, nearest."""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache


@dataclass(frozen=True)
class Param:
    """One macro of a kernel: its default, what it means, and the values an explorer offers."""

    name: str
    default: int
    meaning: str
    choices: tuple[int, ...]
    least: int = 1


@dataclass(frozen=True)
class Limits:
    """What a device allows: work-items of a work-group in all and per dimension, bytes of local memory.

    And what its compiler takes in good time: floats in a vector, steps of a loop laid out at once; and whether it
    takes asynchronous copies and TF32 (NVIDIA's does from compute capability 8.0 on) and the instructions of
    warpgroups (9.0 alone). Other vendors' do not see them.
    """

    name: str
    work_group: int
    per_dimension: tuple[int, ...]
    local_memory: int
    vector: int = 16
    unroll: int = 16
    asynchronous: bool = True
    warpgroups: bool = True


class Choices:
    """The part of `KernelSpec` that looks for settings; it needs `params`, `complete` and `problems`."""

    def legal(self, params: Mapping[str, int] | None = None, limits: Limits | None = None) -> dict[str, tuple]:
        """For each parameter the offered values that are legal while the others stay as in `params`."""
        full = self.complete(params)
        return {
            p.name: tuple(v for v in p.choices if not self.problems({**full, p.name: v}, limits)) for p in self.params
        }

    @cache  # noqa: B019 (records live as long as the program)
    def offered(self, limits: Limits | None = None) -> tuple[dict[str, int], ...]:
        """Every legal combination of offered values."""
        names = [p.name for p in self.params]
        values = itertools.product(*(p.choices for p in self.params))
        combinations = (dict(zip(names, v, strict=True)) for v in values)
        return tuple(c for c in combinations if not self.problems(c, limits))

    def fit(self, limits: Limits) -> dict[str, int]:
        """The defaults, or where a device cannot take them the nearest offered values that it can."""
        if not self.problems(self.defaults, limits):
            return self.defaults
        return self._nearest(self.defaults, self.offered(limits)) or self.defaults

    def _nearest(self, params: Mapping[str, int], among) -> dict[str, int] | None:
        """The combination that differs from `params` in the fewest parameters, and by the fewest steps."""

        def distance(other: dict[str, int]) -> tuple:
            moved = [p for p in self.params if other[p.name] != params[p.name]]
            return len(moved), sum(abs(_place(p, other[p.name]) - _place(p, params[p.name])) for p in moved)

        return dict(min(among, key=distance)) if among else None

    def sample(self, limits: Limits, count: int | None = None, seed: int = 0) -> list[dict[str, int]]:
        """Some legal combinations of offered values: `count` at random, or until every legal pair of values occurs."""
        left = list(self.offered(limits))
        random.Random(seed).shuffle(left)
        if count is not None or len(left) <= 200:
            return left[:count]
        chosen, seen = [], set()
        for combination in left:
            pairs = set(itertools.combinations(combination.items(), 2))
            if not pairs <= seen:
                chosen.append(combination)
                seen |= pairs
        return chosen

    def settle(self, params: Mapping[str, int], moved: str, limits: Limits | None = None):
        """Move the other parameters as little as possible, so that `moved` may keep its value.

        Returns the new parameters and one sentence for each that had to move. If nothing legal keeps
        `moved`'s value, `params` come back with the problems as sentences.
        """
        full = self.complete(params)
        problems = self.problems(full, limits)
        if not problems:
            return full, []
        new = self._nearest(full, [c for c in self.offered(limits) if c[moved] == full[moved]])
        if new is None:
            return full, problems
        why = "; ".join(problems)
        return new, [f"{k} moved from {full[k]} to {new[k]}, because {why}" for k in new if new[k] != full[k]]


def _place(param: Param, value: int) -> float:
    """Where `value` stands among the choices, for "nearest"."""
    return sum(choice < value for choice in param.choices) + (0 if value in param.choices else 0.5)
