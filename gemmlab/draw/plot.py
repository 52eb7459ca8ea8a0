"""Charts of performance: roofline, ladder of kernels, curves."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from matplotlib.ticker import LogLocator, MaxNLocator, NullLocator

from .. import model
from ..catalog import Key, in_order
from .picture import BLUE, GREEN, INK, MAGENTA, ORANGE, Picture, brief, legend_above, short

_STYLES = (("o-", GREEN), ("^--", BLUE), ("D:", ORANGE), ("s-.", MAGENTA), ("v-", INK))
#: Devices and edge strategies look the same in all chapters: the style of names that begin so.
_FIXED_STYLES = {
    **dict(zip(("here", "NVIDIA H200", "K40m", "Intel", "PoCL"), _STYLES, strict=True)),
    **dict(zip(("pad", "guard", "shift", "split", "auto"), _STYLES, strict=True)),
}
#: The axes of every roofline: operations per byte, and per cent of the peak.
_INTENSITIES, _SHARES = (1 / 8, 512), (0.2, 200)


def roofline(
    peaks: model.Peaks, points: Mapping[str, tuple[float, float]], title: str = ""
) -> Picture:
    """The roofline of a device in per cent of its peak, and programs below it.

    All rooflines have the same axes, so devices can be compared.

    Args:
        peaks: GFLOPS and GB/s of the device.
        points: (floating-point operations per byte, GFLOPS) by the name of the program.
        title: such as the name of the device.

    Source: Williams, Waterman and Patterson, Roofline (Communications of the ACM 52(4), 2009).
    """
    summary = "; ".join(
        f"{name}: {x:.2g} operations per byte, {y / peaks.gflops:.1%} of the peak"
        for name, (x, y) in points.items()
    )
    ridge = model.ridge(peaks)
    picture = Picture(7, 3.4, f"Roofline of {title or 'a device'}. {summary}")
    ax = picture.axes_plain()
    low, high = _INTENSITIES
    ax.loglog([low, ridge, high], [100 * low / ridge, 100, 100], color=INK, linewidth=2)
    words = f"{short(peaks.gflops)} GFLOPS, {short(peaks.bandwidth)} GB/s: ridge at {brief(ridge)}"
    ax.annotate(words, (ridge, 100), (-4, 5), textcoords="offset points", ha="center", color=INK,
                fontsize=9)  # fmt: skip
    for name, (x, y) in points.items():
        share, roof = (100 * rate / peaks.gflops for rate in (y, model.roofline(peaks, x)))
        ax.plot([x, x], [share, roof], color=MAGENTA, linewidth=1, linestyle=":")
        ax.plot([x], [share], "o", color=MAGENTA, markersize=8)
        ax.annotate(f"{name}: {model.percent(share / 100)}", (x, share), (8, -3),
                    textcoords="offset points", color=INK, fontsize=9)  # fmt: skip
    ax.set(xlabel="floating-point operations per byte", ylabel="% of the peak", ylim=_SHARES)
    ax.set_xticks([0.25, 1, 4, 16, 64, 256], ["1/4", "1", "4", "16", "64", "256"])
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    ax.set_title(title, color=INK, fontsize=9, loc="left")
    return picture


def tick(kernel: Key) -> str:
    """The label of a kernel on an axis: its number, or its name in short lines."""
    return str(kernel).replace("_", "\n")


def ladder(
    series: Mapping[str, Mapping[Key, float]],
    yardsticks: Mapping[str, float] | None = None,
    spread: Mapping[Key, tuple[float, float]] | None = None,
) -> Picture:
    """GFLOPS by kernel, on a logarithmic scale.

    Args:
        series: {kernel: GFLOPS} of each line, such as a device; the first line has numbers.
        yardsticks: GFLOPS by name, such as those of a library, drawn as horizontal lines.
        spread: least and most GFLOPS by kernel of the first line, drawn as whiskers.
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
        for x, y in zip(xs, ys, strict=True) if number == 0 else ():
            words = f"{y / 1000:.1f}k" if y >= 10_000 else short(y)
            ax.annotate(words, (x, y), (0, 6), textcoords="offset points", ha="center", color=INK,
                        fontsize=8)  # fmt: skip
    for kernel, (least, most) in (spread or {}).items():
        ax.vlines(positions[kernel], least, most, color=INK, linewidth=1.5)
    for style, (name, value) in zip(itertools.cycle((":", "-.")), yardsticks.items(), strict=False):
        label = f"{name}: {value / 1000:.1f}k"
        ax.axhline(value, color=INK, linewidth=1, linestyle=style, label=label)
    ax.set_xticks(range(len(kernels)), [tick(kernel) for kernel in kernels])
    for below in ax.get_xticklabels():
        if not below.get_text().isdigit():  # names are wider than the room below a kernel
            below.set(rotation=90, linespacing=0.9)
    ax.set(xlabel="kernel", ylabel="GFLOPS")
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:,g}")
    legend_above(ax)
    ax.margins(y=0.2)
    return picture


def lines(
    series: Mapping[str, Mapping[float, float]],
    xlabel: str,
    ylabel: str = "GFLOPS",
    title: str = "",
) -> Picture:
    """Curves over some values, on linear axes, the second from 0; each has its name at its end.

    Args:
        series: {value: rate} of each curve.
        xlabel: what the values are.
        ylabel: the unit of the rates.
        title: above the chart.
    """
    summary = "; ".join(
        f"{name}: " + ", ".join(f"{x:g} {short(y)}" for x, y in values.items())
        for name, values in series.items()
    )
    picture = Picture(7, 3.2, f"{ylabel} by {xlabel}. {summary}")
    ax, styles = picture.axes_plain(), _styles(series)
    top = 1.08 * max(rate for values in series.values() for rate in values.values())
    last = max(x for values in series.values() for x in values)
    free = top
    for name in sorted(series, key=lambda name: -series[name][max(series[name])]):
        curve, (style, colour) = dict(sorted(series[name].items())), styles[name]
        ax.plot(list(curve), list(curve.values()), style, color=colour, markersize=5)
        end = max(curve)
        # names of curves that end at the right are one below the other
        free = y = min(curve[end], free - 0.07 * top) if end == last else curve[end]
        ax.annotate(name, (end, y), (8, 0), textcoords="offset points", va="center", color=colour,
                    fontsize=9, annotation_clip=False)  # fmt: skip
    ax.set(xlabel=xlabel, ylabel=ylabel, ylim=(0, top))
    ax.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(lambda value, _: f"{value:,g}")
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
