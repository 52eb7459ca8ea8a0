"""Time lines, the order of tiles, and shifted tiles: rules, formulas, descriptions."""

import itertools

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from lessons import hardware, schedules

TIMES = st.integers(0, 24).map(lambda eighths: eighths / 8)  # sums of these have no rounding errors
SCHEDULES = (st.integers(1, 9), TIMES, TIMES, st.sampled_from((1, 2)), st.integers(1, 5))


def end(*schedule):
    return max(span.end for span in schedules.spans(*schedule))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(*SCHEDULES[:3])
def test_the_end_for_one_group_by_formula(tiles, load, compute):
    assert end(tiles, load, compute) == tiles * (load + compute)
    two = load + (tiles - 1) * max(load, compute) + compute
    assert end(tiles, load, compute, 2) == two
    assert load + tiles * compute <= end(tiles, load, compute, 3) <= two


@settings(max_examples=300, deadline=None, derandomize=True)
@given(*SCHEDULES)
def test_a_time_line_keeps_the_rules(tiles, load, compute, buffers, groups):
    spans = schedules.spans(tiles, load, compute, buffers, groups)
    at = {(s.group, s.what, s.tile): s for s in spans}
    every = itertools.product(range(groups), ("load", "compute"), range(tiles))
    assert set(at) == set(every) and len(spans) == len(at)
    for s in spans:
        assert s.start >= 0 and s.end - s.start == (load if s.what == "load" else compute)
    computes = sorted((s.start, s.end) for s in spans if s.what == "compute")
    assert all(a[1] <= b[0] for a, b in itertools.pairwise(computes))  # one group at a time
    for g, tile in itertools.product(range(groups), range(tiles)):
        assert at[g, "load", tile].end <= at[g, "compute", tile].start
        if tile:
            assert at[g, "compute", tile - 1].end <= at[g, "compute", tile].start
        # a buffer is free when its last tile is computed; with one, a group never does both
        if tile >= buffers:
            assert at[g, "compute", tile - buffers].end <= at[g, "load", tile].start
        # with two, a tile is requested as soon as the one before it is begun
        if tile:
            before = at[g, "compute", tile - 1]
            assert at[g, "load", tile].start == (before.end if buffers == 1 else before.start)


@settings(max_examples=300, deadline=None, derandomize=True)
@given(*SCHEDULES)
def test_more_buffers_or_more_groups_never_cost_time(tiles, load, compute, buffers, groups):
    last = end(tiles, load, compute, buffers, groups)
    assert end(tiles, load, compute, 2, groups) <= end(tiles, load, compute, 1, groups)
    more = end(tiles, load, compute, buffers, groups + 1)
    assert more * groups <= last * (groups + 1)  # for the same work
    assert last >= load + groups * tiles * compute  # nothing beats computing all the time


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 40))
def test_every_tile_has_one_place_in_the_order(rows, columns, order):
    places = [schedules.ordered(tile, rows, columns, order) for tile in range(rows * columns)]
    assert sorted(places) == list(itertools.product(range(rows), range(columns)))
    bands = [row // order for row, _ in places]
    assert bands == sorted(bands)  # one band of `order` rows after the other
    for _, band in itertools.groupby(places, key=lambda place: place[0] // order):
        down = [(column, row) for row, column in band]
        assert down == sorted(down)  # in it down a column, then on to the next


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 30), st.integers(0, 30))
def test_shifted_tiles_are_inside_and_own_every_element_once(rows, cols, more_rows, more_cols):
    m, n = rows + more_rows, cols + more_cols
    owned = np.zeros((m, n), int)
    for top, left, up, over in hardware.shifted(m, n, rows, cols):
        assert 0 <= top <= m - rows and 0 <= left <= n - cols
        assert 0 <= up < rows and 0 <= over < cols
        owned[top + up : top + rows, left + over : left + cols] += 1
    assert (owned == 1).all()
