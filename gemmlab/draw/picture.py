"""A picture: a Matplotlib figure for light and dark pages, with a description in words."""

from __future__ import annotations

import io
import re
import threading
from base64 import b64encode
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from PIL import Image

from . import style

#: Text and lines: readable on white and on black. In an SVG the page's text colour replaces it.
INK = style.RECORDED.any
#: A, B, C, and what is wrong.
BLUE, ORANGE, GREEN, RED = style.A.any, style.B.any, style.C.any, style.WRONG.any
#: What a picture points out.
MAGENTA = style.HERE.any
#: Neither good nor bad; the same in an SVG.
GREY = "#7a7a7c"
COLOURS = {"A": BLUE, "B": ORANGE, "C": GREEN}
#: CSS pixels for an inch of a picture, as PNG and as SVG.
CSS = 92
#: An SVG in a narrow cell keeps this share of its width: 9-point text is then 9 pixels high.
MIN_WIDTH = 0.78
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
        """Add axes that fill the picture, with square units and no decorations.

        Without a layout to compute, such a picture is drawn in half the time.
        """
        self.set_layout_engine("none")
        ax = self.add_axes((0, 0, 1, 1))
        ax.set_axis_off()
        ax.set_aspect("equal")
        return ax

    def panels(self, rows: int, cols: int, **options: Any) -> list[Axes]:
        """Add rows x cols plain axes and return them row by row; `options` go to `add_gridspec`."""
        grid = self.add_gridspec(rows, cols, **options)
        return [self.axes_plain(grid[row, col]) for row in range(rows) for col in range(cols)]

    def png(self) -> bytes:
        """The picture as PNG with a transparent background, reduced to 64 colours."""
        canvas = FigureCanvasAgg(self)
        self.set_dpi(2 * CSS)  # sharp screens have two pixels for each of CSS
        with _lock:
            canvas.draw()
        image = Image.fromarray(np.asarray(canvas.buffer_rgba()))
        out = io.BytesIO()
        image.quantize(64, Image.Quantize.FASTOCTREE).save(out, "PNG", optimize=True)
        return out.getvalue()

    def svg(self) -> str:
        """An <svg> element in the page's text colour that shrinks as long as it stays legible."""
        out = io.StringIO()
        with _lock, matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "gemmlab"}):
            FigureCanvasSVG(self).print_svg(out, metadata={"Date": None, "Creator": None})
        text = out.getvalue()[out.getvalue().index("<svg") :]
        text = re.sub(r"<style.*?</style>|<metadata>.*?</metadata>", "", text, flags=re.S)
        text = re.sub(r"'DejaVu Sans'[^;\"]*", "var(--jp-ui-font-family, sans-serif)", text)
        text = text.replace(INK, "var(--jp-content-font-color1, #444)")
        for colour in (style.A, style.B, style.C, style.WRONG, style.HERE):
            text = _themed(text, colour)
        alt = self.alt.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
        width = CSS * self.get_figwidth()
        shape = (
            f"width:{width:.0f}px;max-width:100%;min-width:{MIN_WIDTH * width:.0f}px;height:auto"
        )
        return text.replace("<svg ", f'<svg role="img" aria-label="{alt}" style="{shape}" ', 1)

    def _repr_mimebundle_(
        self, include: Any = None, exclude: Any = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        width, height = (round(inches * CSS) for inches in self.get_size_inches())
        # nbconvert reads the size and the description from here
        metadata = {"image/png": {"width": width, "height": height, "alt": self.alt}}
        # as text, since a browser's Python stores bytes as they are
        png = b64encode(self.png()).decode()
        return {"image/png": png, "text/plain": f"[picture: {self.alt}]"}, metadata


def _themed(svg: str, colour: style.Colour) -> str:
    """Lines and words in the colour of the page's theme. Areas, under white words, keep theirs."""
    svg = svg.replace(f"stroke: {colour.any}", f"stroke: {colour.var}")
    return re.sub(r"<text[^>]*>", lambda found: found[0].replace(colour.any, colour.var), svg)


def label_rows(ax: Axes, names: Sequence[str], middle: float = 0.0) -> None:
    """Name the rows of a chart; row i is centred at the height -i - `middle`."""
    ax.set_yticks([-row - middle for row in range(len(names))], list(names))
    ax.tick_params(axis="y", length=0)


def legend_above(ax: Axes, columns: int = 2, **options: Any) -> Legend:
    """A legend above the axes, so that it hides nothing; `options` go to `Axes.legend`."""
    return ax.legend(frameon=False, labelcolor=INK, fontsize=9, loc="lower center",
                     bbox_to_anchor=(0.5, 1), ncols=columns, **options)  # fmt: skip


def lines(ax: Axes, lines: Sequence[Sequence[tuple[float, float]]], **style: Any) -> None:
    """Draw many lines as one path, which makes an SVG much smaller."""
    gap = [(np.nan, np.nan)]
    xs, ys = zip(*(point for line in lines for point in [*line, *gap]), strict=True)
    ax.plot(xs, ys, color=INK, **style)


def faint(colour: str, opacity: float = 0.4) -> tuple[float, float, float, float]:
    """The colour as RGBA; the background shows through."""
    return (*to_rgb(colour), opacity)


def pale(colour: str) -> tuple[float, ...]:
    """The colour, half mixed with white: a ground for black words on light and dark pages."""
    return tuple((1 + channel) / 2 for channel in to_rgb(colour))


def text_colour(face: Any) -> str:
    """White or black, whichever is legible on an opaque colour."""
    return "white" if np.dot(to_rgb(face), (0.21, 0.72, 0.07)) < 0.45 else "black"


def viridis(share: float) -> tuple[float, float, float, float]:
    """A shade from dark (0) to bright (1), perceptually uniform (Smith and van der Walt, 2015)."""
    return matplotlib.colormaps["viridis"](share)


def count(number: int, thing: str) -> str:
    """A number and its noun: "1 segment", "4 segments"."""
    return f"{number} {thing}" + ("" if number == 1 else "s")


def short(value: float) -> str:
    """A rate in few characters: no decimals from 100 on, else one; two digits if that gives 0.0."""
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2g}" if 0 < value < 0.05 else f"{value:.1f}"


def brief(value: float) -> str:
    """Two digits of a time or a ratio, never with an exponent: "0.26", "150"."""
    return f"{value:,.0f}" if value >= 10 else f"{value:.2g}"
