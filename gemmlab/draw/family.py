"""Pictures of the family: the nine criteria, which kernel serves which size, and the launches that a product takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.colors import ListedColormap
from matplotlib.patches import Rectangle

from ..model.criteria import Criterion
from .diagram import faint
from .picture import BLUE, GREEN, INK, MAGENTA, ORANGE, RED, Picture, count, short


def criteria(found: Sequence[Criterion], title: str = "") -> Picture:
    """The criteria as a table: what the product has, what it needs, and whether that suffices."""
    enough = [c.name for c in found if c.met]
    lacking = [f"{c.name}, {short(c.value)} of {short(c.needed)} {c.unit}" for c in found if c.needed and not c.met]
    said = [f"too little for {'; '.join(lacking)}"] * bool(lacking) + [f"enough for {', '.join(enough)}"] * bool(enough)
    picture = Picture(8.6, 0.3 * (len(found) + 2), f"{title}: {'; '.join(said)}")
    ax = picture.sheet()
    ax.set_aspect("auto")
    _row(ax, 0, "criterion", "has", "needs", "", "counted in")
    for row, c in enumerate(found, 1):
        answer = {True: "enough", False: "too little", None: ""}[c.met]
        _row(ax, row, c.name, short(c.value), "" if c.needed is None else short(c.needed), answer, c.unit)
        if c.met is not None:
            ax.plot(0.42, -row, "o" if c.met else "X", color=GREEN if c.met else RED, markersize=7)
    ax.set(xlim=(0, 1), ylim=(-len(found) - 0.8, 0.8))
    return picture


def _row(ax, row: int, *words: str) -> None:
    """A line of the table: the criterion, what the product has and needs, the answer, and the unit."""
    places = ((0.01, "left"), (0.3, "right"), (0.39, "right"), (0.44, "left"), (0.55, "left"))
    for (x, side), word in zip(places, words, strict=True):
        ax.text(x, -row, word, color=INK, fontsize=9, ha=side, va="center")


def choices(rows: Sequence[int], columns: Sequence[int], names: Sequence[Sequence[str]], title: str = "") -> Picture:
    """A map of sizes, coloured by the kernel that is taken.

    Args:
        rows, columns: M from top to bottom, and N from left to right.
        names: for each M and N the name of what is taken.
        title: such as the name of the device.
    """
    found = list(dict.fromkeys(name for line in names for name in line))
    said = "; ".join(f"{name}: {count(sum(list(line).count(name) for line in names), 'size')}" for name in found)
    picture = Picture(7.5, 4, f"{title}. {said}")
    ax = picture.axes_plain()
    colours = matplotlib.colormaps["tab20"](np.arange(len(found)) % 20)
    numbers = [[found.index(name) for name in line] for line in names]
    ax.imshow(numbers, cmap=ListedColormap(colours), vmin=-0.5, vmax=len(found) - 0.5, aspect="auto", origin="upper")
    for axis, sizes in ((ax.xaxis, columns), (ax.yaxis, rows)):
        axis.set_ticks(range(len(sizes)), [str(size) for size in sizes])
    ax.tick_params(axis="x", labelrotation=60)
    ax.set(xlabel="N", ylabel="M")
    ax.set_title(title, color=INK, fontsize=9)
    marks = [Rectangle((0, 0), 1, 1, facecolor=colour) for colour in colours]
    ax.legend(marks, found, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8, labelcolor=INK, frameon=False)
    return picture


_WAYS = {"none": BLUE, "rows": ORANGE, "columns": GREEN, "both": MAGENTA}


def launches(parts: Sequence[tuple[int, int, int, int, str]], times: Mapping[str, float] | None = None) -> Picture:
    """The launches of a product as rectangles on C. Edges are drawn wider than they are, so that they can be seen.

    Args:
        parts: of each launch its first row and column, its rows and columns, and which edges it guards: "none",
            "rows", "columns" or "both" (as `gemmlab.family.split.Launch` has them).
        times: of each launch, by its edges, in milliseconds.
    """
    words = [
        f"{rows} x {columns}, {'no guards' if edges == 'none' else f'guards {edges}'}"
        for _, _, rows, columns, edges in parts
    ]
    if times:
        words = [f"{word}, {times[part[4]]:.3f} ms" for word, part in zip(words, parts, strict=True)]
    picture = Picture(6.5, 3.8, f"C in {count(len(parts), 'part')}: {'; '.join(words)}")
    ax = picture.axes_plain()
    down = _stretched({row + rows for row, _, rows, _, _ in parts})
    across = _stretched({column + columns for _, column, _, columns, _ in parts})
    for (row, column, rows, columns, edges), word in zip(parts, words, strict=True):
        top, bottom, left, right = down[row], down[row + rows], across[column], across[column + columns]
        ax.add_patch(Rectangle((left, -bottom), right - left, bottom - top, facecolor=faint(_WAYS[edges], 0.12),
                               edgecolor=_WAYS[edges], linewidth=1.5))  # fmt: skip
        ax.text((left + right) / 2, -(top + bottom) / 2, word.replace(", ", "\n"), ha="center", va="center", color=INK,
                fontsize=9)  # fmt: skip
    ax.set_axis_off()
    ax.autoscale_view()
    return picture


def _stretched(ends: set[int]) -> dict[int, float]:
    """Where to draw the ends of strips: in proportion, but none narrower than a quarter of C."""
    total, places, last = max(ends), {0: 0.0}, 0
    for end in sorted(ends):
        places[end] = places[last] + max(0.28, (end - last) / total)
        last = end
    return places
