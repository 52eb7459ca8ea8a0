"""Chapters 15 and 17: the block of a warp, the order of tiles, equal shares."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab import model
from lessons import schedules, warps

BLOCKS = [(p, q, rows) for p in (4, 8) for q in (4, 8) for rows in (4, 8, 16) if p * rows <= 128]


@pytest.mark.parametrize(("p", "q", "rows"), BLOCKS)
def test_a_warp_holds_one_compact_block(p, q, rows):
    """The header's picture: blocks of 4 x 4, lanes down the rows first."""
    r = warps.replayed(15, p, q, rows)
    assert r.ok, r.verdict
    held = warps.owners(r)
    columns = 32 // rows
    assert set(held) == {(m, n) for m in range(rows * p) for n in range(columns * q)}
    assert all(lane == m // 4 % rows + n // 4 % columns * rows for (m, n), lane in held.items())


@pytest.mark.parametrize(("p", "q", "rows"), BLOCKS)
def test_vectors_save_loads_and_a_compact_block_saves_turns(p, q, rows):
    assert model.loads(15, warps.replayed(15, p, q, rows).params)["local"] == (p + q) / (p * q)
    for name, mine, lanes in (("Atile", p, rows), ("Btile", q, 32 // rows)):
        loads, turns, floats = warps.fetched(warps.replayed(15, p, q, rows), name)
        assert (loads, floats) == (mine // 4, mine * lanes)
        assert turns == loads * (1 if name == "Btile" else 4 if rows == 16 else 2)
        assert warps.fetched(warps.replayed(15, p, q, rows, LWIDTH=1), name) == (mine, mine, floats)
        assert warps.fetched(warps.replayed(10, p, q, rows), name)[:2] == (mine, mine)


@settings(max_examples=300, deadline=None)
@given(st.integers(1, 20), st.integers(1, 20), st.integers(1, 40))
def test_pieces_are_the_line_each_step_once(tiles, steps, groups):
    cut = schedules.pieces(tiles, steps, groups)
    assert len(cut) == groups
    line = [
        (tile, first + i) for parts in cut for tile, first, number in parts for i in range(number)
    ]
    assert line == [(tile, step) for tile in range(tiles) for step in range(steps)]
    lengths = [sum(part[2] for part in parts) for parts in cut]
    assert max(lengths) - min(lengths) <= 1
    # what the kernel's memory for pieces relies on: a group cuts two tiles at most, its first and
    # its last
    assert all(number == steps for parts in cut for _, _, number in parts[1:-1])
    waves, equal = schedules.idle(tiles, steps, groups)
    assert 0 <= equal <= waves + 1e-12 < 1


def test_pieces_of_the_header():
    """The kernel's header draws three tiles for four groups."""
    drawn = [[(0, 0, 3)], [(0, 3, 1), (1, 0, 2)], [(1, 2, 2), (2, 0, 1)], [(2, 1, 3)]]
    assert schedules.pieces(3, 4, 4) == drawn
