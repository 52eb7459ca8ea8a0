"""Control divergence of guarded tile loads, for chapter 12.

A work-group of tile x tile work-items loads tiles of A (m x k) and of B (k x n), one element per
work-item; the guard is false outside the matrix. A warp diverges in a phase if its guard is true
for some lanes and false for others. The model and the counts in its tests are those of the course
ECE 569, Module 27, where matrices are row-major; in our kernels they are column-major.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.patches import Rectangle

from gemmlab.draw.picture import INK, ORANGE, Picture, faint


@dataclass(frozen=True)
class Part:
    """The work-groups of one type, their warp-phases (warps times phases), and how many diverge."""

    groups: int
    warp_phases: int
    diverging: int


def _layout(name: str, m: int, n: int, layout: str) -> tuple[int, bool]:
    """The side of A or B cut among work-groups, and whether neighbouring lanes go along it."""
    return {"A": (m, layout == "column-major"), "B": (n, layout == "row-major")}[name]


def _diverging_warps(fast: int, slow: int, tile: int, warp: int) -> int:
    """Warps that diverge where only the first `fast` lanes of the first `slow` rows are inside."""
    items = np.arange(tile * tile)
    inside = (items % tile < fast) & (items // tile < slow)
    warps = [inside[start : start + warp] for start in range(0, tile * tile, warp)]
    return sum(bool(lanes.any() and not lanes.all()) for lanes in warps)


def formula(
    name: str, m: int, n: int, k: int, tile: int, warp: int = 32, layout: str = "column-major"
) -> dict[int, Part]:
    """Divergence in loading the tiles of A or B (`name`), by counting four cases.

    Work-groups of type 1 have tiles inside the matrix, except perhaps in the last phase; those of
    type 2 have tiles that reach beyond the matrix in every phase. Within a type all phases but the
    last are alike. A work-group and its tiles have `tile` rows and columns, a warp `warp` items.
    """
    cut, along = _layout(name, m, n, layout)
    across = -(-(n if name == "A" else m) // tile)
    warps, phases = -(-tile * tile // warp), -(-k // tile)
    parts = {}
    for kind, groups, inside in ((1, cut // tile, tile), (2, int(cut % tile > 0), cut % tile)):
        diverging = 0
        for times, depth in ((k // tile, tile), (int(k % tile > 0), k % tile)):
            fast, slow = (inside, depth) if along else (depth, inside)
            diverging += times * _diverging_warps(fast, slow, tile, warp)
        number = groups * across
        parts[kind] = Part(number, number * warps * phases, number * diverging)
    return parts


def share(m: int, n: int, k: int, tile: int, warp: int = 32, layout: str = "column-major") -> float:
    """The share of all warp-phases that diverge, for the tiles of A and of B (0 to 1)."""
    parts = [part for x in "AB" for part in formula(x, m, n, k, tile, warp, layout).values()]
    return sum(p.diverging for p in parts) / sum(p.warp_phases for p in parts)


def draw(
    name: str, m: int, n: int, k: int, tile: int, warp: int = 32, layout: str = "column-major"
) -> Picture:
    """The grid of work-groups, each with its number of diverging warp-phases."""
    parts = formula(name, m, n, k, tile, warp, layout)
    diverging = sum(part.diverging for part in parts.values())
    warp_phases = sum(part.warp_phases for part in parts.values())
    alt = f"Loading tiles of {name}, {layout}: {diverging} of {warp_phases} warp-phases diverge"
    rows, columns = -(-m // tile), -(-n // tile)
    last = (m // tile, n) if name == "A" else (m, n // tile)  # the first groups of type 2
    picture = Picture(5.5, 0.9 + 0.32 * rows, alt)
    ax = picture.axes_plain()
    for row, col in np.ndindex(rows, columns):
        part = parts[1 + (row >= last[0] or col >= last[1])]
        share = part.diverging / part.warp_phases
        ax.add_artist(Rectangle((col, -row - 1), 0.94, 0.92, facecolor=faint(ORANGE, share),
                                edgecolor=INK, linewidth=0.4))  # fmt: skip
        if rows * columns <= 150:
            ax.text(col + 0.47, -row - 0.54, str(part.diverging // part.groups), ha="center",
                    va="center", fontsize=7.5, color="w" if share > 0.5 else INK)  # fmt: skip
    ax.set(xlim=(0, columns), ylim=(-rows, 0), xticks=[], yticks=[])
    ax.set(xlabel="work-groups along N", ylabel="along M")
    ax.set_title(alt, color=INK, fontsize=9)
    return picture
