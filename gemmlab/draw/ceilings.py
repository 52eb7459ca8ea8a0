"""Pictures of ceilings: what each resource allows a kernel, and the whole ladder as a strip."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.patches import Patch

from ..catalog import Key
from ..model import H200, Ceiling, percent
from .picture import BLUE, GREEN, INK, ORANGE, Picture, faint, label_rows, legend_above
from .plot import tick


def bars(ceilings: Sequence[Ceiling], title: str) -> Picture:
    """What each resource allows a kernel, as bars.

    Args:
        ceilings: of one kernel, such as `gemmlab.model.ceilings` returns them.
        title: such as the names of kernel and chip.
    """
    words = {}
    for c in ceilings:
        low = "" if c.low == c.share else f"{percent(c.low)} to "
        words[c.resource] = low + percent(c.share)
    phrases = "; ".join(f"{resource} {allowed}" for resource, allowed in words.items())
    legend = [
        Patch(color=faint(ORANGE, 0.8), label="the lowest ceiling"),
        Patch(color=faint(BLUE, 0.8), label="the others"),
    ]
    if any(c.low < c.share for c in ceilings):
        legend.append(Patch(color=faint(BLUE, 0.35), label="if caches, overlap or vectors help"))
    picture = Picture(8, 1.3 + 0.36 * len(ceilings), f"{title}: {phrases}")
    ax = picture.axes_plain()
    lowest = min(ceilings, key=lambda c: (c.share, c.low))
    for row, c in enumerate(ceilings):
        colour = ORANGE if c is lowest else BLUE
        ax.barh(-row, 100 * c.share, 0.62, color=faint(colour, 0.35 if c.low < c.share else 0.8))
        ax.barh(-row, 100 * c.low, 0.62, color=faint(colour, 0.8))
        ax.text(100 * c.share + 0.8, -row, words[c.resource], va="center", color=INK, fontsize=9)
    label_rows(ax, list(words))
    ax.set(xlim=(0, 118), xlabel="% of the chip's multiply-adds")
    ax.set_xticks(range(0, 101, 20))
    ax.set_title(title, color=INK, fontsize=10, loc="left", pad=24)
    legend_above(ax, len(legend), handles=legend, columnspacing=1.2, handlelength=1.2)
    return picture


def strip(
    rates: Mapping[Key, float],
    lit: Key | None = None,
    yardsticks: Mapping[str, float] | None = None,
) -> Picture:
    """The ladder as a small strip: each kernel's share of the peak of an H200.

    The linear scale ends at 100 %, or above for tensor cores, which are not part of this peak.

    Args:
        rates: GFLOPS by kernel.
        lit: the kernel that stands out, or None.
        yardsticks: GFLOPS by name, such as those of a library, drawn as lines.
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
