"""For chapter 14: AutoGEMM's nine criteria, which kernel multiplies which size, and launches.

Source of the criteria: D. Tanner, AutoGEMM, documentation of clBLAS, 2015, section II. A g x h tile
loads (m/g)(n/h)(g + h) k elements for 2 m n k operations: 2 g h / (g + h) operations per element.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch, Rectangle

from gemmlab.draw.picture import (
    BLUE,
    GREEN,
    INK,
    MAGENTA,
    ORANGE,
    RED,
    Picture,
    count,
    faint,
    short,
)
from gemmlab.generate.split import Launch
from gemmlab.model import Peaks, tile_intensity

_EDGE_COLOURS = {"none": BLUE, "rows": ORANGE, "columns": GREEN, "both": MAGENTA}
#: The least share of C's side that a strip takes in a picture.
MIN_STRIP = 0.28


class Criterion(NamedTuple):
    """One of the nine.

    Attributes:
        name: what it is about.
        value: of this product and this tile.
        needed: the least that suffices, or None where there is no such number.
        unit: what both count.
    """

    name: str
    value: float
    needed: float | None
    unit: str

    @property
    def met(self) -> bool | None:
        """Whether the value suffices; None where that is unknown."""
        return None if self.needed is None else self.value >= self.needed


def operations_needed(peaks: Peaks, element_bytes: int = 4) -> float:
    """Operations per loaded element at which arithmetic takes as long as loading."""
    return peaks.gflops * element_bytes / peaks.bandwidth


def smallest_partner(side: float, needed: float) -> float:
    """The h for which a `side` x h tile has `needed` operations per element; infinite if none."""
    return needed * side / (2 * side - needed) if 2 * side > needed else float("inf")


def criteria(
    sizes: tuple[int, int, int],
    tile: tuple[int, int],
    micro_tile: tuple[int, int],
    peaks: Peaks,
    units: int,
    element_bytes: int = 4,
) -> list[Criterion]:
    """The nine criteria for a product and a tile on a device.

    Args:
        sizes: m, n and k.
        tile, micro_tile: rows and columns of C for a work-group, and for a work-item.
        peaks: of the device; without its local memory's rate criterion 3 needs nothing.
        units: compute units of the device.
        element_bytes: of an element of A, B and C.
    """
    (m, n, k), (g, h), (p, q) = sizes, tile, micro_tile
    needed = operations_needed(peaks, element_bytes)
    local = None
    if peaks.local_bandwidth:
        local = peaks.gflops * element_bytes / peaks.local_bandwidth
    groups = -(-m // g) * -(-n // h)
    items = groups * (g // p) * (h // q) / units
    inside = 100 * (m // g * g) * (n // h * h) / (m * n)
    multiply_adds = 100 * p * q / (p * q + p + q)
    whole = 2 * m * n * k / (m * k + k * n + 2 * m * n)  # C is read and written
    in_matrix = tile_intensity(min(g, m), min(h, n))
    unit = "operations per element"
    return [
        Criterion("1 global bandwidth", tile_intensity(g, h), needed, unit),
        Criterion("2 global latency", items, None, "work-items per compute unit"),
        Criterion("3 local bandwidth", tile_intensity(p, q), local, unit),
        Criterion("4 local latency", p * q * element_bytes / 4, None, "registers for accumulators"),
        Criterion("5 whole tiles", inside, None, "per cent of C"),
        Criterion("6 multiply-adds", multiply_adds, None, "per cent of these and local loads"),
        Criterion("7 small M x N", groups / units, 1, "work-groups per compute unit"),
        Criterion("8 small K", whole, needed, f"{unit}, C counted twice"),
        Criterion("9 skinny", in_matrix, needed, f"{unit}, as much of the tile as there is"),
    ]


def draw_criteria(criteria: Sequence[Criterion], title: str = "") -> Picture:
    """The criteria as a table: what the product has, what it needs, and whether that suffices."""
    lacking = [f"{c.name}, {short(c.value)} of {short(c.needed)} {c.unit}"
               for c in criteria if c.needed is not None and not c.met]  # fmt: skip
    enough = [c.name for c in criteria if c.met]
    phrases = []
    if lacking:
        phrases.append(f"too little for {'; '.join(lacking)}")
    if enough:
        phrases.append(f"enough for {', '.join(enough)}")
    picture = Picture(8.6, 0.3 * (len(criteria) + 2), f"{title}: {'; '.join(phrases)}")
    ax = picture.sheet()
    ax.set_aspect("auto")
    _write_row(ax, 0, ("criterion", "has", "needs", "", "counted in"))
    for row, c in enumerate(criteria, 1):
        needed = "" if c.needed is None else short(c.needed)
        answer = {True: "enough", False: "too little", None: ""}[c.met]
        _write_row(ax, row, (c.name, short(c.value), needed, answer, c.unit))
        if c.met is not None:
            marker, colour = ("o", GREEN) if c.met else ("X", RED)
            ax.plot(0.42, -row, marker, color=colour, markersize=7)
    ax.set(xlim=(0, 1), ylim=(-len(criteria) - 0.8, 0.8))
    return picture


def _write_row(ax: Axes, row: int, words: Sequence[str]) -> None:
    columns = ((0.01, "left"), (0.3, "right"), (0.39, "right"), (0.44, "left"), (0.55, "left"))
    for (x, side), word in zip(columns, words, strict=True):
        ax.text(x, -row, word, color=INK, fontsize=9, ha=side, va="center")


def draw_choices(
    rows: Sequence[int], columns: Sequence[int], names: Sequence[Sequence[str]], title: str = ""
) -> Picture:
    """A map of sizes, coloured by the kernel that multiplies them.

    Args:
        rows, columns: M from top to bottom, and N from left to right.
        names: of the kernel for each M and N.
        title: such as the name of the device.
    """
    every = [name for line in names for name in line]
    kernels = list(dict.fromkeys(every))
    phrases = "; ".join(f"{name}: {count(every.count(name), 'size')}" for name in kernels)
    picture = Picture(7.5, 4, f"{title}. {phrases}")
    ax = picture.axes_plain()
    colours = matplotlib.colormaps["tab20"](np.arange(len(kernels)) % 20)
    numbers = [[kernels.index(name) for name in line] for line in names]
    ax.imshow(numbers, cmap=ListedColormap(colours), vmin=-0.5, vmax=len(kernels) - 0.5,
              aspect="auto", origin="upper")  # fmt: skip
    ax.set_xticks(range(len(columns)), [str(size) for size in columns])
    ax.set_yticks(range(len(rows)), [str(size) for size in rows])
    ax.tick_params(axis="x", labelrotation=60)
    ax.set(xlabel="N", ylabel="M")
    ax.set_title(title, color=INK, fontsize=9)
    marks = [Patch(facecolor=colour) for colour in colours]
    ax.legend(marks, kernels, loc="center left", bbox_to_anchor=(1, 0.5), fontsize=9,
              labelcolor=INK, frameon=False)  # fmt: skip
    return picture


def draw_launches(launches: Sequence[Launch], times: Mapping[str, float] | None = None) -> Picture:
    """The launches of a product as rectangles on C, with strips wider than in proportion.

    Args:
        launches: what `gemmlab.generate.split` cuts a product into.
        times: of each launch in milliseconds, by its edges.
    """
    words = []
    for launch in launches:
        guards = "no guards" if launch.edges == "none" else f"guards {launch.edges}"
        word = f"{launch.rows} x {launch.columns}, {guards}"
        words.append(f"{word}, {times[launch.edges]:.3f} ms" if times else word)
    picture = Picture(6.5, 3.8, f"C in {count(len(launches), 'part')}: {'; '.join(words)}")
    ax = picture.axes_plain()
    down = _stretched({launch.row + launch.rows for launch in launches})
    across = _stretched({launch.column + launch.columns for launch in launches})
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


def _stretched(ends: set[int]) -> dict[int, float]:
    """Where to draw the ends of strips: in proportion, but none narrower than `MIN_STRIP`."""
    positions, last = {0: 0.0}, 0
    for end in sorted(ends):
        positions[end] = positions[last] + max(MIN_STRIP, (end - last) / max(ends))
        last = end
    return positions
