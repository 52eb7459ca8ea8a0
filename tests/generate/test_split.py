"""Selection by rules, and C cut into up to four launches: each element once, with its guards."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmlab.generate import split
from gemmlab.generate.schedule import EDGES
from gemmlab.generate.split import Launch, launches, rule_at
from gemmlab.generate.tiles import complete_tile

LARGE = {"size": 1000, "tiles": [{"TSM": 128, "TSN": 64, "TSK": 16}, {"TSM": 96, "TSN": 96}]}
SMALL = {"size": 200, "tiles": [{"TSM": 32, "TSN": 32}, {"TSM": 16, "TSN": 48}]}
RULES = [SMALL, LARGE]
SIDES = st.integers(0, 500) | st.integers(0, 12).map(lambda count: 96 * count)


@pytest.mark.parametrize(
    ("sizes", "size"),
    [((1000, 1000, 1), 1000), ((999, 1000, 9999), 200), ((64, 20_000, 8), 1000), ((3, 3, 3), 200)],
)
def test_the_largest_rule_that_m_times_n_reaches_holds(sizes, size):
    assert rule_at(sizes, RULES)["size"] == size
    assert rule_at(sizes, RULES[::-1])["size"] == size, "in any order"


@pytest.mark.parametrize(
    ("sizes", "tile", "number"),
    [
        ((1024, 1024, 1024), LARGE["tiles"][0], 1),
        # both divide M and N, but K = 1144 only the depth of 8
        ((1152, 1152, 1144), LARGE["tiles"][1], 1),
        ((1024, 1024, 1023), LARGE["tiles"][0], 1),  # K alone: still one launch
        ((1023, 1024, 1024), LARGE["tiles"][0], 2),
        ((80, 480, 80), SMALL["tiles"][1], 1),
        ((81, 481, 80), SMALL["tiles"][0], 4),
        ((5, 5, 80), SMALL["tiles"][0], 1),  # nothing but a corner
    ],
)
def test_the_first_tile_that_divides_multiplies_alone_else_the_first(sizes, tile, number):
    found = launches(sizes, RULES)
    assert len(found) == number and all(launch.tile == complete_tile(tile) for launch in found)


@given(m=SIDES, n=SIDES, k=SIDES)
def test_every_element_of_c_is_computed_once(m, n, k):
    """Each launch guards just the sides at which it is no whole number of tiles."""
    c = np.zeros((m, n), int)
    for row, column, rows, columns, tile, edges in launches((m, n, k), RULES):
        c[row : row + rows, column : column + columns] += 1
        assert edges == EDGES[(rows % tile["TSM"] > 0) + 2 * (columns % tile["TSN"] > 0)]
    assert (c == 1).all()


def test_nearly_all_random_shapes_take_four_launches():
    """With the float64 table of the H200 a side has a chance of 1 in 64 or 128 to fit the tiles."""
    shapes = np.random.default_rng(19).integers(1, 4097, (200, 3)).tolist()
    found = split.counts(shapes, split.rules("nvidia", "d"))
    assert sum(found.values()) == 200 and found[4] > 180
    whole = [(128 * m, 128 * n, 128 * k) for m, n, k in shapes]
    assert split.counts(whole, split.rules("nvidia", "d")) == {1: 200, 2: 0, 4: 0}


def test_strips_narrower_than_a_micro_tile_get_a_kernel_that_can_guard_them():
    direct = complete_tile(
        {"TSM": 16, "TSN": 8, "TSK": 1, "WPTM": 8, "WPTN": 8, "UNROLL": 1, "WIDTH": 8, "STAGES": 0}
    )
    main, rows, columns, corner = split.cut((37, 23, 5), direct)
    assert main == Launch(0, 0, 32, 16, direct, "none")
    assert rows == Launch(32, 0, 5, 16, split.NARROW, "rows")
    assert columns == Launch(0, 16, 32, 7, split.NARROW, "columns") and corner.tile == split.NARROW
    assert split.cut((40, 24, 5), direct)[1].tile == direct
