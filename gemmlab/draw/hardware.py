"""Pictures of hardware at work: banks of local memory, occupancy, time lines, divergence, shifted tiles."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from matplotlib.patches import Rectangle

from .. import model
from ..model import divergence
from .diagram import faint
from .picture import BLUE, GREEN, INK, MAGENTA, ORANGE, Picture, count, lines, time_axis


def banks(indices: Iterable[int], bank_bytes: int = 4, title: str = "") -> Picture:
    """Which bank of local memory each lane of a warp accesses, and in which turn; a box holds the lane's number.

    Args:
        indices: for each lane, the index of its float in local memory.
        bank_bytes: width of a bank, 4 or 8 bytes.
        title: put in front of the description.
    """
    indices = [int(i) for i in indices]
    needed = model.turns(indices, bank_bytes)
    said = "no conflict" if needed == 1 else f"{needed}-way conflict"
    alt = f"{title}{len(indices)} lanes take {count(needed, 'turn')}: {said}"
    picture, shown = Picture(8, 4.9, alt), max(needed, 16)  # one scale, so that fewer turns look like fewer
    ax = picture.axes_plain()
    turn: dict[int, list[int]] = {}
    for lane, i in enumerate(indices):
        word = 4 * i // bank_bytes
        bank = turn.setdefault(word % 32, [])
        if word not in bank:
            bank.append(word)
        row = bank.index(word)
        colour = GREEN if needed == 1 else ORANGE if row else BLUE
        shift = 0.5 * (i % 2) if bank_bytes == 8 else 0  # the two floats of a wide bank side by side
        width = 0.5 if bank_bytes == 8 else 1
        ax.add_artist(Rectangle((word % 32 + shift, -row - 1), width, 0.9, facecolor=colour, edgecolor="none"))
        middle = word % 32 + shift + width / 2
        ax.text(middle, -row - 0.55, str(lane), ha="center", va="center", fontsize=8.5 * width**0.5, color="w")
    boxes = [[(x, -needed), (x, 0.1)] for x in range(33)]
    lines(ax, boxes, linewidth=0.5, alpha=0.7)
    ax.set(xlim=(-0.2, 32.2), ylim=(-shown - 0.2, 0.3), xlabel=f"bank ({bank_bytes} bytes wide)", ylabel="turn")
    ax.set_xticks([i + 0.5 for i in range(0, 32, 4)], [str(i) for i in range(0, 32, 4)])
    marks = range(0, needed, max(1, needed // 8))
    ax.set_yticks([-i - 0.5 for i in marks], [str(i + 1) for i in marks])
    return picture


def occupancy(chip: model.Multiprocessor, work_items: int, registers: int, local_memory: int) -> Picture:
    """How many work-groups fit on a multiprocessor at once, and how much of each shared resource they take."""
    fits = model.occupancy(chip, work_items, registers, local_memory)
    shares = model.occupancy_shares(chip, work_items, registers, local_memory)
    groups = min(fits.values())
    limit = " and ".join(name for name, most in fits.items() if most == groups)
    warps = groups * -(-work_items // chip.warp)
    words = (
        f"{count(groups, 'work-group')} at once, {warps} of {chip.work_items // chip.warp} warps; limited by {limit}"
    )
    picture = Picture(7.5, 2.4, f"{chip.name}: {words}")
    ax = picture.axes_plain()
    for row, (name, most) in enumerate(fits.items()):
        share = shares[name]
        colour = ORANGE if most == groups else BLUE
        for g in range(groups):
            ax.add_patch(Rectangle((g * share, -row - 0.8), share - min(0.1 * share, 0.004), 0.7, facecolor=colour))
        if not most:
            ax.text(0.5, -row - 0.45, "not even one fits", ha="center", va="center", color=INK, fontsize=9)
        ax.add_patch(Rectangle((0, -row - 0.8), 1, 0.7, fill=False, edgecolor=INK))
        ax.text(1.02, -row - 0.45, f"room for {most}", va="center", color=INK, fontsize=9)
    ax.set(xlim=(0, 1.2), ylim=(-4, 0), title=f"{chip.name}: {count(groups, 'work-group')} on a multiprocessor")
    ax.set_yticks([-row - 0.45 for row in range(4)], list(fits))
    ax.set_xticks([])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)
    return picture


def timeline(tiles: int, load: float, compute: float, buffers: int = 1, groups: int = 1) -> Picture:
    """A time line of the loads and computations of the work-groups on one multiprocessor; each box is a tile."""
    spans = model.timeline(tiles, load, compute, buffers, groups)
    end = max(s.end for s in spans)
    busy = sum(s.end - s.start for s in spans if s.what == "compute") / end
    who = f"{count(groups, 'work-group')}, {count(buffers, 'buffer')}"
    alt = f"{who}: done after {end:g}, computing {busy:.0%} of the time"
    picture = Picture(8, 0.9 + 0.55 * groups, alt)
    ax = picture.axes_plain()
    for s in spans:
        row = 2 * s.group + (s.what == "compute")
        face = faint(BLUE, 0.45) if s.what == "load" else GREEN
        ax.add_artist(
            Rectangle((s.start, -row - 0.9), s.end - s.start, 0.8, facecolor=face, edgecolor=INK, linewidth=0.5)
        )
        if (s.end - s.start) / end > 0.02:
            ax.text(
                (s.start + s.end) / 2,
                -row - 0.5,
                str(s.tile),
                ha="center",
                va="center",
                fontsize=8.5,
                color=INK if s.what == "load" else "w",
            )
    rows = [f"{what}{f', group {g}' if groups > 1 else ''}" for g in range(groups) for what in ("load", "compute")]
    ax.set_yticks([-i - 0.5 for i in range(len(rows))], rows)
    ax.set(xlim=(0, time_axis(end)), ylim=(-2 * groups, 0.1), xlabel="time", title=alt)
    return picture


def diverging(name: str, m: int, n: int, k: int, tile: int, warp: int = 32, layout: str = "column-major") -> Picture:
    """The grid of work-groups, each with the number of warp-phases in which loading its tiles of A or B diverges."""
    counts = divergence.by_group(name, m, n, k, tile, warp, layout)
    of_each = -(-tile * tile // warp) * -(-k // tile)
    total = of_each * counts.size
    alt = f"Loading tiles of {name}, {layout}: {int(counts.sum())} of {total} warp-phases diverge"
    picture = Picture(5.5, 0.9 + 0.32 * counts.shape[0], alt)
    ax = picture.axes_plain()
    for (row, col), value in np.ndenumerate(counts):
        share = value / of_each
        face = faint(ORANGE, share)
        ax.add_artist(Rectangle((col, -row - 1), 0.94, 0.92, facecolor=face, edgecolor=INK, linewidth=0.4))
        if counts.size <= 150:
            ink = "w" if share > 0.5 else INK
            ax.text(col + 0.47, -row - 0.54, str(value), ha="center", va="center", color=ink, fontsize=7.5)
    ax.set(xlim=(0, counts.shape[1]), ylim=(-counts.shape[0], 0), xlabel="work-groups along N", ylabel="along M")
    ax.set_title(alt, color=INK, fontsize=9)
    ax.set_xticks([])
    ax.set_yticks([])
    return picture


def shifts(m: int, n: int, rows: int, cols: int) -> Picture:
    """The tiles of an m x n matrix after the last ones have moved back inside, numbered down the columns."""
    groups = model.shifts(m, n, rows, cols)
    by_way = {way: [g for g, (_, _, up, left) in enumerate(groups) if (up > 0, left > 0) == flags]
              for way, flags in (("up", (True, False)), ("left", (False, True)), ("both", (True, True)))}  # fmt: skip
    words = {"up": "up", "left": "left", "both": "both ways"}
    said = ", ".join(
        f"{', '.join(map(str, who))} move{'s' if len(who) == 1 else ''} {words[way]}"
        for way, who in by_way.items()
        if who
    )
    alt = f"{m} x {n} in tiles of {rows} x {cols}, {count(len(groups), 'work-group')}: {said or 'none moves'}"
    picture = Picture(6.5, 3.6, alt)
    ax = picture.axes_plain()
    for g, (top, left, up, over) in enumerate(groups):
        colour = {(False, False): BLUE, (True, False): ORANGE, (False, True): GREEN, (True, True): MAGENTA}[
            up > 0, over > 0
        ]
        ax.add_patch(Rectangle((left + 0.1, -top - rows + 0.1), cols - 0.2, rows - 0.2, facecolor=faint(colour, 0.35),
                               edgecolor=colour, linewidth=1.2))  # fmt: skip
        first = left + over + 0.6, -(top + up + 0.6)  # the first element that it owns, which no other tile covers
        ax.text(*first, str(g), ha="center", va="center", color=INK, fontsize=9)
    ax.add_patch(Rectangle((0, -m), n, m, fill=False, edgecolor=INK, linewidth=1.5))
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.autoscale_view()
    return picture
