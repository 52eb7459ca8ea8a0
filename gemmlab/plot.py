"""Data in, a picture out: diagrams and charts as Matplotlib figures, readable on light and dark ground.

No pyplot, no global state: a `Picture` is a Figure that shows itself in a notebook, with words for those who
cannot see it.
"""

from __future__ import annotations

import io
import re
import threading
from collections.abc import Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from PIL import Image

from . import model, trace

INK = "#808080"  # text and lines: readable on white and on black; in SVG the page's own text colour takes its place
BLUE, ORANGE, GREEN, RED = "#3f8ad8", "#cf7519", "#3fa26a", "#d9534f"  # A, B, C, and what is wrong
COLOURS = {"A": BLUE, "B": ORANGE, "C": GREEN}
_lock = threading.Lock()  # rc_context is global to the process


class Picture(Figure):
    """A Figure with a description in words (`alt`), shown as PNG in a notebook; `svg()` is for widgets."""

    def __init__(self, width: float, height: float, alt: str):
        super().__init__(figsize=(width, height), layout="constrained")
        self.patch.set_alpha(0)
        self.alt = alt

    def axes_plain(self, spec=111):
        """Axes in our ink, without a box."""
        ax = self.add_subplot(spec)
        ax.patch.set_alpha(0)
        ax.tick_params(colors=INK, which="both", labelsize=9)
        for side, spine in ax.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(INK)
        for text in (ax.xaxis.label, ax.yaxis.label, ax.title):
            text.set_color(INK)
            text.set_fontsize(10)
        return ax

    def png(self) -> bytes:
        """Transparent, and small: 64 colours are plenty for a diagram."""
        canvas = FigureCanvasAgg(self)
        self.set_dpi(130)
        with _lock:
            canvas.draw()
        out = io.BytesIO()
        Image.fromarray(np.asarray(canvas.buffer_rgba())).quantize(64, Image.Quantize.FASTOCTREE).save(
            out, "PNG", optimize=True
        )
        return out.getvalue()

    def svg(self) -> str:
        """An <svg> element that takes its text colour from the page."""
        out = io.StringIO()
        with _lock, matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "gemmlab"}):
            FigureCanvasSVG(self).print_svg(out, metadata={"Date": None, "Creator": None})
        text = out.getvalue()[out.getvalue().index("<svg") :]
        text = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>", "", text, flags=re.S)
        text = text.replace(INK, "var(--jp-content-font-color1, #444)")
        alt = self.alt.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
        return text.replace("<svg ", f'<svg role="img" aria-label="{alt}" style="max-width:100%;height:auto" ', 1)

    def _repr_mimebundle_(self, include=None, exclude=None):
        width, height = (round(inches * 92) for inches in self.get_size_inches())
        size = {"image/png": {"width": width, "height": height}}
        return {"image/png": self.png(), "text/plain": f"[picture: {self.alt}]"}, size


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" + ("" if number == 1 else "s")


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}"


def _lines(ax, lines, **style) -> None:
    """Many lines as one path: far smaller in an SVG."""
    gap = [(np.nan, np.nan)]
    xs, ys = zip(*(point for line in lines for point in [*line, *gap]), strict=True)
    ax.plot(xs, ys, color=INK, **style)


def _grid(ax, x, y, rows, cols, colour, name, marks=()) -> None:
    """A matrix as squares, its top left at (x, y); `marks` are (row, column, colour, text)."""
    for (row, col), (face, text) in {(r, c): (f, t) for r, c, f, t in marks}.items():
        ax.add_patch(Rectangle((x + col, -(y + row + 1)), 1, 1, facecolor=face, edgecolor="none"))
        if text:
            ink = "white" if np.dot(to_rgb(face), (0.21, 0.72, 0.07)) < 0.45 else "black"
            ax.text(x + col + 0.5, -(y + row + 0.5), text, ha="center", va="center", fontsize=7, color=ink)
    lines = [[(x + i, -y), (x + i, -(y + rows))] for i in range(cols + 1)]
    lines += [[(x, -(y + i)), (x + cols, -(y + i))] for i in range(rows + 1)]
    _lines(ax, lines, linewidth=0.3, alpha=0.6)
    ax.add_patch(Rectangle((x, -(y + rows)), cols, rows, fill=False, edgecolor=colour, linewidth=1.5))
    ax.text(x + 0.1, -y + 0.3, name, color=colour, fontsize=11, fontweight="bold", va="bottom")


def layout(rows: int = 3, cols: int = 4) -> Picture:
    """One matrix twice, each element with its place in memory: row-major and column-major."""
    alt = f"A matrix of {rows} rows and {cols} columns. Row-major counts along the rows, column-major down the columns."
    picture = Picture(7, 0.45 * rows + 0.6, alt)
    ax = picture.axes_plain()
    for shift, name, place in ((0, "row-major (C, NumPy)", lambda r, c: r * cols + c),
                               (cols + 3, "column-major (Fortran, BLAS)", lambda r, c: c * rows + r)):  # fmt: skip
        shades = matplotlib.colormaps["viridis"](np.linspace(0.25, 0.8, rows * cols))
        marks = [(r, c, shades[place(r, c)], str(place(r, c))) for r in range(rows) for c in range(cols)]
        _grid(ax, shift, 0, rows, cols, INK, name, marks)
    return _bare(ax, picture)


