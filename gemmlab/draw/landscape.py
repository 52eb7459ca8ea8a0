"""The landscape of a kernel: its rate over two parameters as colours, or why there is none."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from .picture import INK, Picture, lines, text_colour

#: Dark is slow, bright is fast; perceptually uniform (Smith and van der Walt, 2015).
_SHADES = matplotlib.colormaps["viridis"]
#: What stands in a cell without a rate, and what it means; hatching stands for "illegal".
_SIGNS = {
    "illegal": ("///", "not legal"),
    "failed": ("×", "did not run, or wrong"),
    "missing": ("?", "not recorded"),
}
#: Inches above, below and per row of the cells. Fixed margins, as a layout takes long to compute.
_ABOVE, _BELOW, _ROW = 0.62, 0.5, 0.42


class Cell(NamedTuple):
    """A setting in a landscape.

    Attributes:
        state: "recorded", "illegal" (a rule or the device forbids it), "failed" (it did not run or
            its result was wrong), or "missing" (legal, but not recorded).
        share: the rate as a share of the device's peak, 0 unless it is recorded.
        words: the rate, or the reason.
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

    Args:
        across, down: the parameters of the axes; `down` is empty for a kernel with one parameter.
        cells: the settings by the values of the two parameters.
        here: the reader's setting, marked by a ring.
        best: the share with the brightest colour; by default the best of these settings.
        title: such as the device, the kernel and the fixed parameters.
    """
    columns, rows = (sorted({key[axis] for key in cells}) for axis in (0, 1))
    best = best or max(cell.share for cell in cells.values()) or 1.0
    middle = _ROW * max(len(rows), 2)
    height = _ABOVE + middle + _BELOW
    picture = Picture(7, height, in_words(across, down, cells, here, title))
    picture.set_layout_engine("none")
    wide, scale = picture.axes_plain(), picture.axes_plain()
    for ax, left, width in ((wide, 0.1, 0.76), (scale, 0.88, 0.035)):
        ax.set_position((left, _BELOW / height, width, middle / height))
        ax.spines[:].set_visible(False)
    for (x, y), cell in cells.items():
        _draw_cell(wide, columns.index(x), rows.index(y), cell, best)
    if here is not None and here in cells:
        position = [columns.index(here[0])], [rows.index(here[1])]
        for colour, width in (("black", 5), ("white", 2)):  # visible on any colour
            wide.plot(*position, "o", markersize=25, markerfacecolor="none",
                                markeredgecolor=colour, markeredgewidth=width,
                                clip_on=False)  # fmt: skip
    wide.set(xlim=(-0.55, len(columns) - 0.45), ylim=(-0.55, len(rows) - 0.45))
    wide.set(xlabel=across, ylabel=down)
    wide.set_xticks(range(len(columns)), [str(value) for value in columns])
    wide.set_yticks(range(len(rows)), [str(value) if down else "" for value in rows])
    wide.tick_params(length=0)
    wide.set_title(title, color=INK, fontsize=10, loc="left", pad=24)
    _draw_key(wide, [cell.state for cell in cells.values()], here in cells)
    _draw_scale(scale, best)
    return picture


def _draw_cell(ax: Axes, column: int, row: int, cell: Cell, best: float) -> None:
    """A rectangle in the colour of the rate with the per cent in it, or with a sign."""
    face = _SHADES(cell.share / best) if cell.state == "recorded" else "none"
    box = Rectangle((column - 0.47, row - 0.45), 0.94, 0.9, facecolor=face, edgecolor=INK,
                    linewidth=0.5)  # fmt: skip
    ax.add_artist(box)  # add_patch would update the limits of the axes for every cell
    if cell.state == "illegal":
        _hatch(ax, column, row)
    elif cell.state == "recorded":
        _write(ax, column, row, _percent(cell.share), text_colour(face))
    else:
        _write(ax, column, row, _SIGNS[cell.state][0], INK)


def _write(ax: Axes, column: int, row: int, words: str, colour: str) -> None:
    ax.text(column, row, words, ha="center", va="center", fontsize=10, color=colour)


def _hatch(ax: Axes, column: int, row: int) -> None:
    """Strokes across a cell.

    Matplotlib's own hatching refers to a pattern by name, and a page may hide its definition.
    """
    strokes = []
    for shift in np.linspace(-0.75, 0.75, 7):  # a stroke rises from `shift` by 1 across the cell
        ends = max(0.0, -shift), min(1.0, 1.0 - shift)
        strokes.append([(column - 0.47 + 0.94 * t, row - 0.45 + 0.9 * (t + shift)) for t in ends])
    lines(ax, strokes, linewidth=0.7, alpha=0.7)


def _percent(share: float) -> str:
    return f"{100 * share:.0f}" if share >= 0.0995 else f"{100 * share:.1f}"


def in_words(
    across: str,
    down: str,
    cells: Mapping[tuple[int, int], Cell],
    here: tuple[int, int] | None,
    title: str,
) -> str:
    """The description of a `landscape`: the best setting, the reader's, how many are illegal."""

    def setting(key: tuple[int, int]) -> str:
        return f"{across}={key[0]}" + (f", {down}={key[1]}" if down else "")

    recorded = {key: cell.share for key, cell in cells.items() if cell.state == "recorded"}
    parameters = f"{across} and {down}" if down else across
    phrases = [f"Share of the peak by {parameters}" + (f", {title}" if title else "")]
    if recorded:
        best = max(recorded, key=recorded.__getitem__)
        phrases.append(f"the best is {_percent(recorded[best])} % at {setting(best)}")
    if here is not None and here in cells:
        phrases.append(f"you are at {setting(here)}: {cells[here].words}")
    illegal = sum(cell.state == "illegal" for cell in cells.values())
    if illegal:
        phrases.append(f"{illegal} of {len(cells)} settings are not legal")
    return "; ".join(phrases)


def _draw_key(ax: Axes, states: Sequence[str], ring: bool) -> None:
    """What the marks mean, above the cells."""
    handles = []
    if ring:
        handles.append(Line2D([], [], marker="o", color=INK, markersize=9, markeredgewidth=2,
                              markerfacecolor="none", linestyle="none",
                              label="your setting"))  # fmt: skip
    for state, (sign, words) in _SIGNS.items():
        if state in states:
            handles.append(Line2D([], [], marker=f"${sign}$", color=INK, linestyle="none",
                                  markersize=9, label=words))  # fmt: skip
    if handles:
        ax.legend(handles=handles, frameon=False, labelcolor=INK, fontsize=9, loc="lower left",
                  bbox_to_anchor=(0, 1), ncols=4, borderpad=0, borderaxespad=0.2,
                  handlelength=1.6)  # fmt: skip


def _draw_scale(ax: Axes, best: float) -> None:
    """The colours from 0 to the best share."""
    steps = 16
    for step in range(steps):
        shade = _SHADES((step + 0.5) / steps)
        ax.add_artist(Rectangle((0, step * best / steps), 1, best / steps, facecolor=shade,
                                edgecolor=shade, linewidth=0.3))  # fmt: skip
    ax.set(xlim=(0, 1), ylim=(0, best), xticks=[])
    ax.set_yticks([0, best / 2, best], ["0", _percent(best / 2), _percent(best)])
    ax.yaxis.tick_right()
    ax.yaxis.set_label_position("right")
    ax.set_ylabel("% of the peak", color=INK, fontsize=9)
    ax.tick_params(length=0)
