"""Selection by rules, and C cut into up to four launches: each element once, with its guards."""

import numpy as np
import pytest

from gemmlab.generate import split
from gemmlab.generate.schedule import EDGES
from gemmlab.generate.split import Launch, launches, rule_at
from gemmlab.generate.tiles import complete_tile

LARGE = {
    "size": 1000,
    "tiles": [{"TSM": 128, "TSN": 64, "TSK": 16}, {"TSM": 96, "TSN": 96}],
    "fallback": {"TSM": 64},
}
SMALL = {"size": 200, "tiles": [{"TSM": 32, "TSN": 32}, {"TSM": 16, "TSN": 48}]}
RULES = [SMALL, LARGE]


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
        (
            (1152, 1152, 1144),
            LARGE["tiles"][1],
            1,
        ),  # both divide M and N, but K = 1144 only the depth of 8
        ((1024, 1024, 1023), LARGE["fallback"], 1),  # K alone: still one launch
        ((1023, 1024, 1024), LARGE["fallback"], 2),
        ((1024, 1025, 1024), LARGE["fallback"], 2),
        ((1025, 1023, 1024), LARGE["fallback"], 4),
        ((160, 480, 80), SMALL["tiles"][0], 1),
        ((80, 480, 80), SMALL["tiles"][1], 1),
        ((81, 481, 80), SMALL["tiles"][0], 4),  # without a fallback the fastest
        ((5, 5, 80), SMALL["tiles"][0], 1),  # nothing but a corner
    ],
)
def test_the_first_tile_that_divides_multiplies_alone_else_the_fallback(sizes, tile, number):
    found = launches(sizes, RULES)
    assert len(found) == number and all(launch.tile == complete_tile(tile) for launch in found)


def test_every_element_of_c_is_computed_once():
    """Random shapes; each launch guards just the sides at which it is no whole number of tiles."""
    rng = np.random.default_rng(14)
    for m, n, k in rng.integers(0, 500, (200, 3)):
        c = np.zeros((m, n), int)
        for launch in launches((int(m), int(n), int(k)), RULES):
            c[
                launch.row : launch.row + launch.rows,
                launch.column : launch.column + launch.columns,
            ] += 1
            ragged = launch.rows % launch.tile["TSM"] > 0, launch.columns % launch.tile["TSN"] > 0
            assert launch.edges == EDGES[ragged[0] + 2 * ragged[1]]
        assert (c == 1).all(), (m, n)


def test_launches_are_counted():
    shapes = [(160, 480, 80), (80, 480, 7), (81, 480, 80), (81, 481, 80)]
    shapes += [(5, 5, 80), (1025, 1023, 9)]
    assert split.counts(shapes, RULES) == {1: 2, 2: 2, 4: 2}
    assert split.counts([], RULES) == {1: 0, 2: 0, 4: 0}


def test_nearly_all_random_shapes_take_four_launches():
    """With the float64 table of the H200 a side has a chance of 1 in 64 or 128 to fit the tiles."""
    shapes = np.random.default_rng(19).integers(1, 4097, (200, 3)).tolist()
    found = split.counts(shapes, split.rules("nvidia", "d"))
    assert sum(found.values()) == 200 and found[4] > 180
    whole = [(128 * m, 128 * n, 128 * k) for m, n, k in shapes]
    assert split.counts(whole, split.rules("nvidia", "d"))[1] == 200


def test_strips_narrower_than_a_micro_tile_get_a_kernel_that_can_guard_them():
    direct = complete_tile(
        {"TSM": 16, "TSN": 8, "TSK": 1, "WPTM": 8, "WPTN": 8, "UNROLL": 1, "WIDTH": 8, "STAGES": 0}
    )
    main, rows, columns, corner = split.cut((37, 23, 5), direct)
    assert main == Launch(0, 0, 32, 16, direct, "none")
    assert rows == Launch(32, 0, 5, 16, split.NARROW, "rows")
    assert columns == Launch(0, 16, 32, 7, split.NARROW, "columns") and corner.tile == split.NARROW
    assert split.cut((40, 24, 5), direct)[1].tile == direct


def test_rules_of_the_table_are_legal_on_the_device(any_device):
    for letter in "sd":
        for rule in split.rules_for(any_device, letter):
            for sizes in ((64, 64, 64), (1000, 1001, 37)):
                assert launches(sizes, [rule])
