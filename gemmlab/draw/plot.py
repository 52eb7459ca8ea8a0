"""Charts of performance: curves, and the whole ladder as a strip."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping

from matplotlib.ticker import MaxNLocator

from ..ladder import Key
from ..model import H200
from .picture import BLUE, GREEN, INK, MAGENTA, ORANGE, Picture, faint, short

_STYLES = (("o-", GREEN), ("^--", BLUE), ("D:", ORANGE), ("s-.", MAGENTA), ("v-", INK))
#: Devices and edge strategies look the same in all chapters: the style of names that begin so.
_FIXED_STYLES = {
    **dict(zip(("here", "NVIDIA H200", "K40m", "Intel", "PoCL"), _STYLES, strict=True)),
    **dict(zip(("pad", "guard", "shift", "split", "auto"), _STYLES, strict=True)),
}


def tick(kernel: Key) -> str:
    """The label of a kernel on an axis: its number, or its name in short lines."""
    return str(kernel).replace("_", "\n")


def strip(
    rates: Mapping[Key, float],
    lit: Key | None = None,
    yardsticks: Mapping[str, float] | None = None,
) -> Picture:
    """The ladder as a strip: each kernel's share of an H200's peak, the kernel `lit` in colour.

    The linear scale ends at 100 %, or above for tensor cores, which are not part of this peak.
    `yardsticks`, such as a library, are lines.
    """
    shares = {kernel: 100 * rate / H200.gflops for kernel, rate in rates.items()}
    yards = {name: 100 * rate / H200.gflops for name, rate in (yardsticks or {}).items()}
    phrases = []
    for kernel, share in shares.items():
        here = ", this chapter" if kernel == lit else ""
        phrases.append(f"kernel {kernel}: {share:.0f} %{here}")
    phrases += [f"{name}: {share:.0f} %" for name, share in yards.items()]
    alt = f"The ladder in per cent of the peak of {H200.name}. " + "; ".join(phrases)
    picture = Picture(8, 1.7, alt)
    ax = picture.axes_plain()
    top = max(100, *(1.15 * share for share in shares.values()))
    for x, (kernel, share) in enumerate(shares.items()):
        colour, weight = (GREEN, "bold") if kernel == lit else (faint(INK, 0.45), "normal")
        ax.bar(x, share, width=0.7, color=colour)
        lines = [yard for yard in yards.values() if share < yard < share + 0.15 * top]
        y = max([share, *lines]) + 0.03 * top  # above a line that would cross the figure
        ax.text(x, y, f"{share:.0f}", ha="center", color=INK, fontsize=9, weight=weight)
    for name, share in yards.items():
        ax.axhline(share, color=ORANGE, linewidth=1.5, linestyle="--", zorder=0)
        ax.text(-0.45, share + 0.03 * top, f"{name}: {share:.0f}", color=INK, fontsize=9)
    ax.set(ylim=(0, top), xlim=(-0.6, len(shares) - 0.4), ylabel="% of the peak")
    ax.set_xticks(range(len(shares)), [tick(kernel) for kernel in shares])
    ax.set_yticks(range(0, int(top) + 1, 50))
    title = f"each kernel on {H200.name}, in % of its peak of {H200.gflops / 1000:.0f} TFLOPS"
    ax.set_title(title, color=INK, fontsize=9, loc="left")
    return picture


def lines(
    series: Mapping[str, Mapping[float, float]],
    xlabel: str,
    ylabel: str = "GFLOPS",
    title: str = "",
) -> Picture:
    """Curves {value: rate} on linear axes, the second from 0; each has its name at its end."""
    summary = "; ".join(
        f"{name}: " + ", ".join(f"{x:g} {short(y)}" for x, y in values.items())
        for name, values in series.items()
    )
    picture = Picture(7, 3.2, f"{ylabel} by {xlabel}. {summary}")
    ax, looks = picture.axes_plain(), styles(series)
    top = 1.08 * max(rate for values in series.values() for rate in values.values())
    last = max(x for values in series.values() for x in values)
    free = top
    for name in sorted(series, key=lambda name: -series[name][max(series[name])]):
        curve, (style, colour) = dict(sorted(series[name].items())), looks[name]
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


def styles(names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Marker and colour of each curve: the fixed ones first, then those that are left."""
    found: dict[str, tuple[str, str]] = {}
    for start, style in _FIXED_STYLES.items():
        name = next((name for name in names if name.startswith(start)), None)
        if name is not None:
            found[name] = style
    free = [style for style in _STYLES if style not in found.values()] or _STYLES
    rest = itertools.cycle(free)
    return found | {name: next(rest) for name in names if name not in found}
