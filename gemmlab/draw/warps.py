"""Pictures for kernels 15 to 17: the block of a warp, stages in time, equal shares, the order of tiles, cuBLAS."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import matplotlib
import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from .. import model
from ..model.costs import local_turns
from ..simt import ProductRun, simulate, views
from ..simt.machine import WARP
from .diagram import faint
from .picture import BLUE, GREEN, INK, MAGENTA, ORANGE, Picture, count, time_axis

KERNELS = (10, 15)  # that are drawn side by side
TILE = 64  # rows and columns that the tile has at least whose first warp is drawn


@cache
def replayed(kernel: int, WPTM: int, WPTN: int, WARPM: int = 8, LWIDTH: int = 4) -> ProductRun:
    """A simulated run of kernel 10 or 15 on one tile of 64 x 64, or of more where a warp's block needs it."""
    tile = {"TSM": max(TILE, WPTM * WARPM), "TSN": max(TILE, WPTN * WARP // WARPM), "TSK": 16}
    params = tile | {"WPTM": WPTM, "WPTN": WPTN, "UNROLL": 1}
    params |= {"WARPM": WARPM, "LWIDTH": LWIDTH} if kernel == 15 else {"WIDTH": 1}
    return simulate(kernel, tile["TSM"], tile["TSN"], 16, params, groups=[(0, 0)])


@cache
def fetched(r: ProductRun, name: str) -> tuple[int, int, int]:
    """What the first warp fetches from Atile or Btile for one step of k.

    Returns:
        Loads per lane; turns of local memory (`model.costs.local_turns`); and how many different floats these loads
        read.
    """
    width = int(views.select(r, name)["width"].max())
    firsts = views.touches(r, name)[: r.params["WPTM" if name == "Atile" else "WPTN"] // width]
    floats = firsts[:, :, None] + np.arange(width)
    return len(firsts), local_turns(4 * firsts, 4 * width), len(np.unique(floats))


@cache
def owners(r: ProductRun) -> dict[tuple[int, int], int]:
    """Which lane of the first warp holds an element of the tile of C, by its row and column.

    It holds those whose row of A's tile and column of B's it reads, whoever stores them in the end.
    """
    mine = []
    for name, per in (("Atile", r.params["WPTM"]), ("Btile", r.params["WPTN"])):
        width = int(views.select(r, name)["width"].max())
        firsts = views.touches(r, name)[: per // width]  # one step of k
        mine.append((firsts[:, None, :] + np.arange(width)[:, None]).reshape(per, -1).T % r.shapes[name][1])
    return {(int(m), int(n)): lane for lane, (a, b) in enumerate(zip(*mine, strict=True)) for m in a for n in b}


def block(WPTM: int = 8, WPTN: int = 8, WARPM: int = 8, LWIDTH: int = 4, lane: int = 0) -> Picture:
    """Which elements of a tile of C the lanes of the first warp hold, in kernel 10 and in kernel 15.

    Below each picture is what the warp fetches per step of k, from the tile of A + from that of B (see `fetched`).
    """
    both = {number: replayed(number, WPTM, WPTN, WARPM, LWIDTH) for number in KERNELS}
    words = {}
    for number, r in both.items():
        a, b = fetched(r, "Atile"), fetched(r, "Btile")
        words[number] = f"{a[0]} + {b[0]} loads, {a[1]} + {b[1]} turns, {a[2]} + {b[2]} floats"
    alt = (
        "Which elements of C a warp computes, and what it fetches from the tiles of A + B per step of k. "
        + "; ".join(f"Kernel {number}: {said}" for number, said in words.items())
    )
    picture = Picture(6.8, 3.9, alt)
    shades = matplotlib.colormaps["viridis"](np.linspace(0.15, 0.9, WARP))
    shades[lane] = (*to_rgb(MAGENTA), 1)
    for ax, (number, r) in zip(picture.panels(1, 2), both.items(), strict=True):
        rows, columns = r.params["TSM"], r.params["TSN"]
        pixels = np.zeros((rows, columns, 4))
        for place, item in owners(r).items():
            pixels[place] = shades[item]
        ax.imshow(pixels, extent=(0, columns, -rows, 0), interpolation="none")
        if number == 15 and LWIDTH == 4:
            for (m, n), item in owners(r).items():
                if m % 4 == n % 4 == 0:
                    ink = "w" if np.dot(shades[item][:3], (0.21, 0.72, 0.07)) < 0.45 else "k"
                    ax.text(n + 2, -m - 2.1, str(item), ha="center", va="center", fontsize=7.5, color=ink)
        ax.add_artist(Rectangle((0, -rows), columns, rows, fill=False, edgecolor=GREEN, linewidth=1.5))
        ax.set(xlim=(-0.5, columns + 0.5), ylim=(-rows - 0.5, 0.5), aspect="equal", xticks=[], yticks=[])
        ax.set_title(f"kernel {number}: warp 0, lane {lane} in magenta", color=INK, fontsize=10)
        ax.set_xlabel(words[number], color=INK, fontsize=9)
        for spine in ax.spines.values():
            spine.set_visible(False)
    picture.supxlabel("from the tile of A + from the tile of B, for one step of k", color=INK, fontsize=9)
    return picture


def stages(tiles: int, copy: float, multiply: float, STAGES: int = 2) -> Picture:
    """A time line of one work-group with asynchronous copies.

    The copy of tile t + STAGES - 1 starts when the multiplication of tile t does, and nobody waits for it before
    its own tile is due.

    Args:
        tiles: how many tiles the work-group multiplies.
        copy, multiply: the time to copy a tile and to multiply it, in any unit.
        STAGES: tiles in local memory at the same time.
    """
    asked, there, done = [0.0] * (STAGES - 1), [], [0.0]
    for t in range(tiles):
        there.append(asked[t] + copy)
        begin = max(there[t], done[-1])
        asked.append(begin)
        done.append(begin + multiply)
    share = tiles * multiply / done[-1]
    alt = f"{count(STAGES, 'stage')}: done after {done[-1]:g}, multiplying {share:.0%} of the time"
    picture = Picture(6.8, 0.9 + 0.3 * (STAGES + 1), alt)
    ax = picture.axes_plain()
    boxes: list[tuple[int, float, float, Any, int]] = [
        (STAGES, done[t + 1] - multiply, multiply, GREEN, t) for t in range(tiles)
    ]
    boxes += [(t % STAGES, asked[t], copy, faint(BLUE, 0.45), t) for t in range(tiles)]
    _boxes(ax, boxes, done[-1])
    ax.set_yticks([-row - 0.5 for row in range(STAGES + 1)], [f"copy, stage {s}" for s in range(STAGES)] + ["multiply"])
    ax.set(xlim=(0, time_axis(done[-1])), ylim=(-STAGES - 1, 0.1), xlabel="time")
    ax.set_title(alt, color=INK, fontsize=10)
    return picture


def _boxes(ax, boxes, end: float) -> None:
    """Draw boxes (row, start, length, colour, number) on a time line that ends at `end`."""
    for row, start, length, colour, number in boxes:
        ax.add_artist(Rectangle((start, -row - 0.9), length, 0.8, facecolor=colour, edgecolor=INK, linewidth=0.5))
        if length / end > 0.025:
            ink = INK if len(colour) == 4 and colour[3] < 1 else "w"
            ax.text(start + length / 2, -row - 0.52, str(number), ha="center", va="center", fontsize=8, color=ink)


def shares(tiles: int, steps: int, groups: int) -> Picture:
    """The same work in two ways: one work-group per tile, and Stream-K, which gives every work-group an equal share.

    Time goes from left to right. A partial tile is orange: a fix-up adds it to the other parts of its tile.

    Args:
        tiles: tiles of C.
        steps: tiles of A and B that each of them needs.
        groups: places for work-groups that run at the same time.
    """
    waves, equal = model.idle(tiles, steps, groups)
    cut = model.pieces(tiles, steps, groups)
    several = [t for t in range(tiles) if sum(part[0] == t for parts in cut for part in parts) > 1]
    alt = (
        f"{count(tiles, 'tile')} of {count(steps, 'step')} on {count(groups, 'place')}: one work-group per tile leaves "
        f"{waves:.0%} idle, equal shares {equal:.0%}; tiles cut: {', '.join(map(str, several)) or 'none'}"
    )
    picture = Picture(6.8, 1.1 + 0.44 * groups, alt)
    end = steps * -(-tiles // groups)
    whole = [[(t, 0, steps) for t in range(g, tiles, groups)] for g in range(groups)]
    for ax, parts, name, share in zip(
        picture.panels(2, 1), (whole, cut), ("one work-group per tile", "equal shares"),
        (waves, equal), strict=True,
    ):  # fmt: skip
        for g, mine in enumerate(parts):
            starts = [sum(part[2] for part in mine[:i]) for i in range(len(mine))]
            boxes = zip(starts, mine, strict=True)
            _boxes(ax, [(g, x, p[2], ORANGE if p[2] < steps else BLUE, p[0]) for x, p in boxes], end)
        ax.set(xlim=(0, end * 1.01), ylim=(-groups, 0.1))
        ax.set_title(f"{name}: {share:.0%} of the places idle", color=INK, fontsize=10)
        ax.set_yticks([-g - 0.5 for g in range(groups)], [f"place {g}" for g in range(groups)])
    ax.set_xlabel("time, in steps", color=INK)
    return picture


def order(rows: int, columns: int, places: int, ORDER: int = 1) -> Picture:
    """Which tiles of C are computed first, and so at the same time, when they are numbered in bands of `ORDER` rows.

    Args:
        rows, columns: of tiles in C.
        places: work-groups that run at the same time.
        ORDER: rows of tiles in a band (`model.ordered`).
    """
    first = [model.ordered(tile, rows, columns, ORDER) for tile in range(min(places, rows * columns))]
    down, across = (len(set(places)) for places in zip(*first, strict=True))
    alt = (
        f"ORDER={ORDER}: the first {len(first)} of {rows} x {columns} tiles want {count(down, 'row')} of tiles of A "
        f"and {count(across, 'column')} of tiles of B"
    )
    picture = Picture(6.8, 1 + 5 * rows / columns, alt)
    ax = picture.axes_plain()
    pixels = np.zeros((rows, columns))
    for number, place in enumerate(first):
        pixels[place] = 0.25 + 0.75 * number / len(first)
    ax.imshow(np.ma.masked_equal(pixels, 0), cmap="Greens", vmin=0, vmax=1.2, extent=(0, columns, rows, 0))
    ax.hlines(range(rows + 1), 0, columns, color=INK, linewidth=0.3)
    ax.vlines(range(columns + 1), 0, rows, color=INK, linewidth=0.3)
    for side in ("left", "bottom"):
        ax.spines[side].set_visible(False)
    ax.set(xlabel="n: columns of tiles, which share a part of B", ylabel="m: rows of tiles, which share one of A")
    ax.set(xticks=[], yticks=[])
    ax.set_title(alt, color=INK, fontsize=9)
    return picture


def versus(rows: Iterable[Mapping], title: str = "") -> Picture:
    """The rate of `matmul` as a percentage of cuBLAS's, by size; orange where M or N is not a multiple of 4.

    A bar is the ratio of the medians of all rounds. The line on it goes from our slowest round divided by cuBLAS's
    fastest to our fastest divided by its slowest.

    Args:
        rows: recorded comparisons (the "side_by_side" of a record).
        title: the device, for the description.
    """
    rows = list(rows)
    percent = [100 * float(np.median(r["auto"]) / np.median(r["cublas"])) for r in rows]
    names = [f"{r['m']}" if r["m"] == r["n"] == r["k"] else f"{r['m']} x {r['n']} x {r['k']}" for r in rows]
    said = "; ".join(f"{name}: {p:.0f}%" for name, p in zip(names, percent, strict=True))
    picture = Picture(6.4, 0.8 + 0.2 * len(rows), f"Share of cuBLAS's rate{f' on {title}' * bool(title)}. {said}")
    ax = picture.axes_plain()
    most = 100.0
    for place, (row, p) in enumerate(zip(rows, percent, strict=True)):
        fits = row["m"] % 4 == row["n"] % 4 == 0
        ax.barh(-place, p, 0.7, color=BLUE if fits else ORANGE)
        worst, best = (
            100 * x / y for x, y in ((min(row["auto"]), max(row["cublas"])), (max(row["auto"]), min(row["cublas"])))
        )
        most = max(most, p, best)
        ax.plot([worst, best], [-place, -place], color=INK, linewidth=2)
        ax.text(max(p, best) + 1, -place, f"{p:.0f}%", va="center", color=INK, fontsize=9)
    ax.axvline(100, color=INK, linewidth=0.8, linestyle=":")
    ax.set_yticks([-i for i in range(len(rows))], names)
    ax.set(xlim=(0, most + 15), xlabel="% of cuBLAS", ylim=(-len(rows) + 0.4, 0.6))
    return picture
