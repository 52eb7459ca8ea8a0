"""AutoGEMM's selection: a tile that divides the sizes multiplies alone, else the first one cuts."""

import pytest

from gemmlab.generate.tiles import complete_tile
from lessons import selection

LARGE = {"size": 1000, "tiles": [{"TSM": 128, "TSN": 64, "TSK": 16}, {"TSM": 96, "TSN": 96}]}
SMALL = {"size": 200, "tiles": [{"TSM": 32, "TSN": 32}, {"TSM": 16, "TSN": 48}]}


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
    """By the rule of the largest area that M N reaches, in whatever order the rules are."""
    for rules in ([SMALL, LARGE], [LARGE, SMALL]):
        found = selection.launches(sizes, rules)
        assert len(found) == number and all(one.tile == complete_tile(tile) for one in found)
