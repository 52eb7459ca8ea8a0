"""Charts of performance: roofline, ladder of kernels, sweeps, passes."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import LogLocator, NullLocator

from .. import model
from ..catalog import Key, in_order
from .picture import (
    BLUE,
    GREEN,
    GREY,
    INK,
    MAGENTA,
    ORANGE,
    Picture,
    label_rows,
    legend_above,
    short,
)

_STYLES = (("o-", GREEN), ("^--", BLUE), ("D:", ORANGE), ("s-.", MAGENTA), ("v-", INK))
#: Devices and edge strategies look the same in all chapters: the style of names that begin so.
_FIXED_STYLES = {
    **dict(zip(("here", "NVIDIA H200", "K40m", "Intel", "PoCL"), _STYLES, strict=True)),
    **dict(zip(("pad", "guard", "shift", "split", "auto"), _STYLES, strict=True)),
}
#: Colours of the passes of a call; red is reserved for what is wrong.
PASSES = {"gemm": GREEN, "fix-up": MAGENTA, "pad": BLUE, "transpose": ORANGE, "unpad": GREY}
#: A ladder of more kernels has no numbers, which would overlap.
MAX_NUMBERED_KERNELS = 17
#: A curve with more values has no numbers.
MAX_NUMBERED_VALUES = 9
#: Up to this many values are spaced evenly along an axis; more are on a scale.
MAX_EVEN_VALUES = 12
#: Curves whose maxima differ by more than this factor have separate axes.
MAX_RATIO = 8


def roofline(
    peaks: model.Peaks, points: Mapping[str, tuple[float, float]], title: str = ""
) -> Picture:
    """The roofline of a device, and programs below it.

    Args:
        peaks: GFLOPS and GB/s of the device.
        points: (floating-point operations per byte, GFLOPS) by the name of the program.
        title: such as the name of the device.

    Source: Williams, Waterman and Patterson, Roofline (Communications of the ACM 52(4), 2009).
    """
    summary = "; ".join(f"{name}: {x:.2g} operations per byte" for name, (x, _) in points.items())
    picture = Picture(7, 3.6, f"Roofline of {title or 'a device'}. {summary}")
    ax = picture.axes_plain()
    low = min([0.1, *(x / 2 for x, _ in points.values())])
    high = max([model.ridge(peaks) * 20, *(x * 4 for x, _ in points.values())])
    xs = np.geomspace(low, high, 200)
    roof = f"roof: {short(peaks.gflops)} GFLOPS, {short(peaks.bandwidth)} GB/s"
    ax.loglog(xs, [model.roofline(peaks, x) for x in xs], color=INK, linewidth=2, label=roof)
    colours = matplotlib.colormaps["viridis"](np.linspace(0.3, 0.8, max(1, len(points))))
    for colour, (name, (x, y)) in zip(colours, points.items(), strict=True):
        ax.plot([x, x], [y, model.roofline(peaks, x)], color=colour, linewidth=1, linestyle=":")
        ax.plot([x], [y], "o", color=colour, markersize=8, label=name)
    _plain_log(ax)
    ax.legend(frameon=False, labelcolor=INK, fontsize=9, loc="best")
    ax.set(xlabel="floating-point operations per byte", ylabel="GFLOPS")
    ax.set_title(title if len(title) <= 70 else title[:68] + " …", color=INK, fontsize=9)
    return picture


def tick(kernel: Key) -> str:
    """The label of a kernel on an axis: its number, or its name in short lines."""
    return str(kernel).replace("_", "\n")


def _plain_log(ax: Axes) -> None:
    """Plain numbers, 1, 2 and 5 times a power of ten, on a logarithmic axis."""
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")


def ladder(
    series: Mapping[str, Mapping[Key, float]], yardsticks: Mapping[str, float] | None = None
) -> Picture:
    """GFLOPS by kernel, on a logarithmic scale.

    Args:
        series: {kernel: GFLOPS} of each line, such as a device; the first line has numbers.
        yardsticks: GFLOPS by name, such as those of a library, drawn as horizontal lines.
    """
    yardsticks = yardsticks or {}
    summary = [f"{name}: {len(values)} kernels" for name, values in series.items()]
    summary += [f"{name}: {value:,.0f}" for name, value in yardsticks.items()]
    picture = Picture(7, 3.6, "GFLOPS by kernel. " + "; ".join(summary))
    ax, styles = picture.axes_plain(), _styles(series)
    kernels = in_order({kernel for values in series.values() for kernel in values})
    positions = {kernel: x for x, kernel in enumerate(kernels)}
    for number, (name, values) in enumerate(series.items()):
        style, colour = styles[name]
        xs = [positions[kernel] for kernel in in_order(values)]
        ys = [values[kernel] for kernel in in_order(values)]
        ax.semilogy(xs, ys, style, color=colour, label=name)
        if number == 0 and len(kernels) <= MAX_NUMBERED_KERNELS:
            for x, y in zip(xs, ys, strict=True):
                words = f"{y / 1000:.1f}k" if y >= 10_000 else short(y)
                _annotate(ax, words, x, y)
    for style, (name, value) in zip(itertools.cycle((":", "-.")), yardsticks.items(), strict=False):
        label = f"{name}: {value / 1000:.1f}k"
        ax.axhline(value, color=INK, linewidth=1, linestyle=style, label=label)
    ax.set_xticks(range(len(kernels)), [tick(kernel) for kernel in kernels])
    for below in ax.get_xticklabels():
        if not below.get_text().isdigit():  # names are wider than the room below a kernel
            below.set(rotation=90, linespacing=0.9)
    ax.set(xlabel="kernel", ylabel="GFLOPS")
    _plain_log(ax)
    legend_above(ax)
    ax.margins(y=0.2)
    return picture


def _annotate(ax: Axes, words: str, x: float, y: float, above: bool = True) -> None:
    ax.annotate(words, (x, y), (0, 6 if above else -13), textcoords="offset points", ha="center",
                color=INK, fontsize=8)  # fmt: skip


def lines(
    series: Mapping[str, Mapping[float, float]],
    xlabel: str,
    ylabel: str = "GFLOPS",
    title: str = "",
) -> Picture:
    """Curves over some values, on linear axes from 0.

    Curves that differ too much for one axis have separate ones, so that a laptop's curve is not
    flat next to a large GPU's.

    Args:
        series: {value: rate} of each curve, the reader's own first.
        xlabel: what the values are.
        ylabel: the unit of the rates.
        title: added to `xlabel` in brackets.
    """
    summary = "; ".join(
        f"{name}: " + ", ".join(f"{x:g} {short(y)}" for x, y in values.items())
        for name, values in series.items()
    )
    panels = _similar(series)
    picture = Picture(7, 1.6 + 1.6 * len(panels), f"{ylabel} by {xlabel}. {summary}")
    values = sorted({x for curve in series.values() for x in curve})
    even = len(values) <= MAX_EVEN_VALUES
    positions = {x: i if even else x for i, x in enumerate(values)}
    first, last = positions[values[0]], positions[values[-1]]
    margin = 0.3 if even else 0.02 * (last - first)
    shown = values[:: max(1, len(values) // MAX_EVEN_VALUES)]
    styles = _styles(series)
    for ax, names in zip(picture.panels(len(panels), 1), panels, strict=True):
        by_height = sorted(names, key=lambda name: max(series[name].values()))
        for name in names:
            curve, (style, colour) = series[name], styles[name]
            xs = [positions[x] for x in curve]
            ax.plot(xs, list(curve.values()), style, color=colour, label=name, markersize=6)
            if len(names) <= 2 and len(curve) <= MAX_NUMBERED_VALUES:
                for x, y in zip(xs, curve.values(), strict=True):
                    _annotate(ax, short(y), x, y, above=name == by_height[-1])
        ax.set_xticks([positions[x] for x in shown], [f"{x:g}" for x in shown])
        top = 1.2 * max(series[by_height[-1]].values())
        ax.set(ylabel=ylabel, xlim=(first - margin, last + margin), ylim=(0, top))
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
        legend_above(ax)
    ax.set(xlabel=f"{xlabel} ({title})" if title else xlabel)
    return picture


def ranges(
    rates: Mapping[str, tuple[float, float, float]],
    peak: float | None = None,
    lit: Sequence[str] = (),
    title: str = "",
) -> Picture:
    """Rates as bars from 0, each with a line from its slowest to its fastest run.

    Args:
        rates: median, least and most GFLOPS by name.
        peak: GFLOPS that are 100 %; without it the axis shows GFLOPS.
        lit: names of the bars that stand out.
        title: such as the name of the device.
    """
    unit, sign = (peak / 100, " %") if peak else (1.0, "")
    summary = "; ".join(f"{name}: {short(rate[0] / unit)}{sign}" for name, rate in rates.items())
    picture = Picture(7, 0.9 + 0.27 * len(rates), f"{title or 'Rates'}. {summary}")
    ax = picture.axes_plain()
    for row, (name, rate) in enumerate(rates.items()):
        median, least, most = (value / unit for value in rate)
        colour, opacity = (GREEN, 0.9) if name in lit else (BLUE, 0.6)
        ax.barh(-row, median, 0.68, color=colour, alpha=opacity)
        ax.plot([least, most], [-row, -row], color=INK, linewidth=2)
        ax.text(max(median, most), -row, f" {short(median)}{sign}", va="center", color=INK,
                fontsize=9)  # fmt: skip
    label_rows(ax, list(rates))
    end = 100 if peak else 1.15 * max(rate[2] for rate in rates.values())
    ax.set(xlim=(0, end), xlabel="% of the peak" if peak else "GFLOPS")
    ax.set_title(title, color=INK, fontsize=9, loc="left")
    return picture


def _styles(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Marker and colour of each curve: the fixed ones first, then those that are left."""
    styles: dict[str, tuple[str, str]] = {}
    for start, style in _FIXED_STYLES.items():
        name = next((name for name in names if name.startswith(start)), None)
        if name is not None:
            styles[name] = style
    free = [style for style in _STYLES if style not in styles.values()] or _STYLES
    rest = itertools.cycle(free)
    return styles | {name: next(rest) for name in names if name not in styles}


