"""Recorded rates compared with cuBLAS, for chapters 17 and 18 and the README."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from gemmlab.draw.picture import (
    BLUE,
    GREEN,
    INK,
    ORANGE,
    Picture,
    label_rows,
    legend_above,
    lines,
)

#: Precisions of `matmul`: name in a record's rates, colour, marker.
_PRECISIONS = {
    "float32": ("auto", BLUE, "o"),
    "tf32x3": ("tf32x3", GREEN, "D"),
    "tf32": ("tf32", ORANGE, "^"),
}


def _sizes(row: Mapping[str, Any]) -> str:
    sizes = [str(row[side]) for side in "mnk"]
    return sizes[0] if len(set(sizes)) == 1 else " x ".join(sizes)


def versus(rows: Iterable[Mapping[str, Any]], title: str = "") -> Picture:
    """The rate of `matmul` as a percentage of cuBLAS's, by size; orange where M or N is not 4 i.

    A bar is the ratio of the medians of all rounds. The line on it goes from our slowest round
    divided by cuBLAS's fastest to our fastest divided by its slowest.

    Args:
        rows: recorded comparisons (the "side_by_side" of a record).
        title: the device, for the description.
    """
    rows = list(rows)
    percent = [100 * median(row["auto"]) / median(row["cublas"]) for row in rows]
    names = [_sizes(row) for row in rows]
    phrases = "; ".join(f"{name}: {p:.0f}%" for name, p in zip(names, percent, strict=True))
    device = f" on {title}" if title else ""
    picture = Picture(6.4, 0.8 + 0.2 * len(rows), f"Share of cuBLAS's rate{device}. {phrases}")
    ax = picture.axes_plain()
    top = 100.0
    for i, (row, p) in enumerate(zip(rows, percent, strict=True)):
        fits = row["m"] % 4 == row["n"] % 4 == 0
        low = 100 * min(row["auto"]) / max(row["cublas"])
        high = 100 * max(row["auto"]) / min(row["cublas"])
        ax.barh(-i, p, 0.7, color=BLUE if fits else ORANGE)
        ax.plot([low, high], [-i, -i], color=INK, linewidth=2)
        ax.text(max(p, high) + 1, -i, f"{p:.0f}%", va="center", color=INK, fontsize=9)
        top = max(top, p, high)
    ax.axvline(100, color=INK, linewidth=0.8, linestyle=":")
    label_rows(ax, names)
    ax.set(xlim=(0, top + 15), ylim=(-len(rows) + 0.4, 0.6), xlabel="% of cuBLAS")
    return picture


def precisions(
    rows: Iterable[Mapping[str, Any]],
    errors: Iterable[Mapping[str, Any]] = (),
    title: str = "",
) -> Picture:
    """The rate of `matmul` in three precisions as a percentage of cuBLAS SGEMM's, by size.

    Args:
        rows: recorded comparisons (the "side_by_side" of a record); the medians count.
        errors: the "errors" of a record; those at the largest size are in the legend.
        title: the device, for the description.
    """
    rows = [row for row in rows if "tf32x3" in row]
    percent = {
        name: [100 * median(row[key]) / median(row["cublas"]) for row in rows]
        for name, (key, _, _) in _PRECISIONS.items()
    }
    phrases = []
    for i, row in enumerate(rows):
        rates = ", ".join(f"{name} {values[i]:.0f}%" for name, values in percent.items())
        phrases.append(f"{_sizes(row)}: {rates}")
    device = f" on {title}" if title else ""
    alt = f"Share of cuBLAS SGEMM's rate{device}. {'; '.join(phrases)}"
    picture = Picture(6.8, 1.2 + 0.24 * len(rows), alt)
    ax = picture.axes_plain()
    normal = [error for error in errors if error["inputs"] == "normal"]
    largest = max(normal, key=lambda e: e["m"] * e["n"] * e["k"], default={})

    def label(name: str, key: str) -> str:
        return f"{name}, error {largest[key]:.1e}" if largest else name

    spans = [[(min(values), -i), (max(values), -i)]
             for i, values in enumerate(zip(*percent.values(), strict=True))]  # fmt: skip
    lines(ax, spans, linewidth=0.8, zorder=0)
    for name, (_, colour, marker) in _PRECISIONS.items():
        heights = [-i for i in range(len(rows))]
        ax.plot(percent[name], heights, marker, color=colour, markersize=7, label=label(name, name))
    ax.axvline(100, color=INK, linestyle=":", label=label("cuBLAS", "cublas"))
    label_rows(ax, [_sizes(row) for row in rows])
    ax.set(xlim=(0, None), ylim=(-len(rows) + 0.4, 0.6), xlabel="% of cuBLAS SGEMM")
    legend_above(ax)
    return picture
