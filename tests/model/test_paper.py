"""The arithmetic on paper: operations, tiles, banks, occupancy, time lines, the order of tiles. No device needed."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab import model


def test_arithmetic_on_paper():
    assert model.flops(3, 5, 7) == 210
    assert model.gflops(1000, 1000, 1000, 2.0) == pytest.approx(1.0)
    assert model.least_bytes(2, 3, 4) == 4 * (8 + 12 + 6)
    assert model.intensity(100, 50) == 2
    assert model.loads(1) == {"global": 2, "local": 0}
    assert model.loads(2, {"TS": 16}) == {"global": 1 / 8, "local": 2}
    assert model.loads(3, {"TS": 32, "WPT": 8}) == {"global": 1 / 16, "local": 1.125}


def test_the_roofline_bends_at_its_ridge():
    peaks = model.Peaks(gflops=100, bandwidth=20)
    assert model.ridge(peaks) == 5
    assert model.roofline(peaks, 1) == 20 and model.roofline(peaks, 5) == 100 and model.roofline(peaks, 50) == 100


def test_operations_a_float_of_some_tiles():
    """Square tiles are best, but long ones reach the same with enough elements."""
    over = {(67, 67), (50, 100), (40, 200), (36, 400), (35, 600)}
    nearly = {(56, 80), (52, 90), (37, 300)}
    assert all(model.tile_intensity(g, h) > 66 for g, h in over)
    assert all(65.5 < model.tile_intensity(g, h) < 66 for g, h in nearly)
    for g, h in over | nearly:
        assert model.tile_intensity(g, h) == pytest.approx(2 / (1 / g + 1 / h)) == model.tile_intensity(h, g)
    # blocks in registers: P Q / (P + Q) multiply-adds a load, half as many as operations
    assert model.tile_intensity(4, 4) / 2 == 2 and model.tile_intensity(3, 6) / 2 == 2
    assert model.tile_intensity(3, 5) / 2 < 2 < model.tile_intensity(4, 5) / 2


@pytest.mark.parametrize("bank_bytes", (4, 8))
def test_turns_by_counting_and_by_formula(bank_bytes):
    for stride in range(1, 201):
        lanes = range(0, 32 * stride, stride)
        words = {4 * i // bank_bytes for i in lanes}
        most = max(sum(word % 32 == bank for word in words) for bank in range(32))
        assert model.turns(lanes, bank_bytes) == most == model.stride_turns(stride, bank_bytes), stride


def test_a_word_that_all_want_takes_one_turn():
    assert model.turns([7] * 32) == model.turns([7] * 32, 8) == 1
    assert model.turns([0, 32] * 16) == 2 and model.turns([0, 32] * 16, 8) == 1
    assert model.turns([0, 1]) == model.turns([0, 1], 8) == 1  # two banks; one word
    assert model.turns([0, 64], 8) == 2 and model.turns([0, 4], banks=4) == 2


def placed(chip, of_a_group, room):
    """How many groups fit, one after the other until the room is used up."""
    groups, used = 0, of_a_group
    while used <= room:
        groups, used = groups + 1, used + of_a_group
    return groups


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.sampled_from((model.K40M, model.H200)), st.integers(1, 1100), st.integers(1, 300), st.integers(0, 250 * 1024))
def test_occupancy_by_placing_group_after_group(chip, work_items, registers, local_memory):
    fits = model.occupancy(chip, work_items, registers, local_memory)
    warps = len(range(0, work_items, 32))
    of_a_warp = next(r for r in range(0, 2**20, 256) if r >= 32 * registers)  # 256 registers at a time
    assert fits == {
        "work-items": placed(chip, 32 * warps, 2048),
        "registers": placed(chip, warps * of_a_warp, 65536) if registers <= 255 else 0,
        "local memory": placed(chip, local_memory, chip.local_memory) if local_memory else chip.groups,
        "groups": chip.groups,
    }


def test_the_two_multiprocessors():
    assert (model.K40M.groups, model.K40M.local_memory, model.K40M.units) == (16, 48 * 1024, 15)
    assert (model.H200.groups, model.H200.local_memory, model.H200.units) == (32, 228 * 1024, 132)
    # 64 registers for each of 1,024 work-items are all that there are
    assert model.occupancy(model.H200, 1024, 64, 0)["registers"] == 1
    assert model.occupancy(model.H200, 1024, 65, 0)["registers"] == 0
    assert model.occupancy(model.K40M, 33, 1, 0)["work-items"] == 32  # 33 need two warps
    assert model.occupancy(model.K40M, 1, 255, 49153)["local memory"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((0, 1, 0), "work_items must be at least 1, not 0"),
        ((-32, 1, 0), "work_items must be at least 1, not -32"),
        ((1, 0, 0), "registers must be at least 1, not 0"),
        ((1, 1, -1), "local_memory must be at least 0, not -1"),
    ],
)
def test_occupancy_of_nonsense_is_an_error(arguments, said):
    with pytest.raises(ValueError) as error:
        model.occupancy(model.H200, *arguments)
    assert str(error.value) == said


TIMES = st.integers(0, 24).map(lambda eighths: eighths / 8)  # sums of these have no rounding errors
SCHEDULES = (st.integers(1, 9), TIMES, TIMES, st.sampled_from((1, 2)), st.integers(1, 5))


def end(*schedule):
    return max(span.end for span in model.timeline(*schedule))


@settings(max_examples=300, deadline=None, derandomize=True)
@given(*SCHEDULES[:3])
def test_the_end_for_one_group_by_formula(tiles, load, compute):
    assert end(tiles, load, compute) == tiles * (load + compute)
    assert end(tiles, load, compute, 2) == load + (tiles - 1) * max(load, compute) + compute


@settings(max_examples=300, deadline=None, derandomize=True)
@given(*SCHEDULES)
def test_a_time_line_keeps_the_rules(tiles, load, compute, buffers, groups):
    spans = model.timeline(tiles, load, compute, buffers, groups)
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
        if tile >= buffers:  # a buffer is free when its last tile is computed; with one, a group never does both
            assert at[g, "compute", tile - buffers].end <= at[g, "load", tile].start
        if buffers == 2 and tile:  # and no sooner than it must: it is asked for when the tile before is begun
            assert at[g, "load", tile].start == at[g, "compute", tile - 1].start
        if buffers == 1 and tile:
            assert at[g, "load", tile].start == at[g, "compute", tile - 1].end


@settings(max_examples=300, deadline=None, derandomize=True)
@given(*SCHEDULES)
def test_more_buffers_or_more_groups_never_cost_time(tiles, load, compute, buffers, groups):
    last = end(tiles, load, compute, buffers, groups)
    assert end(tiles, load, compute, 2, groups) <= end(tiles, load, compute, 1, groups)
    assert end(tiles, load, compute, buffers, groups + 1) * groups <= last * (groups + 1)  # for the same work
    assert last >= load + groups * tiles * compute  # nothing beats computing all the time


@settings(max_examples=300, deadline=None, derandomize=True)
@given(st.integers(1, 30), st.integers(1, 30), st.integers(1, 40))
def test_every_tile_has_one_place_in_the_order(rows, columns, order):
    places = [model.ordered(tile, rows, columns, order) for tile in range(rows * columns)]
    assert sorted(places) == list(itertools.product(range(rows), range(columns)))
    bands = [row // order for row, _ in places]
    assert bands == sorted(bands)  # one band of `order` rows after the other
    for _, band in itertools.groupby(places, key=lambda place: place[0] // order):
        down = [(column, row) for row, column in band]
        assert down == sorted(down)  # in it down a column, then on to the next


def test_nonsense_for_the_time_line_and_the_stride_is_an_error():
    for bad in ({"tiles": 0}, {"buffers": 3}, {"groups": 0}):
        with pytest.raises(ValueError, match=next(iter(bad))):
            model.timeline(**{"tiles": 4, "load": 3, "compute": 2, **bad})
    with pytest.raises(ValueError, match="stride must be at least 1, not 0"):
        model.stride_turns(0)


def test_a_group_takes_its_share():
    shares = model.occupancy_shares(model.H200, 768, 40, 0)
    assert shares["work-items"] == 768 / 2048 and shares["local memory"] == 0 and shares["groups"] == 1 / 32
    assert shares["registers"] == 768 * 40 / 65536


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 30), st.integers(0, 30))
def test_shifted_tiles_are_inside_and_own_every_element_once(rows, cols, more_rows, more_cols):
    m, n = rows + more_rows, cols + more_cols
    owned = np.zeros((m, n), int)
    for top, left, up, over in model.shifts(m, n, rows, cols):
        assert 0 <= top <= m - rows and 0 <= left <= n - cols
        assert 0 <= up < rows and 0 <= over < cols
        owned[top + up : top + rows, left + over : left + cols] += 1
    assert (owned == 1).all()


def test_shifted_tiles_need_a_whole_tile():
    with pytest.raises(ValueError, match="3 x 8 is less than a tile of 4 x 4"):
        model.shifts(3, 8, 4, 4)
