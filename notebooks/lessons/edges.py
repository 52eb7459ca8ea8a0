"""Sizes that are not whole tiles, for chapters 12 to 14: what each strategy costs and reaches."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.patches import Rectangle

from gemmlab.draw.picture import BLUE, GREEN, INK, MAGENTA, ORANGE, Picture, count, faint
from gemmlab.generate.tiles import Launch
from gemmlab.measurement import records
from gemmlab.measurement.records import Row

#: The colour of a launch by the edges that it guards.
_EDGE_COLOURS = {"none": BLUE, "rows": ORANGE, "columns": GREEN, "both": MAGENTA}
#: The least share of C's side that a strip takes in a picture.
MIN_STRIP = 0.28
#: GFLOPS by size.
Rates = dict[int, float]


def rows(metric: str = "GFLOPS") -> dict[str, dict[int, Row]]:
    """What an H200 reached with each strategy, {strategy: {size: row}}, or its "launches", or the
    "bytes" of its copies.
    """
    found: dict[str, dict[int, Row]] = {}
    for row in records.rows(record="edges_h200", metric=metric):
        found.setdefault(row.variant, {})[row.size] = row
    return found


def rates(low: int, high: int) -> dict[str, Rates]:
    """The {size: GFLOPS} of every strategy on an H200 at sizes from `low` to `high`."""
    return {
        strategy: {size: row.gflops for size, row in by_size.items() if low <= size <= high}
        for strategy, by_size in rows().items()
    }


def shares(low: int, high: int) -> dict[str, Rates]:
    """Rates as per cent of the best one from `low` to `high`: our strategies on an H200, and
    AutoGEMM on an S9150, each compared with its own device. What is missing from 100 per cent is
    the price of a size that does not suit the tiles.

    Source of AutoGEMM's rates: published with clBLAS 2.7.1 (``results/published_autogemm.json``).
    """
    published = records.rows(record="published_autogemm")
    theirs = {"AutoGEMM": {row.size: row.gflops for row in published if low <= row.size <= high}}
    percent: dict[str, Rates] = {}
    for group in (theirs, rates(low, high)):
        best = max(rate for by_size in group.values() for rate in by_size.values())
        for name, by_size in group.items():
            percent[name] = {size: 100 * rate / best for size, rate in by_size.items()}
    return percent


def draw_launches(launches: Sequence[Launch]) -> Picture:
    """The launches of a product as rectangles on C, with strips wider than in proportion."""
    words = []
    for launch in launches:
        guards = "no guards" if launch.edges == "none" else f"guards {launch.edges}"
        words.append(f"{launch.rows} x {launch.columns}, {guards}")
    picture = Picture(6.5, 3.8, f"C in {count(len(launches), 'part')}: {'; '.join(words)}")
    ax = picture.axes_plain()
    down = _positions({launch.row + launch.rows for launch in launches})
    across = _positions({launch.column + launch.columns for launch in launches})
    for launch, word in zip(launches, words, strict=True):
        top, bottom = down[launch.row], down[launch.row + launch.rows]
        left, right = across[launch.column], across[launch.column + launch.columns]
        colour = _EDGE_COLOURS[launch.edges]
        ax.add_patch(Rectangle((left, -bottom), right - left, bottom - top, edgecolor=colour,
                               facecolor=faint(colour, 0.12), linewidth=1.5))  # fmt: skip
        ax.text((left + right) / 2, -(top + bottom) / 2, word.replace(", ", "\n"), ha="center",
                va="center", color=INK, fontsize=9)  # fmt: skip
    ax.set_axis_off()
    ax.autoscale_view()
    return picture


def _positions(ends: set[int]) -> dict[int, float]:
    """Where to draw the ends of strips: in proportion, but none narrower than `MIN_STRIP`."""
    positions, last = {0: 0.0}, 0
    for end in sorted(ends):
        positions[end] = positions[last] + max(MIN_STRIP, (end - last) / max(ends))
        last = end
    return positions
