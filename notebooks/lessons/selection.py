"""AutoGEMM's selection of a tile, for chapter 14.

A rule holds from some size on and lists tiles, the fastest first. The first one that divides M, N
and K multiplies alone. If none does, the first one cuts C into up to four launches.

Source: D. Tanner, AutoGEMM, documentation of clBLAS, 2015. There a rule has a tile of its own for
sizes that no tile divides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from gemmlab.generate import candidates
from gemmlab.generate.candidates import Sizes, dimensions
from gemmlab.generate.tiles import Launch, complete_tile, cut

#: "size" (that of a cube, or M, N and K) and "tiles".
Rule = dict[str, Any]
#: A tile's sides along M, N and K.
SIDES = ("TSM", "TSN", "TSK")


def rules(letter: str) -> list[Rule]:
    """The rules that were found on an H200, for "d", "c" or "z"."""
    return candidates.section("nvidia", "tiles")["rules"][letter]


def launches(sizes: Sizes, rules: Sequence[Rule]) -> list[Launch]:
    """What multiplies M x K by K x N: one launch if a tile divides the sizes, else up to four.

    The rule is that of the largest area with area <= M N, or that of the smallest area.
    """

    def area(rule: Rule) -> int:
        return prod(dimensions(rule["size"])[:2])

    reached = [rule for rule in rules if area(rule) <= sizes[0] * sizes[1]]
    rule = max(reached, key=area) if reached else min(rules, key=area)
    tiles = [complete_tile(tile) for tile in rule["tiles"]]
    whole = [
        tile
        for tile in tiles
        if not any(size % tile[side] for size, side in zip(sizes, SIDES, strict=True))
    ]
    return cut(sizes, [*whole, tiles[0]][0])


def counts(shapes: Iterable[Sizes], rules: Sequence[Rule]) -> dict[int, int]:
    """How many of the shapes (M, N and K from 1 on) take one launch, two, and four."""
    found = Counter(len(launches(sizes, rules)) for sizes in shapes)
    return {number: found[number] for number in (1, 2, 4)}
