"""Time on paper: loads beside computing, the tiles of kernel 13, kernel 15's order, equal shares of all steps."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A stretch of a time line: a group loads or computes a tile."""

    group: int
    what: str
    tile: int
    start: float
    end: float


def ordered(tile: int, rows: int, columns: int, order: int) -> tuple[int, int]:
    """Row and column of a tile that is number `tile` in kernel 15's order: down `order` rows, then on to the right."""
    band = tile // (order * columns) * order
    inside = min(order, rows - band)
    return band + tile % (order * columns) % inside, tile % (order * columns) // inside


def timeline(tiles: int, load: float, compute: float, buffers: int = 1, groups: int = 1) -> list[Span]:
    """When each tile is loaded and computed, by groups that share one multiprocessor.

    A load is a wait: many may be under way. Only one group computes at a time. With one buffer a group asks for
    its next tile when it has computed this one; with two, when it begins to. For one group the end is at
    tiles (load + compute), or load + (tiles - 1) max(load, compute) + compute.
    """
    if tiles < 1 or groups < 1 or buffers not in (1, 2):
        raise ValueError(f"tiles={tiles} and groups={groups} must be at least 1, buffers={buffers} 1 or 2")
    spans = [Span(g, "load", 0, 0.0, load) for g in range(groups)]
    ready, tile, free = dict.fromkeys(range(groups), load), dict.fromkeys(range(groups), 0), 0.0
    while ready:
        g = min(ready, key=lambda g: (max(ready[g], free), tile[g], g))
        start = max(ready.pop(g), free)
        free = start + compute
        spans.append(Span(g, "compute", tile[g], start, free))
        tile[g] += 1
        if tile[g] < tiles:
            asked = start if buffers == 2 else free
            spans.append(Span(g, "load", tile[g], asked, asked + load))
            ready[g] = asked + load
    return spans


def pieces(tiles: int, steps: int, groups: int) -> list[list[tuple[int, int, int]]]:
    """What each group does of a line of tiles x steps that is cut into equal pieces: (tile, first step, steps)."""
    found: list[list[tuple[int, int, int]]] = []
    for group in range(groups):
        step, end = tiles * steps * group // groups, tiles * steps * (group + 1) // groups
        found.append([])
        while step < end:
            number = min(end - step, steps - step % steps)
            found[-1].append((step // steps, step % steps, number))
            step += number
    return found


def idle(tiles: int, steps: int, places: int) -> tuple[float, float]:
    """The share of places that have nothing to do: with one group a tile, wave after wave, and with equal shares."""
    longest = max(sum(part[2] for part in parts) for parts in pieces(tiles, steps, places))
    return 1 - tiles / (-(-tiles // places) * places), 1 - tiles * steps / (longest * places)


def shifts(m: int, n: int, rows: int, cols: int) -> list[tuple[int, int, int, int]]:
    """The tiles of an m x n matrix in kernel 13, numbered down the columns: first row, first column, moved up, left.

    A tile that would reach beyond the matrix is moved back until it lies inside; what it owns stays where it was.
    Needs m >= rows and n >= cols.
    """
    if m < rows or n < cols:
        raise ValueError(f"{m} x {n} is less than a tile of {rows} x {cols}")
    found = []
    for left in range(0, n, cols):
        for top in range(0, m, rows):
            first = min(top, m - rows), min(left, n - cols)
            found.append((*first, top - first[0], left - first[1]))
    return found
