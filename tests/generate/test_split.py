"""C cut into up to four launches: each element once, with its guards."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from gemmlab.generate import split
from gemmlab.generate.schedule import EDGES
from gemmlab.generate.tiles import complete_tile

TILE = complete_tile({"TSM": 96, "TSN": 48})
SIDES = st.integers(0, 500) | st.integers(0, 12).map(lambda count: 96 * count)


@settings(deadline=None)
@given(m=SIDES, n=SIDES)
def test_every_element_of_c_is_computed_once(m, n):
    """Each launch guards just the sides at which it is no whole number of tiles."""
    c = np.zeros((m, n), int)
    found = split.cut((m, n, 8), TILE)
    for row, column, rows, columns, tile, edges in found:
        c[row : row + rows, column : column + columns] += 1
        assert edges == EDGES[(rows % tile["TSM"] > 0) + 2 * (columns % tile["TSN"] > 0)]
    assert (c == 1).all() and len(found) != 3


def test_strips_narrower_than_a_micro_tile_get_a_kernel_that_can_guard_them():
    tile = {"TSM": 16, "TSN": 8, "TSK": 1, "WPTM": 8, "WPTN": 8, "UNROLL": 1, "STAGES": 0}
    direct = complete_tile(tile)
    assert [one.tile for one in split.cut((37, 23, 5), direct)] == [direct] + 3 * [split.NARROW]
    assert [one.tile for one in split.cut((40, 24, 5), direct)] == 2 * [direct]
