"""Pictures for tensor cores: what lanes hold, banks, the bits of the two parts of a float, errors, rates."""

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
from .picture import BLUE, GREEN, INK, MAGENTA, ORANGE, Picture, count, lines, time_axis

#: Numbers whose bits are drawn, by name.
NUMBERS = {"pi": np.pi, "1/3": 1 / 3, "0.1": 0.1, "3": 3.0, "1.9998": 1.9998}


def held(lane: int) -> dict[str, list[tuple[int, int]]]:
    """The elements (row, column) that a lane holds in one instruction.

    It holds 4 elements of a (16 x 8), 2 of b (8 x 8) and 4 of the sum (16 x 8).

    Source: NVIDIA, Parallel Thread Execution ISA, matrix fragments of mma.m16n8k8 with .tf32 operands.
    """
    g, t = divmod(lane, 4)
    return {
        "a": [(g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)],
        "b": [(t, g), (t + 4, g)],
        "sum": [(g, 2 * t), (g, 2 * t + 1), (g + 8, 2 * t), (g + 8, 2 * t + 1)],
    }


def place(row: int, col: int, instruction: int) -> tuple[int, int]:
    """Where an element of an instruction's sum belongs in a 32 x 32 block of C, which 8 instructions fill."""
    j, i = divmod(instruction, 2)
    return 4 * (row % 8) + 2 * i + row // 8, 4 * col + j


def ours(lane: int, instruction: int) -> list[tuple[int, int]]:
    """The four elements (row, column) of a 32 x 32 block of C that a lane computes with an instruction."""
    return [place(row, col, instruction) for row, col in held(lane)["sum"]]


def fragments(lane: int = 0, instruction: int = 0) -> Picture:
    """What one lane holds in one instruction.

    On the left are the matrices of the instruction: a to the left of the sum, b above it. On the right is the
    32 x 32 block of C, with the elements of the sum where they belong. The lane's own elements are magenta.
    """
    mine = held(lane)
    elements = "; ".join(f"({m}, {n})" for m, n in ours(lane, instruction))
    alt = (
        f"Lane {lane} holds 4 elements of a, 2 of b and 4 of the sum. With instruction {instruction} it computes "
        f"these elements of C: {elements}"
    )
    picture = Picture(6.8, 3.9, alt)
    left, right = picture.panels(1, 2, width_ratios=(17, 24))
    shades = [(*to_rgb(c), 1) for c in matplotlib.colormaps["viridis"](np.linspace(0.15, 0.9, 32))[:, :3]]
    shades[lane] = (*to_rgb(MAGENTA), 1)
    shapes = {"a": (0, -9, 16, 8), "b": (9, 0, 8, 8), "sum": (9, -9, 16, 8)}
    for name, (x, y, rows, cols) in shapes.items():
        owner = {spot: who for who in range(32) for spot in held(who)[name]}
        pixels = [[shades[owner[r, c]] for c in range(cols)] for r in range(rows)]
        left.imshow(pixels, extent=(x, x + cols, y - rows, y), interpolation="none")
        edges = [[(x, y - r), (x + cols, y - r)] for r in range(rows + 1)]
        lines(left, edges + [[(x + c, y), (x + c, y - rows)] for c in range(cols + 1)], linewidth=0.3)
        for number, (r, c) in enumerate(mine[name]):
            left.add_patch(Rectangle((x + c, y - r - 1), 1, 1, facecolor=MAGENTA))
            left.text(x + c + 0.5, y - r - 0.55, str(number), ha="center", va="center", fontsize=8, color="w")
    for left_of, below, name in ((4.0, -8.0, "a: rows, k"), (4.3, -4.0, "b: k,\ncolumns"), (13.0, -26.2, "sum")):
        left.text(left_of, below, name, ha="center", va="center", fontsize=9, color=INK)
    left.set(xlim=(-0.3, 17.3), ylim=(-27, 0.3), aspect="equal", xticks=[], yticks=[])
    left.set_title(f"one instruction: lane {lane} in magenta", color=INK, fontsize=10)
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
    right.set_title(f"32 x 32 of C: instruction {instruction} (of 0 to 7)", color=INK, fontsize=10)
    for ax in (left, right):
        ax.spines[:].set_visible(False)
    return picture


