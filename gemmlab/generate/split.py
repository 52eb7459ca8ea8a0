"""AutoGEMM's selection: a tile that divides the sizes, or C cut into up to four launches.

A rule holds from some size on and lists tiles, the fastest first. The first one that divides M, N
and K multiplies alone. If none does, the first tile multiplies the part of C that consists of whole
tiles, and up to three more launches the rest: the rows below it, the columns next to it, and the
corner. Each launch has a kernel that guards only the edges it needs.

Source: D. Tanner, AutoGEMM, documentation of clBLAS, 2015. Three things differ: a rule has no
special tile for sizes that no tile divides; where the depth does not divide K, kernels are guarded
along k, while AutoGEMM adds a loop that is not unrolled; and products smaller than the smallest
rule use that rule.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

from ..catalog.spec import Params
from ..opencl.devices import Device
from . import table
from .table import Sizes, dimensions
from .tiles import by_rule, complete_tile, fits

#: For strips narrower than a micro-tile of a kernel without local memory, which cannot guard them.
NARROW = complete_tile({"TSM": 16, "TSN": 16, "TSK": 8, "WPTM": 2, "WPTN": 2})


class Launch(NamedTuple):
    """A rectangle of C, and what computes it."""

    row: int  # its first row
    column: int  # its first column
    rows: int
    columns: int
    tile: Params  # all parameters
    edges: str  # where its last tiles end outside: "none", "rows", "columns" or "both"


#: "size" (that of a cube, or M, N and K) and "tiles".
Rule = dict[str, Any]


def rules(kind: str, precision: str) -> list[Rule]:
    """The rules of the table for a kind of device, such as "nvidia"."""
    return table.section(kind, "tiles").get("rules", {}).get(precision, [])


def rules_for(device: Device, precision: str) -> list[Rule]:
    """The rules of the table for a device, with the tiles that it supports.

    Without any, a single rule with the tile that `by_rule` gives.
    """
    found = []
    for rule in rules(table.kind(device), precision):
        tiles = [t for t in rule["tiles"] if fits(precision, complete_tile(t), device)]
        if tiles:
            found.append({"size": rule["size"], "tiles": tiles})
    return found or [{"size": 1, "tiles": [by_rule(device, precision, (4096, 4096, 4096))]}]


def rule_at(sizes: Sizes, rules: Sequence[Rule]) -> Rule:
    """The rule of the largest area with area <= M N, or that of the smallest area.

    Args:
        sizes: M, N and K of the column-major product.
        rules: at least one, in any order.
    """

    def area(rule: Rule) -> int:
        return prod(dimensions(rule["size"])[:2])

    reached = [rule for rule in rules if area(rule) <= sizes[0] * sizes[1]]
    return max(reached, key=area) if reached else min(rules, key=area)


def launches(sizes: Sizes, rules: Sequence[Rule]) -> list[Launch]:
    """What multiplies M x K by K x N: one launch if a tile divides the sizes, else up to four.

    Args:
        sizes: M, N and K of the column-major product; C is M x N.
        rules: see `Rule`; tiles may omit parameters, which `tiles.DEFAULTS` gives.

    Returns:
        Rectangles that cover C without overlap, the main part first. None if C is empty.

    Raises:
        ParameterError: for parameters of a tile that do not exist.
    """
    tiles = [complete_tile(tile) for tile in rule_at(sizes, rules)["tiles"]]
    return cut(sizes, next((tile for tile in tiles if _divides(tile, sizes)), tiles[0]))


def _divides(tile: Params, sizes: Sizes) -> bool:
    """Whether M, N and K consist of whole tiles and steps."""
    sides = (tile["TSM"], tile["TSN"], tile["TSK"])
    return all(size % side == 0 for size, side in zip(sizes, sides, strict=True))


def counts(shapes: Iterable[Sizes], rules: Sequence[Rule]) -> dict[int, int]:
    """How many of the shapes (M, N and K from 1 on) take one launch, two, and four."""
    found = Counter(len(launches(sizes, rules)) for sizes in shapes)
    return {number: found[number] for number in (1, 2, 4)}


def cut(sizes: Sizes, tile: Params) -> list[Launch]:
    """C as whole tiles, the row edge, the column edge and the corner, without empty ones."""
    m, n, _ = sizes
    whole_m, whole_n = m // tile["TSM"] * tile["TSM"], n // tile["TSN"] * tile["TSN"]
    rectangles = [
        (0, 0, whole_m, whole_n, "none"),
        (whole_m, 0, m - whole_m, whole_n, "rows"),
        (0, whole_n, whole_m, n - whole_n, "columns"),
        (whole_m, whole_n, m - whole_m, n - whole_n, "both"),
    ]
    return [
        Launch(row, column, rows, columns, _tile_for(rows, columns, tile), edges)
        for row, column, rows, columns, edges in rectangles
        if rows and columns
    ]


def _tile_for(rows: int, columns: int, tile: Params) -> Params:
    """The tile, or a narrow one for a strip narrower than a micro-tile that cannot be guarded."""
    strip = rows < tile["WPTM"] or columns < tile["WPTN"]
    return NARROW if tile["STAGES"] == 0 and strip else tile
