"""What the lanes of a warp hold in one instruction of a tensor core, for chapter 18."""

from __future__ import annotations

from gemmlab.draw.diagram import Area, grid
from gemmlab.draw.picture import BLUE, GREEN, INK, MAGENTA, ORANGE, Picture, faint


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
    block of C, with the elements of the sum in their positions.
    """
    elements = "; ".join(f"({m}, {n})" for m, n in computed(lane, instruction))
    alt = (
        f"Lane {lane} holds 4 elements of a, 2 of b and 4 of the sum. With instruction "
        f"{instruction} it computes these elements of C: {elements}"
    )
    picture = Picture(6.8, 3.9, alt)
    left, right = picture.panels(1, 2, width_ratios=(20, 24))
    mine = held(lane)
    for name, area, colour in (
        ("a", Area(0, 11, 16, 8), BLUE),
        ("b", Area(11, 0, 8, 8), ORANGE),
        ("sum", Area(11, 11, 16, 8), GREEN),
    ):
        marks = [(r, c, MAGENTA, str(number)) for number, (r, c) in enumerate(mine[name])]
        grid(left, area, colour, f"{name}, {area.rows} x {area.cols}", marks)
    others = [
        (m, n, faint(INK, 0.3), "") for who in range(32) for m, n in computed(who, instruction)
    ]
    marks = [(m, n, MAGENTA, "") for m, n in computed(lane, instruction)]
    title = f"32 x 32 of C: instruction {instruction} of 0 to 7"
    grid(right, Area(0, 0, 32, 32), GREEN, title, [*others, *marks], every=(4, 8))
    left.text(0, -4, f"lane {lane}", color=MAGENTA, fontsize=11, fontweight="bold")
    for ax in (left, right):
        ax.set_axis_off()
        ax.set_aspect("equal")
        ax.autoscale_view()
    return picture
