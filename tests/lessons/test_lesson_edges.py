"""Strategies for sizes that are not whole tiles: what they cost, and what was recorded of them."""

import pytest

import gemmlab
from gemmlab.generate import table
from lessons import edges

DIRECT = {"RX": 4, "RY": 2, "RK": 1, "WIDTH": 4, "GX": 2, "GY": 4}
WARPS = {"TSM": 32, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "WIDTH": 1}


@pytest.mark.optimised(False)
@pytest.mark.parametrize(
    ("kernel", "params", "sizes"),
    [
        (1, {"TS": 8}, (64, 64, 9)),
        (5, {"TS": 8, "TSK": 8, "WPT": 2}, (33, 31, 65)),
        (11, DIRECT | {"TRANSPOSED": 1}, (32, 64, 5)),
        (12, {"TS": 8, "WPT": 2}, (33, 31, 65)),
        ("warp_tiling", WARPS | {"GROUPS": 3}, (33, 31, 65)),
    ],
)
def test_the_cost_in_launches_is_what_a_product_launches(kernel, params, sizes, some_device):
    params = gemmlab.catalog[kernel].complete(params)
    launches, more = edges.cost(kernel, params, *sizes)
    result = gemmlab.measure(kernel, *sizes, params=params, device=some_device, repeats=1)
    assert (launches == 1) == (more == 0)
    assert set(result.passes_ms) >= {"gemm"} and launches >= len(result.passes_ms)
    assert (launches == 1) == (list(result.passes_ms) == ["gemm"])
    if kernel in (11, "warp_tiling"):  # one launch each of what there is
        assert launches == len(result.passes_ms)
        copied = sizes[1] * sizes[2] * ("transpose" in result.passes_ms)
        assert more == 4 * (copied + params.get("GROUPS", 0) * (2 * 32 * 32 + 1))


def test_the_recorded_strategies_are_whole():
    recorded = edges.recorded()
    assert any("H200" in title for title in recorded)
    for title, ways in recorded.items():
        sizes = set(ways["pad"])
        assert sizes >= set(range(1000, 1101, 7)), title
        for way, results in ways.items():
            good = [r["ok"] and r["gflops"] > 0 for r in results.values()]
            assert set(results) == sizes and all(good), (title, way)


def test_padding_was_recorded_with_the_tiles_of_the_table():
    """Chapter 13 counts work-groups by the table's tiles; the record has the memory that these
    take.
    """
    row = next(row for row in table.kernel_rows("nvidia", "pad") if row["size"] == 1024)
    for size in (1021, 1028):
        found = edges.recorded()["NVIDIA H200"]["pad"][size]
        memory = edges.cost(row["kernel"], row["params"], size, size, size)[1]
        assert (found["kernel"], found["bytes"]) == (row["kernel"], memory)
