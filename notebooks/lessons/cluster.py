"""A product on many devices, for chapter 20: what a cut of it holds and moves, how long it takes.

The devices form a grid of rows x columns x depth: the product is cut into that many parts along m,
n and k, and each device multiplies a block of A by a block of B. Before, A and B are spread evenly
over the devices; afterwards so is C.

Sources: R. van de Geijn and J. Watts, SUMMA: Scalable Universal Matrix Multiplication Algorithm
(Concurrency 9(4), 1997); E. Solomonik and J. Demmel, Communication-Optimal Parallel 2.5D Matrix
Multiplication (Euro-Par 2011), for cuts along k.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import ceil, inf, log2, sqrt
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import FancyArrowPatch, Rectangle

from gemmlab.draw.picture import (
    BLUE,
    COLOURS,
    GREEN,
    INK,
    MAGENTA,
    ORANGE,
    Picture,
    count,
    faint,
    short,
)
from gemmlab.model import flops

#: Side of a matrix, and the gap between two, in units of a picture.
SIDE, GAP = 4.0, 0.9
#: Left and top of the matrices in a picture; B is above C, as its columns are C's.
POSITIONS = {"A": (0.0, SIDE + GAP), "B": (SIDE + GAP, 0.0), "C": (SIDE + GAP, SIDE + GAP)}
#: Colour and marker of what takes longest.
_BOUNDS = {"multiplying": (GREEN, "o"), "receiving": (BLUE, "s"), "handing out": (MAGENTA, "D")}


class Cut(NamedTuple):
    """A product of m x k by k x n on a grid of devices.

    Attributes:
        m, n, k: sizes of the product.
        rows, columns, depth: parts along m, n and k, one device for each.
    """

    m: int
    n: int
    k: int
    rows: int = 1
    columns: int = 1
    depth: int = 1

    @property
    def devices(self) -> int:
        return self.rows * self.columns * self.depth

    @property
    def flops(self) -> float:
        """Operations of each device."""
        return flops(self.m, self.n, self.k) / self.devices

    @property
    def blocks(self) -> dict[str, float]:
        """Bytes of a device's blocks of A, B and C, in float32."""
        areas = {
            "A": self.m * self.k / (self.rows * self.depth),
            "B": self.k * self.n / (self.depth * self.columns),
            "C": self.m * self.n / (self.rows * self.columns),
        }
        return {name: 4 * area for name, area in areas.items()}

    @property
    def held_bytes(self) -> float:
        """The memory that a device needs for whole blocks."""
        return sum(self.blocks.values())

    @property
    def moved(self) -> dict[str, float]:
        """Bytes that a device receives: what it lacks of A and B, and others' terms of its sums."""
        blocks, others = self.blocks, {"A": self.columns, "B": self.rows, "C": self.depth}
        return {name: blocks[name] * (1 - 1 / others[name]) for name in "ABC"}

    @property
    def moved_bytes(self) -> float:
        return sum(self.moved.values())

    def panel_bytes(self, panel: int) -> float:
        """The memory of a device with SUMMA: shares of A and B, block of C, two pairs of panels."""
        a, b, c = self.blocks.values()
        panels = 2 * (a + b) * self.depth * min(panel, self.k) / self.k
        return a / self.columns + b / self.rows + c + panels


def near_square(devices: int) -> tuple[int, int]:
    """Rows and columns of the grid of so many devices that is closest to a square."""
    rows = next(r for r in range(int(sqrt(devices)), 0, -1) if devices % r == 0)
    return rows, devices // rows


class Cluster(NamedTuple):
    """What devices and their links can do.

    Attributes:
        gflops: of each device, for its blocks.
        bandwidth: GB/s that each device receives.
        latency: seconds until the first byte of a message.
        tasks_per_second: that one scheduler hands out, to all devices together.
    """

    gflops: float
    bandwidth: float
    latency: float = 0.0
    tasks_per_second: float = inf


class Times(NamedTuple):
    """How long a product takes, and what each of its parts would take alone, in seconds."""

    total: float
    multiplying: float
    receiving: float
    handing_out: float

    @property
    def bound(self) -> str:
        """The part that takes longest: "multiplying", "receiving" or "handing out"."""
        parts = dict(zip(self._fields[1:], self[1:], strict=True))
        return max(parts, key=parts.__getitem__).replace("_", " ")


