"""The whole ladder as one picture: what each rung gained or lost, and what it lifted."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

from ..model import H200, Chip
from .diagram import faint
from .picture import GREEN, INK, MAGENTA, ORANGE, Picture


def waterfall(
    rates: Mapping[str, float],
    words: Mapping[str, str] | None = None,
    yardsticks: Mapping[str, float] | None = None,
    chip: Chip = H200,
) -> Picture:
    """Rates as steps: each bar begins at the rate of the rung before and ends at its own.

    Args:
        rates: GFLOPS by the name of the rung, from the first to the last.
        words: for rungs by name the roof that was lifted, in a few words.
        yardsticks: GFLOPS by name, such as those of a library, drawn as lines beside that of the chip's peak.
        chip: whose arithmetic peak is drawn.

    Raises:
        ValueError: without any rates.
    """
    if not rates:
        raise ValueError("rates must have at least one rung")
    words, names = words or {}, list(rates)
    said = "; ".join(f"{name}: {rate / 1000:.1f}, {words.get(name, '')}".rstrip(", ") for name, rate in rates.items())
    picture = Picture(8, 1.2 + 0.3 * len(rates), f"TFLOPS of each rung on {chip.name}. {said}")
    ax = picture.axes_plain()
    aside = ax.get_yaxis_transform()  # beside the axes, at the height of a bar
    lines = {f"float32 peak of {chip.name}": chip.gflops, **(yardsticks or {})}
    room = 0.065 * max(rates.values())  # that a number takes
    for row, (before, now) in enumerate(pairwise([0.0, *rates.values()])):
        low, high = sorted((before / 1000, now / 1000))
        ax.barh(-row, high - low, left=low, height=0.7, color=faint(GREEN if now >= before else MAGENTA, 0.8))
        ax.plot(
            [now / 1000] * 2, [-row - 0.35, -row - (1.35 if row + 1 < len(names) else 0.35)], color=INK, linewidth=1
        )
        across = [rate for rate in lines.values() if 1000 * high < rate < 1000 * high + room]  # through the number
        ax.text(max([1000 * high, *across]) / 1000 + 1, -row, f"{now / 1000:.1f}", va="center", color=INK, fontsize=9)
        ax.text(1.02, -row, words.get(names[row], ""), transform=aside, va="center", color=INK, fontsize=9)
    for (name, rate), side in zip(lines.items(), ("left", "right", "right"), strict=False):
        ax.axvline(rate / 1000, color=ORANGE, linewidth=1.5, linestyle="--", zorder=0)
        ax.text(rate / 1000, 0.9, f" {name} ", ha=side, va="bottom", color=INK, fontsize=9)
    ax.text(1.02, 0.9, "the roof that was lifted", transform=aside, va="bottom", color=INK, fontsize=9, style="italic")
    ax.set_yticks([-row for row in range(len(names))], names)
    ax.tick_params(axis="y", length=0)
    ax.set(xlim=(0, None), ylim=(-len(names) + 0.4, 0.8), xlabel="TFLOPS")
    return picture
