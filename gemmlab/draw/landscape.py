"""The landscape of a kernel: the rate over two of its parameters, as colours, with a reason where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from .picture import INK, Picture, lines

#: Dark is slow, bright is fast; equal steps of the rate look like equal steps (Smith and van der Walt, 2015).
_SHADES = matplotlib.colormaps["viridis"]


class Cell(NamedTuple):
    """A setting in a landscape.

    Attributes:
        state: "recorded", "illegal" (a rule or the device forbids it), "failed" (it did not run, or its result was
            wrong), or "missing" (legal, but not recorded).
        share: the rate as a share of the device's peak, 0 unless it is recorded.
        words: what a reader should know: the rate, or the reason.
    """

    state: str
    share: float = 0.0
    words: str = ""


def landscape(
    across: str,
    down: str,
    cells: Mapping[tuple[int, int], Cell],
    here: tuple[int, int] | None = None,
    best: float | None = None,
    title: str = "",
) -> Picture:
    """The recorded share of a device's peak over two parameters of a kernel.

    Each setting is a rectangle whose group in the SVG is called as `name_of` says, so that a widget can find it; the
    groups of the ring begin with "ring", so that it can be moved.

    Args:
        across, down: the parameters of the two axes; an empty `down` for a kernel with a single parameter.
        cells: the settings by the values of the two parameters.
        here: the reader's setting, marked by a ring.
        best: the share with the brightest colour; by default the best of these settings.
        title: such as the device, the kernel and the parameters that stay.
    """
    columns, rows = (sorted({key[axis] for key in cells}) for axis in (0, 1))
    best = best or max(cell.share for cell in cells.values()) or 1.0
    above, below, middle = 0.62, 0.5, 0.42 * max(len(rows), 2)  # inches
    height = above + middle + below
    picture = Picture(7, height, in_words(across, down, cells, here, title))
    picture.set_layout_engine("none")  # fixed margins: the layout would take longer than the rest of the drawing
    wide, legend = picture.axes_plain(), picture.axes_plain()
    for ax, left, width in ((wide, 0.1, 0.76), (legend, 0.88, 0.035)):
        ax.set_position((left, below / height, width, middle / height))
    for (x, y), cell in cells.items():
        _draw_cell(wide, columns.index(x), rows.index(y), cell, best)
    if here is not None and here in cells:
        place = [columns.index(here[0])], [rows.index(here[1])]
        for colour, width in (("black", 5), ("white", 2)):  # seen on every colour, in both themes
            (ring,) = wide.plot(*place, "o", markersize=25, markerfacecolor="none", markeredgecolor=colour,
                                markeredgewidth=width, clip_on=False)  # fmt: skip
            ring.set_gid(f"ring-{colour}")
    _axes(wide, across, down, columns, rows)
    wide.set_title(title, color=INK, fontsize=10, loc="left", pad=24)
    _key(wide, {cell.state for cell in cells.values()}, here in cells)
    _scale(legend, best)
    return picture


def _draw_cell(ax, column: int, row: int, cell: Cell, best: float) -> None:
    """A rectangle in the colour of the rate with the per cent in it; hatched, or with a sign, where there is none."""
    face = _SHADES(cell.share / best) if cell.state == "recorded" else "none"
    box = Rectangle((column - 0.47, row - 0.45), 0.94, 0.9, facecolor=face, edgecolor=INK, linewidth=0.5)
    box.set_gid(name_of(column, row))
    ax.add_artist(box)  # `add_patch` would work out the limits of the axes anew for every cell
    if cell.state == "illegal":
        _hatch(ax, column, row)
        return
    ink = INK
    if cell.state == "recorded":
        ink = "white" if np.dot(face[:3], (0.21, 0.72, 0.07)) < 0.45 else "black"
    words = {"failed": "×", "missing": "?"}.get(cell.state) or _percent(cell.share)
    ax.text(column, row, words, ha="center", va="center", fontsize=10, color=ink)


def _hatch(ax, column: int, row: int) -> None:
    """Strokes from the left side of a cell to the right, cut off at its bottom and top.

    Matplotlib's own hatching refers to a pattern by its name, and the page may hide the picture that defines it.
    """
    strokes = []
    for shift in np.linspace(-0.75, 0.75, 7):  # of a stroke that rises from 0 to 1, while t goes from 0 to 1
        ends = max(0.0, -shift), min(1.0, 1.0 - shift)
        strokes.append([(column - 0.47 + 0.94 * t, row - 0.45 + 0.9 * (t + shift)) for t in ends])
    lines(ax, strokes, linewidth=0.7, alpha=0.7)


def name_of(column: int, row: int) -> str:
    """What the SVG calls the group of a setting, both counted from 0 at the bottom left."""
    return f"cell-{column}-{row}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.0995 else f"{100 * share:.1f}"


def in_words(across: str, down: str, cells: Mapping[tuple[int, int], Cell], here, title: str) -> str:
    """The description of a `landscape`: the best setting, the reader's, and how many are illegal."""
    recorded = {key: cell.share for key, cell in cells.items() if cell.state == "recorded"}
    said = [f"Share of the peak by {across}" + (f" and {down}" if down else "") + (f", {title}" if title else "")]
    if recorded:
        key = max(recorded, key=lambda key: recorded[key])
        said.append(f"the best is {_percent(recorded[key])} % at {_place(across, down, key)}")
    if here in cells:
        said.append(f"you are at {_place(across, down, here)}: {cells[here].words}")
    illegal = sum(cell.state == "illegal" for cell in cells.values())
    said += [f"{illegal} of {len(cells)} settings are not legal"] * bool(illegal)
    return "; ".join(said)


