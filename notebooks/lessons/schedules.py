"""What work-groups do, and when: time lines (chapters 9, 16 and 19), and Stream-K (17)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from gemmlab.draw.picture import BLUE, GREEN, INK, ORANGE, Picture, count, faint, label_rows


class Span(NamedTuple):
    """The time in which a work-group "load"s or "compute"s a tile, from start to end."""

    group: int
    what: str
    tile: int
    start: float
    end: float


#: What is drawn of a tile: its row, colour, number, start and end.
Box = tuple[int, Any, int, float, float]


def ordered(tile: int, rows: int, columns: int, order: int) -> tuple[int, int]:
    """Row and column of tile number `tile` in bands of `order` rows: down, then to the right."""
    band = tile // (order * columns) * order
    inside = min(order, rows - band)
    return band + tile % (order * columns) % inside, tile % (order * columns) // inside


def spans(tiles: int, load: float, compute: float, buffers: int = 1, groups: int = 1) -> list[Span]:
    """When each of `tiles` is loaded and computed, by work-groups that share one multiprocessor.

    A load only takes time: any number may be under way. Only one work-group computes at a time.
    With one buffer a work-group starts to load its next tile when it has finished computing with
    this one; with two buffers, when it starts; with three it has loaded one more by then. A single
    work-group ends after tiles (load + compute) with one buffer, and after
    load + (tiles - 1) max(load, compute) + compute with two.
    """
    starts = [[0.0] * max(1, buffers - 1) for _ in range(groups)]  # of the loads of each
    done, free, work = [0] * groups, 0.0, list[Span]()

    def begins(g: int) -> float:
        return max(starts[g][done[g]] + load, free)

    while waiting := [g for g in range(groups) if done[g] < tiles]:
        g = min(waiting, key=lambda g: (begins(g), done[g], g))
        loaded, start = starts[g][done[g]], begins(g)
        free = start + compute
        work.append(Span(g, "load", done[g], loaded, loaded + load))
        work.append(Span(g, "compute", done[g], start, free))
        starts[g].append(start if buffers > 1 else free)
        done[g] += 1
    return work


def pieces(tiles: int, steps: int, groups: int) -> list[list[tuple[int, int, int]]]:
    """Stream-K: the steps of all tiles in one line, cut into equal pieces; of each work-group its
    parts (tile, first step, number of steps).

    Source: Osama and others, Stream-K (PPoPP 2023).
    """
    cut: list[list[tuple[int, int, int]]] = []
    for group in range(groups):
        step, end = tiles * steps * group // groups, tiles * steps * (group + 1) // groups
        parts = []
        while step < end:
            number = min(end - step, steps - step % steps)
            parts.append((step // steps, step % steps, number))
            step += number
        cut.append(parts)
    return cut


def idle(tiles: int, steps: int, at_once: int) -> tuple[float, float]:
    """The share of a chip that is idle (0 to 1): with one work-group per tile, and equal shares.

    Up to `at_once` work-groups run at the same time; equal shares are those of `pieces`. Each tile
    takes the same number of steps, and each step the same time.
    """
    longest = max(sum(part[2] for part in parts) for parts in pieces(tiles, steps, at_once))
    waves = -(-tiles // at_once)
    return 1 - tiles / (waves * at_once), 1 - tiles * steps / (longest * at_once)


def _draw(ax: Axes, boxes: Sequence[Box], rows: Sequence[str], end: float, title: str) -> None:
    """Draw the boxes, with their tiles' numbers where these fit."""
    for row, colour, tile, start, stop in boxes:
        ax.add_artist(Rectangle((start, -row - 0.9), stop - start, 0.8, edgecolor=INK,
                                facecolor=colour, linewidth=0.5))  # fmt: skip
        if stop - start > 0.02 * end:
            ink = INK if to_rgba(colour)[3] < 0.5 else "w"
            ax.text((start + stop) / 2, -row - 0.52, str(tile), ha="center", va="center",
                    fontsize=8.5, color=ink)  # fmt: skip
    label_rows(ax, rows, 0.5)
    ax.set(xlim=(0, end), ylim=(-len(rows), 0.1))
    ax.set_title(title, color=INK, fontsize=10)


def timeline(
    tiles: int,
    load: float,
    compute: float,
    buffers: int = 1,
    groups: int = 1,
    names: tuple[str, str, str, str] = ("load", "compute", "work-group", "buffer"),
) -> Picture:
    """The `spans` of work-groups, a row for each buffer and one for computing; `names` are those of
    loading, of computing, of who loads, and of a buffer. The axis ends at 20, 40, 80 ..., so that
    pictures can be compared.
    """
    work, (loads, computes, who, where) = spans(tiles, load, compute, buffers, groups), names
    end = max(s.end for s in work)
    alt = (
        f"{count(groups, who)}, {count(buffers, where)}: done after {end:g}; {computes} "
        f"{groups * tiles * compute / end:.0%} of the time"
    )
    rows = [
        loads + f", {who} {group}" * (groups > 1) + f", {where} {buffer}" * (buffers > 1)
        for group in range(groups)
        for buffer in range(buffers)
    ]
    boxes = [
        (s.group * buffers + s.tile % buffers, faint(BLUE, 0.45), *s[2:])
        if s.what == "load"
        else (len(rows), faint(GREEN, 1 - 0.2 * s.group), *s[2:])
        for s in work
    ]
    picture = Picture(7.5, 1.2 + 0.3 * len(rows), alt)
    ax = picture.axes_plain()
    last = 20 * 2 ** max(0, math.ceil(math.log2(end / 20)))
    _draw(ax, boxes, [*rows, computes], last, alt)
    ax.set_xlabel("time")
    return picture


def shares(tiles: int, steps: int, groups: int) -> Picture:
    """One work-group per tile, and Stream-K, which gives every work-group an equal share. A fix-up
    adds the orange parts of a tile.
    """
    waves, equal = idle(tiles, steps, groups)
    cut = pieces(tiles, steps, groups)
    whole = [[(t, 0, steps) for t in range(g, tiles, groups)] for g in range(groups)]
    partial = sorted({tile for parts in cut for tile, _, number in parts if number < steps})
    alt = (
        f"{count(tiles, 'tile')} of {count(steps, 'step')} on {count(groups, 'multiprocessor')}: "
        f"one work-group per tile leaves {waves:.0%} idle, equal shares {equal:.0%}; tiles cut: "
        f"{', '.join(map(str, partial)) or 'none'}"
    )
    picture = Picture(6.8, 1.1 + 0.44 * groups, alt)
    end = steps * -(-tiles // groups) * 1.01
    rows = [f"multiprocessor {g}" for g in range(groups)]
    titles = f"one work-group per tile: {waves:.0%} idle", f"equal shares: {equal:.0%} idle"
    panels = picture.panels(2, 1)
    for ax, work, title in zip(panels, (whole, cut), titles, strict=True):
        boxes: list[Box] = []
        for group, parts in enumerate(work):
            start = 0
            for tile, _, number in parts:
                colour = ORANGE if number < steps else BLUE
                boxes.append((group, colour, tile, start, start + number))
                start += number
        _draw(ax, boxes, rows, end, title)
    panels[1].set_xlabel("time, in steps")
    return picture
