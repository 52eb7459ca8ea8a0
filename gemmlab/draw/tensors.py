"""Kernel 16 drawn: who holds what in an instruction, banks, the bits of two parts, errors and rates beside cuBLAS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from .. import model
from ..model import tf32
from .diagram import faint
from .picture import BLUE, GREEN, INK, ORANGE, RED, Picture, lines

#: Numbers whose bits are drawn, by name.
NUMBERS = {"pi": np.pi, "1/3": 1 / 3, "0.1": 0.1, "3": 3.0, "1.9998": 1.9998}


def held(lane: int) -> dict[str, list[tuple[int, int]]]:
    """Rows and columns that a lane holds of one instruction: 4 of a (16 x 8), 2 of b (8 x 8), 4 of the sum (16 x 8).

    Source: Parallel Thread Execution ISA, NVIDIA, fragments of mma.m16n8k8 with TF32.
    """
    g, t = divmod(lane, 4)
    return {
        "a": [(g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)],
        "b": [(t, g), (t + 4, g)],
        "sum": [(g, 2 * t), (g, 2 * t + 1), (g + 8, 2 * t), (g + 8, 2 * t + 1)],
    }


def place(row: int, col: int, instruction: int) -> tuple[int, int]:
    """Where row and column of an instruction's sum lie in 32 x 32 elements of C; 8 instructions fill them."""
    j, i = divmod(instruction, 2)
    return 4 * (row % 8) + 2 * i + row // 8, 4 * col + j


def ours(lane: int, instruction: int) -> list[tuple[int, int]]:
    """The four elements of the 32 x 32 of C that a lane sums with an instruction."""
    return [place(row, col, instruction) for row, col in held(lane)["sum"]]


