"""Which tile is taken: measured rows first, the first that divides; else the rule; and what follows
from a tile.
"""

import dataclasses
import itertools

import pytest

from gemmlab import ParameterError
from gemmlab.catalog import Limits
from gemmlab.generate import tiles
from gemmlab.generate.pace import Pace, microseconds, quickest
from gemmlab.generate.precision import PRECISIONS
from gemmlab.generate.tiles import (
    DEFAULTS,
    OperandLayout,
    by_rule,
    choose,
    complete_tile,
    configure,
)

GPU = Limits("a GPU", 1024, (1024, 1024, 64), 48 * 1024)
NARROW = Limits("a narrow device", 64, (64, 64, 64), 32 * 1024)
TINY = Limits("a tiny device", 16, (16, 16, 16), 32 * 1024)
TILE = complete_tile({"TSM": 32, "TSN": 16, "TSK": 8, "WPTM": 4, "WPTN": 2, "WIDTH": 4})


def gpu(any_device, limits=GPU, units=132):
    return dataclasses.replace(
        any_device, kind="GPU", platform="NVIDIA CUDA", limits=limits, units=units
    )


def test_guards_where_the_sizes_leave_the_tiles():
    plain = OperandLayout("N", 0, 64)
    for m, n, k in itertools.product((32, 64, 33), (16, 17), (8, 80, 81, 1, 0)):
        c = configure("d", TILE, (m, n, k), plain, plain, False)
        assert (
            c.a.guarded == (m % 32 > 0)
            and c.b.guarded == (n % 16 > 0)
            and c.tail == (k % 8 > 0 or k == 0)
        )
        assert not c.beta and c.tile == (32, 16) and c.micro_tile == (4, 2)


@pytest.mark.parametrize(
    ("a", "b", "sizes", "widths"),
    [
        # 64 work-items share 16 x 8 in loads of 2
        (OperandLayout("N", 0, 64), OperandLayout("N", 0, 64), (64, 64, 64), (4, 2)),
        (OperandLayout("T", 0, 64), OperandLayout("T", 0, 64), (64, 64, 64), (4, 2)),
        (
            OperandLayout("N", 2, 64),
            OperandLayout("N", 0, 64),
            (64, 64, 64),
            (2, 2),
        ),  # the view begins at 2
        (
            OperandLayout("N", 0, 66),
            OperandLayout("N", 0, 65),
            (64, 64, 64),
            (2, 1),
        ),  # columns lie 66, 65 apart
        # loads must not leave the matrix
        (OperandLayout("N", 0, 64), OperandLayout("N", 0, 64), (62, 64, 63), (2, 1)),
        (OperandLayout("T", 0, 64), OperandLayout("T", 0, 64), (63, 63, 64), (4, 1)),
        (OperandLayout("T", 0, 64), OperandLayout("N", 0, 64), (63, 63, 62), (2, 2)),
    ],
)
def test_loads_are_as_wide_as_memory_allows(a, b, sizes, widths):
    assert configure("s", TILE, sizes, a, b, True).load_widths == widths


def test_the_rule_gives_every_device_a_legal_tile(any_device):
    """On a GPU registers and local memory suffice, and small products are cut into more tiles than
    large ones.
    """
    for letter, limits, units in itertools.product(PRECISIONS, (GPU, NARROW), (1, 15, 132)):
        for kind, side in itertools.product(("GPU", "CPU"), (1, 100, 1000, 10_000)):
            device = dataclasses.replace(gpu(any_device, limits, units), kind=kind)
            tile = by_rule(device, letter, (side,) * 3)
            for a, b, size in itertools.product("NT", "NT", (side, 512)):
                c = configure(
                    letter,
                    tile,
                    (size,) * 3,
                    OperandLayout(a, 0, size),
                    OperandLayout(b, 0, size),
                    True,
                )
                assert c.problems(limits) == []
            assert kind == "CPU" or tile["WPTM"] * tile["WPTN"] * PRECISIONS[letter].size // 4 <= 64
    with pytest.raises(ParameterError, match="no tile for"):
        by_rule(gpu(any_device, TINY), "s", (64, 64, 64))
    small, large = (by_rule(gpu(any_device), "d", (side,) * 3) for side in (300, 4096))
    assert small["TSM"] < large["TSM"]


