"""Pictures of hardware at work: transposes and banks (chapter 5), occupancy (6), shifts (13)."""

from __future__ import annotations

from collections.abc import Iterable

from matplotlib.patches import Rectangle

from gemmlab import model
from gemmlab.draw.picture import (
    BLUE,
    GREEN,
    INK,
    MAGENTA,
    ORANGE,
    Picture,
    count,
    faint,
    label_rows,
    lines,
)

#: Colour of a shifted tile by whether it moves (up, left), and the words of the description.
_SHIFTS = {
    (False, False): (BLUE, ""),
    (True, False): (ORANGE, "up"),
    (False, True): (GREEN, "left"),
    (True, True): (MAGENTA, "both ways"),
}


def banks(indices: Iterable[int], bank_bytes: int = 4) -> Picture:
    """Which bank of local memory, of 4 or 8 bytes, each lane of a warp accesses, and in which turn;
    `indices` are those of their floats. Two floats share a wide bank.
    """
    indices = [int(i) for i in indices]
    needed = model.turns(indices, bank_bytes)
    conflict = "no conflict" if needed == 1 else f"{needed}-way conflict"
    alt = f"{len(indices)} lanes take {count(needed, 'turn')}: {conflict}"
    picture = Picture(8, 4.9, alt)
    ax = picture.axes_plain()
    in_bank: dict[int, list[int]] = {}
    width = 4 / bank_bytes
    for lane, index in enumerate(indices):
        word = 4 * index // bank_bytes
        words = in_bank.setdefault(word % 32, [])
        if word not in words:
            words.append(word)
        turn = words.index(word)
        colour = GREEN if needed == 1 else ORANGE if turn else BLUE
        left = word % 32 + (index * width) % 1
        ax.add_artist(Rectangle((left, -turn - 1), width, 0.9, facecolor=colour))
        ax.text(left + width / 2, -turn - 0.55, str(lane), ha="center", va="center", color="w",
                fontsize=8.5 * width**0.5)  # fmt: skip
    lines(ax, [[(x, -needed), (x, 0.1)] for x in range(33)], linewidth=0.5, alpha=0.7)
    shown = max(needed, 16)  # one scale: fewer turns must look like fewer
    ax.set(xlim=(-0.2, 32.2), ylim=(-shown - 0.2, 0.3), ylabel="turn")
    ax.set_xlabel(f"bank ({bank_bytes} bytes wide)")
    ax.set_xticks([i + 0.5 for i in range(0, 32, 4)], [str(i) for i in range(0, 32, 4)])
    marks = range(0, needed, max(1, needed // 8))
    ax.set_yticks([-i - 0.5 for i in marks], [str(i + 1) for i in marks])
    return picture


def occupancy(chip: model.Chip, work_items: int, registers: int, local_memory: int) -> Picture:
    """How many work-groups fit on a multiprocessor (`model.occupancy`), and what they take."""
    fits = model.occupancy(chip, work_items, registers, local_memory)
    shares = model.occupancy_shares(chip, work_items, registers, local_memory)
    groups = min(fits.values())
    limit = " and ".join(name for name, most in fits.items() if most == groups)
    warps = f"{groups * -(-work_items // chip.warp)} of {chip.work_items // chip.warp} warps"
    alt = f"{chip.name}: {count(groups, 'work-group')} at once, {warps}; limited by {limit}"
    picture = Picture(7.5, 2.4, alt)
    ax = picture.axes_plain()
    for row, (name, most) in enumerate(fits.items()):
        share, y = shares[name], -row - 0.8
        colour = ORANGE if most == groups else BLUE
        for group in range(groups):
            gap = min(0.1 * share, 0.004)
            ax.add_patch(Rectangle((group * share, y), share - gap, 0.7, facecolor=colour))
        if not most:
            ax.text(0.5, y + 0.35, "not even one fits", ha="center", va="center", color=INK,
                    fontsize=9)  # fmt: skip
        ax.add_patch(Rectangle((0, y), 1, 0.7, fill=False, edgecolor=INK))
        ax.text(1.02, y + 0.35, f"room for {most}", va="center", color=INK, fontsize=9)
    title = f"{chip.name}: {count(groups, 'work-group')} on a multiprocessor"
    ax.set(xlim=(0, 1.2), ylim=(-4, 0), xticks=[], title=title)
    label_rows(ax, list(fits), 0.45)
    ax.spines[:].set_visible(False)
    return picture


def shifted(m: int, n: int, rows: int, cols: int) -> list[tuple[int, int, int, int]]:
    """The tiles of kernel 13, down the columns: first row and column, moved up, moved left.

    A tile that would reach beyond the matrix, which is no smaller, is moved back until it is
    inside. It still stores only the elements that it had inside before it was moved.
    """
    tiles = []
    for left in range(0, n, cols):
        for top in range(0, m, rows):
            row, column = min(top, m - rows), min(left, n - cols)
            tiles.append((row, column, top - row, left - column))
    return tiles


def shifts(m: int, n: int, rows: int, cols: int) -> Picture:
    """The tiles of an m x n matrix after the last ones have moved back inside (see `shifted`)."""
    groups = shifted(m, n, rows, cols)
    movers = {where: [g for g, (_, _, *by) in enumerate(groups)
                      if _SHIFTS[by[0] > 0, by[1] > 0][1] == where]
              for _, where in _SHIFTS.values()}  # fmt: skip
    phrases = [f"{', '.join(map(str, who))} {'moves' if len(who) == 1 else 'move'} {where}"
               for where, who in movers.items() if where and who]  # fmt: skip
    tiles = f"{m} x {n} in tiles of {rows} x {cols}, {count(len(groups), 'work-group')}"
    picture = Picture(6.5, 3.6, f"{tiles}: {', '.join(phrases) or 'none moves'}")
    ax = picture.axes_plain()
    for group, (top, left, up, over) in enumerate(groups):
        colour, _ = _SHIFTS[up > 0, over > 0]
        corner = (left + 0.1, -top - rows + 0.1)
        ax.add_patch(Rectangle(corner, cols - 0.2, rows - 0.2, facecolor=faint(colour, 0.35),
                               edgecolor=colour, linewidth=1.2))  # fmt: skip
        # at the first element that it owns, which no other tile covers
        ax.text(left + over + 0.6, -top - up - 0.6, str(group), ha="center", va="center",
                color=INK, fontsize=9)  # fmt: skip
    ax.add_patch(Rectangle((0, -m), n, m, fill=False, edgecolor=INK, linewidth=1.5))
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.autoscale_view()
    return picture
