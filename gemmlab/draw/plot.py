"""Charts of performance: roofline, ladder of kernels, sweeps, shares of time, the tries of an explorer."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import matplotlib
import numpy as np

from .. import model
from ..catalog import Key, catalog, in_order
from .picture import BLUE, GREEN, GREY, INK, MAGENTA, ORANGE, RED, Picture, short

_STYLES = (("o-", GREEN), ("^--", BLUE), ("D:", ORANGE), ("s-.", MAGENTA), ("v-", INK))
#: Colours of the passes of a call; red is left to what is wrong.
PASSES = {"gemm": GREEN, "fix-up": MAGENTA, "pad": BLUE, "transpose": ORANGE, "unpad": GREY}
#: Devices look alike in all chapters: how their names begin, in the order of `_STYLES`.
_DEVICES = ("here", "NVIDIA H200", "K40m", "Intel", "PoCL")
#: And so do the ways of treating edges.
_WAYS = ("pad", "guard", "shift", "split", "auto")
#: Of more kernels than this a ladder does not write the rates, which would overlap.
_FEW = 17
#: Up to so many values along an axis are evenly spaced.
FEW_VALUES = 12
#: Curves whose largest values differ by more than this factor have axes of their own.
_FAR = 8


def roofline(peaks: model.Peaks, points: Mapping[str, tuple[float, float]], title: str = "") -> Picture:
    """The roofline of a device, and programs below it.

    Args:
        peaks: GFLOPS and GB/s of the device.
        points: the programs: their names mapped to (floating-point operations per byte, GFLOPS).
        title: such as the name of the device.

    Source: Williams, Waterman and Patterson, Roofline (Communications of the ACM 52(4), 2009).
    """
    ridge = model.ridge(peaks)
    said = "; ".join(f"{name}: {x:.2g} operations per byte" for name, (x, _) in points.items())
    picture = Picture(7, 3.6, f"Roofline of {title or 'a device'}. {said}")
    ax = picture.axes_plain()
    low = min([0.1, *(x / 2 for x, _ in points.values())])
    high = max([ridge * 20, *(x * 4 for x, _ in points.values())])
    xs = np.geomspace(low, high, 200)
    ax.loglog(xs, [model.roofline(peaks, x) for x in xs], color=INK, linewidth=2)
    colours = matplotlib.colormaps["viridis"](np.linspace(0.3, 0.8, max(1, len(points))))
    for place, (colour, (name, (x, y))) in enumerate(zip(colours, points.items(), strict=True)):
        ax.plot([x, x], [y, model.roofline(peaks, x)], color=colour, linewidth=1, linestyle=":")
        ax.plot([x], [y], "o", color=colour, markersize=8)
        above = y >= model.roofline(peaks, x)
        # away from the roof, which rises to the right; below it labels of neighbouring points go to different sides
        side, anchor = ((7, "left"), (-7, "right"))[1 if above else place % 2]
        height = 6 if above else -12
        ax.annotate(name, (x, y), (side, height), textcoords="offset points", ha=anchor, color=INK, fontsize=9)
    bottom, top = ax.get_ylim()
    lowest = min([bottom, *(y for _, y in points.values())])
    ax.set_ylim(min(bottom, lowest * (lowest / top) ** 0.12), top)  # room for a label below the lowest point
    _plain_log(ax)
    ax.text(high, peaks.gflops / 1.1, f"{short(peaks.gflops)} GFLOPS", ha="right", va="top", color=INK, fontsize=9)
    middle = np.sqrt(low * ridge)
    ax.text(middle, middle * peaks.bandwidth * 1.5, f"{short(peaks.bandwidth)} GB/s", ha="right", color=INK, fontsize=9)
    ax.set(xlabel="floating-point operations per byte", ylabel="GFLOPS")
    ax.set_title(title if len(title) <= 70 else title[:68] + " …", color=INK, fontsize=9)
    return picture


def tick(kernel: Key) -> str:
    """What stands below a kernel on an axis: its number, or its name in short lines."""
    return str(kernel).replace("_", "\n")


def _plain_log(ax) -> None:
    """Plain numbers on a logarithmic axis; the shorter its range, the more labels between the powers of ten."""
    ax.yaxis.set_major_formatter(lambda value, place: f"{value:,g}")
    low, high = ax.get_ylim()
    digits = range(2, 10) if high < 4 * low else (2, 3, 5) if high < 20 * low else (2, 5) if high < 200 * low else ()

    def minor(value: float, place=None) -> str:
        digit = value / 10 ** math.floor(math.log10(value) + 1e-9)
        return (
            f"{value:,.3g}" if value < 1000 and round(digit) in digits else f"{value:,.0f}" * (round(digit) in digits)
        )

    ax.yaxis.set_minor_formatter(minor)
    ax.tick_params(axis="y", which="minor", labelsize=8)


def ladder(series: Mapping[str, Mapping[Key, float]], yardsticks: Mapping[str, float] | None = None) -> Picture:
    """GFLOPS by kernel, on a logarithmic scale.

    Args:
        series: one line each, such as a device: its name mapped to {kernel: GFLOPS}.
        yardsticks: GFLOPS by name, such as those of a library, drawn as dotted lines across the whole chart.
    """
    yardsticks = yardsticks or {}
    said = [f"{name}: {len(values)} kernels" for name, values in series.items()]
    said += [f"{name}: {value:,.0f}" for name, value in yardsticks.items()]
    picture = Picture(7, 3.6, "GFLOPS by kernel. " + "; ".join(said))
    ax, styles = picture.axes_plain(), _styles(series)
    kernels = in_order({kernel for values in series.values() for kernel in values})
    places = {kernel: place for place, kernel in enumerate(kernels)}
    for name, values in series.items():
        style, colour = styles[name]
        there = in_order(values)
        ax.semilogy([places[k] for k in there], [values[k] for k in there], style, color=colour, label=name)
        for kernel in there if len(kernels) <= _FEW and (len(series) < 4 or name in list(series)[:2]) else ():
            value = values[kernel]
            words = f"{value / 1000:.1f}k" if value >= 10_000 else short(value)  # so that neighbours do not overlap
            others = [rates[kernel] for other, rates in series.items() if other != name and kernel in rates]
            below = _crowded_above(value, [*others, *yardsticks.values()])
            ax.annotate(words, (places[kernel], value), (0, -13 if below else 6), textcoords="offset points",
                        ha="center", color=INK, fontsize=8)  # fmt: skip
    for style, (name, value) in zip(itertools.cycle((":", "-.")), yardsticks.items(), strict=False):
        label = f"{name}: {value / 1000:.1f}k"
        ax.axhline(value, color=INK, linewidth=1, linestyle=style, label=label)
    ax.set_xticks(range(len(kernels)), [tick(kernel) for kernel in kernels])
    for name_below in ax.get_xticklabels():
        if not name_below.get_text().isdigit() and len(kernels) > _FEW:  # longer than the room below its kernel
            name_below.set(rotation=90, linespacing=0.9)
    ax.set(xlabel="kernel", ylabel="GFLOPS")
    _plain_log(ax)
    ax.legend(frameon=False, labelcolor=INK, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    ax.margins(y=0.2)
    return picture


def _crowded_above(value: float, others: Sequence[float]) -> bool:
    """Whether other marks of a ladder leave less room for a number above the mark of `value` than below it."""
    above = min((other / value for other in others if other >= value), default=math.inf)
    below = min((value / other for other in others if other < value), default=math.inf)
    return above < min(4, below)  # up to 4 times as much, a mark would be where the number is


@dataclass(frozen=True)
class Try:
    """A try of an explorer: its settings, its rate in GFLOPS (None if it was refused), and whether it was right."""

    settings: dict[str, int]
    gflops: float | None
    right: bool

    def __str__(self) -> str:
        said = "refused" if self.gflops is None else f"{short(self.gflops)} GFLOPS" + ", wrong" * (not self.right)
        return f"{said}: " + ", ".join(f"{name} {value}" for name, value in self.settings.items())


#: Tries that a chart shows.
SHOWN = 20
#: The height of a title over its axes, as a share of them; Matplotlib takes long to work it out.
TITLE = 1.0


def tries(history: Sequence[Try], best: Mapping[Key, float], kernel: Key, original: float | None = None) -> Picture:
    """The chart of an explorer: the last tries on the left, the best rate of each kernel here on the right.

    Both axes are linear and begin at 0. In the SVG, try number i is a group with the id "try-i".

    Args:
        history: the tries, the latest last.
        best: the best GFLOPS of each kernel on this device so far, by its number.
        kernel: the number of the explorer's kernel.
        original: GFLOPS of the kernel's own text, where the tries are of another.
    """
    last = f"Try {len(history)}, {history[-1]}" if history else "There are none yet"
    picture = Picture(7, 2.4, f"Chart of the last tries with kernel {kernel}. {last}.")
    picture.set_layout_engine("none")
    _draw_tries(_bare(picture, (0.085, 0.14, 0.42, 0.71)), history, original)
    right = _bare(picture, (0.57, 0.14, 0.42, 0.71))
    kernels = [number for number in catalog if isinstance(number, int) or number == kernel]
    for lit, colour, strength in ((False, INK, 0.55), (True, GREEN, 1.0)):
        places = [place for place, number in enumerate(kernels) if (number == kernel) == lit]
        rates = [best.get(kernels[place], 0) for place in places]
        right.bar(places, rates, color=colour, alpha=strength, width=0.7)
    most = max((best.get(number, 0) for number in kernels), default=0)
    right.set(xlim=(-0.7, len(kernels) - 0.3), ylim=(0, 1.15 * most or 1.0))
    _number_places(right, {place: number for place, number in enumerate(kernels) if isinstance(number, int)})
    if isinstance(kernel, str):  # a name is wider than the room below its bar: it stands below the numbers
        name = kernel.replace("_", " ")
        right.text(1, -0.13, name, transform=right.transAxes, ha="right", va="top", color=INK, fontsize=7.5)
    if not best:
        right.set_yticks([])
        right.text(0.5, 0.5, "not measured yet", transform=right.transAxes, color=INK, fontsize=8, ha="center")
    right.set_title("best of each kernel here, GFLOPS", color=INK, fontsize=8, y=TITLE)
    return picture


def _draw_tries(ax, history: Sequence[Try], original: float | None) -> None:
    first = max(0, len(history) - SHOWN)
    rates = [t.gflops for t in history if t.right and t.gflops is not None]
    shown = list(enumerate(history))[first:]
    counted = rates + ([original] if original else [])  # a kernel with a hole is fast, and would flatten the others
    top = 1.25 * max(counted or [t.gflops or 0 for _, t in shown], default=1.0) or 1.0
    best = max(rates, default=None)
    for place, attempt in shown:
        latest = place == len(history) - 1
        marker, colour = ("o", GREEN) if attempt.right else ("x", RED)
        size, strength = (9, 1.0) if latest else (6, 0.6)
        height = min(attempt.gflops or 0, 0.85 * top)
        (mark,) = ax.plot(place + 1, height, marker, color=colour, markersize=size, alpha=strength,
                          markeredgewidth=2 if marker == "x" else 0, clip_on=False)  # fmt: skip
        mark.set_gid(f"try-{place}")
        if latest:
            words = "refused" if attempt.gflops is None else short(attempt.gflops) if attempt.right else "wrong"
            above = any(rate and height < rate < height + 0.18 * top for rate in (best, original))  # a line is there
            way = -17 if above and height > 0.2 * top else 8
            ax.annotate(words, (place + 1, height), (0, way), textcoords="offset points", ha="center",
                        color=INK, fontsize=9)  # fmt: skip
    left, right = first + 0.4, first + max(len(shown), 8) + 0.6
    # the name of the line for the best stands at its right end, but not where the latest try has its number
    there = len(shown) > 5 and best is not None and history[-1].right and history[-1].gflops == best
    best_end, best_side = (left, "left") if there else (right, "right")
    for name, rate, colour, style, end, side in (
        ("best", best, GREEN, "--", best_end, best_side),
        ("original", original, INK, ":", (left + right) / 2, "center"),  # apart, so that neither label hides the other
    ):
        if rate is not None:
            ax.axhline(rate, color=colour, linewidth=1, linestyle=style, zorder=0)
            ax.annotate(f"{name} {short(rate)}", (end, rate), (0, 3), textcoords="offset points", ha=side,
                        color=INK, fontsize=8)  # fmt: skip
    ax.set(xlim=(left, right), ylim=(0, top))
    _number_places(ax, {place + 1: place + 1 for place, _ in shown})
    ax.set_title("your tries, GFLOPS", color=INK, fontsize=8, y=TITLE)


def _number_places(ax, numbers: Mapping[int, int]) -> None:
    """Numbers below some places of the horizontal axis; Matplotlib's ticks would take several times as long."""
    ax.set_xticks([])
    for place, number in numbers.items():
        ax.text(place, -0.035, number, transform=ax.get_xaxis_transform(), ha="center", va="top", color=INK,
                fontsize=7.5)  # fmt: skip


