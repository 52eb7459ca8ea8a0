"""Pictures of what a kernel does with memory, drawn from a simulated run of its text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgba
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from clscope import Run, views

from ..simulation import ProductRun
from .picture import BLUE, GREEN, INK, ORANGE, Picture, count, lines, text_colour, viridis

COLOURS = {
    **{"A": BLUE, "B": ORANGE, "C": GREEN, "Atile": BLUE, "Btile": ORANGE},
    **{"pieces": GREEN, "in": BLUE, "out": GREEN, "tile": ORANGE},
}
#: Floats in a row of the memory in `access`, and how many rows are drawn.
MEMORY_ROW, MEMORY_ROWS = 32, 4
#: Floats in a segment of memory: 32 bytes.
SEGMENT = 8

#: A marked element of a matrix: row, column, colour, text.
Mark = tuple[int, int, Any, str]
#: (left, bottom, width, height)
Box = tuple[float, float, float, float]


class Area(NamedTuple):
    """Where a matrix is drawn: its top left corner, y counted downwards, and its squares."""

    x: float
    y: float
    rows: int
    cols: int


def grid(
    ax: Axes,
    area: Area,
    colour: str,
    name: str,
    marks: Iterable[Mark] = (),
    every: tuple[int, int] = (1, 1),
) -> None:
    """Draw a matrix as squares, and one in `every` of the lines between rows and columns."""
    x, y, rows, cols = area
    cells: dict[Any, list[tuple[int, int]]] = {}
    for row, col, face, text in {mark[:2]: mark for mark in marks}.values():  # the last mark counts
        cells.setdefault(face if isinstance(face, str) else tuple(face), []).append((col, row))
        if text:
            ink = INK if to_rgba(face)[3] < 0.6 else text_colour(face)
            ax.text(x + col + 0.5, -(y + row + 0.5), text, ha="center", va="center", fontsize=7.5,
                    color=ink)  # fmt: skip
    for face, squares in cells.items():
        boxes(ax, [(x + col, -(y + row + high), 1, high) for col, row, high in runs(squares)], face)
    rules = [[(x + i, -y), (x + i, -(y + rows))] for i in range(0, cols + 1, every[1])]
    rules += [[(x, -(y + i)), (x + cols, -(y + i))] for i in range(0, rows + 1, every[0])]
    lines(ax, rules, linewidth=0.3, alpha=0.6)
    frame = Rectangle((x, -(y + rows)), cols, rows, fill=False, edgecolor=colour, linewidth=1.5)
    ax.add_patch(frame)
    ax.text(x + 0.1, -y + 0.3, name, color=colour, fontsize=11, fontweight="bold", va="bottom")


def runs(cells: Iterable[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Merge cells (column, row) into vertical runs (column, first row, length)."""
    merged: list[tuple[int, int, int]] = []
    for col, row in sorted(cells):
        if merged and merged[-1][0] == col and merged[-1][1] + merged[-1][2] == row:
            merged[-1] = (col, merged[-1][1], merged[-1][2] + 1)
        else:
            merged.append((col, row, 1))
    return merged


