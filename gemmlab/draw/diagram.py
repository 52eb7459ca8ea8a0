"""Pictures of what a kernel does with memory, drawn from a simulated run, so that they show the text at hand."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import to_rgb, to_rgba
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from ..catalog.sources import read
from ..simt import Empty, ProductRun, Run, views
from ..simt import run as run_kernel
from .picture import BLUE, GREEN, INK, ORANGE, Picture, count, lines

COLOURS = {
    **{"A": BLUE, "B": ORANGE, "C": GREEN, "Atile": BLUE, "Btile": ORANGE},
    **{"pieces": GREEN, "in": BLUE, "out": GREEN, "tile": ORANGE},
}


#: A marked element of a matrix: row, column, colour, text.
Mark = tuple[int, int, Any, str]


def grid(ax, x, y, rows, cols, colour, name, marks=(), every=(1, 1)) -> None:
    """Draw a matrix as squares, with its top left corner at (x, y); `marks` are (row, column, colour, text).

    Of the lines between rows and between columns one in `every` is drawn.
    """
    by_face: dict = {}
    for row, col, face, text in {(r, c): (r, c, f, t) for r, c, f, t in marks}.values():
        by_face.setdefault(face if isinstance(face, str) else tuple(face), []).append((col, row))
        if text:
            dark = np.dot(to_rgb(face), (0.21, 0.72, 0.07)) < 0.45
            ink = INK if to_rgba(face)[3] < 0.6 else "white" if dark else "black"
            ax.text(x + col + 0.5, -(y + row + 0.5), text, ha="center", va="center", fontsize=7.5, color=ink)
    for face, cells in by_face.items():
        boxes(ax, [(x + col, -(y + row + high), 1, high) for col, row, high in runs(cells)], face)
    rules = [[(x + i, -y), (x + i, -(y + rows))] for i in range(0, cols + 1, every[1])]
    rules += [[(x, -(y + i)), (x + cols, -(y + i))] for i in range(0, rows + 1, every[0])]
    lines(ax, rules, linewidth=0.3, alpha=0.6)
    ax.add_patch(Rectangle((x, -(y + rows)), cols, rows, fill=False, edgecolor=colour, linewidth=1.5))
    ax.text(x + 0.1, -y + 0.3, name, color=colour, fontsize=11, fontweight="bold", va="bottom")


def layout(rows: int = 3, cols: int = 4) -> Picture:
    """The same matrix in row-major and in column-major order, each element labelled with its index in memory."""
    alt = (
        f"A matrix of {rows} rows and {cols} columns. Row-major order counts along the rows, "
        "column-major order down the columns."
    )
    picture = Picture(7, 0.45 * rows + 0.6, alt)
    ax = picture.axes_plain()
    for shift, name, place in ((0, "row-major (C, NumPy)", lambda r, c: r * cols + c),
                               (cols + 3, "column-major (Fortran, BLAS)", lambda r, c: c * rows + r)):  # fmt: skip
        shades = matplotlib.colormaps["viridis"](np.linspace(0.25, 0.8, rows * cols))
        marks = [(r, c, shades[place(r, c)], str(place(r, c))) for r in range(rows) for c in range(cols)]
        grid(ax, shift, 0, rows, cols, INK, name, marks)
    return _bare(ax, picture)


def placed(r: ProductRun) -> dict[str, tuple[int, int, int, int]]:
    """Where A, B and C are placed in a picture: (x, y, rows, columns), with the shapes that are stored in memory."""
    small = (r.m + max(r.b_shape)) // 24
    gap, right = 3 + small, max(r.k + 2, 6 * small)  # room for a title; the smaller the squares, the more
    if r.transposed:  # B's transpose is drawn below C
        return {"A": (0, 0, r.m, r.k), "C": (right, 0, r.m, r.n), "B": (right, r.m + gap + 1, *r.b_shape)}
    return {"A": (0, r.k + gap, r.m, r.k), "B": (right, 0, *r.b_shape), "C": (right, r.k + gap, r.m, r.n)}


def runs(cells: list[tuple[int, int]]) -> list[tuple[int, int, int]]:
    """Merge cells (column, row) that are neighbours in a column into runs (column, first row, length)."""
    found: list[tuple[int, int, int]] = []
    for col, row in sorted(cells):
        if found and found[-1][0] == col and sum(found[-1][1:]) == row:
            found[-1] = (col, found[-1][1], found[-1][2] + 1)
        else:
            found.append((col, row, 1))
    return found


def boxes(ax, some, colour) -> list[PathPatch]:
    """Draw boxes (left, bottom, width, height) of one colour as a single path, which makes an SVG far smaller."""
    corners = [corner for x, y, w, h in some for corner in ((x, y), (x + w, y), (x + w, y + h), (x, y + h), (x, y))]
    if not corners:
        return []
    codes = [Path.MOVETO, Path.LINETO, Path.LINETO, Path.LINETO, Path.CLOSEPOLY] * (len(corners) // 5)
    ax.update_datalim(corners)  # add_patch would find the limits box by box, which takes longer than drawing them
    return [ax.add_artist(PathPatch(Path(corners, codes), facecolor=colour, edgecolor="none", zorder=1))]


def faint(colour: str, share: float = 0.4) -> tuple:
    """The colour as RGBA, with opacity `share`, so that the background shows through."""
    return (*to_rgb(colour), share)


def _bare(ax, picture: Picture) -> Picture:
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.autoscale_view()
    return picture


def access_counts(run: ProductRun, step: int, warp: int = 0, size: int = 32) -> dict[str, tuple[int, int]]:
    """How many elements a warp touches with one of its loads, and in how many segments of memory these are.

    Args:
        run: a simulated product.
        step: the number of the load, counted separately for A and for B, from 0 on.
        warp: the number of the warp, which is 32 work-items.
        size: bytes per segment.

    Returns:
        (elements, segments) for "A" and for "B".
    """
    touched = {name: _touched(run, name, step, warp) for name in "AB"}
    return {name: (len(t), views.segments(t, size)) for name, t in touched.items()}


def _touched(run: Run, name: str, step: int, warp: int, store: bool = False) -> list[int]:
    """Indices of the floats that a warp touches with instruction number `step` on an array, each listed once."""
    width = int(views.select(run, name, store)["width"].max(initial=1))
    firsts = views.touches(run, name, warp=warp, store=store)[step].tolist()
    return sorted({i + j for i in firsts for j in range(width)})


def access(run: ProductRun, step: int = 0, warp: int = 0, size: int = 32) -> Picture:
    """What the 32 work-items of a warp touch with load number `step` of A and of B.

    The matrices are on the left; memory, cut into segments of `size` bytes, is on the right.
    """
    n, k = run.n, run.k
    counts = access_counts(run, step, warp, size)
    words = [
        f"{name}: {count(e, 'element')} in {count(s, 'segment')} of {size} bytes" for name, (e, s) in counts.items()
    ]
    picture = Picture(8, 4.6, f"A warp at step {step}. " + "; ".join(words))
    ax, beside = picture.panels(1, 2, width_ratios=(k + n, 34))
    touched = {name: _touched(run, name, step, warp) for name in "AB"}
    mine = _touched(run, "C", 0, warp, store=True)
    places = placed(run)
    for name, (x, y, rows, cols) in places.items():
        indices = touched.get(name, mine)
        marks = [(int(i) % rows, int(i) // rows, COLOURS[name], "") for i in indices]
        title = f"{name}{' transposed' if name == 'B' and run.transposed else ''}  {rows} x {cols}"
        grid(ax, x, y, rows, cols, COLOURS[name], title, marks)
    _bare(ax, picture)
    ax = beside
    for row, (name, line) in enumerate(zip("AB", words, strict=True)):
        _memory(ax, 3.4 * row, run, name, touched[name], size // 4, line)
    ax.set(xlim=(-0.5, 33), ylim=(-6.8, 1.2))
    ax.set_axis_off()
    return picture


def _memory(ax, y, run, name, touched, floats, line) -> None:
    """Draw the memory around the touched elements, 32 floats per row, cut into segments."""
    ax.text(0, -y + 0.75, line, color=COLOURS[name], fontsize=9, va="bottom")
    first = int(min(touched)) // floats * floats
    hit = {int(i) - first for i in touched}
    boxes(ax, [(i % 32, -y - 0.5 * (i // 32), 1, 0.42) for i in sorted(hit) if i < 128], COLOURS[name])
    for width, line_width in ((1, 0.3), (floats, 1.3)):
        corners = [(i % 32, -y - 0.5 * (i // 32)) for i in range(0, 128, width)]
        frames = [[(x, t), (x + width, t), (x + width, t + 0.42), (x, t + 0.42), (x, t)] for x, t in corners]
        lines(ax, frames, linewidth=line_width)
    beyond = len([i for i in hit if i >= 128])
    if beyond:
        ax.text(0, -y - 1.72, f"and {beyond} more elements further on in memory", color=INK, fontsize=8.5, va="top")


def fetches(run: ProductRun) -> Picture:
    """How often each element of A and of B is loaded from global memory by all work-groups together.

    Below each matrix is a bar: of the N uses of an element of A (M of one of B), how many are loads.
    """
    counts = {name: fetch_counts(run, name) for name in "AB"}
    often = {name: str(c.max()) if c.min() == c.max() else f"{c.min()} to {c.max()}" for name, c in counts.items()}
    said = [
        f"each element of {name} {count(int(c.max()), 'time')}"
        if c.min() == c.max()
        else f"elements of {name} {often[name]} times"
        for name, c in counts.items()
    ]
    alt = f"Kernel {run.kernel}, {run.m} x {run.n} x {run.k}: loaded from global memory, {'; '.join(said)}"
    wide = sum(c.shape[1] for c in counts.values()) + 3
    high = max(c.shape[0] for c in counts.values()) + 3.6
    picture = Picture(5.6, 5.6 * (high + 1.7) / (wide + 1), alt)
    ax = picture.sheet()
    x = 0
    for (name, c), uses in zip(counts.items(), (run.n, run.m), strict=True):
        rows, cols = c.shape
        text = rows * cols <= 64
        shares = (c / uses).tolist()
        marks = [(i, j, faint(COLOURS[name], shares[i][j]), str(c[i, j]) if text else "")
                 for i in range(rows) for j in range(cols)]  # fmt: skip
        title = f"{name}{' transposed' if name == 'B' and run.transposed else ''}: each {often[name]} x"
        grid(ax, x, 0, rows, cols, COLOURS[name], title, marks)
        for length, style in ((cols, faint(INK, 0.2)), (cols * c.mean() / uses, COLOURS[name])):
            ax.plot([x, x + length], [-rows - 1.3] * 2, color=style, linewidth=8, solid_capstyle="butt")
        ax.text(x, -rows - 2, f"{c.mean():g} of {uses} uses are loads", color=INK, fontsize=9, va="top")
        x += cols + 3
    ax.set(xlim=(-0.5, wide + 0.5), ylim=(-high, 1.7))
    return picture


def fetch_counts(run: ProductRun, name: str) -> np.ndarray:
    """How many times each element of a matrix is loaded from global memory.

    Args:
        run: a simulated product.
        name: "A" or "B".

    Returns:
        An int array, M x K for A; for B the shape that is stored in memory, K x N or, transposed, N x K.
    """
    shape = (run.m, run.k) if name == "A" else run.b_shape
    counts = np.zeros(shape[0] * shape[1], int)
    events = views.select(run, name)
    for width in np.unique(events["width"]):
        firsts = events["index"][events["width"] == width]
        np.add.at(counts, firsts[:, None] + np.arange(width), 1)
    return counts.reshape(shape[::-1]).T


def transposed(rows: int, cols: int, tile: int = 16, coalesced: bool = True) -> Run:
    """A simulated run that transposes a rows x cols matrix by `transpose.cl`, or without a tile.

    Both sizes must be multiples of `tile`. The arrays of the run are "in" and "out".
    """
    if rows % tile or cols % tile:
        raise ValueError(f"{rows} x {cols} are not multiples of tile={tile}")
    text = read(f"support/transpose{'' if coalesced else '_naive'}.cl")
    before, after = np.arange(rows * cols, dtype=np.float32), Empty(rows * cols)
    args = [rows, cols, rows, 0, before, cols, after] if coalesced else [rows, cols, before, after]
    return run_kernel(text, None, (rows, cols), (tile, tile), args, {"TT": tile, "TR": tile})


def transposing(r: Run, warp: int = 0) -> Picture:
    """What a warp loads and stores when a matrix is `transposed`, and in how many segments of memory."""
    rows_in, cols_in = r.global_size
    touched = {name: _touched(r, name, 0, warp, store=name == "out") for name in ("in", "out")}
    said = {name: views.segments(t) for name, t in touched.items()}
    words = f"a warp's loads fall into {count(said['in'], 'segment')}, its stores into {count(said['out'], 'segment')}"
    how = "through a tile in local memory" if r.shapes else "directly"
    picture = Picture(7, 3.0, f"Transposing {how}: {words}")
    ax = picture.axes_plain()
    x = 0
    for name, rows, cols in (("in", rows_in, cols_in), ("out", cols_in, rows_in)):
        marks = [(i % rows, i // rows, COLOURS[name], "") for i in touched[name]]
        grid(ax, x, 0, rows, cols, COLOURS[name], f"{name}  {rows} x {cols}: {count(said[name], 'segment')}", marks)
        x += cols + 4
    return _bare(ax, picture)