def _bare(picture: Picture, place: tuple[float, float, float, float]):
    """Axes at a fixed place, which is much faster than a layout that Matplotlib works out."""
    ax = picture.add_axes(place)
    ax.patch.set_alpha(0)
    ax.tick_params(colors=INK, labelsize=8)
    ax.grid(axis="y", color=INK, alpha=0.25, linewidth=0.5)
    ax.set_axisbelow(True)
    ax.yaxis.set_major_formatter(lambda rate, _: f"{rate:,.0f}" if 100 <= rate < 1e6 else f"{rate:.3g}")
    for side, spine in ax.spines.items():
        spine.set_visible(side == "bottom")
        spine.set_color(INK)
    return ax


def lines(series: Mapping[str, Mapping[float, float]], xlabel: str, ylabel: str = "GFLOPS", title: str = "") -> Picture:
    """Curves over a few values, which are evenly spaced along the axis; rates are on linear axes from 0.

    More than `FEW_VALUES` are places on a scale, so that sizes of different records lie where they belong.
    Curves that differ too much for one axis have one each, so that the learner's own is not flat beside a large GPU's.
    Where three or more share an axis, the highest and the lowest value of each place have numbers.

    Args:
        series: the name of each curve mapped to {value: rate}; the learner's own curve comes first.
        xlabel: what the values are.
        ylabel: the unit of the rates.
        title: added to the label of the values, in brackets.
    """
    said = "; ".join(f"{name}: " + ", ".join(f"{x:g} {short(y)}" for x, y in v.items()) for name, v in series.items())
    panels = _alike(series)
    picture = Picture(7, 1.6 + 1.6 * len(panels), f"{ylabel} by {xlabel}. {said}")
    found = sorted({x for values in series.values() for x in values})
    places: dict[float, float] = {x: i if len(found) <= FEW_VALUES else x for i, x in enumerate(found)}
    first, last = places[found[0]], places[found[-1]]
    margin = 0.3 if len(found) <= FEW_VALUES else 0.02 * (last - first)
    styles, every = _styles(series), max(1, len(places) // FEW_VALUES)
    for ax, names in zip(picture.panels(len(panels), 1), panels, strict=True):
        for name in names:
            values, (style, colour) = series[name], styles[name]
            xs = [places[x] for x in values]
            ax.plot(xs, list(values.values()), style, color=colour, label=name, markersize=6)
            if len(values) <= 9:
                _number_curve(ax, places, values, [series[other] for other in names])
        ax.set_xticks(list(places.values())[::every], [f"{x:g}" for x in places][::every])
        highest = max(max(series[name].values()) for name in names)
        ax.set(ylabel=ylabel, xlim=(first - margin, last + margin), ylim=(0, 1.2 * highest))
        ax.yaxis.set_major_formatter(lambda value, place: f"{value:,g}")
        ax.legend(frameon=False, labelcolor=INK, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    ax.set(xlabel=f"{xlabel} ({title})" if title else xlabel)
    return picture


def _number_curve(
    ax, places: Mapping[float, float], values: Mapping[float, float], all_curves: Sequence[Mapping]
) -> None:
    """The highest value of all curves at each place above its point, the lowest below; between them is no room.

    Where the curve itself would run through a number, this goes below its point, or to the other side of it.
    """
    steep = 0.15 * max(max(curve.values()) for curve in all_curves)
    xs = list(values)
    for place, (x, value) in enumerate(values.items()):
        rates = [curve[x] for curve in all_curves if x in curve]
        before, after = (values[near[0]] - value if near else None for near in (xs[:place][-1:], xs[place + 1 :]))
        steps = [step for step in (before, after) if step is not None]
        pit = len(rates) == 1 and bool(steps) and min(steps) > 0 and max(steps) > steep
        above = value >= max(rates) and not pit
        if not above and value > min(rates):
            continue
        way = 1 if above else -1  # where the number is; the curve may leave in this direction on one side only
        left, right = ((step or 0) * way > steep for step in (before, after))
        inside = before is not None and after is not None
        side = "center" if left == right or not inside else "right" if right else "left"
        shift = {"center": 0, "right": 4, "left": -4}[side]
        ax.annotate(short(value), (places[x], value), (shift, 6 if above else -13), textcoords="offset points",
                    ha=side, color=INK, fontsize=8)  # fmt: skip


def ranges(
    rates: Mapping[str, tuple[float, float, float]],
    peak: float | None = None,
    lit: Sequence[str] = (),
    title: str = "",
) -> Picture:
    """Rates as bars from 0 on, each with a line from its slowest to its fastest run.

    Args:
        rates: GFLOPS by what sets them apart from each other: the median, the least and the most.
        peak: GFLOPS that are 100 %; without it the axis has GFLOPS.
        lit: the names of the bars that stand out.
        title: such as the name of the device.
    """
    unit = peak / 100 if peak else 1.0
    sign = " %" if peak else ""
    said = "; ".join(f"{name}: {short(median / unit)}{sign}" for name, (median, _, _) in rates.items())
    picture = Picture(7, 0.9 + 0.27 * len(rates), f"{title or 'Rates'}. {said}")
    ax = picture.axes_plain()
    for row, (name, found) in enumerate(rates.items()):
        median, least, most = (rate / unit for rate in found)
        ax.barh(-row, median, 0.68, color=GREEN if name in lit else BLUE, alpha=0.9 if name in lit else 0.6)
        ax.plot([least, most], [-row, -row], color=INK, linewidth=2)
        ax.text(max(median, most), -row, f" {short(median)}{sign}", va="center", color=INK, fontsize=9)
    ax.set_yticks([-row for row in range(len(rates))], list(rates))
    ax.tick_params(axis="y", length=0)
    most = max(found[2] for found in rates.values()) / unit
    ax.set(xlim=(0, 100 if peak else 1.15 * most), xlabel="% of the peak" if peak else "GFLOPS")
    ax.set_title(title, color=INK, fontsize=9, loc="left")
    return picture


def _styles(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Marker and colour of each curve; those of a device or a way are always the same, others take what is left."""
    found: dict[str, tuple[str, str]] = {}
    for start, style in (*zip(_DEVICES, _STYLES, strict=True), *zip(_WAYS, _STYLES, strict=True)):
        name = next((name for name in names if name.startswith(start)), None)
        if name is not None:
            found[name] = style
    rest = itertools.cycle([style for style in _STYLES if style not in found.values()] or _STYLES)
    return found | {name: next(rest) for name in names if name not in found}


def _alike(series: Mapping[str, Mapping[float, float]]) -> list[list[str]]:
    """The names of curves that can share a linear axis from 0, those of the first curve first."""
    groups: list[list[str]] = []
    for name in sorted(series, key=lambda name: max(series[name].values())):
        if not groups or max(series[name].values()) > _FAR * max(series[groups[-1][0]].values()):
            groups.append([])
        groups[-1].append(name)
    order = list(series)
    return sorted((sorted(group, key=order.index) for group in groups), key=lambda group: order.index(group[0]))


def shares(runs: Mapping[str, Mapping[str, float]]) -> Picture:
    """How the time of a call is divided among its passes; `runs` maps a label to {pass: milliseconds}."""
    names = list(dict.fromkeys(name for passes in runs.values() for name in passes))
    said = "; ".join(f"{label}: gemm {p['gemm'] / sum(p.values()):.0%}" for label, p in runs.items())
    picture = Picture(7, 0.9 + 0.4 * len(runs), f"Shares of the time by pass. {said}")
    ax = picture.axes_plain()
    named: set[str] = set()
    for row, passes in enumerate(runs.values()):
        start, total = 0.0, sum(passes.values())
        for name in (n for n in names if n in passes):
            share = 100 * passes[name] / total
            new = name not in named  # name each pass in the legend only once
            named.add(name)
            ax.barh(-row, share, left=start, color=PASSES.get(name.split()[0], GREY), label=name if new else None)
            if share > 6:
                ax.text(start + share / 2, -row, f"{share:.0f} %", ha="center", va="center", fontsize=8, color="w")
            start += share
    ax.set_yticks([-i for i in range(len(runs))], list(runs))
    ax.set(xlim=(0, 100), xlabel="% of the time")
    ax.legend(frameon=False, labelcolor=INK, fontsize=9, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=4)
    return picture