def summa(cut: Cut, panel: int, cluster: Cluster) -> Times:
    """Simulate SUMMA: in each step a panel of A goes along grid rows, one of B along columns.

    Devices have memory for two pairs of panels: one is received while the other is multiplied. In a
    row of p devices a panel is pipelined: its bytes follow after log2 p latencies. Each device's
    step is a task, and one scheduler hands out all tasks. The depth of the cut is 1; a panel has so
    many columns of A, and rows of B.
    """
    steps = ceil(cut.k / panel)
    hops = sum(ceil(log2(side)) for side in (cut.rows, cut.columns))
    multiply = cut.flops / steps / cluster.gflops * 1e-9
    receive = cut.moved_bytes / steps / cluster.bandwidth * 1e-9 + hops * cluster.latency
    hand_out = cut.devices / cluster.tasks_per_second
    arrived, done = 0.0, [0.0, 0.0]  # done: when panels were multiplied
    for _ in range(steps):
        arrived = max(arrived, done[-2]) + max(receive, hand_out)
        done.append(max(arrived, done[-1]) + multiply)
    return Times(done[-1], steps * multiply, steps * receive, steps * hand_out)


def scaling(size: int, devices: list[int], panel: int, cluster: Cluster) -> dict[int, Times]:
    """The same square product on more and more devices, on grids that are nearly square."""
    return {p: summa(Cut(size, size, size, *near_square(p)), panel, cluster) for p in devices}


def draw_cut(cut: Cut) -> Picture:
    """A, B and C with the blocks of one device lit, and what a device holds and receives."""
    grid = f"{cut.rows} x {cut.columns} x {cut.depth}"
    alt = (
        f"{count(cut.devices, 'device')} in a grid of {grid}: each holds {_bytes(cut.held_bytes)}, "
        f"receives {_bytes(cut.moved_bytes)} and does {cut.flops * 1e-9:,.0f} GFLOP"
    )
    picture = Picture(8, 3.6, alt)
    ax = picture.sheet()
    _matrix(ax, "A", cut.rows, cut.depth, lit=[(0, 0)])
    _matrix(ax, "B", cut.depth, cut.columns, lit=[(0, 0)])
    _matrix(ax, "C", cut.rows, cut.columns, lit=[(0, 0)])
    left, top, wide = 2 * SIDE + GAP + 1.2, -1.3, 8.0
    alone = cut._replace(rows=1, columns=1, depth=1).held_bytes
    ax.text(left, top, f"{grid} = {count(cut.devices, 'device')}", color=INK, fontsize=11,
            fontweight="bold", va="bottom")  # fmt: skip
    for y, verb, amounts in ((-3.2, "holds", cut.blocks), (-5.6, "receives", cut.moved)):
        start = left
        for name, amount in amounts.items():
            length = wide * amount / alone
            ax.add_patch(Rectangle((start, y), length, 0.9, facecolor=faint(COLOURS[name], 0.7)))
            start += length
        ax.add_patch(Rectangle((left, y), wide, 0.9, fill=False, edgecolor=INK, linewidth=0.6))
        words = f"each device {verb} {_bytes(sum(amounts.values()))}"
        ax.text(left, y + 1.05, words, color=INK, fontsize=10, va="bottom")
    ax.text(left, -5.9, f"frame: what one device alone holds, {_bytes(alone)}", color=INK,
            fontsize=9, va="top")  # fmt: skip
    ax.set(xlim=(-0.6, 2 * SIDE + GAP + 10), ylim=(-2 * SIDE - GAP - 0.3, 0.7))
    return picture


def _matrix(
    ax: Axes, name: str, rows: int, columns: int, lit: Collection[tuple[int, int]] = ()
) -> None:
    """A matrix in blocks, some of which are lit."""
    (left, top), colour = POSITIONS[name], COLOURS[name]
    high, wide = SIDE / rows, SIDE / columns
    for i in range(rows):
        for j in range(columns):
            shade = faint(colour, 0.75 if (i, j) in lit else 0.12)
            corner = (left + j * wide, -top - (i + 1) * high)
            ax.add_patch(Rectangle(corner, wide, high, facecolor=shade, edgecolor=INK,
                                   linewidth=0.5))  # fmt: skip
    ax.text(left, -top + 0.12, name, color=colour, fontsize=12, fontweight="bold", va="bottom")


