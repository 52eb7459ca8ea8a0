"""Control divergence of guarded tile loads: warps in which some work-items load and others must not.

A work-group of tile x tile work-items loads tiles of A (m x k) and of B (k x n), one element per work-item; the guard
is false outside the matrix. A warp diverges in a phase if its guard is true for some lanes and false for others. The
model and the counts that its tests know are those of the course ECE 569, Module 27, where matrices are row-major; in
our kernels they are column-major.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Part:
    """The work-groups of one type, all their warp-phases (warps times phases), and how many of these diverge."""

    groups: int
    warp_phases: int
    diverging: int


def _layout(name: str, m: int, n: int, layout: str) -> tuple[int, bool]:
    """The side of A or B that is divided among work-groups, and whether neighbouring lanes go along it."""
    if layout not in ("row-major", "column-major"):
        raise ValueError(f"layout must be 'row-major' or 'column-major', not {layout!r}")
    return {"A": (m, layout == "column-major"), "B": (n, layout == "row-major")}[name]


def _diverging_warps(fast: int, slow: int, tile: int, warp: int) -> int:
    """Warps that diverge in a tile of which only the first `fast` lanes of the first `slow` rows are inside."""

    def inside(lanes: int) -> int:
        """How many of the first `lanes` work-items of the work-group are inside the matrix."""
        rows, rest = divmod(lanes, tile)
        return fast * min(rows, slow) + (min(rest, fast) if rows < slow else 0)

    starts = range(0, tile * tile, warp)
    ends = [min(start + warp, tile * tile) for start in starts]
    return sum(0 < inside(e) - inside(s) < e - s for s, e in zip(starts, ends, strict=True))


def formula(name: str, m: int, n: int, k: int, tile: int, warp: int = 32, layout: str = "column-major"):
    """Divergence in loading the tiles of one matrix, by counting four cases.

    Work-groups of type 1 have tiles inside the matrix, except perhaps in the last phase; those of type 2 have tiles
    that reach beyond the matrix in every phase. Within a type all phases but the last are alike.

    Args:
        name: "A" or "B".
        m, n, k: sizes of the product.
        tile: rows and columns of the work-group and its tiles.
        warp: work-items per warp.
        layout: "row-major" or "column-major".

    Returns:
        {1: Part, 2: Part}.

    Raises:
        ValueError: for another layout.
    """
    cut, along = _layout(name, m, n, layout)
    other = n if name == "A" else m
    warps, phases = -(-tile * tile // warp), -(-k // tile)
    found = {}
    for kind, groups, inside in ((1, cut // tile, tile), (2, int(cut % tile > 0), cut % tile)):
        groups *= -(-other // tile)
        diverging = 0
        for times, depth in ((k // tile, tile), (int(k % tile > 0), k % tile)):
            fast, slow = (inside, depth) if along else (depth, inside)
            diverging += times * _diverging_warps(fast, slow, tile, warp)
        found[kind] = Part(groups, groups * warps * phases, groups * diverging)
    return found


def by_group(name: str, m: int, n: int, k: int, tile: int, warp: int = 32, layout: str = "column-major") -> np.ndarray:
    """Diverging warp-phases of every work-group, counted work-item by work-item.

    The arguments are those of `formula`.

    Returns:
        An int array with one element per work-group: (work-groups along m, work-groups along n).
    """
    cut, along = _layout(name, m, n, layout)
    items = np.arange(tile * tile)
    lanes, rows = items % tile, items // tile
    counts = np.zeros((-(-m // tile), -(-n // tile)), int)
    for place in np.ndindex(counts.shape):
        first = place[0 if name == "A" else 1] * tile
        for phase in range(-(-k // tile)):
            outer = first + (lanes if along else rows) < cut
            inner = phase * tile + (rows if along else lanes) < k
            guard = outer & inner
            for start in range(0, tile * tile, warp):
                some = guard[start : start + warp]
                counts[place] += some.any() and not some.all()
    return counts


def share(m: int, n: int, k: int, tile: int, warp: int = 32, layout: str = "column-major") -> float:
    """The share of all warp-phases that diverge, for the tiles of A and of B together (0 to 1)."""
    parts = [part for name in "AB" for part in formula(name, m, n, k, tile, warp, layout).values()]
    return sum(p.diverging for p in parts) / sum(p.warp_phases for p in parts)
