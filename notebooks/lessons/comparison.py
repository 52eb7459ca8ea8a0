"""Recorded rates compared with cuBLAS, for chapters 17 and 18 and the README."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from statistics import median
from typing import Any

from gemmlab.draw.picture import BLUE, GREEN, INK, ORANGE, Picture, label_rows, legend_above, lines

#: Precisions of `matmul`: name in a record's rates, colour, marker.
_PRECISIONS = {
    "float32": ("auto", BLUE, "o"),
    "tf32x3": ("tf32x3", GREEN, "D"),
    "tf32": ("tf32", ORANGE, "^"),
}


def _sizes(row: Mapping[str, Any]) -> str:
    sizes = [str(row[side]) for side in "mnk"]
    return sizes[0] if len(set(sizes)) == 1 else " x ".join(sizes)


def precisions(
    rows: Iterable[Mapping[str, Any]],
    errors: Iterable[Mapping[str, Any]] = (),
    title: str = "",
) -> Picture:
    """The rate of `matmul` in three precisions as a percentage of cuBLAS SGEMM's, by size: the
    medians of "side_by_side". Of the "errors" those at the largest size are in the legend.
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
