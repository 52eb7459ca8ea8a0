"""A picture: a Matplotlib figure without pyplot, for light and dark backgrounds, with a description in words."""

from __future__ import annotations

import io
import math
import re
import threading
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from PIL import Image

INK = "#808080"  # text and lines: readable on white and on black; in an SVG the page's text colour replaces it
BLUE, ORANGE, GREEN, RED = "#3f8ad8", "#cf7519", "#3fa26a", "#d9534f"  # A, B, C, and what is wrong
MAGENTA = "#c542b4"  # what a picture points out
GREY = "#8a8a8c"  # in an SVG, too: what is neither good nor bad
COLOURS = {"A": BLUE, "B": ORANGE, "C": GREEN}
LEAST = 0.75  # of its width that an SVG keeps in a narrow cell: text of 9 points is 9 pixels high then
_lock = threading.Lock()  # rc_context changes the settings of the whole process


class Picture(Figure):
    """A figure with a description in words. A notebook shows it as PNG; `svg()` is for widgets.

    Args:
        width, height: in inches.
        alt: the description, for readers who cannot see the picture.
    """

    def __init__(self, width: float, height: float, alt: str):
        super().__init__(figsize=(width, height), layout="constrained")
        self.patch.set_alpha(0)
        self.alt = alt

    def axes_plain(self, spec: Any = 111) -> Axes:
        """Add axes in `INK`, without a box and with a transparent background."""
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

    def sheet(self) -> Axes:
        """Add axes over the whole picture, with squares for units and nothing around: for what is drawn by hand.

        Nothing has to be laid out then, which is most of the time that a picture takes.
        """
        self.set_layout_engine("none")
        ax = self.add_axes((0, 0, 1, 1))
        ax.set_axis_off()
        ax.set_aspect("equal")
        return ax

    def panels(self, rows: int, cols: int, **options: Any) -> list[Axes]:
        """Add rows x cols plain axes and return them row by row; `options` go to `Figure.add_gridspec`."""
        grid = self.add_gridspec(rows, cols, **options)
        return [self.axes_plain(grid[row, col]) for row in range(rows) for col in range(cols)]

    def _settle(self) -> None:
        """What stands inside the axes needs no room around them: leaving it out halves the time of the layout."""
        for ax in self.axes:
            inside = [t for t in ax.texts if t.get_horizontalalignment() == t.get_verticalalignment() == "center"]
            for artist in (*inside, *ax.patches, *ax.lines, *ax.images, *ax.collections):
                artist.set_in_layout(False)

    def png(self) -> bytes:
        """The picture as PNG on a transparent background; 64 colours suffice for a diagram and keep it small."""
        canvas = FigureCanvasAgg(self)
        self.set_dpi(130)
        self._settle()
        with _lock:
            canvas.draw()
        out = io.BytesIO()
        Image.fromarray(np.asarray(canvas.buffer_rgba())).quantize(64, Image.Quantize.FASTOCTREE).save(
            out, "PNG", optimize=True
        )
        return out.getvalue()

    def svg(self) -> str:
        """An <svg> element that takes its text colour from the page, and shrinks as long as it can be read."""
        out = io.StringIO()
        self._settle()
        with _lock, matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "gemmlab"}):
            FigureCanvasSVG(self).print_svg(out, metadata={"Date": None, "Creator": None})
        text = out.getvalue()[out.getvalue().index("<svg") :]
        text = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>", "", text, flags=re.S)
        text = text.replace(INK, "var(--jp-content-font-color1, #444)")
        alt = self.alt.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
        least = round(96 * LEAST * self.get_figwidth())
        style = f"max-width:100%;min-width:{least}px;height:auto"
        return text.replace("<svg ", f'<svg role="img" aria-label="{alt}" style="{style}" ', 1)

    def _repr_mimebundle_(self, include=None, exclude=None):
        width, height = (round(inches * 92) for inches in self.get_size_inches())
        size = {"image/png": {"width": width, "height": height, "alt": self.alt}}  # nbconvert uses the last
        return {"image/png": self.png(), "text/plain": f"[picture: {self.alt}]"}, size


def count(number: int, thing: str) -> str:
    """A number and its noun, in the singular or the plural: "1 segment", "4 segments"."""
    return f"{number} {thing}" + ("" if number == 1 else "s")


def time_axis(end: float) -> float:
    """Where a time axis ends: 20, 40, 80 ... units, so that two moments of a picture to step through compare."""
    return 20 * 2 ** max(0, math.ceil(math.log2(end / 20)))


def short(value: float) -> str:
    """A rate in few characters: a whole number from 100 on, one decimal below that; two digits of what would be 0.0."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}" if 0 < value < 0.05 else f"{value:.1f}"


def brief(value: float) -> str:
    """Two digits of a time or a ratio, and all of those before the point, without a power of ten: "0.26", "150"."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"


def lines(ax, lines, **style) -> None:
    """Draw many lines as a single path, which makes an SVG far smaller."""
    gap = [(np.nan, np.nan)]
    xs, ys = zip(*(point for line in lines for point in [*line, *gap]), strict=True)
    ax.plot(xs, ys, color=INK, **style)
