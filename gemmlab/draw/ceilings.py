"""Pictures of ceilings: what each resource allows a kernel, and what was measured; the whole ladder under its roofs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from ..catalog import Key
from ..model import H200, Ceiling, Chip, Explanation, percent
from .diagram import faint
from .picture import BLUE, GREEN, INK, MAGENTA, ORANGE, Picture
from .plot import tick

#: One colour for each resource that limits a kernel of the ladder; the L1 cache is on the same path as local memory.
COLOURS = {"local memory": ORANGE, "L1 cache": ORANGE, "instruction issue": BLUE, "latency": MAGENTA}


def bars(ceilings: Sequence[Ceiling], measured: float | None = None, title: str = "") -> Picture:
    """What each resource allows a kernel, as bars, with the measured rate as a line through them.

    Args:
        ceilings: of one kernel, such as `gemmlab.model.ceilings` returns them.
        measured: as a share of the same peak (0 to 1), or None.
        title: such as the names of kernel and chip.
    """
    words = [percent(c.share) if c.low == c.share else f"{percent(c.low)} to {percent(c.share)}" for c in ceilings]
    said = "; ".join(f"{c.resource} {word}" for c, word in zip(ceilings, words, strict=True))
    more = "" if measured is None else f". Measured: {percent(measured)}"
    picture = Picture(8, 1.3 + 0.36 * len(ceilings), f"{title or 'A kernel'}: {said}{more}")
    ax = picture.axes_plain()
    lowest = min(ceilings, key=lambda c: (c.share, c.low))
    for row, (c, word) in enumerate(zip(ceilings, words, strict=True)):
        colour = ORANGE if c is lowest else BLUE
        ax.barh(-row, 100 * c.share, height=0.62, color=faint(colour, 0.35 if c.low < c.share else 0.8))
        ax.barh(-row, 100 * c.low, height=0.62, color=faint(colour, 0.8))
        ax.text(100 * c.share + 0.8, -row, word, va="center", color=INK, fontsize=9)
    legend: list = [
        Patch(color=faint(ORANGE, 0.8), label="the lowest ceiling"),
        Patch(color=faint(BLUE, 0.8), label="the others"),
    ]
    if any(c.low < c.share for c in ceilings):
        legend.append(Patch(color=faint(BLUE, 0.35), label="if caches, overlap or vectors help"))
    if measured is not None:
        ax.axvline(100 * measured, color=GREEN, linewidth=2.5)
        legend.insert(0, Line2D([], [], color=GREEN, linewidth=2.5, label=f"measured: {percent(measured)}"))
    ax.set_yticks([-row for row in range(len(ceilings))], [c.resource for c in ceilings])
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(0, 118), xlabel="% of the chip's multiply-adds")
    ax.set_xticks(range(0, 101, 20))
    ax.set_title(title, color=INK, fontsize=10, loc="left", pad=24)
    ax.legend(handles=legend, frameon=False, labelcolor=INK, fontsize=9, loc="lower left", bbox_to_anchor=(0, 1),
              ncols=len(legend), borderaxespad=0.2, columnspacing=1.2, handlelength=1.2)  # fmt: skip
    return picture


def ladder(rungs: Sequence[Explanation], yardsticks: Mapping[str, float] | None = None) -> Picture:
    """Every kernel's measured rate as a bar under its ceilings: one sees which roof each rung lifts.

    Args:
        rungs: what `gemmlab.model.explain` found, of one chip, in the order in which they are drawn.
        yardsticks: GFLOPS by name, such as those of a library, drawn as lines.
    """
    chip = rungs[0].chip
    said = "; ".join(f"kernel {r.kernel}: {percent(r.share)}, {r.roof.resource} {percent(r.roof.share)}" for r in rungs)
    picture = Picture(8, 1.3 + 0.36 * len(rungs), f"The ladder under its ceilings on {chip.name}. {said}")
    ax = picture.axes_plain()
    for row, r in enumerate(rungs):
        ax.barh(-row, 100 * r.share, height=0.6, color=faint(GREEN, 0.7))
        ax.text(100 * r.share - 0.6, -row, percent(r.share), ha="right", va="center", color="white", fontsize=9)
        for c in (c for c in r.ceilings if c.resource in COLOURS and c.share < 0.995):
            heavy = c is r.roof
            ax.plot([100 * c.share] * 2, [-row - 0.42, -row + 0.42], color=COLOURS[c.resource],
                    linewidth=3 if heavy else 1.5, alpha=1 if heavy else 0.6)  # fmt: skip
        words = f"{r.roof.resource}: {percent(r.roof.share)}"
        ax.text(101, -row, words, va="center", color=INK, fontsize=9)
    for name, value in (yardsticks or {}).items():
        ax.axvline(100 * value / chip.gflops, color=INK, linewidth=1, linestyle=":")
        ax.text(100 * value / chip.gflops, -len(rungs) + 0.4, f"{name} ", ha="right", va="top", color=INK, fontsize=9)
    ax.set_yticks(
        [-row for row in range(len(rungs))],
        [f"kernel {r.kernel}" if isinstance(r.kernel, int) else r.kernel for r in rungs],
    )
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(0, 100), ylim=(-len(rungs) + 0.05, 0.6))
    ax.set_xlabel(f"% of the {chip.gflops / 1000:.1f} TFLOPS of {chip.name}")
    ax.text(101, 0.62, "the lowest ceiling", va="bottom", color=INK, fontsize=9, style="italic")
    ax.legend(handles=_legend(rungs), frameon=False, labelcolor=INK, fontsize=9, loc="lower left",
              bbox_to_anchor=(0, 1), ncols=4, borderaxespad=0.2, columnspacing=1, handlelength=1)  # fmt: skip
    return picture


def strip(
    rates: Mapping[Key, float], lit: Key | None = None, yardsticks: Mapping[str, float] | None = None, chip: Chip = H200
) -> Picture:
    """The ladder as a small strip: each kernel's share of the chip's peak, on a linear scale from 0.

    It ends at 100 %, or above that for tensor cores, which are not part of this peak.

    Args:
        rates: GFLOPS by the number of the kernel.
        lit: the kernel that stands out, or None.
        yardsticks: GFLOPS by name, such as those of a library, drawn as lines.
        chip: whose arithmetic peak is 100 %.
    """
    shares = {kernel: 100 * rate / chip.gflops for kernel, rate in rates.items()}
    yards = {name: 100 * rate / chip.gflops for name, rate in (yardsticks or {}).items()}
    said = [f"kernel {kernel}: {share:.0f} %" + ", this chapter" * (kernel == lit) for kernel, share in shares.items()]
    said += [f"{name}: {share:.0f} %" for name, share in yards.items()]
    top = max(100, *(1.15 * share for share in shares.values()))
    picture = Picture(8, 1.7, f"The ladder in per cent of the peak of {chip.name}. " + "; ".join(said))
    ax = picture.axes_plain()
    for place, (kernel, share) in enumerate(shares.items()):
        colour, weight = (faint(GREEN, 0.95), "bold") if kernel == lit else (faint(INK, 0.45), "normal")
        ax.bar(place, share, width=0.7, color=colour)
        ax.text(place, share + 0.03 * top, f"{share:.0f}", ha="center", color=INK, fontsize=9, weight=weight)
    for name, share in yards.items():
        # the line leaves room for the numbers that stand at its height
        at = [place for place, own in enumerate(shares.values()) if own < share < own + 0.18 * top]
        ends = [-0.6, *(place + side for place in at for side in (-0.4, 0.4)), len(shares) - 0.4]
        ax.hlines([share] * (len(at) + 1), ends[::2], ends[1::2], color=ORANGE, linewidth=1.5, linestyle="--")
        ax.text(-0.45, share + 0.03 * top, f"{name}: {share:.0f}", color=INK, fontsize=9)
    ax.set(ylim=(0, top), xlim=(-0.6, len(shares) - 0.4), ylabel="% of the peak")
    ax.set_xticks(range(len(shares)), [tick(kernel) for kernel in shares])
    ax.set_yticks(range(0, int(top) + 1, 50))
    ax.set_title(f"each kernel on {chip.name}, in % of its peak of {chip.gflops / 1000:.0f} TFLOPS",
                 color=INK, fontsize=9, loc="left")  # fmt: skip
    return picture


def _legend(rungs: Sequence[Explanation]) -> list:
    """The measured bars, and a line for each resource that sets a ceiling in the picture."""
    handles: list = [Patch(color=faint(GREEN, 0.7), label="measured")]
    shown = {c.resource for r in rungs for c in r.ceilings if c.share < 0.995}
    for label, names in (("ceilings: local memory, L1 cache", ("local memory", "L1 cache")),
                         ("instruction issue", ("instruction issue",)), ("latency", ("latency",))):  # fmt: skip
        if shown & set(names):
            handles.append(Line2D([], [], color=COLOURS[names[0]], linewidth=3, label=label))
    return handles
