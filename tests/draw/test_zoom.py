"""The drawing that zooms: a tile, a warp and a work-item consist of what the kernel stores."""

import numpy as np
import pytest
from texts import SMALL

from gemmlab import ParameterError, catalog
from gemmlab.draw.zoom import levels, zoom


@pytest.mark.parametrize("number", [n for n in (*SMALL, 15) if n in catalog])
def test_each_level_holds_the_next(number):
    """Its marked elements are as many as the next level has, and the levels are the kernel's."""
    params = SMALL.get(number)
    spec = catalog[number]
    full = spec.validate(params)
    every = levels(number, params)
    assert (every[1].rows, every[1].columns) == spec.tiles(full)[:2]
    for level, inside in zip(every[1:], every[2:], strict=False):
        assert level.inner.shape == (level.rows, level.columns)
        assert level.inner.sum() == inside.rows * inside.columns
    block = every[-1]
    items = np.prod(spec.local_size(full))
    assert block.rows * block.columns * items == every[1].rows * every[1].columns


def test_where_the_elements_of_a_work_item_are():
    """Spread by the number of work-items in kernel 6, in vectors of its warp tile in kernel 15."""
    tile = levels(6)[1]
    rows, columns = (np.flatnonzero(tile.inner.any(axis)) for axis in (1, 0))
    assert rows.tolist() == columns.tolist() == list(range(0, 128, 16))
    names = [level.name for level in levels(15)]
    assert names == ["C", "tile", "warp tile", "block"]
    warp = levels(15)[2]
    assert (warp.rows, warp.columns) == (64, 32)
    assert np.flatnonzero(warp.inner.any(1)).tolist() == [0, 1, 2, 3, 32, 33, 34, 35]


def test_a_picture_says_what_it_shows():
    picture = zoom(3, {"TS": 16, "WPT": 4}, k=5, lit="block")
    assert "tile of 16 x 16, block of 1 x 4" in picture.alt and picture.png()
    assert zoom(3, {"TS": 16, "WPT": 4}, k=6).svg() != zoom(3, {"TS": 16, "WPT": 4}, k=5).svg()
    with pytest.raises(ParameterError):
        zoom(3, {"WPT": 5})


def test_the_room_is_that_of_the_chip():
    """Local memory serves a quarter of a load per multiply-add; tensor cores have other rates."""
    assert [level.room for level in levels(1)][-1] == 0.25
    assert 0 < levels(6)[1].room < 0.1 and not any(level.room for level in levels(18))
