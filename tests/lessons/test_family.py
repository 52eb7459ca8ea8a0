"""AutoGEMM's criteria: its own example, and products that are small, flat or skinny."""

import math

import pytest

from gemmlab import model
from gemmlab.generate import split, tiles
from lessons import family

W9100 = model.Peaks(gflops=2620, bandwidth=320, local_bandwidth=5240)  # in double precision


def named(*args) -> dict:
    return {c.name.split(" ")[0]: c for c in family.criteria(*args)}


def test_the_example_of_the_documentation():
    """65.5 operations per element; the tiles listed there, and what 40 rows need."""
    needed = family.operations_needed(W9100, 8)
    assert needed == pytest.approx(65.5)
    for g, h in ((67, 67), (50, 100), (40, 200), (36, 400), (35, 600)):
        assert model.tile_intensity(g, h) >= needed
    assert model.tile_intensity(40, family.smallest_partner(40, needed)) == pytest.approx(needed)
    assert family.smallest_partner(32, needed) == math.inf


def test_a_square_product_meets_them_and_others_do_not():
    square = named((4096, 4096, 4096), (96, 96), (6, 6), W9100, 44, 8)
    assert square["3"].needed == pytest.approx(4) and all(
        c.met is not False for c in square.values()
    )
    assert named((100, 100, 4096), (96, 96), (6, 6), W9100, 44, 8)["7"].met is False
    assert named((4096, 4096, 16), (96, 96), (6, 6), W9100, 44, 8)["8"].met is False
    assert named((8, 65536, 4096), (96, 96), (6, 6), W9100, 44, 8)["9"].met is False
    assert named((100, 100, 100), (96, 96), (6, 6), W9100, 44)["5"].value == pytest.approx(
        100 * 96**2 / 100**2
    )
    assert named((96, 96, 96), (96, 96), (6, 6), model.Peaks(1, 1), 1)["3"].met is None


def test_pictures_say_what_they_show():
    found = family.criteria((64, 64, 8), (64, 64), (4, 4), model.Peaks(1000, 100), 8)
    alt = family.draw_criteria(found, "a device").alt
    assert "a device" in alt and "too little" in alt and "enough" in alt
    alt = family.draw_choices((8, 16), (8, 16, 24), [["x", "x", "y"], ["y", "y", "y"]]).alt
    assert "x: 2 sizes" in alt and "y: 4 sizes" in alt
    launches = split.cut((67, 69, 64), tiles.complete_tile({"TSM": 64, "TSN": 64}))
    assert "4 parts" in family.draw_launches(launches).alt
    times = {"none": 1.0, "rows": 0.5, "columns": 0.25, "both": 0.125}
    assert "3 x 5, guards both, 0.125 ms" in family.draw_launches(launches, times).alt
