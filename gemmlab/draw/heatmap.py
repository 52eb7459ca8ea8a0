"""A heat map: the recorded share of the peak of every setting of a kernel, over two parameters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from matplotlib.patches import Rectangle

from ..model import percent
from .picture import INK, Picture

#: What is in a cell without a rate, and what it means; the cell of an illegal setting is empty.
SIGNS = {"failed": ("×", "did not run, or wrong"), "missing": ("?", "not recorded")}


def heatmap(shown: Mapping[str, Any], here: tuple[int, ...], title: str) -> Picture:
    """The recorded share of a device's peak over two parameters of a kernel, in per cent.

    Args:
        shown: a map as `widgets.maps` sends it to the page: "across" and "down" name the
            parameters of the axes, "xs" and "ys" are their values, "cells" what was recorded.
        here: the reader's setting, which is framed.
        title: such as the device and the kernel.
    """
    cells: dict[tuple[int, ...], Any] = {(cell["x"], cell["y"]): cell for cell in shown["cells"]}
    columns, rows = shown["xs"], shown["ys"]
    states = {cell["state"] for cell in cells.values()}
    signs = [f"{sign} {words}" for state, (sign, words) in SIGNS.items() if state in states]
    picture = Picture(7, 0.9 + 0.42 * len(rows), _in_words(shown, cells.get(here), title))
    ax = picture.axes_plain()
    ax.spines[:].set_visible(False)
    for (x, y), cell in cells.items():
        if cell["state"] == "illegal":
            continue
        column, row = columns.index(x), rows.index(y)
        # a frame in black and white is visible on any colour
        frames = [("black", 7), ("white", 3)] if (x, y) == here else [(INK, 0.5)]
        face = [int(part) / 255 for part in cell["shade"].split(",")] if "shade" in cell else "none"
        for colour, width in frames:
            box = Rectangle((column - 0.47, row - 0.45), 0.94, 0.9)
            box.set(facecolor=face, edgecolor=colour, linewidth=width, zorder=2 if width > 1 else 1)
            ax.add_artist(box)  # add_patch would update the limits of the axes for every cell
        words = cell["text"] or SIGNS[cell["state"]][0]
        ax.text(column, row, words, ha="center", va="center", fontsize=10,
                color=cell.get("ink", INK))  # fmt: skip
    ax.set(xlim=(-0.55, len(columns) - 0.45), ylim=(-0.55, len(rows) - 0.45))
    ax.set(xlabel=shown["across"], ylabel=shown["down"])
    ax.set_xticks(range(len(columns)), [str(value) for value in columns])
    ax.set_yticks(range(len(rows)), [str(value) if shown["down"] else "" for value in rows])
    ax.tick_params(length=0)
    framed = ["framed: your setting"] if here in cells else []
    ax.set_title(" · ".join([title, *framed, *signs]), color=INK, fontsize=10, loc="left")
    return picture


def _in_words(shown: Mapping[str, Any], here: Mapping[str, Any] | None, title: str) -> str:
    """The best setting, the reader's, how many are illegal."""
    cells, parameters = shown["cells"], " and ".join(filter(None, (shown["across"], shown["down"])))
    recorded = [cell for cell in cells if cell["state"] == "recorded"]
    illegal = sum(cell["state"] == "illegal" for cell in cells)
    phrases = [f"Share of the peak by {parameters}, {title}"]
    if recorded:
        best = max(recorded, key=lambda cell: cell["share"])
        setting = best["label"].partition(":")[0]
        phrases.append(f"the best is {percent(best['share'])} at {setting}")
    if here:
        phrases.append(f"you are at {here['label']}")
    if illegal:
        phrases.append(f"{illegal} of {len(cells)} settings are not legal")
    return "; ".join(phrases)