def _bare(ax, picture: Picture) -> Picture:
    ax.set_axis_off()
    ax.set_aspect("equal")
    ax.autoscale_view()
    return picture


def access_counts(replayed: trace.Trace, step: int, warp: int = 0, size: int = 32) -> dict[str, tuple[int, int]]:
    """For A and B: how many elements a warp of 32 touches at load `step`, in how many segments of `size` bytes."""
    touched = {name: replayed.touches(name, warp=warp)[step] for name in "AB"}
    return {name: (len(set(t.tolist())), trace.segments(t, size)) for name, t in touched.items()}


def access(replayed: trace.Trace, step: int = 0, warp: int = 0, size: int = 32) -> Picture:
    """What the 32 work-items of a warp touch at their `step`-th load of A and of B, in the matrices and in memory."""
    m, n, k = replayed.m, replayed.n, replayed.k
    counts = access_counts(replayed, step, warp, size)
    words = [
        f"{name}: {_count(e, 'element')} in {_count(s, 'segment')} of {size} bytes" for name, (e, s) in counts.items()
    ]
    picture = Picture(8, 4.6, f"A warp at step {step}. " + "; ".join(words))
    left, right = picture.add_gridspec(1, 2, width_ratios=(k + n, 34))
    ax = picture.axes_plain(left)
    touched = {name: replayed.touches(name, warp=warp)[step] for name in "AB"}
    mine = replayed.touches("C", warp=warp, store=True)[0]
    places = {"A": (0, k + 3, m, k), "B": (k + 2, 0, k, n), "C": (k + 2, k + 3, m, n)}
    for name, (x, y, rows, cols) in places.items():
        indices = touched.get(name, mine)
        marks = [(int(i) % rows, int(i) // rows, COLOURS[name], "") for i in set(indices.tolist())]
        _grid(ax, x, y, rows, cols, COLOURS[name], f"{name}  {rows} x {cols}", marks)
    _bare(ax, picture)
    ax = picture.axes_plain(right)
    for row, (name, line) in enumerate(zip("AB", words, strict=True)):
        _memory(ax, 3 * row, replayed, name, touched[name], size // 4, line)
    ax.set(xlim=(-0.5, 33), ylim=(-6.4, 1.2))
    ax.set_axis_off()
    return picture


def _memory(ax, y, replayed, name, touched, floats, line) -> None:
    """The memory around the touched elements, 32 floats a row, cut into segments."""
    ax.text(0, -y + 0.75, line, color=COLOURS[name], fontsize=9, va="bottom")
    first = int(min(touched)) // floats * floats
    hit = {int(i) - first for i in touched}
    for i in sorted(h for h in hit if h < 128):
        ax.add_patch(Rectangle((i % 32, -y - 0.5 * (i // 32)), 1, 0.42, facecolor=COLOURS[name]))
    for width, line_width in ((1, 0.3), (floats, 1.3)):
        corners = [(i % 32, -y - 0.5 * (i // 32)) for i in range(0, 128, width)]
        boxes = [[(x, t), (x + width, t), (x + width, t + 0.42), (x, t + 0.42), (x, t)] for x, t in corners]
        _lines(ax, boxes, linewidth=line_width)
    beyond = len([i for i in hit if i >= 128])
    if beyond:
        ax.text(0, -y - 1.72, f"and {beyond} more further on in memory", color=INK, fontsize=8, va="top")


def roofline(peaks: model.Peaks, points: Mapping[str, tuple[float, float]], title: str = "") -> Picture:
    """The roof of a device and programs under it; `points` maps names to (operations a byte, GFLOPS)."""
    ridge = model.ridge(peaks)
    said = "; ".join(f"{name}: {x:.2g} operations a byte" for name, (x, _) in points.items())
    picture = Picture(7, 3.6, f"Roofline of {title or 'a device'}. {said}")
    ax = picture.axes_plain()
    low = min([0.1, *(x / 2 for x, _ in points.values())])
    high = max([ridge * 20, *(x * 4 for x, _ in points.values())])
    xs = np.geomspace(low, high, 200)
    ax.loglog(xs, [model.roofline(peaks, x) for x in xs], color=INK, linewidth=2)
    colours = matplotlib.colormaps["viridis"](np.linspace(0.3, 0.8, max(1, len(points))))
    for colour, (name, (x, y)) in zip(colours, points.items(), strict=True):
        ax.plot([x, x], [y, model.roofline(peaks, x)], color=colour, linewidth=1, linestyle=":")
        ax.plot([x], [y], "o", color=colour, markersize=8)
        ax.annotate(f"{name}", (x, y), (7, -3), textcoords="offset points", color=INK, fontsize=9)
    ax.text(high, peaks.gflops / 1.1, f"{peaks.gflops:,.0f} GFLOPS", ha="right", va="top", color=INK, fontsize=9)
    middle = np.sqrt(low * ridge)
    ax.text(middle, middle * peaks.bandwidth * 1.5, f"{peaks.bandwidth:,.0f} GB/s", ha="right", color=INK, fontsize=9)
    ax.set(xlabel="floating-point operations a byte", ylabel="GFLOPS", title=title)
    return picture


def ladder(series: Mapping[str, Mapping[int, float]]) -> Picture:
    """GFLOPS of the kernels by number, one line a series (a device), on a logarithmic scale."""
    picture = Picture(
        7, 3.6, "GFLOPS by kernel. " + "; ".join(f"{name}: {len(v)} kernels" for name, v in series.items())
    )
    ax = picture.axes_plain()
    styles = zip(("o-", "^--", "D:", "s-."), (GREEN, BLUE, ORANGE, RED), strict=True)
    for (style, colour), (name, values) in zip(styles, series.items(), strict=False):
        ax.semilogy(list(values), list(values.values()), style, color=colour, label=name, markersize=6)
        for kernel, value in values.items() if len(series) < 3 or name in list(series)[:2] else ():
            ax.annotate(_short(value), (kernel, value), (0, 6), textcoords="offset points", ha="center", color=INK,
                        fontsize=8)  # fmt: skip
    ax.set_xticks(sorted({kernel for values in series.values() for kernel in values}))
    ax.set(xlabel="kernel", ylabel="GFLOPS")
    ax.legend(frameon=False, labelcolor=INK, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    ax.margins(y=0.2)
    return picture


def tries(history: Sequence[tuple[float, bool]], best: Mapping[int, float], marks: Mapping[str, Mapping[int, float]],
          kernel: int) -> Picture:  # fmt: skip
    """An explorer's chart: the last twenty tries as (GFLOPS, right), each kernel's best here, recorded ladders."""
    history = history[-20:]
    last = f"{history[-1][0]:,.1f} GFLOPS, {'right' if history[-1][1] else 'wrong'}" if history else "none yet"
    picture = Picture(7, 2.5, f"Chart of the last tries with kernel {kernel}: {last}")
    picture.set_layout_engine("none")
    kernels = sorted({*best, *(k for ladder in marks.values() for k in ladder)})
    left = picture.add_axes((0.125, 0.17, 0.485, 0.7))
    right = picture.add_axes((0.64, 0.17, 0.35, 0.7), sharey=left)
    for ax in (left, right):
        ax.patch.set_alpha(0)
        ax.set_yscale("log")
        ax.minorticks_off()  # these, and powers as mathematical text, take longer than all the rest
        ax.yaxis.set_major_formatter(lambda value, place: f"{value:,g}")
        ax.tick_params(colors=INK, labelsize=8)
        ax.grid(axis="y", color=INK, alpha=0.25, linewidth=0.5)
        for side, spine in ax.spines.items():
            spine.set_visible(side == "bottom")
            spine.set_color(INK)
    right.tick_params(labelleft=False, left=False)
    tried = list(enumerate(history, 21 - len(history)))
    for right_result, marker, colour in ((True, "o", GREEN), (False, "x", RED)):
        for points, size, alpha in ((tried[:-1], 5, 0.55), (tried[-1:], 8, 1)):
            some = [(i, value) for i, (value, ok) in points if ok == right_result]
            if some:
                left.plot(*zip(*some, strict=True), marker, color=colour, markersize=size, alpha=alpha)
    if history:
        left.annotate(f"{history[-1][0]:,.1f}", (20, history[-1][0]), (0, 8), textcoords="offset points",
                      ha="center", color=INK, fontsize=9)  # fmt: skip
    left.set_xlim(0, 21)
    left.set_xticks([1, 10, 20], ["20 tries ago", "10", "now"])
    left.set_ylabel("GFLOPS", color=INK, fontsize=9)
    left.yaxis.set_label_coords(-0.19, 0.5)
    for (name, values), shape, colour in zip(marks.items(), "^D", (BLUE, ORANGE), strict=False):
        right.plot(list(values), list(values.values()), shape, color=colour, markersize=5, label=name)
    right.plot(list(best), list(best.values()), "o", color=GREEN, markersize=6, label="here, best")
    right.set_xticks(kernels, [str(k) for k in kernels])
    right.set_xlabel("kernel", color=INK, fontsize=9, labelpad=1)
    values = [v for v, _ in history] + [v for m in (best, *marks.values()) for v in m.values()]
    if values:
        left.set_ylim(min(values) / 2.5, max(values) * 4)
    right.legend(frameon=False, labelcolor=INK, fontsize=7, loc="lower right", bbox_to_anchor=(1, 1), ncols=3,
                 borderpad=0, borderaxespad=0.3, handletextpad=0.1, columnspacing=1)  # fmt: skip
    return picture