def _bytes(amount: float) -> str:
    """A number of bytes, in MiB or GiB."""
    mebibytes = amount / 2**20
    return f"{short(mebibytes)} MiB" if mebibytes < 1024 else f"{short(mebibytes / 1024)} GiB"


def draw_step(rows: int, columns: int, panels: int, step: int) -> Picture:
    """Step 1, 2 ... of SUMMA: a panel of A goes along the rows of the grid of devices, one of B
    along its columns. There are as many steps as panels.
    """
    column, row = (step - 1) * columns // panels, (step - 1) * rows // panels
    alt = (
        f"Step {step} of {panels}. Panel {step} of A is in column {column + 1} of the grid of "
        f"devices and goes along the rows; panel {step} of B is in row {row + 1} and goes along "
        "the columns. Every device adds the product of the two pieces that it received to its "
        "block of C."
    )
    picture = Picture(6, 4.6, alt)
    ax = picture.sheet()
    _matrix(ax, "A", rows, columns)
    _matrix(ax, "B", rows, columns)
    _matrix(ax, "C", rows, columns, lit=[(i, j) for i in range(rows) for j in range(columns)])
    thick, along = SIDE / panels, (step - 1) * SIDE / panels
    (a_left, a_top), (b_left, b_top), (c_left, c_top) = (POSITIONS[name] for name in "ABC")
    for corner, wide, high, colour in (
        ((a_left + along, -a_top - SIDE), thick, SIDE, BLUE),
        ((b_left, -b_top - along - thick), SIDE, thick, ORANGE),
    ):
        shade = faint(colour, 0.85)
        ax.add_patch(Rectangle(corner, wide, high, facecolor=shade, edgecolor=colour))
    for i in range(rows):
        y = -a_top - (i + 0.5) * SIDE / rows
        _arrow(ax, (a_left + along + thick, y), (c_left + SIDE - 0.3, y), BLUE)
    for j in range(columns):
        x = c_left + (j + 0.5) * SIDE / columns
        _arrow(ax, (x, -b_top - along - thick), (x, -c_top - SIDE + 0.3), ORANGE)
    ax.text(a_left, -0.2, f"step {step} of {panels}", color=INK, fontsize=12, va="top")
    ax.text(a_left, -0.9, f"{rows} x {columns} devices;\none block for each", color=INK,
            fontsize=10, va="top")  # fmt: skip
    ax.set(xlim=(-0.4, 2 * SIDE + GAP + 0.4), ylim=(-2 * SIDE - GAP - 0.3, 0.7))
    return picture


def _arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    ax.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=12, color=colour,
                                 linewidth=1.3))  # fmt: skip


def draw_scaling(times: Mapping[int, Times], title: str = "") -> Picture:
    """The share of linear speed-up by the number of devices; each point says what takes longest."""
    shares = {p: 100 * t.multiplying / t.total for p, t in times.items()}
    half = next((p for p, share in shares.items() if share < 50), 0)
    fastest = min(times, key=lambda p: times[p].total)
    below = f"below half of linear from {half:,} devices on"
    limit = below if half else "above half of linear throughout"
    alt = f"{title}: {limit}, because of {times[half or fastest].bound}; fastest with {fastest:,}"
    picture = Picture(7.5, 3.4, alt)
    ax = picture.axes_plain()
    ax.semilogx(list(shares), list(shares.values()), color=INK, linewidth=1, base=2)
    for bound, (colour, marker) in _BOUNDS.items():
        here = [p for p in shares if times[p].bound == bound]
        ax.plot(here, [shares[p] for p in here], marker, color=colour, label=f"longest: {bound}")
    ax.axhline(50, color=INK, linewidth=0.8, linestyle=":")
    ax.set_xticks(list(shares), [f"{p:,}" for p in shares])
    ax.minorticks_off()
    ax.set(xlabel="devices", ylabel="per cent of linear", ylim=(0, 106))
    ax.set_title(title, color=INK, fontsize=9)
    ax.legend(frameon=False, labelcolor=INK, fontsize=9, loc="lower left")
    return picture