def test_all_products_of_a_batch_share_the_device(any_device):
    """Together they may take larger tiles than each by itself, but none that lie outside of the
    results by half.
    """
    device = gpu(any_device)
    for side in (16, 64, 256):
        alone, batch = (by_rule(device, "s", (side,) * 3, number) for number in (1, 1000))
        assert alone["WPTM"] * alone["WPTN"] < batch["WPTM"] * batch["WPTN"] or side == 16
        assert (-(-side // batch["TSM"]) * batch["TSM"]) * (
            -(-side // batch["TSN"]) * batch["TSN"]
        ) <= 2 * side**2


def table_of(*rows):
    return {
        "nvidia": {
            "d": [{**row, "tiles": [complete_tile(t) for t in row["tiles"]]} for row in rows]
        }
    }


def test_the_first_tile_that_divides_is_taken_else_the_fastest(any_device, monkeypatch):
    """As AutoGEMM selects, but for its four launches."""
    fast, other = {"TSM": 64, "TSN": 64}, {"TSM": 32, "TSN": 32}
    rows = {"size": 1000, "tiles": [fast, other]}, {"size": [64, 4000, 4000], "tiles": [other]}
    monkeypatch.setattr(tiles, "table", lambda: table_of(*rows))
    device = gpu(any_device)
    choose.cache_clear()
    try:
        assert choose(device, "d", (1024, 1024, 1024)) == complete_tile(fast)
        assert choose(device, "d", (992, 992, 992)) == complete_tile(other)
        assert choose(device, "d", (1001, 1001, 1001)) == complete_tile(fast)
        assert choose(device, "d", (65, 4001, 4001)) == complete_tile(other)
        assert choose(device, "d", (100, 100, 100)) == by_rule(device, "d", (100, 100, 100)), (
            "too far from every row"
        )
        assert choose(device, "d", (64_000, 64_000, 1024)) == complete_tile(fast), (
            "larger than every row"
        )
        assert choose(device, "z", (1024,) * 3) == by_rule(device, "z", (1024,) * 3)
        narrow = gpu(any_device, dataclasses.replace(GPU, local_memory=8 * 1024))
        assert choose(narrow, "d", (1024,) * 3) == complete_tile(other), (
            "what does not fit is passed over"
        )
    finally:
        choose.cache_clear()


def test_kernels_of_warps_are_for_devices_that_have_what_they_need(any_device, monkeypatch):
    warps = {"TSM": 64, "TSN": 64, "WPTN": 8, "UNROLL": 8, "STAGES": 2}
    row = {
        "size": 1024,
        "tiles": [{**warps, "UNIT": 2}, {**warps, "UNIT": 1}, {"TSM": 32, "TSN": 32}],
    }
    monkeypatch.setattr(tiles, "table", lambda: table_of(row))
    for features, unit in ((set(), 0), ({"tensor"}, 1), ({"tensor", "warpgroups"}, 2)):
        device = dataclasses.replace(gpu(any_device), features=frozenset({"double", *features}))
        choose.cache_clear()
        try:
            assert choose(device, "d", (1024,) * 3)["UNIT"] == unit
        finally:
            choose.cache_clear()
    with pytest.raises(ParameterError, match="UNIT must be 0, 1 or 2, not 3"):
        configure(
            "d",
            complete_tile({"UNIT": 3}),
            (64,) * 3,
            OperandLayout("N", 0, 64),
            OperandLayout("N", 0, 64),
            False,
        )


def test_few_tiles_are_shared(any_device, monkeypatch):
    """By as many work-groups as run at once; but a share is not too small, and a batch has none."""
    tile = complete_tile({"TSM": 64, "TSN": 64, "WPTN": 8, "UNROLL": 8, "STAGES": 2, "UNIT": 2})
    monkeypatch.setattr(tiles, "table", lambda: table_of({"size": 512, "tiles": [tile]}))
    device = dataclasses.replace(
        gpu(any_device), features=frozenset({"double", "tensor", "warpgroups"})
    )
    many = 16 * 128
    assert tiles.shares(tile, (64, 64, many), device) == 16 <= device.units
    assert tiles.shares(tile, (64, 64, 300), device) == 2, "of 128 steps or more"
    assert tiles.shares(tile, (64 * device.units, 192, many), device) == 1, "there are tiles enough"
    assert tiles.shares({**tile, "UNIT": 0}, (64, 64, many), device) == 1, "only warps share"
    monkeypatch.setattr(tiles, "paces", lambda device, precision: [])
    choose.cache_clear()
    try:
        assert choose(device, "d", (64, 64, 64 * many))["SHARES"] == 16
        assert choose(device, "d", (64, 64, 64 * many), 3)["SHARES"] == 1
    finally:
        choose.cache_clear()
    layouts = OperandLayout("N", 0, 64), OperandLayout("N", 0, many)
    assert configure("d", {**tile, "SHARES": 4}, (64, 64, many), *layouts, False).split_k == 4
    assert (
        configure("d", {**tile, "SHARES": 4}, (64, 64, many), *layouts, False, batch=True).split_k
        == 1
    )


def test_a_pace_says_how_long_a_product_takes():
    """By hand: 2 x 3 tiles of 32 x 16, 10 steps of 8, each 2 us for one work-group, or 1 us of a
    unit's time.
    """
    pace, sizes = Pace(TILE, 2.0, 1.0), (64, 48, 80)
    begin = microseconds(pace, 8, (64, 48, 0), 6)
    assert microseconds(pace, 8, sizes, 6) == pytest.approx(begin + 10 * 2.0), (
        "each has a unit for itself"
    )
    assert microseconds(pace, 8, sizes, 2) == pytest.approx(begin + 10 * 3.0), "three share one"
    assert microseconds(pace, 8, sizes, 6, number=4) == pytest.approx(begin + 10 * 4.0), (
        "of a batch, four do"
    )
    assert microseconds(pace, 8, sizes, 12, shares=2) > begin + 5 * 2.0, (
        "adding up takes time as well"
    )
    assert microseconds(pace, 16, sizes, 6) > microseconds(pace, 8, sizes, 6), (
        "there is more to store"
    )


def test_the_quickest_tile_depends_on_the_product():
    large, small = Pace({**TILE, "TSM": 128, "TSN": 128}, 4.0, 4.0), Pace(TILE, 1.0, 0.25)
    both = [small, large]
    assert quickest(both, 8, (4096, 4096, 4096), 132)["TSM"] == 128, (
        "it needs a sixteenth of the work-groups"
    )
    assert quickest(both, 8, (64, 64, 64), 132) == {**TILE, "SHARES": 1}, (
        "and here it would be mostly empty"
    )
    assert quickest(both, 8, (64, 64, 100_000), 132)["SHARES"] > 8, (
        "few tiles leave the others time to share them"
    )
    assert quickest(both, 8, (64, 64, 100_000), 132, number=1000)["SHARES"] == 1


def test_a_known_pace_goes_before_rows(any_device, monkeypatch):
    row, known = {"TSM": 32, "TSN": 32}, complete_tile({"TSM": 64, "TSN": 32})
    monkeypatch.setattr(tiles, "table", lambda: table_of({"size": 1000, "tiles": [row]}))
    monkeypatch.setattr(tiles, "paces", lambda device, precision: [Pace(known, 1.0, 1.0)])
    choose.cache_clear()
    try:
        assert choose(gpu(any_device), "d", (1000,) * 3) == known
    finally:
        choose.cache_clear()


def test_every_known_pace_is_of_a_legal_tile(any_device):
    device = dataclasses.replace(
        gpu(any_device), features=frozenset({"double", "tensor", "warpgroups"})
    )
    for letter in "dcz":
        found = tiles.paces(device, letter)
        assert len(found) == len(tiles.known_paces("nvidia", letter)) > 5, (
            "the H200 takes all of them"
        )
        assert all(0 < pace.shared <= 1.1 * pace.alone for pace in found), (
            "sharing a unit can only save time"
        )
    assert tiles.paces(dataclasses.replace(device, features=frozenset()), "z") == []


def test_every_row_of_the_table_is_legal():
    for kind, letters in tiles.table().items():
        for letter, rows in letters.items():
            for row in rows:
                assert row["tiles"], (kind, letter, row)
                for tile in row["tiles"]:
                    assert list(tile) == list(DEFAULTS)
                    configure(
                        letter,
                        tile,
                        (512, 512, 512),
                        OperandLayout("T", 0, 512),
                        OperandLayout("N", 0, 512),
                        True,
                    )


def test_parameters_in_words():
    assert complete_tile(None) == DEFAULTS
    with pytest.raises(ParameterError, match="the family has no parameter 'TSQ'.*did you mean"):
        complete_tile({"TSQ": 8})
    with pytest.raises(TypeError, match="TSM must be a whole number, not float"):
        complete_tile({"TSM": 8.0})
    direct = complete_tile(
        {"TSM": 8, "TSN": 8, "TSK": 1, "WPTM": 8, "UNROLL": 1, "WIDTH": 8, "STAGES": 0}
    )
    with pytest.raises(ParameterError, match="which at 9 x 7 is smaller than one of 4 x 8"):
        configure("s", direct, (7, 9, 8), OperandLayout("N", 0, 7), OperandLayout("N", 0, 8), False)
    with pytest.raises(ParameterError, match="a tile of 30 rows"):
        configure(
            "s",
            complete_tile({"TSM": 30}),
            (8, 8, 8),
            OperandLayout("N", 0, 8),
            OperandLayout("N", 0, 8),
            False,
        )
