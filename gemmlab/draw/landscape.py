"""The landscape of a kernel: the rate over two of its parameters, as colours, with a reason where there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle

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

    Each setting is a rectangle whose group in the SVG is called as `name_of` says, so that a widget can find it.

    Args:
        across, down: the parameters of the two axes; an empty `down` for a kernel with a single parameter.
        cells: the settings by the values of the two parameters.
        here: the reader's setting, marked by a ring.
        best: the share with the brightest colour; by default the best of these settings.
        title: such as the device, the kernel and the parameters that stay.
    """
    columns, rows = (sorted({key[axis] for key in cells}) for axis in (0, 1))
    recorded = {key: cell for key, cell in cells.items() if cell.state == "recorded"}
    best = best or max((cell.share for cell in recorded.values()), default=1.0)
    above, below, middle = 0.62, 0.5, 0.42 * max(len(rows), 2)  # inches
    height = above + middle + below
    picture = Picture(7, height, _said(across, down, cells, here, title))
    picture.set_layout_engine("none")  # fixed margins: the layout would take longer than the rest of the drawing
    wide, legend = picture.axes_plain(), picture.axes_plain()
    for ax, left, width in ((wide, 0.1, 0.76), (legend, 0.88, 0.035)):
        ax.set_position((left, below / height, width, middle / height))
    hatched = []
    for (x, y), cell in cells.items():
        column, row = columns.index(x), rows.index(y)
        face = _SHADES(cell.share / best) if cell.state == "recorded" else "none"
        box = Rectangle((column - 0.47, row - 0.45), 0.94, 0.9, facecolor=face, edgecolor=INK, linewidth=0.5)
        box.set_gid(name_of(column, row))
        wide.add_artist(box)  # `add_patch` would work out the limits of the axes anew for every cell
        if cell.state == "illegal":
            hatched += _diagonals(column, row)
        elif cell.state == "recorded":
            ink = "white" if np.dot(face[:3], (0.21, 0.72, 0.07)) < 0.45 else "black"
            wide.text(column, row, _percent(cell.share), ha="center", va="center", fontsize=10, color=ink)
        else:
            mark = "×" if cell.state == "failed" else "?"
            wide.text(column, row, mark, ha="center", va="center", fontsize=11, color=INK)
    if hatched:
        lines(wide, hatched, linewidth=0.7, alpha=0.7)
    if here is not None and here in cells:
        place = [columns.index(here[0])], [rows.index(here[1])]
        for colour, width in (("black", 5), ("white", 2)):  # seen on every colour, in both themes
            wide.plot(*place, "o", markersize=25, markerfacecolor="none", markeredgecolor=colour, markeredgewidth=width)
    _axes(wide, across, down, columns, rows)
    wide.set_title(title, color=INK, fontsize=10, loc="left", pad=24)
    _key(wide, {cell.state for cell in cells.values()}, here in cells)
    _scale(legend, best)
    return picture


def name_of(column: int, row: int) -> str:
    """What the SVG calls the group of a setting, both counted from 0 at the bottom left."""
    return f"cell-{column}-{row}"


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.0995 else f"{100 * share:.1f}"


def _said(across: str, down: str, cells: Mapping[tuple[int, int], Cell], here, title: str) -> str:
    """The description in words: the best setting, the reader's, and how many are illegal."""
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


def _diagonals(column: int, row: int) -> list[list[tuple[float, float]]]:
    """The strokes that hatch a cell."""
    left, right, bottom, top = column - 0.47, column + 0.47, row - 0.45, row + 0.45
    strokes = []
    for shift in np.linspace(-0.75, 0.75, 7):
        ends = [(left, bottom + shift * 0.9), (right, top + shift * 0.9)]
        inside = [t for t in np.linspace(0, 1, 41) if bottom <= ends[0][1] + t * 0.9 <= top]
        if inside:
            first, last = inside[0], inside[-1]
            strokes.append([(left + t * (right - left), ends[0][1] + t * 0.9) for t in (first, last)])
    return strokes


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
    if "illegal" in states:
        handles.append(Patch(facecolor="none", edgecolor=INK, hatch="////", label="not legal"))
    for state, sign, words in (("failed", "$×$", "did not run, or wrong"), ("missing", "$?$", "not recorded")):
        if state in states:
            handles.append(Line2D([], [], marker=sign, color=INK, linestyle="none", label=words))
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
