"""A product on many devices, for chapter 20: what a cut of it holds and moves, how long it takes.

The devices form a grid of rows x columns x depth: the product is cut into that many parts along m,
n and k, and each device multiplies a block of A by a block of B. Before, A and B are spread evenly
over the devices; afterwards so is C.

Sources: R. van de Geijn and J. Watts, SUMMA: Scalable Universal Matrix Multiplication Algorithm
(Concurrency 9(4), 1997); E. Solomonik and J. Demmel, Communication-Optimal Parallel 2.5D Matrix
Multiplication (Euro-Par 2011), for cuts along k.
"""

from __future__ import annotations

from math import ceil, log2
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from gemmlab.draw.picture import BLUE, COLOURS, GREEN, INK, MAGENTA, Picture, count, faint, short
from gemmlab.model import flops

#: Side of a matrix, and the gap between two, in units of a picture.
SIDE, GAP = 4.0, 0.9
#: Left and top of the matrices in a picture; B is above C, as its columns are C's.
POSITIONS = {"A": (0.0, SIDE + GAP), "B": (SIDE + GAP, 0.0), "C": (SIDE + GAP, SIDE + GAP)}
#: Colour and marker of what takes longest.
_BOUNDS = {"multiplying": (GREEN, "o"), "receiving": (BLUE, "s"), "handing out": (MAGENTA, "D")}


class Cut(NamedTuple):
    """A product of m x k by k x n on devices; rows, columns, depth: its parts along m, n and k."""

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


def summa(
    cut: Cut, panel: int, tflops: float, bandwidth: float, tasks: float, latency: float = 1e-5
) -> tuple[float, dict[str, float]]:
    """The seconds of SUMMA on a cut of depth 1, and what each of its parts would take alone.

    In each step a panel of A goes along grid rows, one of B along columns. Devices receive the next
    panels while they multiply. In a row of p devices a panel is pipelined: its bytes follow after
    log2 p latencies. Each device's step is a task, and one scheduler hands out all tasks.

    Args:
        panel: columns of A, and rows of B.
        tflops: of each device, for its blocks.
        bandwidth: GB/s that each device receives.
        tasks: handed out per second, to all devices together.
        latency: seconds until the first byte of a message.
    """
    steps = ceil(cut.k / panel)
    hops = sum(ceil(log2(side)) for side in (cut.rows, cut.columns))
    multiply = cut.flops / steps / tflops * 1e-12
    receive = cut.moved_bytes / steps / bandwidth * 1e-9 + hops * latency
    hand_out = cut.devices / tasks
    fetch = max(receive, hand_out)  # with two buffers, as in chapter 9
    total = fetch + (steps - 1) * max(fetch, multiply) + multiply
    each = {"multiplying": multiply, "receiving": receive, "handing out": hand_out}
    return total, {part: steps * seconds for part, seconds in each.items()}


def draw_cut(cut: Cut) -> Picture:
    """A, B and C with the blocks of one device lit, and what a device holds and receives."""
    grid = f"{cut.rows} x {cut.columns} x {cut.depth}"
    alt = (
        f"{count(cut.devices, 'device')} in a grid of {grid}: each holds {_bytes(cut.held_bytes)}, "
        f"receives {_bytes(cut.moved_bytes)} and does {cut.flops * 1e-9:,.0f} GFLOP"
    )
    picture = Picture(8, 3.6, alt)
    ax = picture.sheet()
    _matrix(ax, "A", cut.rows, cut.depth)
    _matrix(ax, "B", cut.depth, cut.columns)
    _matrix(ax, "C", cut.rows, cut.columns)
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


def _matrix(ax: Axes, name: str, rows: int, columns: int) -> None:
    """A matrix in blocks, the first of which is lit."""
    (left, top), colour = POSITIONS[name], COLOURS[name]
    high, wide = SIDE / rows, SIDE / columns
    for i in range(rows):
        for j in range(columns):
            shade = faint(colour, 0.12 if i or j else 0.75)
            corner = (left + j * wide, -top - (i + 1) * high)
            ax.add_patch(Rectangle(corner, wide, high, facecolor=shade, edgecolor=INK,
                                   linewidth=0.5))  # fmt: skip
    ax.text(left, -top + 0.12, name, color=colour, fontsize=12, fontweight="bold", va="bottom")


def _bytes(amount: float) -> str:
    """A number of bytes, in MiB or GiB."""
    mebibytes = amount / 2**20
    return f"{short(mebibytes)} MiB" if mebibytes < 1024 else f"{short(mebibytes / 1024)} GiB"


def draw_scaling(size: int, panel: int, link: float, tflops: float, tasks: float) -> Picture:
    """The share of linear speed-up by the number of devices, and what takes longest."""
    title = f"{size:,} cubed, panels of {panel}, {tflops} TFLOPS and {link} GB/s each"
    cuts = {4**i: Cut(size, size, size, 2**i, 2**i) for i in range(7)}
    times = {p: summa(cut, panel, tflops, link, tasks) for p, cut in cuts.items()}
    longest = {p: max(parts, key=parts.__getitem__) for p, (_, parts) in times.items()}
    shares = {p: 100 * parts["multiplying"] / total for p, (total, parts) in times.items()}
    half = next((p for p, share in shares.items() if share < 50), 0)
    fastest = min(times, key=lambda p: times[p][0])
    below = f"below half of linear from {half:,} devices on"
    limit = below if half else "above half of linear throughout"
    alt = f"{title}: {limit}, because of {longest[half or fastest]}; fastest with {fastest:,}"
    picture = Picture(7.5, 3.4, alt)
    ax = picture.axes_plain()
    ax.semilogx(list(shares), list(shares.values()), color=INK, linewidth=1, base=2)
    for bound, (colour, marker) in _BOUNDS.items():
        here = [p for p in shares if longest[p] == bound]
        if not here:
            continue
        ax.plot(here, [shares[p] for p in here], marker, color=colour, label=f"longest: {bound}")
    ax.axhline(50, color=INK, linewidth=0.8, linestyle=":")
    ax.set_xticks(list(shares), [f"{p:,}" for p in shares])
    ax.minorticks_off()
    ax.set(xlabel="devices", ylabel="per cent of linear", ylim=(0, 106))
    ax.set_title(title, color=INK, fontsize=9)
    ax.legend(frameon=False, labelcolor=INK, fontsize=9, loc="lower left")
    return picture
