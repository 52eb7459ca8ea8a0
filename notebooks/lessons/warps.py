"""What a warp computes and fetches, for chapter 15, and the order of tiles, for chapter 17."""

from __future__ import annotations

from functools import cache

import numpy as np
from matplotlib.colors import to_rgba
from matplotlib.patches import Rectangle

from clscope import views
from clscope.wave import WARP
from gemmlab.draw.picture import GREEN, INK, MAGENTA, Picture, text_colour, viridis
from gemmlab.model.costs import local_turns
from gemmlab.simulation import ProductRun, simulate

#: The kernels that are drawn side by side.
KERNELS = (10, 15)
#: The least rows and columns of the tile whose first warp is drawn.
TILE = 64


@cache
def replayed(kernel: int, WPTM: int, WPTN: int, WARPM: int = 8, LWIDTH: int = 4) -> ProductRun:
    """A simulated run of kernel 10 or 15 on one tile that holds the block of a warp."""
    side = TILE if kernel == 15 else 2 * TILE  # kernel 10's default: its warp is a flat strip
    tile = {"TSM": max(side, WPTM * WARPM), "TSN": max(side, WPTN * WARP // WARPM), "TSK": 16}
    params = tile | {"WPTM": WPTM, "WPTN": WPTN, "UNROLL": 1}
    params |= {"WARPM": WARPM, "LWIDTH": LWIDTH} if kernel == 15 else {"WIDTH": 1}
    return simulate(kernel, tile["TSM"], tile["TSN"], 16, params, groups=[(0, 0)])


def _first_step(r: ProductRun, name: str) -> tuple[np.ndarray, int]:
    """The first float of each load of a step of k, by load and lane; the loads' width."""
    width = int(views.select(r, name)["width"].max())
    loads = r.params["WPTM" if name == "Atile" else "WPTN"] // width
    return views.touches(r, name)[:loads], width


@cache
def fetched(r: ProductRun, name: str) -> tuple[int, int, int]:
    """What the first warp fetches from Atile or Btile for one step of k: loads per lane, turns of
    local memory, and how many different floats the loads read.
    """
    firsts, width = _first_step(r, name)
    floats = firsts[:, :, None] + np.arange(width)
    return len(firsts), local_turns(4 * firsts, 4 * width), len(np.unique(floats))


@cache
def owners(r: ProductRun) -> dict[tuple[int, int], int]:
    """Which lane of the first warp computes an element of the tile of C, by its row and column."""
    lanes: dict[tuple[int, int], int] = {}
    sides = []
    for name in ("Atile", "Btile"):
        firsts, width = _first_step(r, name)
        floats = (firsts[:, None, :] + np.arange(width)[:, None]).reshape(-1, WARP)
        sides.append(floats % r.shapes[name][1])
    for lane in range(WARP):
        rows, columns = (side[:, lane].tolist() for side in sides)
        lanes |= {(m, n): lane for m in rows for n in columns}
    return lanes


def block(WPTM: int = 8, WPTN: int = 8, WARPM: int = 8, LWIDTH: int = 4, lane: int = 0) -> Picture:
    """The elements of C that a warp holds in kernels 10 and 15, and what it fetches."""
    runs = {kernel: replayed(kernel, WPTM, WPTN, WARPM, LWIDTH) for kernel in KERNELS}
    words = {}
    for kernel, r in runs.items():
        pairs = zip(fetched(r, "Atile"), fetched(r, "Btile"), strict=True)
        loads, turns, floats = (f"{a} + {b}" for a, b in pairs)
        words[kernel] = f"{loads} loads, {turns} turns, {floats} floats"
    alt = (
        "Which elements of C a warp computes, and what it fetches from the tiles of A + B per step "
        "of k. " + "; ".join(f"Kernel {kernel}: {fetches}" for kernel, fetches in words.items())
    )
    picture = Picture(6.8, 3.9, alt)
    shades = [viridis(share) for share in np.linspace(0.15, 0.9, WARP)]
    shades[lane] = to_rgba(MAGENTA)
    for ax, (kernel, r) in zip(picture.panels(1, 2), runs.items(), strict=True):
        rows, columns = r.params["TSM"], r.params["TSN"]
        pixels = np.zeros((rows, columns, 4))
        for (m, n), item in owners(r).items():
            pixels[m, n] = shades[item]
            if kernel == 15 and LWIDTH == 4 and m % 4 == n % 4 == 0:
                ax.text(n + 2, -m - 2.1, str(item), ha="center", va="center", fontsize=7.5,
                        color=text_colour(shades[item]))  # fmt: skip
        ax.imshow(pixels, extent=(0, columns, -rows, 0), interpolation="none")
        ax.add_artist(Rectangle((0, -rows), columns, rows, fill=False, edgecolor=GREEN))
        ax.set(xlim=(-0.5, columns + 0.5), ylim=(-rows - 0.5, 0.5), aspect="equal")
        ax.set(xticks=[], yticks=[])
        ax.set_title(f"kernel {kernel}: warp 0, lane {lane} in magenta", color=INK, fontsize=10)
        ax.set_xlabel(words[kernel], color=INK, fontsize=9)
        ax.spines[:].set_visible(False)
    below = "from the tile of A + from the tile of B, for one step of k"
    picture.supxlabel(below, color=INK, fontsize=9)
    return picture
