"""Pictures for chapters 18 and 19: what lanes hold, banks, and B's tile for warpgroups."""

from __future__ import annotations

from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from gemmlab.draw.picture import BLUE, INK, MAGENTA, ORANGE, Picture, faint, lines

#: Where the matrices of an instruction are drawn: left, top, rows, columns.
_MATRICES = {"a": (0, -9, 16, 8), "b": (9, 0, 8, 8), "sum": (9, -9, 16, 8)}


def held(lane: int) -> dict[str, list[tuple[int, int]]]:
    """The elements (row, column) that a lane holds in one instruction.

    It holds 4 elements of a (16 x 8), 2 of b (8 x 8) and 4 of the sum (16 x 8).

    Source: NVIDIA, Parallel Thread Execution ISA, fragments of mma.m16n8k8 with .tf32 operands.
    """
    g, t = divmod(lane, 4)
    return {
        "a": [(g, t), (g + 8, t), (g, t + 4), (g + 8, t + 4)],
        "b": [(t, g), (t + 4, g)],
        "sum": [(g, 2 * t), (g, 2 * t + 1), (g + 8, 2 * t), (g + 8, 2 * t + 1)],
    }


def in_block(row: int, col: int, instruction: int) -> tuple[int, int]:
    """The position of an element of an instruction's sum in a 32 x 32 block of C.

    Eight instructions fill the block.
    """
    j, i = divmod(instruction, 2)
    return 4 * (row % 8) + 2 * i + row // 8, 4 * col + j


def computed(lane: int, instruction: int) -> list[tuple[int, int]]:
    """The four elements of a 32 x 32 block of C that a lane computes with an instruction."""
    return [in_block(row, col, instruction) for row, col in held(lane)["sum"]]


def fragments(lane: int = 0, instruction: int = 0) -> Picture:
    """What one lane, in magenta, holds in one instruction.

    Left: the matrices of the instruction, a to the left of the sum, b above it. Right: the 32 x 32
    block of C with the elements of the sum in their positions.
    """
    elements = "; ".join(f"({m}, {n})" for m, n in computed(lane, instruction))
    alt = (
        f"Lane {lane} holds 4 elements of a, 2 of b and 4 of the sum. With instruction "
        f"{instruction} it computes these elements of C: {elements}"
    )
    picture = Picture(6.8, 3.9, alt)
    left, right = picture.panels(1, 2, width_ratios=(17, 24))
    shades = matplotlib.colormaps["viridis"](np.linspace(0.15, 0.9, 32))
    shades[lane, :3] = to_rgb(MAGENTA)
    _draw_instruction(left, lane, shades)
    _draw_block(right, instruction, shades)
    left.set_title(f"one instruction: lane {lane} in magenta", color=INK, fontsize=10)
    title = f"32 x 32 of C: instruction {instruction} (of 0 to 7)"
    right.set_title(title, color=INK, fontsize=10)
    for ax in (left, right):
        ax.spines[:].set_visible(False)
    return picture


def _draw_instruction(ax: Axes, lane: int, shades: np.ndarray) -> None:
    for name, (x, y, rows, cols) in _MATRICES.items():
        pixels = np.zeros((rows, cols, 4))
        for who in range(32):
            for element in held(who)[name]:
                pixels[element] = shades[who]
        ax.imshow(pixels, extent=(x, x + cols, y - rows, y), interpolation="none")
        rules = [[(x, y - r), (x + cols, y - r)] for r in range(rows + 1)]
        rules += [[(x + c, y), (x + c, y - rows)] for c in range(cols + 1)]
        lines(ax, rules, linewidth=0.3)
        for number, (r, c) in enumerate(held(lane)[name]):
            # behind the number as a shape: an image's pixels have no colour that a page could know
            ax.add_patch(Rectangle((x + c, y - r - 1), 1, 1, facecolor=MAGENTA))
            ax.text(x + c + 0.5, y - r - 0.55, str(number), ha="center", va="center", fontsize=8,
                    color="w")  # fmt: skip
    labels = ((4.0, -8.0, "a: rows, k"), (4.3, -4.0, "b: k,\ncolumns"), (13.0, -26.2, "sum"))
    for left, top, words in labels:
        ax.text(left, top, words, ha="center", va="center", fontsize=9, color=INK)
    ax.set(xlim=(-0.3, 17.3), ylim=(-27, 0.3), aspect="equal", xticks=[], yticks=[])


def _draw_block(ax: Axes, instruction: int, shades: np.ndarray) -> None:
    block = np.zeros((32, 32, 4))
    for who in range(32):
        g, t = divmod(who, 4)
        block[4 * g : 4 * g + 4, 8 * t : 8 * t + 8] = (*shades[who, :3], 0.25)
    for who in range(32):
        for element in computed(who, instruction):
            block[element] = shades[who]
    ax.imshow(block, extent=(0, 32, -32, 0), interpolation="none")
    rules = [[(0, -4 * g), (32, -4 * g)] for g in range(9)]
    rules += [[(8 * t, 0), (8 * t, -32)] for t in range(5)]
    lines(ax, rules, linewidth=0.6)
    ax.set_xticks([8 * t + 4 for t in range(4)], [f"t = {t}" for t in range(4)])
    ax.set_yticks([-4 * g - 2 for g in range(8)], [f"g = {g}" for g in range(8)])
    ax.tick_params(length=0)
    ax.set(xlim=(-0.2, 32.2), ylim=(-32.2, 0.2), aspect="equal")


def laid(k: int = 0, n: int = 0, row: int = 130) -> Picture:
    """Where an element of B's tile is in local memory for `wgmma`: [k/4][n][k%4].

    Args:
        k, n: the element, from 0 to 7 each.
        row: vectors of 4 floats from one group of 4 steps to the next.
    """
    at = (k // 4 * row + n) * 4 + k % 4
    where = f"B({k}, {n}) is float {at} of its tile in local memory"
    picture = Picture(8, 2.4, f"{where}: vector {n}, its float {k % 4}")
    ax = picture.axes_plain()
    for step, column in np.ndindex(8, 8):
        group, inside = divmod(step, 4)
        face = faint((BLUE, ORANGE)[group], 0.3 + 0.15 * inside)
        for x, y in ((column, -step), (11 + 4 * column + inside, -2 - 3 * group)):
            box = Rectangle((x, y - 1), 1, 1, facecolor=face, edgecolor=INK, linewidth=0.3)
            if (step, column) == (k, n):
                box.set_facecolor(MAGENTA)
            ax.add_patch(box)
    vectors = [[(11 + 4 * c, y), (11 + 4 * c, y - 1)] for c in range(9) for y in (-2, -5)]
    lines(ax, vectors, linewidth=1.2)
    style: dict[str, Any] = {"va": "bottom", "fontsize": 9, "color": INK}
    ax.text(11 + 4 * n + k % 4 + 0.5, -1.85 - 3 * (k // 4), str(at), ha="center", **style)
    ax.text(11, 0.2, "local memory: vectors of 4 steps, column by column", **style)
    ax.text(0, 0.2, "B: k down, n across", **style)
    ax.set(xlim=(-0.2, 43.2), ylim=(-8.2, 1.4), aspect="equal", xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    return picture
