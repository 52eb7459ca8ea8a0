"""Search the settings of a kernel: all combinations of the values that its parameters offer."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from .header import Param, Params

#: How many settings a search looks at before it gives up.
LISTED = 20_000

#: Returns the parameters of the first constraint that a setting breaks, None if it is legal.
Conflict = Callable[[Params], "frozenset[str] | None"]


def nearest(
    params: Sequence[Param], start: dict[str, int], kept: set[str], conflict: Conflict
) -> dict[str, int] | None:
    """The legal setting with the fewest parameters changed from `start`, and then by the fewest
    steps; None if there is none, or if the search gave up. Those in `kept` must not change.

    The search goes from each illegal setting to those that change one parameter of the constraint
    that it breaks: the constraint stays broken until one of its parameters changes.
    """

    def distance(setting: Params) -> tuple[float, list[float]]:
        new = [_position(p.choices, setting[p.name]) for p in params]
        old = [_position(p.choices, start[p.name]) for p in params]
        return sum(abs(a - b) for a, b in zip(new, old, strict=True)), new

    level = [start]  # settings that differ from `start` in equally many parameters
    seen = 0
    while level and seen < LISTED:
        seen += len(level)
        legal = []
        changed: dict[tuple[int, ...], dict[str, int]] = {}
        for setting in level:
            broken = conflict(setting)
            if broken is None:
                legal.append(setting)
                continue
            for p in params:
                if p.name not in broken or p.name in kept or setting[p.name] != start[p.name]:
                    continue
                for value in p.choices:
                    if value != start[p.name]:
                        other = {**setting, p.name: value}
                        changed[tuple(other.values())] = other
        if legal:
            return min(legal, key=distance)
        level = list(changed.values())
    return None


def _position(choices: tuple[int, ...], value: int) -> float:
    """The position of a value among the choices; half-way between two if it is none of them."""
    return sum(choice < value for choice in choices) + (0 if value in choices else 0.5)


def drawn(params: Sequence[Param], conflict: Conflict, seed: int) -> Iterator[dict[str, int]]:
    """Legal settings drawn at random, none twice, until 20,000 draws in a row bring nothing new."""
    rng = random.Random(seed)
    seen = set()
    barren = 0
    while barren < LISTED:
        setting = {p.name: rng.choice(p.choices) for p in params}
        key = tuple(setting.values())
        barren += 1
        if key not in seen and conflict(setting) is None:
            barren = 0
            yield setting
        seen.add(key)