def _place(across: str, down: str, key: tuple[int, int]) -> str:
    return f"{across}={key[0]}" + (f", {down}={key[1]}" if down else "")


def _axes(ax, across: str, down: str, columns: Sequence[int], rows: Sequence[int]) -> None:
    ax.set(xlim=(-0.55, len(columns) - 0.45), ylim=(-0.55, len(rows) - 0.45), xlabel=across, ylabel=down)
    ax.set_xticks(range(len(columns)), [str(value) for value in columns])
    ax.set_yticks(range(len(rows)), [str(value) if down else "" for value in rows])
    ax.tick_params(length=0)
    for spine in ax.spines.values():
        spine.set_visible(False)


def _key(ax, states: set[str], ring: bool) -> None:
    """What the marks mean, above the cells."""
    handles: list = []
    if ring:
        handles.append(Line2D([], [], marker="o", color=INK, markersize=9, markerfacecolor="none", markeredgewidth=2,
                              linestyle="none", label="your setting"))  # fmt: skip
    signs = {
        "illegal": ("///", "not legal"),
        "failed": ("×", "did not run, or wrong"),
        "missing": ("?", "not recorded"),
    }
    for sign, words in (signs[state] for state in signs if state in states):
        handles.append(Line2D([], [], marker=f"${sign}$", color=INK, linestyle="none", markersize=9, label=words))
    if handles:
        ax.legend(handles=handles, frameon=False, labelcolor=INK, fontsize=9, loc="lower left", ncols=4,
                  bbox_to_anchor=(0, 1), borderpad=0, borderaxespad=0.2, handlelength=1.6)  # fmt: skip


def _scale(ax, best: float) -> None:
    """The colours from 0 to the best share."""
    steps = 16
    for step in range(steps):
        shade = _SHADES((step + 0.5) / steps)
        box = Rectangle((0, step * best / steps), 1, best / steps, facecolor=shade, edgecolor=shade, linewidth=0.3)
        ax.add_artist(box)
    ax.set(xlim=(0, 1), ylim=(0, best), xticks=[])
    ticks = np.linspace(0, best, 3)
    ax.set_yticks(ticks, [_percent(tick) if tick else "0" for tick in ticks])
    ax.yaxis.tick_right()
    ax.yaxis.set_label_position("right")
    ax.set_ylabel("% of the peak", color=INK, fontsize=9)
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(length=0)
