"""One drawing that zooms: C, a tile, a warp tile, a block of registers, A and B at their sides.

Below each level is the memory that holds it, and on the arrows how many floats cross to the next
level per multiply-add, and for how many an H200 has room at its peak rate. Which elements belong
to a work-item or a warp is read from a simulated run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from clscope.machine import WARP

from ..caches import cached
from ..ladder import KernelSpec, Key, find
from ..model import H200, Chip
from ..simulation import simulate
from .diagram import boxes
from .picture import BLUE, GREEN, INK, MAGENTA, ORANGE, Picture, faint

#: Inches: the picture, the square of a level, the strips of A and B beside it, and the gap.
WIDTH, HEIGHT, SIDE, STRIP, GAP = 9.3, 3.85, 1.5, 0.34, 0.22
#: Inches from the bottom: a square, and the boxes of the memories; the width of such a box.
BASE, MEMORY, BOX = 1.3, 0.16, 1.78
SLATE = "#3d4a5c"
#: Tiles along a side of the schematic C; the least side of an element that stands alone, in inches.
TILES, LEAST = 4, 0.05


@dataclass(frozen=True)
class Level:
    """A part of C, and what it consists of.

    Attributes:
        name: such as "tile"; owner: who computes it; memory: what holds A and B for it.
        rows, columns: of C; depth: steps of k that are held at the same time.
        inner: the elements of the next level, as rows x columns of truth values.
        floats: of A and B that come from the memory before, per multiply-add.
        room: as many as an H200 delivers in the time of a multiply-add; 0 where tensor cores
            multiply, for which a float is counted once per warp and not once per lane.
        vector: floats in the widest of the loads that bring them.
        tile_depth: steps of k in a tile.
    """

    name: str
    owner: str
    memory: str
    rows: int
    columns: int
    depth: int
    inner: np.ndarray
    floats: float
    room: float = 0.0
    vector: int = 1
    tile_depth: int = 1


def levels(kernel: Key, params: Mapping[str, int] | None = None) -> tuple[Level, ...]:
    """Return the levels of a kernel of the ladder, the largest first.

    Raises:
        ParameterError: for parameters that the kernel refuses.
    """
    spec = find(kernel)
    return _levels(spec.number, tuple(spec.validate(params).items()))


@cached(32)
def _levels(kernel: Key, items: tuple[tuple[str, int], ...]) -> tuple[Level, ...]:
    spec, params = find(kernel), dict(items)
    rows, columns, depth = spec.tiles(params)
    owners, vector = _stores_and_loads(spec, params)
    of_item = owners == 0
    block = _box(of_item)
    local = bool(spec.local_memory(params))
    steps = depth if local else 1
    whole = np.zeros((TILES, TILES), bool)
    whole[1, 2] = True
    warp = (owners >= 0) & (owners // WARP == 0)
    down, across = _box(warp)
    compact = spec.warps and down * across == warp.sum() < rows * columns
    l2, local_room = (0.0, 0.0) if spec.tensor else _rooms(H200)
    tile = Level(
        "tile", "work-group (thread block)",
        "local (shared) memory" if local else "L1 cache",
        rows, columns, steps, warp if compact else of_item,
        spec.global_loads(params) if local else 0, l2,
    )  # fmt: skip
    memory = "DRAM, L2 cache"
    found = [
        Level("C", "all work-groups", memory, TILES, TILES, TILES, whole, 0.0, tile_depth=steps),
        tile,
    ]
    if compact:
        inner = of_item[np.ix_(warp.any(1), warp.any(0))]
        found.append(Level("warp tile", "warp", "", down, across, 1, inner, 0.0))
    loads = spec.local_loads(params) if local else spec.global_loads(params)
    each = np.ones(block, bool)
    owner = "work-item (thread)"
    found.append(Level("block", owner, "registers", *block, 1, each, loads, local_room, vector))
    return tuple(found)


def _rooms(chip: Chip) -> tuple[float, float]:
    """What L2 cache and local memory deliver at the peak rate, in floats per multiply-add."""
    return chip.l2_bytes / 4 / (chip.units * chip.lanes), chip.turns * chip.warp / chip.lanes


def _stores_and_loads(spec: KernelSpec, params: dict[str, int]) -> tuple[np.ndarray, int]:
    """The work-item of the first work-group that stores each element of its tile, and how many
    floats the widest load brings from the memory before the registers.
    """
    rows, columns, depth = spec.tiles(params)
    settings = {**params, "GROUPS": 0} if "GROUPS" in params else params
    run = simulate(spec, rows, columns, depth, settings, groups=[(0, 0)])
    owners, vector = np.full(rows * columns, -1), 1
    nearest = "local" if spec.local_memory(params) else "global"
    for e in run.log:
        if e.memory is not None and e.memory.space == nearest and not e.site.stores:
            vector = max(vector, e.site.width)
        if e.memory is not None and e.memory.name == run.names["C"] and e.site.stores:
            owners[e.of(e.at)[:, None] + np.arange(e.site.width)] = e.of(e.wave.items)[:, None]
    return owners.reshape(columns, rows).T, vector


def _box(mask: np.ndarray) -> tuple[int, int]:
    """How many rows and columns have elements of a part."""
    return int(mask.any(1).sum()), int(mask.any(0).sum())


def zoom(
    kernel: Key, params: Mapping[str, int] | None = None, k: int = 0, lit: str = ""
) -> Picture:
    """Draw a kernel's levels side by side, each a part of the one to its left.

    Args:
        kernel: its number; params: its parameters.
        k: a step of the loop over k, counted from the beginning of a tile.
        lit: the name of the level to point out.
    """
    every = levels(kernel, params)
    tile = every[1]
    step = k % tile.depth
    parts = ", ".join(f"{x.name} of {x.rows} x {x.columns}" for x in every[1:])
    alt = f"Kernel {kernel}: C, {parts}; step {step} of the {tile.depth} that a tile is deep."
    picture = Picture(WIDTH, HEIGHT, alt)
    ax = picture.sheet()
    ax.set(xlim=(0, WIDTH), ylim=(0, HEIGHT))
    pitch = (WIDTH - 2 * GAP) / len(every)
    places = [GAP + pitch * i + (pitch - SIDE + STRIP) / 2 for i in range(len(every))]
    for number, (level, left) in enumerate(zip(every, places, strict=True)):
        _draw(ax, level, left, k, level.name == lit)
        if number + 1 < len(every):
            _lines(ax, level, left, places[number + 1])
    _memories(ax, every, places)
    return picture


def _draw(ax: Axes, level: Level, left: float, k: int, lit: bool) -> None:
    """One level: the part of C, A at its left and B above it."""
    frame: dict[str, Any] = {"edgecolor": INK, "linewidth": 2.5 if lit else 0.8}
    a, b = (left - STRIP - 0.06, BASE), (left, BASE + SIDE + 0.06)
    for place, size, colour in (
        ((left, BASE), (SIDE, SIDE), GREEN), (a, (STRIP, SIDE), BLUE), (b, (SIDE, STRIP), ORANGE)
    ):  # fmt: skip
        ax.add_patch(Rectangle(place, *size, facecolor=faint(colour, 0.15), **frame))
    _cells(ax, level, left)
    # a step of k: what all need, and in full colour what the next level needs
    step, thick = k % level.depth, STRIP / level.depth
    if level.name == "C":
        step = k // level.tile_depth % level.depth
        _say(ax, a[0] + STRIP / 2, BASE - 0.14, "A", color=BLUE, weight="bold", size=10)
        _say(ax, left + SIDE / 2, BASE - 0.14, f"k = {k}", color=INK, size=9)
        _say(ax, left + SIDE + 0.12, b[1] + STRIP / 2, "B", color=ORANGE, weight="bold", size=10)
    across = a[0] + step * thick
    down = b[1] + STRIP - (step + 1) * thick
    ax.add_patch(Rectangle((across, BASE), thick, SIDE, color=faint(BLUE), linewidth=0))
    ax.add_patch(Rectangle((left, down), SIDE, thick, color=faint(ORANGE), linewidth=0))
    edges: dict[str, Any] = {
        "edgecolor": INK if level.name == "block" else "none",
        "linewidth": 0.5,
    }
    high, wide = SIDE / level.rows, SIDE / level.columns
    tall, broad = _size(level)
    for row in np.flatnonzero(level.inner.any(1)).tolist():
        place = across, BASE + SIDE - row * high - tall
        ax.add_patch(Rectangle(place, thick, tall, facecolor=BLUE, **edges))
    for column in np.flatnonzero(level.inner.any(0)).tolist():
        place = left + column * wide, down
        ax.add_patch(Rectangle(place, broad, thick, facecolor=ORANGE, **edges))
    label = "C" if level.name == "C" else f"{level.name}, {level.rows} x {level.columns}"
    middle = left + SIDE / 2
    _say(ax, middle, HEIGHT - 0.22, label, color=INK, weight="bold", size=10.5)
    weight = "bold" if lit else "normal"
    _say(ax, middle, HEIGHT - 0.42, level.owner, color=INK, weight=weight, size=9)


def _size(level: Level) -> tuple[float, float]:
    """Height and width of an element of the next level, in inches: larger where it stands alone."""
    sizes = []
    for axis, number in ((1, level.rows), (0, level.columns)):
        gaps = np.diff(np.flatnonzero(level.inner.any(axis)))
        sizes.append(max(SIDE / number, LEAST if (gaps > 1).all() else 0.0))
    return sizes[0], sizes[1]


def _cells(ax: Axes, level: Level, left: float) -> None:
    """The elements of the next level, as they are spread over this one."""
    high, wide = SIDE / level.rows, SIDE / level.columns
    tall, broad = _size(level)
    cells = [
        (left + column * wide, BASE + SIDE - row * high - tall, broad, tall)
        for row, column in np.argwhere(level.inner).tolist()
    ]
    boxes(ax, cells, GREEN, INK if level.name == "block" else "none")
    if level.name == "C":
        for i in range(1, level.rows):
            ax.plot([left, left + SIDE], [BASE + i * high] * 2, color=INK, linewidth=0.5)
            ax.plot([left + i * wide] * 2, [BASE, BASE + SIDE], color=INK, linewidth=0.5)


def _lines(ax: Axes, level: Level, left: float, then: float) -> None:
    """Lines from the box around the next level's elements to that level."""
    rows, columns = (np.flatnonzero(level.inner.any(axis)) for axis in (1, 0))
    x = left + SIDE * (columns[-1] + 1) / level.columns
    top, bottom = (BASE + SIDE * (1 - row / level.rows) for row in (rows[0], rows[-1] + 1))
    for start, y in ((top, BASE + SIDE), (bottom, BASE)):
        ax.plot([x, then - STRIP - 0.06], [start, y], color=INK, linewidth=0.6, alpha=0.6, zorder=0)
    if level.inner.sum() < len(rows) * len(columns) or np.ptp(rows) >= len(rows):  # scattered
        corner = left + SIDE * columns[0] / level.columns, bottom
        look: dict[str, Any] = {"fill": False, "edgecolor": INK, "linewidth": 0.8, "linestyle": ":"}
        ax.add_patch(Rectangle(corner, x - corner[0], top - bottom, **look))


