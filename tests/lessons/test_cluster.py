"""The model of many devices, compared with counting block by block."""

from itertools import product

import pytest

from lessons import cluster
from lessons.cluster import Cut


def counted(cut: Cut) -> list[float]:
    """Elements that each device receives, with every element of A, B and C looked at.

    Blocks of A are shared evenly by the devices of a grid's row, those of B by the devices of a
    column, those of C by the devices along k.
    """
    found = []
    for i, j, step in product(range(cut.rows), range(cut.columns), range(cut.depth)):
        a = {(r, c) for r in part(cut.m, cut.rows, i) for c in part(cut.k, cut.depth, step)}
        b = {(r, c) for r in part(cut.k, cut.depth, step) for c in part(cut.n, cut.columns, j)}
        c = {(r, c) for r in part(cut.m, cut.rows, i) for c in part(cut.n, cut.columns, j)}
        steps, rows = cut.k // cut.depth, cut.m // cut.rows
        own_a = {(r, c) for r, c in a if c in part(steps, cut.columns, j, steps * step)}
        own_b = {(r, c) for r, c in b if r in part(steps, cut.rows, i, steps * step)}
        own_c = {(r, c) for r, c in c if r in part(rows, cut.depth, step, rows * i)}
        found.append(len(a - own_a) + len(b - own_b) + len(own_c) * (cut.depth - 1))
    return found


def part(size: int, parts: int, which: int, start: int = 0) -> range:
    return range(start + size // parts * which, start + size // parts * (which + 1))


@pytest.mark.parametrize("grid", [(1, 1, 1), (4, 1, 1), (1, 2, 1), (2, 2, 1), (1, 1, 3), (2, 3, 2)])
def test_what_a_cut_moves_is_what_can_be_counted(grid):
    cut = Cut(24, 36, 48, *grid)
    assert counted(cut) == pytest.approx([cut.moved_bytes / 4] * cut.devices)
    assert cut.flops * cut.devices == 2 * 24 * 36 * 48


def test_a_square_grid_moves_least_and_one_device_nothing():
    moved = {r: Cut(4096, 4096, 4096, r, 64 // r).moved_bytes for r in (1, 2, 4, 8, 16, 32, 64)}
    assert min(moved, key=moved.__getitem__) == 8
    alone = Cut(10, 20, 30)
    assert (alone.moved_bytes, alone.held_bytes) == (0, 4 * (10 * 30 + 30 * 20 + 10 * 20))
    cut = Cut(4096, 4096, 4096, 4, 4)
    assert cut.panel_bytes(128) < cut.held_bytes < cut.panel_bytes(4096)


@pytest.mark.parametrize(
    ("bound", "given"),
    {
        "multiplying": (1, 1e9, 1e9),
        "receiving": (1e6, 1, 1e9),
        "handing out": (1e6, 1e9, 1),
    }.items(),
)
def test_the_slowest_part_is_what_it_takes(bound, given):
    """With overlap the total is between the longest part and the sum of all."""
    total, parts = cluster.summa(Cut(4096, 4096, 4096, 2, 2), 256, *given, latency=0)
    assert max(parts.values()) == parts[bound] <= total <= sum(parts.values())
    assert total == pytest.approx(parts[bound], rel=0.1)
