"""Figures with bars that end at a peak: what a panel shows, as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from matplotlib.text import Text

from ..model import percent
from .picture import CSS, INK, Picture, faint
from .style import MODEL, Colour

#: CSS pixels: the width of a picture; lines of text, of a figure and of a bar; between two figures.
WIDTH, LINE, FIGURE, BAR, GAP = 640, 19, 28, 10, 10


@dataclass(frozen=True)
class Bar:
    """A figure with a bar.

    Attributes:
        name, about: what it is about; `about` is less important.
        colour: of the figure and of the bar.
        figure, words: such as "10.8" and "GFLOPS (10.7–10.9)".
        facts: what is less important, such as "24 % of the peak".
        share: the length of the bar, as a share of the peak.
        whisker: the least and the most, as shares of the peak.
        marks: places on the bar by their names, as shares of the peak.
        ghost: the length of the bar before the last change, as a share of the peak.
    """

    name: str
    about: str
    colour: Colour
    figure: str
    words: str
    share: float = 0.0
    facts: tuple[str, ...] = ()
    whisker: tuple[float, float] | None = None
    marks: Mapping[str, float] = field(default_factory=dict)
    ghost: float = 0.0

    def in_order(self) -> list[tuple[str, float]]:
        """The marks from left to right."""
        return sorted(self.marks.items(), key=lambda mark: mark[1])

    def __str__(self) -> str:
        parts = (self.name, self.about, self.figure, self.text)
        return " ".join(part for part in parts if part)

    @property
    def text(self) -> str:
        """The words and the facts."""
        return ", ".join((self.words, *self.facts))


def bars(heading: str, some: Sequence[Bar], note: str) -> Picture:
    """A picture of bars below each other.

    Args:
        heading: a line above them.
        some: the bars.
        note: a sentence below the first of them.
    """
    heights = [LINE + FIGURE + BAR + (LINE if bar.marks else 0) for bar in some]
    height = LINE + sum(heights) + LINE + GAP * (len(some) + 1)
    alt = ". ".join([heading, str(some[0]), note, *map(str, some[1:])])
    picture = Picture(WIDTH / CSS, height / CSS, alt)
    picture.set_layout_engine("none")
    ax = picture.add_axes((0, 0, 1, 1))
    ax.set_axis_off()
    ax.set(xlim=(0, WIDTH), ylim=(height, 0))
    _text(ax, LINE, heading, weight="bold")
    top = LINE + GAP
    for bar, own in zip(some, heights, strict=True):
        _draw(ax, top, bar)
        top += own
        if bar is some[0]:
            _text(ax, top + LINE, note, weight="bold")
            top += LINE
        top += GAP
    return picture


def _draw(ax: Axes, top: float, bar: Bar) -> None:
    """A bar below this height: two lines of text, the bar, and the names of its marks."""
    _text(ax, top + LINE, f"{bar.name} {bar.about}".strip())
    figure = _text(
        ax, top + LINE + FIGURE - 6, bar.figure, color=bar.colour.any, size=16, weight="bold"
    )
    # beside the figure, whose width only the renderer knows
    ax.annotate(
        bar.text, (1, 0), xycoords=figure, xytext=(6, 2.5), textcoords="offset points",
        color=INK, fontsize=10, va="bottom",
    )  # fmt: skip
    place = top + LINE + FIGURE
    ax.add_patch(Rectangle((0, place), WIDTH, BAR, color=faint(INK, 0.25), linewidth=0))
    length = WIDTH * min(max(bar.share, 0.002), 1.0)
    colour = bar.colour.any
    if bar.colour is MODEL:  # nobody measured it
        bound = Rectangle((0, place), length, BAR, fill=False, edgecolor=colour, hatch="//////")
        ax.add_patch(bound)
    else:
        ax.add_patch(Rectangle((0, place), length, BAR, color=colour, linewidth=0))
    if bar.ghost:
        x = WIDTH * min(bar.ghost, 1.0)
        ax.add_patch(Rectangle((0, place), x, BAR, fill=False, edgecolor=INK, linestyle=":"))
    if bar.whisker:
        ends = [WIDTH * min(end, 1.0) for end in bar.whisker]
        ax.plot(ends, [place + BAR / 2] * 2, "-|", color=INK, markersize=5, linewidth=1.5)
    for at in bar.marks.values():
        x = WIDTH * min(at, 1.0)
        ax.plot([x, x], [place - 3, place + BAR + 3], color=INK, linewidth=2)
    listed = [f"┃ {name} {percent(at)}" for name, at in bar.in_order()]
    _text(ax, place + BAR + LINE, "    ".join(listed), size=9)


def _text(
    ax: Axes, y: float, words: str, color: str = INK, size: float = 10, **options: Any
) -> Text:
    return ax.text(0, y - 4, words, color=color, fontsize=size, va="baseline", **options)