def _similar(series: Mapping[str, Mapping[float, float]]) -> list[list[str]]:
    """The names of curves that can share a linear axis, those of the first curve first."""
    order = list(series)
    tops = {name: max(values.values()) for name, values in series.items()}
    groups: list[list[str]] = []
    for name in sorted(series, key=tops.__getitem__):
        if groups and tops[name] <= MAX_RATIO * tops[groups[-1][0]]:
            groups[-1].append(name)
        else:
            groups.append([name])
    groups = [sorted(group, key=order.index) for group in groups]
    return sorted(groups, key=lambda group: order.index(group[0]))


def shares(runs: Mapping[str, Mapping[str, float]]) -> Picture:
    """How the time of a call is divided among its passes: {label: {pass: milliseconds}}."""
    gemm = {label: passes["gemm"] / sum(passes.values()) for label, passes in runs.items()}
    summary = "; ".join(f"{label}: gemm {share:.0%}" for label, share in gemm.items())
    picture = Picture(7, 0.9 + 0.4 * len(runs), f"Shares of the time by pass. {summary}")
    ax = picture.axes_plain()
    names = list(dict.fromkeys(name for passes in runs.values() for name in passes))
    for name in names:
        label: str | None = name
        for row, passes in enumerate(runs.values()):
            if name not in passes:
                continue
            total = sum(passes.values())
            before = sum(passes[other] for other in names[: names.index(name)] if other in passes)
            share, start = 100 * passes[name] / total, 100 * before / total
            ax.barh(-row, share, left=start, color=PASSES.get(name.split()[0], GREY), label=label)
            label = None  # once in the legend
            if share > 6:
                ax.text(start + share / 2, -row, f"{share:.0f} %", ha="center", va="center",
                        fontsize=8, color="w")  # fmt: skip
    label_rows(ax, list(runs))
    ax.set(xlim=(0, 100), xlabel="% of the time")
    legend_above(ax, 4)
    return picture