def fragments(lane: int = 0, instruction: int = 0) -> Picture:
    """One instruction, a on the left of b, under it the sum; and where the sum's elements lie in C."""
    mine = held(lane)
    elements = "; ".join(f"({m}, {n})" for m, n in ours(lane, instruction))
    alt = f"Lane {lane} holds 4 elements of a, 2 of b, 4 of the sum; of C, by instruction {instruction}: {elements}"
    picture = Picture(6.8, 3.9, alt)
    left, right = picture.panels(1, 2, width_ratios=(17, 24))
    shades = [(*to_rgb(c), 1) for c in matplotlib.colormaps["viridis"](np.linspace(0.15, 0.9, 32))[:, :3]]
    shades[lane] = (*to_rgb(RED), 1)
    shapes = {"a": (0, -9, 16, 8), "b": (9, 0, 8, 8), "sum": (9, -9, 16, 8)}
    for name, (x, y, rows, cols) in shapes.items():
        owner = {spot: who for who in range(32) for spot in held(who)[name]}
        pixels = [[shades[owner[r, c]] for c in range(cols)] for r in range(rows)]
        left.imshow(pixels, extent=(x, x + cols, y - rows, y), interpolation="none")
        edges = [[(x, y - r), (x + cols, y - r)] for r in range(rows + 1)]
        lines(left, edges + [[(x + c, y), (x + c, y - rows)] for c in range(cols + 1)], linewidth=0.3)
        for number, (r, c) in enumerate(mine[name]):
            left.add_patch(Rectangle((x + c, y - r - 1), 1, 1, facecolor=RED))
            left.text(x + c + 0.5, y - r - 0.55, str(number), ha="center", va="center", fontsize=8, color="w")
    for left_of, below, name in ((4.0, -8.0, "a: rows, k"), (4.3, -4.0, "b: k,\ncolumns"), (13.0, -26.2, "sum")):
        left.text(left_of, below, name, ha="center", va="center", fontsize=9, color=INK)
    left.set(xlim=(-0.3, 17.3), ylim=(-27, 0.3), aspect="equal", xticks=[], yticks=[])
    left.set_title(f"one instruction: lane {lane} in red", color=INK, fontsize=10)
    block = np.zeros((32, 32, 4))
    for who in range(32):
        block[who // 4 * 4 :, who % 4 * 8 :][:4, :8] = (*shades[who][:3], 0.25)
        for m, n in ours(who, instruction):
            block[m, n] = shades[who]
    right.imshow(block, extent=(0, 32, -32, 0), interpolation="none")
    patches = [[(0, -4 * g), (32, -4 * g)] for g in range(9)] + [[(8 * t, 0), (8 * t, -32)] for t in range(5)]
    lines(right, patches, linewidth=0.6)
    right.set_xticks([8 * t + 4 for t in range(4)], [f"t = {t}" for t in range(4)])
    right.set_yticks([-4 * g - 2 for g in range(8)], [f"g = {g}" for g in range(8)])
    right.tick_params(length=0)
    right.set(xlim=(-0.2, 32.2), ylim=(-32.2, 0.2), aspect="equal")
    right.set_title(f"32 x 32 of C: instruction {instruction}, of 0 to 7", color=INK, fontsize=10)
    for ax in (left, right):
        ax.spines[:].set_visible(False)
    return picture


def asked(PAD: int, quarter: int, TSM: int = 128) -> dict[int, int]:
    """The first float of the 4 that each of 8 lanes fetches from a tile of A, by lane: row t, from column 4g on."""
    return {lane: lane % 4 * (TSM + PAD) + lane // 4 * 4 for lane in range(8 * quarter, 8 * quarter + 8)}


def turns(PAD: int, TSM: int = 128) -> int:
    """Turns that local memory needs for vectors of 4 for a whole warp: one for 8 lanes, if banks allow."""
    groups = (asked(PAD, quarter, TSM).values() for quarter in range(4))
    return sum(model.turns(first + i for first in group for i in range(4)) for group in groups)


def banks(PAD: int, quarter: int = 0) -> str:
    """A drawing in letters: a line for each row t of the tile, the lanes where the 4 banks lie that they ask for."""
    places = {(lane % 4, first % 32 // 4): lane for lane, first in asked(PAD, quarter).items()}
    head = "bank  " + "".join(f"{4 * bank:4}" for bank in range(8))
    rows = (f"t = {t} " + "".join(f"{places.get((t, bank), '.'):>4}" for bank in range(8)) for t in range(4))
    return "\n".join([head, *rows])


def bits(x: str | float = "pi") -> Picture:
    """The digits of a float32, of its two TF32 parts, and of what both miss, each under its place."""
    whole = np.float32(NUMBERS[x] if isinstance(x, str) else x)
    big, small = (part[()] for part in tf32.parts(whole))
    lost = float(whole) - float(big) - float(small)
    alt = f"{whole:.9g} = big {big:.9g} {'-' if small < 0 else '+'} small {abs(small):.4g}, " + (
        f"and {abs(lost):.1g} is lost" if lost else "nothing is lost"
    )
    picture = Picture(6.8, 1.9, alt)
    ax = picture.axes_plain()
    top = int(np.frexp(whole)[1]) - 1  # the exponent of x
    rows = (("x", whole, 24, None), ("big", big, 11, BLUE), ("small", small, 11, ORANGE), ("lost", lost, 24, RED))
    for row, (name, value, digits, colour) in enumerate(rows):
        first = int(np.frexp(abs(value))[1]) - 1 if value else top
        number = round(abs(float(value)) * 2.0 ** (23 - top))
        for at in range(first, max(first - digits, top - 24), -1) if value else ():
            fill = colour or (faint(BLUE) if top - at < 11 else faint(INK, 0.1))
            ax.add_patch(Rectangle((top - at, -row - 0.9), 1, 0.8, facecolor=fill, edgecolor=INK, linewidth=0.4))
            style: dict[str, Any] = {"ha": "center", "va": "center", "fontsize": 9, "color": "w" if colour else INK}
            ax.text(top - at + 0.5, -row - 0.52, str(number >> (23 - top + at) & 1), **style)
        if not value:
            ax.text(0.2, -row - 0.52, "nothing", va="center", fontsize=9, color=INK)
        ax.text(-1.3, -row - 0.52, f"{'-' if value < 0 else ''}{name}", ha="right", va="center", fontsize=9, color=INK)
    ax.set(xlim=(-1.1, 24.1), ylim=(-4, 0.1), yticks=[], xlabel=f"place: times 2 to the power of {top} and less")
    ax.set_xticks([i + 0.5 for i in (0, 5, 10, 15, 20, 23)], [f"{top - i}" for i in (0, 5, 10, 15, 20, 23)])
    ax.spines["left"].set_visible(False)
    return picture


def errors(modelled: Mapping[str, Mapping[int, float]], measured: Mapping[str, Mapping[int, float]]) -> Picture:
    """Errors by K: lines of a model, and points that were measured, in the colour of the line of their name."""
    picture = Picture(6.8, 3.4, "")
    ax = picture.axes_plain()
    names = dict.fromkeys([*modelled, *measured])
    looks = dict(zip(names, ((RED, "o"), (ORANGE, "^"), (BLUE, "s"), (GREEN, "D"), (INK, "v")), strict=False))
    said = []
    for series, kind in ((modelled, "modelled"), (measured, "measured")):
        for name, found in series.items():
            style = {"linestyle": "-"} if kind == "modelled" else {"linestyle": "", "marker": looks[name][1]}
            label = name if series is modelled or name not in modelled else None
            ax.loglog(list(found), list(found.values()), color=looks[name][0], label=label, **style)
            said.append(f"{name}, {kind}: " + ", ".join(f"{k} {error:.1e}" for k, error in found.items()))
    picture.alt = f"Error by K. {'; '.join(said)}"
    ks = sorted({k for found in (*modelled.values(), *measured.values()) for k in found})
    ax.minorticks_off()
    ax.set_xticks(ks, map(str, ks))
    ax.yaxis.set_major_formatter(lambda value, place: f"{value:.0e}")
    ax.grid(axis="y", color=INK, alpha=0.25, linewidth=0.5)
    ax.set(xlabel="K", ylabel="error, relative to the product")
    ax.legend(frameon=False, labelcolor=INK, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
    return picture


def rates(rows: Iterable[Mapping], found: Iterable[Mapping] = (), title: str = "") -> Picture:
    """Recorded rounds of `matmul` in three precisions, as a share of cuBLAS SGEMM's, by size; the errors of `found`."""
    rows = [row for row in rows if "tf32x3" in row]
    names = [f"{r['m']}" if r["m"] == r["n"] == r["k"] else f"{r['m']} x {r['n']} x {r['k']}" for r in rows]
    looks = {"float32": ("auto", BLUE, "o"), "tf32x3": ("tf32x3", GREEN, "D"), "tf32": ("tf32", ORANGE, "^")}
    share = [[100 * np.median(r[look[0]]) / np.median(r["cublas"]) for look in looks.values()] for r in rows]
    said = [
        f"{name}: " + ", ".join(f"{precision} {p:.0f}%" for precision, p in zip(looks, mine, strict=True))
        for name, mine in zip(names, share, strict=True)
    ]
    error = max((e for e in found if e["inputs"] == "normal"), key=lambda e: e["m"] * e["n"] * e["k"], default={})
    alt = f"Share of cuBLAS SGEMM's rate{f' on {title}' * bool(title)}. {'; '.join(said)}"
    picture = Picture(6.8, 1.2 + 0.24 * len(rows), alt)
    ax = picture.axes_plain()
    lines(ax, [[(min(mine), -i), (max(mine), -i)] for i, mine in enumerate(share)], linewidth=0.8, zorder=0)
    for number, (name, (_, colour, shape)) in enumerate(looks.items()):
        label = f"{name}, error {error[name]:.1e}" if error else name
        places = [mine[number] for mine in share]
        ax.plot(places, [-i for i in range(len(rows))], shape, color=colour, markersize=7, label=label)
    ax.axvline(100, color=INK, linestyle=":", label=f"cuBLAS, error {error['cublas']:.1e}" if error else "cuBLAS")
    ax.set_yticks([-i for i in range(len(rows))], names)
    ax.set(xlim=(0, None), xlabel="% of cuBLAS SGEMM", ylim=(-len(rows) + 0.4, 0.6))
    ax.legend(frameon=False, labelcolor=INK, fontsize=8, loc="lower center", bbox_to_anchor=(0.5, 1), ncols=2)
    return picture