def boxes(ax: Axes, some: Iterable[Box], colour: Any, edge: Any = "none") -> list[PathPatch]:
    """Draw boxes of one colour as a single path, which makes an SVG much smaller."""
    corners = [corner for x, y, w, h in some
               for corner in ((x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y))]  # fmt: skip
    if not corners:
        return []
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY]
    path = Path(corners, codes * (len(corners) // len(codes)))
    ax.update_datalim(corners)  # add_patch would compute the limits box by box, which is slow
    patch = PathPatch(path, facecolor=colour, edgecolor=edge, linewidth=0.5, zorder=1)
    ax.add_artist(patch)
    return [patch]


def layout(rows: int = 3, cols: int = 4) -> Picture:
    """A matrix in row-major and in column-major order, with the index in memory of each element."""
    alt = (
        f"A matrix of {rows} rows and {cols} columns. Row-major order counts along the rows, "
        "column-major order down the columns."
    )
    picture = Picture(7, 0.45 * rows + 0.6, alt)
    ax = picture.axes_plain()
    shades = [viridis(share) for share in np.linspace(0.25, 0.8, rows * cols)]
    by_row = np.arange(rows * cols).reshape(rows, cols)
    by_column = np.arange(rows * cols).reshape(cols, rows).T
    for left, name, order in (
        (0, "row-major (C, NumPy)", by_row),
        (cols + 3, "column-major (Fortran, BLAS)", by_column),
    ):
        marks = [(row, col, shades[i], str(i)) for (row, col), i in np.ndenumerate(order)]
        grid(ax, Area(left, 0, rows, cols), INK, name, marks)
    return bare(ax, picture)


def bare(ax: Axes, picture: Picture) -> Picture:
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.autoscale_view()
    return picture


def access_counts(run: ProductRun, step: int) -> dict[str, tuple[int, int]]:
    """Elements and segments of 32 bytes in the first warp's load number `step` of A and of B."""
    found = {name: touched(run, name, step) for name in "AB"}
    return {name: (len(t), views.segments(t)) for name, t in found.items()}


def touched(run: Run, name: str, step: int, store: bool = False) -> list[int]:
    """Indices of the floats that the first warp touches with its `step`-th access to an array."""
    width = int(views.select(run, name, store)["width"].max(initial=1))
    firsts = views.touches(run, name, store=store)[step].tolist()
    return sorted({i + j for i in firsts for j in range(width)})


def access(run: ProductRun, step: int = 0) -> Picture:
    """What the 32 work-items of a warp touch with load number `step` of A and of B.

    The matrices are on the left; on the right is memory, cut into segments of 32 bytes.
    """
    words = {
        name: f"{name}: {count(e, 'element')} in {count(s, 'segment')} of 32 bytes"
        for name, (e, s) in access_counts(run, step).items()
    }
    picture = Picture(8, 4.6, f"A warp at step {step}. " + "; ".join(words.values()))
    left, right = picture.panels(1, 2, width_ratios=(run.k + run.n, MEMORY_ROW + 2))
    found = {name: touched(run, name, step) for name in "AB"}
    found["C"] = touched(run, "C", 0, store=True)
    scale = (run.m + max(run.b_shape)) // 24  # small squares need larger gaps for the titles
    shapes = areas(run, max(run.k + 2, 6 * scale), run.k + 3 + scale, 4 + scale)
    for name, area in shapes.items():
        marks = [(i % area.rows, i // area.rows, COLOURS[name], "") for i in found[name]]
        title = f"{_stored(run, name)}  {area.rows} x {area.cols}"
        grid(left, area, COLOURS[name], title, marks)
    bare(left, picture)
    for row, name in enumerate("AB"):
        _memory(right, 3.4 * row, found[name], COLOURS[name], words[name])
    right.set(xlim=(-0.5, MEMORY_ROW + 1), ylim=(-6.8, 1.2))
    right.set_axis_off()
    return picture


def _stored(run: ProductRun, name: str) -> str:
    return "B transposed" if name == "B" and run.transposed else name


def areas(run: ProductRun, right: float, below: float, under: float) -> dict[str, Area]:
    """Where A, B and C are drawn, in the shapes stored in memory: C's left side is at `right`. Its
    top is at `below`, under B; or a transposed B, whose columns are C's rows, is `under` C.
    """
    a, b, c = (run.m, run.k), run.b_shape, (run.m, run.n)
    if run.transposed:
        lower = Area(right, run.m + under, *b)
        return {"A": Area(0.0, 0.0, *a), "C": Area(right, 0.0, *c), "B": lower}
    return {"A": Area(0.0, below, *a), "B": Area(right, 0.0, *b), "C": Area(right, below, *c)}


def _memory(ax: Axes, y: float, indices: list[int], colour: str, title: str) -> None:
    """Draw the memory from the first touched segment on."""
    ax.text(0, -y + 0.75, title, color=colour, fontsize=9, va="bottom")
    first, shown = indices[0] // SEGMENT * SEGMENT, MEMORY_ROW * MEMORY_ROWS

    def corner(index: int) -> tuple[int, float]:
        return index % MEMORY_ROW, -y - 0.5 * (index // MEMORY_ROW)

    inside = [i - first for i in indices if i - first < shown]
    boxes(ax, [(*corner(i), 1, 0.42) for i in inside], colour)
    for width, line_width in ((1, 0.3), (SEGMENT, 1.3)):
        corners = [corner(i) for i in range(0, shown, width)]
        frames = [[(x, t), (x + width, t), (x + width, t + 0.42), (x, t + 0.42), (x, t)]
                  for x, t in corners]  # fmt: skip
        lines(ax, frames, linewidth=line_width)
    beyond = len(indices) - len(inside)
    if beyond:
        ax.text(0, -y - 1.72, f"and {beyond} more elements further on in memory", color=INK,
                fontsize=8.5, va="top")  # fmt: skip
