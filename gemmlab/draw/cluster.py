"""Pictures of a product on many devices: a cut, the steps of SUMMA, and where it stops to scale."""

from __future__ import annotations

from collections.abc import Mapping

from matplotlib.patches import FancyArrowPatch, Rectangle

from ..model.cluster import Cut, Times, efficiency
from .diagram import faint
from .picture import BLUE, COLOURS, GREEN, INK, MAGENTA, ORANGE, Picture, count, short

SIDE, GAP = 4.0, 0.9  # of a matrix, and between two, in units of the picture
#: Where the matrices are drawn: left and top. B stands above C, as its columns are C's.
PLACES = {"A": (0.0, SIDE + GAP), "B": (SIDE + GAP, 0.0), "C": (SIDE + GAP, SIDE + GAP)}


def cut(of: Cut) -> Picture:
    """A, B and C as the grid of devices cuts them; the blocks of one device are lit. Beside them what that costs."""
    amount = {"held": of.held_bytes, "moved": of.moved_bytes}
    said = (
        f"{count(of.devices, 'device')} in a grid of {of.rows} x {of.columns} x {of.depth}: each holds "
        f"{_bytes(amount['held'])}, receives {_bytes(amount['moved'])} and does {of.flops * 1e-9:,.0f} GFLOP"
    )
    picture = Picture(8, 3.6, said)
    ax = picture.sheet()
    parts = {"A": (of.rows, of.depth), "B": (of.depth, of.columns), "C": (of.rows, of.columns)}
    for name, (rows, columns) in parts.items():
        _matrix(ax, name, rows, columns, {(0, 0)})
    _bars(ax, of)
    ax.set(xlim=(-0.6, 2 * SIDE + GAP + 10), ylim=(-2 * SIDE - GAP - 0.3, 0.7))
    return picture


def _matrix(ax, name: str, rows: int, columns: int, lit: set[tuple[int, int]]) -> None:
    """A matrix in blocks, some of which are lit."""
    (left, top), colour = PLACES[name], COLOURS[name]
    high, wide = SIDE / rows, SIDE / columns
    for i in range(rows):
        for j in range(columns):
            shade = faint(colour, 0.75 if (i, j) in lit else 0.12)
            ax.add_patch(Rectangle((left + j * wide, -top - (i + 1) * high), wide, high, facecolor=shade,
                                   edgecolor=INK, linewidth=0.5))  # fmt: skip
    ax.text(left, -top + 0.12, name, color=colour, fontsize=12, fontweight="bold", va="bottom")


def _bars(ax, of: Cut) -> None:
    """What a device holds and receives of each matrix, beside what one device alone would hold."""
    left, wide = 2 * SIDE + GAP + 1.2, 8.0
    alone = of._replace(rows=1, columns=1, depth=1).held_bytes
    for row, (what, amounts) in enumerate({"holds": of.blocks, "receives": of.moved}.items()):
        start, y = left, -3.2 - 2.4 * row
        for name, amount in amounts.items():
            length = wide * amount / alone
            ax.add_patch(Rectangle((start, y), length, 0.9, facecolor=faint(COLOURS[name], 0.7), edgecolor="none"))
            start += length
        ax.add_patch(Rectangle((left, y), wide, 0.9, fill=False, edgecolor=INK, linewidth=0.6))
        words = f"each device {what} {_bytes(sum(amounts.values()))}"
        ax.text(left, y + 1.05, words, color=INK, fontsize=10, va="bottom")
    ax.text(left, -3.2 - 2.4 - 0.3, f"frame: what one device alone holds, {_bytes(alone)}", color=INK, fontsize=9,
            va="top")  # fmt: skip
    ax.text(left, -1.3, f"{of.rows} x {of.columns} x {of.depth} = {count(of.devices, 'device')}", color=INK,
            fontsize=11, fontweight="bold", va="bottom")  # fmt: skip


def _bytes(amount: float) -> str:
    """A number of bytes in the largest unit that leaves 1 or more."""
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if amount < 1024 or unit == "GiB":
            return f"{amount:,.0f} {unit}" if unit == "bytes" else f"{short(amount)} {unit}"
        amount /= 1024
    raise AssertionError


