"""Chapters 18 and 19: which elements lanes hold, and in which order they multiply."""

import numpy as np

from gemmlab import check
from lessons import tensors


def test_lanes_hold_each_element_once():
    for name, rows, cols in (("a", 16, 8), ("b", 8, 8), ("sum", 16, 8)):
        spots = [spot for lane in range(32) for spot in tensors.held(lane)[name]]
        assert sorted(spots) == [(r, c) for r in range(rows) for c in range(cols)]


def test_instructions_with_our_numbers_multiply():
    """Lanes fetch 4 neighbours of step t or t + 4; what they give to the instruction is the
    product's block.
    """
    a, b = check.exact_inputs(32, 32, 8)
    c = np.full((32, 32), np.nan)
    for number in range(8):
        j, i = divmod(number, 2)
        left, right = np.full((16, 8), np.nan), np.full((8, 8), np.nan)
        for lane in range(32):
            g, t = divmod(lane, 4)
            mine = tensors.held(lane)
            fetched_a = [a[4 * g : 4 * g + 4, t + 4 * h] for h in (0, 1)]
            fetched_b = [b[t + 4 * h, 4 * g : 4 * g + 4] for h in (0, 1)]
            for register, spot in enumerate(mine["a"]):
                left[spot] = fetched_a[register // 2][2 * i + register % 2]
            for register, spot in enumerate(mine["b"]):
                right[spot] = fetched_b[register][j]
        for row, col in np.ndindex(16, 8):
            c[tensors.in_block(row, col, number)] = left[row] @ right[:, col]
    assert (c == a @ b).all()
