"""C cut into up to four launches, each with a kernel that guards only the edges it needs.

The main launch multiplies the whole tiles; the others multiply the rows below them, the columns
next to them, and the corner. The idea is that of D. Tanner, AutoGEMM, documentation of clBLAS,
2015. There a loop that is not unrolled follows where the depth does not divide K; here kernels are
guarded along k.
"""

from __future__ import annotations

from typing import NamedTuple

from ..catalog.spec import Params
from .table import Sizes
from .tiles import complete_tile

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
