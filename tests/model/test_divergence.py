"""Divergence by formula and by counting every work-item; the shifted tiles; strategies side by side."""

import argparse
import re
from xml.etree import ElementTree

import numpy as np
import pyopencl.array as cla
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

import gemmlab
from gemmlab import check, cli, model
from gemmlab.bench import edges
from gemmlab.draw import hardware
from gemmlab.family import selection
from gemmlab.model import divergence
from gemmlab.simt import views

LAYOUTS = ("row-major", "column-major")


@settings(max_examples=1000, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
@given(
    st.tuples(*[st.integers(1, 70)] * 3), st.integers(2, 20), st.sampled_from((1, 4, 16, 32, 64)),
    st.sampled_from(LAYOUTS), st.sampled_from("AB"),
)  # fmt: skip
def test_formula_and_count_are_equal(sizes, tile, warp, layout, name):
    assume(np.prod([-(-size // tile) for size in sizes]) * -(-tile * tile // warp) <= 2000)  # the count takes its time
    parts = divergence.formula(name, *sizes, tile, warp, layout)
    counts = divergence.by_group(name, *sizes, tile, warp, layout)
    assert sum(p.diverging for p in parts.values()) == counts.sum()
    assert sum(p.groups for p in parts.values()) == counts.size
    assert parts[1].warp_phases + parts[2].warp_phases == counts.size * -(-tile * tile // warp) * -(-sizes[2] // tile)


def test_the_published_count_and_the_one_left_to_the_reader():
    """ECE 569, Module 27: 100 x 100, tiles of 16, warps of 32, row-major."""
    m = divergence.formula("A", 100, 100, 100, 16, 32, "row-major")
    assert (m[1].groups, m[1].diverging, m[1].warp_phases) == (42, 336, 2352)
    assert (m[2].groups, m[2].diverging, m[2].warp_phases) == (7, 14, 392)
    n = divergence.formula("B", 100, 100, 100, 16, 32, "row-major")
    assert [(p.diverging, p.warp_phases) for p in n.values()] == [(0, 2352), (350, 392)]
    assert divergence.share(100, 100, 100, 16, 32, "row-major") == 350 / 2744
    for name, other in ("AB", "BA"):  # in a column-major kernel the two exchange their roles
        assert divergence.formula(name, 100, 100, 100, 16) == divergence.formula(
            other, 100, 100, 100, 16, layout="row-major"
        )


def test_whole_tiles_do_not_diverge():
    for layout in LAYOUTS:
        assert divergence.share(96, 64, 32, 16, 32, layout) == 0


def test_the_count_is_that_of_the_kernel():
    """A warp of kernel 12 diverges in a phase exactly if some of its work-items load from A and others do not."""
    m, n, k, ts, warp = 11, 9, 7, 4, 8
    run = gemmlab.simulate(12, m, n, k, {"TS": ts, "WPT": 1})
    for name in "AB":
        counts = divergence.by_group(name, m, n, k, ts, warp)
        found = np.zeros_like(counts)
        for group in range(counts.size):
            for phase in range(0, 2 * -(-k // ts), 2):  # the loading phases
                items = set(views.select(run, name, group=group, phase=phase)["item"].tolist())
                for start in range(0, ts * ts, warp):
                    loading = len(items & set(range(start, start + warp)))
                    found[group % counts.shape[0], group // counts.shape[0]] += 0 < loading < warp
        assert (found == counts).all()


def test_an_unknown_layout_is_refused():
    with pytest.raises(ValueError, match="layout must be 'row-major' or 'column-major', not 'rows'"):
        divergence.formula("A", 10, 10, 10, 4, 32, "rows")


def test_the_picture_of_divergence_says_the_counts():
    counts = divergence.by_group("B", 100, 50, 70, 16)
    picture = hardware.diverging("B", 100, 50, 70, 16)
    assert f"{counts.sum()} of {counts.size * 8 * 5} warp-phases diverge" in picture.alt
    shown = {(round(-t.get_position()[1] - 0.54), round(t.get_position()[0] - 0.47)): int(t.get_text())
             for t in picture.axes[0].texts}  # fmt: skip
    assert shown == {place: value for place, value in np.ndenumerate(counts)}
    ElementTree.fromstring(picture.svg())


@settings(max_examples=200, deadline=None)
@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 30), st.integers(0, 30))
def test_shifted_tiles_lie_inside_and_own_every_element_once(rows, cols, more_rows, more_cols):
    m, n = rows + more_rows, cols + more_cols
    owned = np.zeros((m, n), int)
    for top, left, up, over in model.shifts(m, n, rows, cols):
        assert 0 <= top <= m - rows and 0 <= left <= n - cols
        assert 0 <= up < rows and 0 <= over < cols
        owned[top + up : top + rows, left + over : left + cols] += 1
    assert (owned == 1).all()


def test_the_picture_of_shifts_is_that_of_the_documentation():
    picture = hardware.shifts(11, 14, 4, 4)
    assert picture.alt.endswith("12 work-groups: 2, 5, 8 move up, 9, 10 move left, 11 moves both ways")
    assert hardware.shifts(8, 12, 4, 4).alt.endswith("6 work-groups: none moves")
    assert [t.get_text() for t in picture.axes[0].texts] == [str(i) for i in range(12)]
    with pytest.raises(ValueError, match="3 x 8 is less than a tile of 4 x 4"):
        hardware.shifts(3, 8, 4, 4)


DIRECT = {"RX": 4, "RY": 2, "RK": 1, "WIDTH": 4, "GX": 2, "GY": 4}
WARPS = {"TSM": 32, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "WIDTH": 1}
BLOCKS = {"TSM": 16, "TSN": 8, "TSK": 8, "WPTM": 4, "WPTN": 2, "WIDTH": 2}


@pytest.mark.parametrize(
    ("kernel", "params", "sizes"),
    [
        (1, {"TS": 8}, (64, 64, 9)),
        (3, {"TS": 8, "WPT": 2}, (33, 64, 32)),
        (5, {"TS": 8, "TSK": 8, "WPT": 2}, (33, 31, 65)),
        (10, BLOCKS, (32, 16, 8)),
        (10, BLOCKS, (33, 16, 8)),
        (11, DIRECT | {"TRANSPOSED": 0}, (32, 64, 5)),
        (11, DIRECT | {"TRANSPOSED": 1}, (32, 64, 5)),
        (12, {"TS": 8, "WPT": 2}, (33, 31, 65)),
        ("warp_tiling", WARPS | {"GROUPS": 0}, (33, 31, 65)),
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
        copied = "transpose" in result.passes_ms
        assert more == 4 * (sizes[1] * sizes[2] * copied + params.get("GROUPS", 0) * (2 * 32 * 32 + 1))


def test_splitting_is_the_product(device):
    for m, n in ((70, 90), (64, 64), (10, 100), (64, 70)):
        a, b = check.exact_inputs(m, n, 40)
        parts = edges.split(*(cla.to_device(device.queue, x) for x in (a, b)), tile=(32, 32))
        c = np.block([[part.get() for part in across] for across in parts])
        assert check.exact(c, a, b).ok
        assert sum(len(across) for across in parts) <= 4


def test_strategies_side_by_side(device):
    found = edges.compare([50, 64], device, repeats=1)
    assert set(found) == {"pad", "guard", "shift", "auto", "split"}
    for way, results in found.items():
        for size, one in results.items():
            assert one["ok"] and one["gflops"] > 0, (way, size)
    assert found["guard"][50]["launches"] == 1 and found["guard"][50]["bytes"] == 0


def test_the_recorded_strategies_are_whole():
    recorded = edges.recorded()
    assert any("H200" in title for title in recorded)
    for title, ways in recorded.items():
        sizes = set(ways["pad"])
        assert sizes >= set(range(1000, 1101, 7)), title
        for way, results in ways.items():
            assert set(results) == sizes and all(r["ok"] and r["gflops"] > 0 for r in results.values()), (title, way)


def test_padding_was_recorded_with_the_tiles_of_the_table():
    """Chapter 13 counts work-groups by the table's tiles; the record has the memory that these take."""
    row = next(row for row in selection.table()["nvidia"]["pad"] if row["size"] == 1024)
    for size in (1021, 1028):
        found = edges.recorded()["NVIDIA H200"]["pad"][size]
        memory = edges.cost(row["kernel"], row["params"], size, size, size)[1]
        assert (found["kernel"], found["bytes"]) == (row["kernel"], memory)


def test_recorded_sizes_are_cut_into_neighbourhoods(monkeypatch):
    """So that a chart has no line across sizes that were not measured; a record with more of them gives more charts."""
    rates = {size: {"gflops": float(size)} for size in (4000, 1440, 1007, 1000, 1448)}
    monkeypatch.setattr(edges, "recorded", lambda: {"a card": {"pad": rates, "guard": rates}})
    found = edges.neighbourhoods("a card")
    assert [sorted(near["guard"]) for near in found] == [[1000, 1007], [1440, 1448], [4000]]
    assert found[1]["pad"] == {1440: 1440.0, 1448: 1448.0}


def test_sizes_with_a_step():
    assert cli.size_list("64,1000-1020:7,5-6") == [64, 1000, 1007, 1014, 5, 6]
    assert re.match(r"\[\d+", str(cli.size_list("256,512")))


def test_sizes_that_differ():
    assert cli.size_list("64x128x32") == [(64, 128, 32)]
    assert cli.size_list("256,64x8192x1024,10-12") == [256, (64, 8192, 1024), 10, 11, 12]
    for wrong in ("64x128", "1x2x3x4", "axbxc", "64x"):
        with pytest.raises((ValueError, argparse.ArgumentTypeError)):
            cli.size_list(wrong)
