"""Which tile a generated kernel has: the fastest of the measured ones, else that of the rule."""

import dataclasses
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from texts import H200

from gemmlab import ParameterError
from gemmlab.generate import tiles
from gemmlab.generate.candidates import Constants, FittedChip
from gemmlab.generate.elements import ELEMENTS
from gemmlab.generate.schedule import EDGE_SIDES
from gemmlab.generate.tiles import DEFAULTS, OperandLayout, by_rule, complete_tile, configure
from gemmlab.ladder import Limits

GPU = H200["limits"]
NARROW = Limits("a narrow device", 64, (64, 64, 64), 32 * 1024)
TINY = Limits("a tiny device", 8, (8, 8, 8), 32 * 1024)
TILE = complete_tile({"TSM": 32, "TSN": 16, "TSK": 8, "WPTM": 4, "WPTN": 2, "WIDTH": 4})
PLAIN = OperandLayout("N", 0, 64)
LARGE = complete_tile({"TSM": 96, "TSN": 48})
SIDES = st.integers(0, 500) | st.integers(0, 12).map(lambda count: 96 * count)
HOPPER = frozenset({"double", "tensor", "warpgroups"})


def gpu(any_device, **facts):
    return dataclasses.replace(any_device, **H200 | facts)


def test_guards_where_the_sizes_leave_the_tiles():
    for m, n, k in itertools.product((32, 64, 33), (16, 17), (8, 80, 81, 1, 0)):
        s = configure("d", TILE, (m, n, k), PLAIN, PLAIN)
        guards = s.a.guarded, s.b.guarded, s.tail
        assert guards == (m % 32 > 0, n % 16 > 0, k % 8 > 0 or k == 0)


@pytest.mark.parametrize(
    ("a", "b", "sizes", "widths"),
    [
        ("N", "N", (64, 64, 64), (4, 2)),  # 64 work-items share 16 x 8 in loads of 2
        (OperandLayout("N", 2, 64), OperandLayout("N", 0, 65), (64, 64, 64), (2, 1)),
        ("N", "N", (62, 64, 63), (2, 1)),  # loads must not leave the matrix
        ("T", "T", (63, 63, 64), (4, 1)),
    ],
)
def test_loads_are_as_wide_as_memory_allows(a, b, sizes, widths):
    a, b = (OperandLayout(x, 0, 64) if isinstance(x, str) else x for x in (a, b))
    assert configure("s", TILE, sizes, a, b, beta=True).load_widths == widths


def test_the_rule_gives_every_device_a_legal_tile(any_device):
    """On a GPU registers and local memory suffice; smaller products and batches have more tiles."""
    for letter, limits, units in itertools.product(ELEMENTS, (GPU, NARROW), (1, 15, 132)):
        for kind, side in itertools.product(("GPU", "CPU"), (1, 100, 1000, 10_000)):
            device = gpu(any_device, limits=limits, units=units, kind=kind)
            tile = by_rule(device, letter, (side,) * 3)
            for a, b, size in itertools.product("NT", "NT", (side, 512)):
                layouts = OperandLayout(a, 0, size), OperandLayout(b, 0, size)
                assert (
                    configure(letter, tile, (size,) * 3, *layouts, beta=True).problems(limits) == []
                )
            assert kind == "CPU" or tile["WPTM"] * tile["WPTN"] * ELEMENTS[letter].size // 4 <= 64
    with pytest.raises(ParameterError, match="no generated kernel"):
        by_rule(gpu(any_device, limits=TINY), "s", (64, 64, 64))
    small, large = (by_rule(gpu(any_device), "d", (side,) * 3) for side in (300, 4096))
    assert small["TSM"] < large["TSM"]
    alone, batch = (by_rule(gpu(any_device), "s", (64, 64, 64), n) for n in (1, 1000))
    assert alone["WPTM"] * alone["WPTN"] < batch["WPTM"] * batch["WPTN"]


def test_the_fastest_tile_depends_on_the_product():
    large = {**TILE, "TSM": 128, "TSN": 128}, Constants(3e-6, 0.0, 4e-6, 4e-6, 1e-6, 1e-7, 1)
    small = TILE, Constants(3e-6, 0.0, 1e-6, 2.5e-7, 1e-6, 1e-7, 4)

    def best(sizes, number=1):
        return tiles.ranked([small, large], sizes, FittedChip(0.0, 0.0, 0.0, 132), 4, number)[
            0
        ].tile

    assert best((4096, 4096, 4096))["TSM"] == 128, "it needs a sixteenth of the work-groups"
    assert best((64, 64, 64)) == {**TILE, "SHARES": 1}, "here it would be mostly empty"
    assert best((64, 64, 100_000))["SHARES"] > 8, "few tiles are shared"
    assert best((64, 64, 100_000), 1000)["SHARES"] == 1, "those of a batch are not"
    # by hand: 2 x 3 tiles of 32 x 16, 10 steps of 8, each 2 us alone, or 1 us of a unit's time
    known = [(TILE, Constants(5e-6, 0.0, 2e-6, 1e-6, 1e-6, 1e-7, 16))]
    for units, number, spent in ((6, 1, 20.12), (2, 1, 30.76), (6, 4, 40.25)):
        one = next(
            x
            for x in tiles.ranked(known, (64, 48, 80), FittedChip(0.0, 0.0, 0.0, units), 4, number)
        )
        assert one.seconds == pytest.approx((5 + spent) * 1e-6, rel=1e-3)


def test_measured_tiles_are_legal_and_chosen_where_the_device_has_what_they_need(any_device):
    device, older = (gpu(any_device, features=f) for f in (HOPPER, frozenset({"double"})))
    for letter in "dczh":
        known = tiles.constants(device, letter)
        assert len(known) > 5
        for tile, own in known:
            assert list(tile) == list(DEFAULTS)
            assert 0 < own.share < 1e-5 and 1 <= own.resident <= 32
        tile, seconds = tiles.tile_for(device, letter, (1000, 1000, 1000))
        assert tile["UNIT"] and 0 < seconds < 1
        assert tiles.constants(older, letter) == []
        assert tiles.tile_for(older, letter, (1000,) * 3).tile["UNIT"] == 0


# C in up to four launches


@settings(deadline=None)
@given(m=SIDES, n=SIDES)
def test_every_element_of_c_is_computed_once(m, n):
    """Each launch guards just the sides at which it is no whole number of tiles."""
    c = np.zeros((m, n), int)
    found = tiles.cut((m, n, 8), LARGE)
    for row, column, rows, columns, tile, edges in found:
        c[row : row + rows, column : column + columns] += 1
        assert edges == EDGE_SIDES[(rows % tile["TSM"] > 0) + 2 * (columns % tile["TSN"] > 0)]
    assert (c == 1).all() and len(found) != 3


def test_strips_narrower_than_a_micro_tile_get_a_kernel_that_can_guard_them():
    tile = {"TSM": 16, "TSN": 8, "TSK": 1, "WPTM": 8, "WPTN": 8, "UNROLL": 1, "STAGES": 0}
    direct = complete_tile(tile)
    assert [one.tile for one in tiles.cut((37, 23, 5), direct)] == [direct] + 3 * [tiles.NARROW]
    assert [one.tile for one in tiles.cut((40, 24, 5), direct)] == 2 * [direct]