def asked(PAD: int, quarter: int, TSM: int = 128) -> dict[int, int]:
    """Which 4 floats of a tile of A each of 8 lanes fetches: from row t, columns 4 g to 4 g + 3.

    Args:
        PAD: floats added to each row of the tile.
        quarter: which 8 lanes of the warp, from 0 to 3.
        TSM: floats of a row without the padding.

    Returns:
        The index in the tile of the first of the four floats, by lane.
    """
    return {lane: lane % 4 * (TSM + PAD) + lane // 4 * 4 for lane in range(8 * quarter, 8 * quarter + 8)}


def turns(PAD: int, TSM: int = 128) -> int:
    """Turns in which local memory gives each lane of a warp 4 floats: one per 8 lanes if no banks conflict."""
    groups = (asked(PAD, quarter, TSM).values() for quarter in range(4))
    return sum(model.turns(first + i for first in group for i in range(4)) for group in groups)


def banks(PAD: int, quarter: int = 0) -> str:
    """A drawing in plain text: one line per row t of the tile, with each lane at the first of its 4 banks."""
    places = {(lane % 4, first % 32 // 4): lane for lane, first in asked(PAD, quarter).items()}
    head = "bank  " + "".join(f"{4 * bank:4}" for bank in range(8))
    rows = (f"t = {t} " + "".join(f"{places.get((t, bank), '.'):>4}" for bank in range(8)) for t in range(4))
    return "\n".join([head, *rows])


def laid(k: int = 0, n: int = 0, row: int = 130) -> Picture:
    """Where an element of B's tile lies in local memory for `wgmma`: 4 steps of k side by side, [k/4][n][k%4].

    Args:
        k, n: the element, from 0 to 7 each.
        row: vectors of 4 floats from one group of 4 steps to the next.
    """
    at = (k // 4 * row + n) * 4 + k % 4
    picture = Picture(8, 2.4, f"B({k}, {n}) is float {at} of its tile in local memory: vector {n}, its float {k % 4}")
    ax = picture.axes_plain()
    for step in range(8):
        for column in range(8):
            for x, y in ((column, -step), (11 + 4 * column + step % 4, -2 - 3 * (step // 4))):
                mine, shade = (step, column) == (k, n), faint((BLUE, ORANGE)[step // 4], 0.3 + 0.15 * (step % 4))
                ax.add_patch(
                    Rectangle((x, y - 1), 1, 1, facecolor=MAGENTA if mine else shade, edgecolor=INK, linewidth=0.3)
                )
    lines(ax, [[(11 + 4 * c, y), (11 + 4 * c, y - 1)] for c in range(9) for y in (-2, -5)], linewidth=1.2)
    ax.text(
        11 + 4 * n + k % 4 + 0.5, -2 - 3 * (k // 4) + 0.15, str(at), ha="center", va="bottom", fontsize=9, color=INK
    )
    ax.text(11, 0.2, "local memory: vectors of 4 steps, column by column", va="bottom", fontsize=9, color=INK)
    ax.text(0, 0.2, "B: k down, n across", va="bottom", fontsize=9, color=INK)
    ax.set(xlim=(-0.2, 43.2), ylim=(-8.2, 1.4), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return picture


def waiting(prepare: float, multiply: float, warps: int = 1, waits: bool = True, tiles: int = 6) -> Picture:
    """A time line of warps that share a tensor core: each prepares numbers for a tile, and has it multiplied.

    Args:
        prepare, multiply: the time that each takes for a tile, in any unit.
        warps: that take turns at the tensor core.
        waits: whether a warp waits for its instruction, or prepares the next tile meanwhile.
        tiles: of each warp.
    """
    spans = model.timeline(tiles, prepare, multiply, 1 if waits else 2, warps)
    end = max(s.end for s in spans)
    busy = warps * tiles * multiply / end
    way = ("waits" if waits else "goes on") if warps == 1 else ("wait" if waits else "go on")
    alt = f"{count(warps, 'warp')} that {way}: the tensor core is busy {busy:.0%} of the time"
    picture = Picture(8, 1.2 + 0.35 * (warps + 1), alt)
    ax = picture.axes_plain()
    for s in spans:
        row, colour = (s.group, faint(ORANGE, 0.45)) if s.what == "load" else (warps, GREEN)
        box = Rectangle((s.start, -row - 0.9), s.end - s.start, 0.8, facecolor=colour, edgecolor=INK, linewidth=0.5)
        ax.add_artist(box)
        ink = INK if s.what == "load" else "w"
        place = ((s.start + s.end) / 2, -row - 0.52)
        ax.text(*place, f"{s.tile}", ha="center", va="center", fontsize=9, color=ink)
    ax.set_yticks(
        [-row - 0.5 for row in range(warps + 1)], [f"warp {w} prepares" for w in range(warps)] + ["tensor core"]
    )
    ax.set(xlim=(0, time_axis(end)), ylim=(-warps - 1, 0.1), xlabel="time")
    ax.set_title(alt, color=INK, fontsize=10)
    return picture


def bits(x: str | float = "pi") -> Picture:
    """The binary digits of a float32, of its two TF32 parts, and of what these two leave out.

    Digits that stand for the same power of 2 are drawn below each other. `x` is a name in `NUMBERS` or a number.
    """
    whole = np.float32(NUMBERS[x] if isinstance(x, str) else x)
    big, small = (part[()] for part in tf32.parts(whole))
    lost = float(whole) - float(big) - float(small)
    alt = f"{whole:.9g} = big {big:.9g} {'-' if small < 0 else '+'} small {abs(small):.4g}, " + (
        f"and {abs(lost):.1g} is lost" if lost else "nothing is lost"
    )
    picture = Picture(6.8, 1.9, alt)
    ax = picture.axes_plain()
    top = int(np.frexp(whole)[1]) - 1  # the exponent of x
    rows = (("x", whole, 24, None), ("big", big, 11, BLUE), ("small", small, 11, ORANGE), ("lost", lost, 24, MAGENTA))
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
    ax.set(xlim=(-1.1, 24.1), ylim=(-4, 0.1), yticks=[], xlabel="power of 2 that a digit stands for")
    ax.set_xticks([i + 0.5 for i in (0, 5, 10, 15, 20, 23)], [f"{top - i}" for i in (0, 5, 10, 15, 20, 23)])
    ax.spines["left"].set_visible(False)
    return picture


def errors(modelled: Mapping[str, Mapping[int, float]], measured: Mapping[str, Mapping[int, float]]) -> Picture:
    """Errors by K: modelled ones as lines, measured ones as points. A name has the same colour in both.

    Args:
        modelled, measured: names mapped to {K: error}; errors are relative to the product (`tf32.relative_error`).
    """
    picture = Picture(6.8, 3.4, "")
    ax = picture.axes_plain()
    names = dict.fromkeys([*modelled, *measured])
    looks = dict(zip(names, ((MAGENTA, "o"), (ORANGE, "^"), (BLUE, "s"), (GREEN, "D"), (INK, "v")), strict=False))
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
    """The rate of `matmul` in three precisions as a percentage of cuBLAS SGEMM's, by size.

    Args:
        rows: recorded comparisons (the "side_by_side" of a record); the medians of their rounds count.
        found: recorded errors (the "errors" of a record); those at the largest size are put in the legend.
        title: the device, for the description.
    """
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
