"""A landscape: the recorded share of the peak of every setting of a kernel, over two parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from ..model import percent
from .picture import INK, Picture, text_colour, viridis

#: What is in a cell without a rate, and what it means; the cell of an illegal setting is empty.
_SIGNS = {"failed": ("×", "did not run, or wrong"), "missing": ("?", "not recorded")}


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
    here: tuple[int, int],
    best: float,
    title: str,
) -> Picture:
    """The recorded share of a device's peak over two parameters of a kernel, in per cent.

    Args:
        across, down: the parameters of the axes; `down` is empty for a kernel with one parameter.
        cells: the settings by the values of the two parameters.
        here: the reader's setting, marked by a ring.
        best: the share with the brightest colour.
        title: such as the device and the kernel.
    """
    columns, rows = (sorted({key[axis] for key in cells}) for axis in (0, 1))
    picture = Picture(7, 1.2 + 0.42 * len(rows), in_words(across, down, cells, here, title))
    ax = picture.axes_plain()
    ax.spines[:].set_visible(False)
    for (x, y), cell in cells.items():
        _draw_cell(ax, columns.index(x), rows.index(y), cell, best)
    handles = [_mark(f"${sign}$", words) for state, (sign, words) in _SIGNS.items()
               if any(cell.state == state for cell in cells.values())]  # fmt: skip
    if here in cells:
        position = [columns.index(here[0])], [rows.index(here[1])]
        for colour, width in (("black", 5), ("white", 2)):  # visible on any colour
            ax.plot(*position, "o", markersize=25, markerfacecolor="none", clip_on=False,
                    markeredgecolor=colour, markeredgewidth=width)  # fmt: skip
        handles.append(_mark("o", "your setting"))
    ax.set(xlim=(-0.55, len(columns) - 0.45), ylim=(-0.55, len(rows) - 0.45))
    ax.set(xlabel=across, ylabel=down)
    ax.set_xticks(range(len(columns)), [str(value) for value in columns])
    ax.set_yticks(range(len(rows)), [str(value) if down else "" for value in rows])
    ax.tick_params(length=0)
    ax.set_title(title, color=INK, fontsize=10, loc="left", pad=24)
    ax.legend(handles=handles, frameon=False, labelcolor=INK, fontsize=9, loc="lower left",
              bbox_to_anchor=(0, 1), ncols=3, borderpad=0, borderaxespad=0.2)  # fmt: skip
    return picture


def _draw_cell(ax: Axes, column: int, row: int, cell: Cell, best: float) -> None:
    """A rectangle in the colour of the rate with the per cent in it, or with a sign."""
    if cell.state == "illegal":
        return
    face = viridis(cell.share / best) if cell.state == "recorded" else "none"
    box = Rectangle((column - 0.47, row - 0.45), 0.94, 0.9, facecolor=face, edgecolor=INK,
                    linewidth=0.5)  # fmt: skip
    ax.add_artist(box)  # add_patch would update the limits of the axes for every cell
    words, colour = _SIGNS.get(cell.state, ("", ""))[0], INK
    if cell.state == "recorded":
        words, colour = percent(cell.share).removesuffix(" %"), text_colour(face)
    ax.text(column, row, words, ha="center", va="center", fontsize=10, color=colour)


def _mark(marker: str, words: str) -> Line2D:
    """What a mark means, in the key."""
    return Line2D([], [], marker=marker, color=INK, markersize=9, markerfacecolor="none",
                  linestyle="none", label=words)  # fmt: skip


def in_words(
    across: str,
    down: str,
    cells: Mapping[tuple[int, int], Cell],
    here: tuple[int, int],
    title: str,
) -> str:
    """The description of a `landscape`: the best setting, the reader's, how many are illegal."""

    def setting(key: tuple[int, int]) -> str:
        return f"{across}={key[0]}" + (f", {down}={key[1]}" if down else "")

    recorded = {key: cell.share for key, cell in cells.items() if cell.state == "recorded"}
    parameters = f"{across} and {down}" if down else across
    phrases = [f"Share of the peak by {parameters}, {title}"]
    if recorded:
        best = max(recorded, key=recorded.__getitem__)
        phrases.append(f"the best is {percent(recorded[best])} at {setting(best)}")
    if here in cells:
        phrases.append(f"you are at {setting(here)}: {cells[here].words}")
    illegal = sum(cell.state == "illegal" for cell in cells.values())
    if illegal:
        phrases.append(f"{illegal} of {len(cells)} settings are not legal")
    return "; ".join(phrases)
