"""Selection as AutoGEMM has it: a tile that divides the sizes, or a cut into up to four launches.

What a kernel is, but for its tile (precision, operations, beta), must match exactly; `Configuration` sees to that. The
tile follows from the sizes. A rule holds from some size on and lists tiles, the fastest first: the first one that
divides M, N and K multiplies alone. Where none does, the rule's fallback tile multiplies the part of C that consists
of whole tiles, and up to three more launches what is left: the rows below it, the columns beside it, and the corner.
Each of them is a kernel of its own, which guards what it must and nothing else.

Source: D. Tanner, AutoGEMM, documentation of clBLAS, 2015. Two things differ. A K that the depth does not divide costs
us guards along k, where AutoGEMM takes a loop that is not unrolled; and below the smallest rule that rule holds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, NamedTuple

from ..catalog.spec import Params
from ..opencl.devices import Device
from .selection import dimensions
from .tiles import by_rule, complete_tile, divides, fits, rows_for

#: For strips that are narrower than a micro-tile of a kernel without local memory, which cannot guard them.
NARROW = complete_tile({"TSM": 16, "TSN": 16, "TSK": 8, "WPTM": 2, "WPTN": 2})


class Launch(NamedTuple):
    """A rectangle of C, and what computes it.

    Attributes:
        row, column: its first row and column.
        rows, columns: how many it has.
        tile: all parameters of the tile.
        edges: where the last tiles end outside: "none", "rows", "columns" or "both".
    """

    row: int
    column: int
    rows: int
    columns: int
    tile: Params
    edges: str


#: A row of the table: "size" (that of a cube, or M, N and K), "tiles", and if it was found, the "fallback" tile.
Rule = dict[str, Any]


def rules_for(device: Device, precision: str) -> list[Rule]:
    """The rules of ``results/family.json`` for a device: those tiles that it can take; or one tile, by the rule."""
    found = []
    for row in rows_for(device, precision):
        tiles = [tile for tile in row["tiles"] if fits(precision, tile, device)]
        fallback = row.get("fallback")
        if tiles:
            whole = fallback if fallback and fits(precision, fallback, device) else tiles[0]
            found.append({"size": row["size"], "tiles": tiles, "fallback": whole})
    return found or [{"size": 1, "tiles": [by_rule(device, precision, (4096, 4096, 4096))]}]


def rule_at(sizes: tuple[int, int, int], rules: Sequence[Rule]) -> Rule:
    """The rule of the largest size with size^2 <= M N; of the smallest size if there is none.

    Args:
        sizes: M, N and K of the column-major product.
        rules: in any order, one at least.
    """
    m, n, _ = sizes
    ordered = sorted(rules, key=lambda rule: _area(rule["size"]))
    return next((rule for rule in reversed(ordered) if _area(rule["size"]) <= m * n), ordered[0])


def _area(size) -> int:
    """M N of a size in the table."""
    return prod(dimensions(size)[:2])


def launches(sizes: tuple[int, int, int], rules: Sequence[Rule]) -> list[Launch]:
    """What multiplies M x K by K x N: one launch where a tile divides the sizes, else up to four.

    Args:
        sizes: M, N and K of the column-major product; C is M x N.
        rules: see `Rule`; "tiles" may be partial, over `tiles.DEFAULTS`.

    Returns:
        Rectangles that cover C, each element once: the main part first. None where C has no elements.

    Raises:
        ParameterError: for parameters of a tile that do not exist.
    """
    rule = rule_at(sizes, rules)
    tiles = [complete_tile(tile) for tile in rule["tiles"]]
    alone = next((tile for tile in tiles if divides(tile, sizes)), None)
    return cut(sizes, alone or complete_tile(rule.get("fallback") or tiles[0]))


def counts(shapes: Iterable[tuple[int, int, int]], rules: Sequence[Rule]) -> dict[int, int]:
    """How many of the shapes take one launch, how many two, and how many four.

    Args:
        shapes: M, N and K of each column-major product, from 1 on.
        rules: as `launches` takes them.
    """
    found = Counter(len(launches(sizes, rules)) for sizes in shapes)
    return {number: found[number] for number in (1, 2, 4)}


def cut(sizes: tuple[int, int, int], tile: Params) -> list[Launch]:
    """C in up to four rectangles: whole tiles, the row edge, the column edge, the corner; empty ones are left out."""
    m, n, _ = sizes
    whole_m, whole_n = m // tile["TSM"] * tile["TSM"], n // tile["TSN"] * tile["TSN"]
    parts = [
        (0, 0, whole_m, whole_n, "none"),
        (whole_m, 0, m - whole_m, whole_n, "rows"),
        (0, whole_n, whole_m, n - whole_n, "columns"),
        (whole_m, whole_n, m - whole_m, n - whole_n, "both"),
    ]
    return [
        Launch(row, column, rows, columns, _serving(tile, rows, columns), edges)
        for row, column, rows, columns, edges in parts
        if rows and columns
    ]


def _serving(tile: Params, rows: int, columns: int) -> Params:
    """The tile, or a narrow one where the rectangle is smaller than a micro-tile that cannot be guarded."""
    narrow = tile["STAGES"] == 0 and (rows < tile["WPTM"] or columns < tile["WPTN"])
    return NARROW if narrow else tile