def summa(rows: int, columns: int, panels: int, step: int) -> Picture:
    """A step of SUMMA: a panel of A goes along the rows of the grid, one of B along its columns.

    Args:
        rows, columns: of the grid of devices.
        panels: how many steps there are along k.
        step: the present one, from 1 on.
    """
    if not 1 <= step <= panels:
        raise ValueError(f"step must be from 1 to {panels}, not {step}")
    column, row = (step - 1) * columns // panels, (step - 1) * rows // panels
    said = (
        f"Step {step} of {panels}. Panel {step} of A lies in column {column + 1} of the grid of devices and goes along "
        f"the rows; panel {step} of B lies in row {row + 1} and goes along the columns. Every device adds the product "
        "of the two pieces that it received to its block of C."
    )
    picture = Picture(6, 4.6, said)
    ax = picture.sheet()
    for name in "ABC":
        everywhere = {(i, j) for i in range(rows) for j in range(columns)}
        _matrix(ax, name, rows, columns, everywhere if name == "C" else set())
    thick, along = SIDE / panels, (step - 1) * SIDE / panels
    (a_left, a_top), (b_left, b_top), (c_left, c_top) = (PLACES[name] for name in "ABC")
    ax.add_patch(Rectangle((a_left + along, -a_top - SIDE), thick, SIDE, facecolor=faint(BLUE, 0.85), edgecolor=BLUE))
    ax.add_patch(Rectangle((b_left, -b_top - along - thick), SIDE, thick, facecolor=faint(ORANGE, 0.85),
                           edgecolor=ORANGE))  # fmt: skip
    for i in range(rows):
        y = -a_top - (i + 0.5) * SIDE / rows
        _arrow(ax, (a_left + along + thick, y), (c_left + SIDE - 0.3, y), BLUE)
    for j in range(columns):
        x = c_left + (j + 0.5) * SIDE / columns
        _arrow(ax, (x, -b_top - along - thick), (x, -c_top - SIDE + 0.3), ORANGE)
    ax.text(a_left, -0.2, f"step {step} of {panels}", color=INK, fontsize=12, va="top")
    ax.text(a_left, -0.9, f"{rows} x {columns} devices;\neach block lies with one", color=INK, fontsize=10, va="top")
    ax.set(xlim=(-0.4, 2 * SIDE + GAP + 0.4), ylim=(-2 * SIDE - GAP - 0.3, 0.7))
    return picture


def _arrow(ax, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    ax.add_patch(FancyArrowPatch(start, end, arrowstyle="-|>", mutation_scale=12, color=colour, linewidth=1.3))


_BOUNDS = {"multiplying": (GREEN, "o"), "receiving": (BLUE, "s"), "handing out": (MAGENTA, "D")}


def scaling(times: Mapping[int, Times], title: str = "") -> Picture:
    """What part of linear speed-up so many devices reach; each point says what takes longest.

    Args:
        times: by the number of devices, as `model.cluster.scaling` gives them.
        title: such as what the devices are.
    """
    shares = efficiency(dict(times))
    half = next((p for p, share in shares.items() if share < 0.5), None)
    said = f"below half of linear from {half:,} devices on" if half else "above half of linear throughout"
    most = max(times, key=lambda p: 1 / times[p].total)
    picture = Picture(7.5, 3.4, f"{title}: {said}, because of {times[half or most].bound}; fastest with {most:,}")
    ax = picture.axes_plain()
    ax.semilogx(list(shares), [100 * share for share in shares.values()], color=INK, linewidth=1, base=2)
    for bound, (colour, marker) in _BOUNDS.items():
        here = {p: 100 * share for p, share in shares.items() if times[p].bound == bound}
        ax.plot(list(here), list(here.values()), marker, color=colour, label=f"longest: {bound}", linestyle="none")
    ax.axhline(50, color=INK, linewidth=0.8, linestyle=":")
    ax.set_xticks(list(shares), [f"{p:,}" for p in shares])
    ax.minorticks_off()
    ax.set(xlabel="devices", ylabel="per cent of linear", ylim=(0, 106))
    ax.set_title(title, color=INK, fontsize=9)
    ax.legend(frameon=False, labelcolor=INK, fontsize=9, loc="lower left")
    return picture
