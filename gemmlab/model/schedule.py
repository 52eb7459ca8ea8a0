"""Schedules on paper: loads that overlap with computing, equal shares of all steps, the tiles of kernel 13."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Span:
    """A part of a time line in which a work-group loads or computes a tile.

    Attributes:
        group: number of the work-group.
        what: "load" or "compute".
        tile: number of the tile.
        start, end: in the unit of time of `timeline`'s arguments.
    """

    group: int
    what: str
    tile: int
    start: float
    end: float


def ordered(tile: int, rows: int, columns: int, order: int) -> tuple[int, int]:
    """Row and column of a tile that is number `tile` in Stream-K's order: down `order` rows, then on to the right."""
    band = tile // (order * columns) * order
    inside = min(order, rows - band)
    return band + tile % (order * columns) % inside, tile % (order * columns) // inside


def timeline(tiles: int, load: float, compute: float, buffers: int = 1, groups: int = 1) -> list[Span]:
    """When each tile is loaded and computed, by work-groups that share one multiprocessor.

    A load only takes time: any number may be under way. Only one work-group computes at a time. With one buffer a
    work-group starts to load its next tile when it has finished computing with this one; with two buffers, when it
    starts. A single work-group ends after tiles (load + compute) with one buffer, and after
    load + (tiles - 1) max(load, compute) + compute with two.

    Args:
        tiles: tiles that each work-group needs.
        load, compute: time to load a tile and to compute with it, in any unit.
        buffers: 1 or 2.
        groups: work-groups on the multiprocessor.

    Raises:
        ValueError: if tiles or groups is less than 1, or buffers is neither 1 nor 2.
    """
    if tiles < 1 or groups < 1 or buffers not in (1, 2):
        raise ValueError(f"tiles={tiles} and groups={groups} must be at least 1, and buffers={buffers} must be 1 or 2")
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
    """Stream-K: the steps of all tiles in one line, cut into one equal piece per work-group.

    Returns:
        For each work-group its parts of tiles, in order, as (tile, first step, number of steps).

    Source: Osama and others, Stream-K (PPoPP 2023).
    """
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
    """The share of a chip's places for work-groups that is idle (0 to 1): in waves, and with equal shares.

    In waves each tile has a work-group of its own, and up to `places` of them run at a time; equal shares are those
    of `pieces`. Each tile takes the same number of steps, and each step the same time.
    """
    longest = max(sum(part[2] for part in parts) for parts in pieces(tiles, steps, places))
    return 1 - tiles / (-(-tiles // places) * places), 1 - tiles * steps / (longest * places)


def shifts(m: int, n: int, rows: int, cols: int) -> list[tuple[int, int, int, int]]:
    """The tiles of an m x n matrix in kernel 13, numbered down the columns.

    A tile that would reach beyond the matrix is moved back until it is inside. It still stores only the elements
    that it had inside the matrix before it was moved.

    Args:
        m, n: rows and columns of the matrix.
        rows, cols: of a tile.

    Returns:
        (first row, first column, rows moved up, columns moved left) of each tile.

    Raises:
        ValueError: if the matrix is smaller than a tile.
    """
    if m < rows or n < cols:
        raise ValueError(f"{m} x {n} is less than a tile of {rows} x {cols}")
    found = []
    for left in range(0, n, cols):
        for top in range(0, m, rows):
            first = min(top, m - rows), min(left, n - cols)
            found.append((*first, top - first[0], left - first[1]))
    return found
