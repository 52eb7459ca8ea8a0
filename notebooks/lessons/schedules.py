"""Time lines for chapters 9, 16, 17 and 19: what a work-group loads and computes, and when."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from gemmlab import model
from gemmlab.draw.picture import BLUE, GREEN, INK, ORANGE, Picture, count, faint, label_rows


class Box(NamedTuple):
    """A tile on a time line: its row, when it begins, how long it takes, colour, number."""

    row: int
    start: float
    length: float
    colour: str | tuple[float, float, float, float]
    tile: int


def _draw(ax: Axes, boxes: Sequence[Box], rows: Sequence[str], end: float, title: str) -> None:
    """Draw the boxes, with their tiles' numbers where these fit."""
    for box in boxes:
        ax.add_artist(Rectangle((box.start, -box.row - 0.9), box.length, 0.8, edgecolor=INK,
                                facecolor=box.colour, linewidth=0.5))  # fmt: skip
        if box.length / end > 0.02:
            middle = (box.start + box.length / 2, -box.row - 0.52)
            ink = INK if to_rgba(box.colour)[3] < 1 else "w"
            ax.text(*middle, str(box.tile), ha="center", va="center", fontsize=8.5, color=ink)
    label_rows(ax, rows, 0.5)
    ax.set(xlim=(0, end), ylim=(-len(rows), 0.1))
    ax.set_title(title, color=INK, fontsize=10)


def _time_line(boxes: Sequence[Box], rows: Sequence[str], alt: str) -> Picture:
    """A picture whose time axis ends at 20, 40, 80 ..., so that two of them can be compared."""
    end = max(box.start + box.length for box in boxes)
    picture = Picture(7.5, 0.9 + 0.3 * len(rows), alt)
    ax = picture.axes_plain()
    _draw(ax, boxes, rows, 20 * 2 ** max(0, math.ceil(math.log2(end / 20))), alt)
    ax.set_xlabel("time")
    return picture


def timeline(tiles: int, load: float, compute: float, buffers: int = 1, groups: int = 1) -> Picture:
    """Loads and computations of the work-groups on one multiprocessor (`model.timeline`)."""
    spans = model.timeline(tiles, load, compute, buffers, groups)
    boxes = []
    for s in spans:
        computes = s.what == "compute"
        colour = GREEN if computes else faint(BLUE, 0.45)
        boxes.append(Box(2 * s.group + computes, s.start, s.end - s.start, colour, s.tile))
    end = max(s.end for s in spans)
    busy = groups * tiles * compute / end
    who = f"{count(groups, 'work-group')}, {count(buffers, 'buffer')}"
    names = [f", group {g}" for g in range(groups)] if groups > 1 else [""]
    rows = [f"{what}{name}" for name in names for what in ("load", "compute")]
    alt = f"{who}: done after {end:g}, computing {busy:.0%} of the time"
    return _time_line(boxes, rows, alt)


def stages(tiles: int, copy: float, multiply: float, STAGES: int = 2) -> Picture:
    """One work-group with asynchronous copies.

    The copy of tile t + STAGES - 1 starts with the multiplication of tile t; the work-group waits
    for a copy only when its tile is next.

    Args:
        tiles: how many tiles the work-group multiplies.
        copy, multiply: the time to copy a tile and to multiply it, in any unit.
        STAGES: tiles in local memory at the same time.
    """
    starts, end, boxes = [0.0] * (STAGES - 1), 0.0, []
    for t in range(tiles):
        begin = max(starts[t] + copy, end)
        boxes.append(Box(t % STAGES, starts[t], copy, faint(BLUE, 0.45), t))
        boxes.append(Box(STAGES, begin, multiply, GREEN, t))
        starts.append(begin)
        end = begin + multiply
    busy = tiles * multiply / end
    alt = f"{count(STAGES, 'stage')}: done after {end:g}, multiplying {busy:.0%} of the time"
    return _time_line(boxes, [*(f"copy, stage {s}" for s in range(STAGES)), "multiply"], alt)


def waiting(
    prepare: float, multiply: float, warps: int = 1, waits: bool = True, tiles: int = 6
) -> Picture:
    """Warps that share a tensor core: each prepares numbers for a tile, and has it multiplied.

    Args:
        prepare, multiply: the time that each takes for a tile, in any unit.
        warps: that share the tensor core.
        waits: whether a warp waits for its instruction, or prepares the next tile meanwhile.
        tiles: of each warp.
    """
    spans = model.timeline(tiles, prepare, multiply, 1 if waits else 2, warps)
    boxes = []
    for s in spans:
        row, colour = (s.group, faint(ORANGE, 0.45)) if s.what == "load" else (warps, GREEN)
        boxes.append(Box(row, s.start, s.end - s.start, colour, s.tile))
    busy = warps * tiles * multiply / max(s.end for s in spans)
    verb = "wait" if waits else "go on"
    if warps == 1:
        verb = "waits" if waits else "goes on"
    alt = f"{count(warps, 'warp')} that {verb}: the tensor core is busy {busy:.0%} of the time"
    return _time_line(boxes, [*(f"warp {w} prepares" for w in range(warps)), "tensor core"], alt)


def shares(tiles: int, steps: int, groups: int) -> Picture:
    """One work-group per tile, and Stream-K, which gives every work-group an equal share.

    A part of a tile is orange: a fix-up adds it to the other parts of its tile.

    Args:
        tiles: tiles of C.
        steps: tiles of A and B that each of them needs.
        groups: places for work-groups that run at the same time.
    """
    waves, equal = model.idle(tiles, steps, groups)
    cut = model.pieces(tiles, steps, groups)
    whole = [[(t, 0, steps) for t in range(g, tiles, groups)] for g in range(groups)]
    pieces = [part[0] for parts in cut for part in parts]
    several = ", ".join(str(t) for t in range(tiles) if pieces.count(t) > 1)
    alt = (
        f"{count(tiles, 'tile')} of {count(steps, 'step')} on {count(groups, 'place')}: one "
        f"work-group per tile leaves {waves:.0%} idle, equal shares {equal:.0%}; tiles cut: "
        f"{several or 'none'}"
    )
    picture = Picture(6.8, 1.1 + 0.44 * groups, alt)
    end = steps * -(-tiles // groups) * 1.01
    rows = [f"place {g}" for g in range(groups)]
    for ax, shared, name, idle in zip(picture.panels(2, 1), (whole, cut),
                                      ("one work-group per tile", "equal shares"),
                                      (waves, equal), strict=True):  # fmt: skip
        boxes = []
        for g, parts in enumerate(shared):
            start = 0
            for tile, _, number in parts:
                boxes.append(Box(g, start, number, ORANGE if number < steps else BLUE, tile))
                start += number
        _draw(ax, boxes, rows, end, f"{name}: {idle:.0%} of the places idle")
    ax.set_xlabel("time, in steps")
    return picture