def _memories(ax: Axes, every: tuple[Level, ...], places: list[float]) -> None:
    """The chip below: a box for each memory, and what crosses from one to the next."""
    kept = [(level, left) for level, left in zip(every, places, strict=True) if level.memory]
    boxes = [(level, left + (SIDE - BOX) / 2) for level, left in kept]
    for level, left in boxes:
        box = Rectangle((left, MEMORY), BOX, 0.42, facecolor=SLATE, edgecolor="none")
        ax.add_patch(box)
        _say(
            ax, left + BOX / 2, MEMORY + 0.21, level.memory, color="white", weight="bold", size=9.5
        )
    for (_, left), (level, right) in zip(boxes, boxes[1:], strict=False):
        ends = (left + BOX + 0.02, MEMORY + 0.21), (right - 0.02, MEMORY + 0.21)
        style: dict[str, Any] = {
            "arrowstyle": "-|>",
            "mutation_scale": 14,
            "color": INK,
            "linewidth": 1.5,
        }
        ax.add_patch(FancyArrowPatch(*ends, **style))
        middle = (left + BOX + right) / 2
        if level.floats:
            words = f"{_short(level.floats)} per multiply-add"
            _say(ax, middle, MEMORY + 0.76, words, color=INK, size=9)
        if level.floats and level.room:
            tight = level.floats > level.room
            style = {"color": MAGENTA if tight else INK, "weight": "bold" if tight else "normal"}
            words = f"an H200 has room for 1/{1 / level.room:.0f}"
            _say(ax, middle, MEMORY + 0.55, words, size=9, **style)
        elif level.floats and level.name == "block":
            _say(ax, middle, MEMORY + 0.55, "counted once per warp", color=INK, size=9)
        if level.vector > 1:
            _say(ax, middle, MEMORY, f"{level.vector} floats to a load", color=INK, size=9)


def _short(value: float) -> str:
    """A number of floats: "1.1 floats", or "3/256 of a float"."""
    if value >= 1:
        return f"{value:.2g} floats"
    return f"{Fraction(value).limit_denominator(4096)} of a float"


def _say(ax: Axes, x: float, y: float, words: str, **options: Any) -> None:
    ax.text(x, y, words, ha="center", va="center", **options)
