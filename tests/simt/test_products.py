"""Every kernel of the ladder, simulated: exact, with the counts of the catalog."""

from __future__ import annotations

import numpy as np
import pytest
from simt.cases import BLOCKS, SMALL, THIN, WARPS, text

import gemmlab
from gemmlab import ParameterError, catalog, simt
from gemmlab.catalog import Limits

LIMITS = Limits("a small device", work_group=256, per_dimension=(256, 256), local_memory=32768)


def sizes(spec, params, tiles=(2, 1, 2)) -> tuple[int, int, int]:
    """A few tiles, M, N and K different if the tiles allow it."""
    return tuple(tile * count for tile, count in zip(spec.tiles(params), tiles, strict=True))


def assert_right(run):
    assert run.ok, run.verdict
    assert np.array_equal(run.c, run.a @ run.b)
    assert run.verdict.startswith("right")


@pytest.mark.parametrize("number", SMALL)
@pytest.mark.parametrize("order", ["lockstep", "warps"])
def test_small_tiles(number, order):
    assert_right(simt.simulate(number, 16, 32, 16, SMALL[number], order=order, seed=number))


@pytest.mark.parametrize("number", [n for n in SMALL if n != 11])
def test_a_sample_of_settings(number):
    spec = catalog[number]
    for params in spec.sample(LIMITS, 2, seed=number):
        assert_right(simt.simulate(number, *sizes(spec, params), params))


@pytest.mark.parametrize(
    "size, more",
    [
        ((37, 41, 19), {}),
        ((37, 41, 19), {"TRANSPOSED": 0}),
        ((40, 33, 19), {"WIDTH": 1, "TAIL": 1}),
        ((40, 33, 19), {"SPLIT": 8}),
        ((33, 40, 9), {"SPLIT": 8, "TRANSPOSED": 0}),
        ((70, 34, 40), {"GROUPS": 5}),
        ((70, 34, 24), {"GROUPS": 16, "STAGES": 3, "BATCHES": 3}),
    ],
)
def test_warp_tiles(size, more):
    assert_right(simt.simulate("warp_tiling", *size, {**WARPS, **more}))


@pytest.mark.parametrize(("size", "params"), THIN)
def test_narrow(size, params):
    assert_right(simt.simulate("narrow", *size, params))


@pytest.mark.parametrize("parts", [1, 2])
def test_tensor_cores_spelled_out(parts):
    params = {"TSM": 32, "TSN": 32, "TSK": 8, "WM": 32, "WN": 32, "PARTS": parts}
    assert_right(simt.simulate("tensor_cores", 20, 37, 9, params))


def test_warpgroups_spelled_out():
    run = simt.simulate("warpgroups", 20, 24, 5, {"TSK": 8, "PARTS": 1})
    assert_right(run)


def test_groups_may_be_chosen():
    run = simt.simulate(2, 16, 16, 16, {"TS": 8}, groups=[(1, 0)])
    assert run.ok
    assert np.isnan(run.c[:8]).all() and np.isnan(run.c[:, 8:]).all()
    assert np.array_equal(run.c[8:, :8], run.expected[8:, :8])


def test_without_parameters_the_defaults_or_tiles_of_8():
    assert gemmlab.simulate().params["TSM"] == 8
    assert simt.simulate(2, 32, 32, 32).params == {"TS": 32}
    assert simt.simulate(12, 5, 5, 5).params == catalog[12].defaults


@pytest.mark.parametrize(
    "arguments, error, part",
    [
        ({"m": 15}, ValueError, "m=15 is not a multiple of 8"),
        ({"m": 0}, ValueError, "m must be a positive whole number, not 0"),
        ({"k": "x"}, ValueError, "k must be a positive whole number, not 'x'"),
        ({"source": 3}, TypeError, "source must be OpenCL C text, not int: 3"),
        ({"kernel": 99}, ValueError, "kernel must be one of"),
        ({"params": {"TSX": 1}}, ParameterError, "no parameter 'TSX'"),
        ({"order": "backward"}, ValueError, "order must be 'lockstep' or 'warps', not 'backward'"),
        ({"groups": [(7, 7)]}, ValueError, "there are only"),
    ],
)
def test_bad_arguments_are_named(arguments, error, part):
    with pytest.raises(error, match=part.replace("(", r"\(")):
        simt.simulate(
            **{"kernel": 6, "params": BLOCKS if "params" not in arguments else None, **arguments}
        )


def test_half_and_double_and_their_vectors():
    """The entries +-1 and +-3 are exact in half, too, and so are short sums."""
    for kind in ("half", "double"):
        run = simt.simulate(
            2, 16, 16, 16, {"TS": 8}, text(2).replace("float", kind).replace("0.0f", "0.0")
        )
        assert_right(run)
        assert run.c.dtype == {"half": np.float16, "double": np.float64}[kind]
    wide = simt.simulate(4, 16, 16, 16, {"TS": 8, "WIDTH": 2}, text(4).replace("float", "double"))
    assert_right(wide)


def test_warps_in_turn_show_what_lockstep_hides():
    """Without its first barrier kernel 2 is right in lockstep, by luck; warp by warp it is
    wrong.
    """
    broken = text(2).replace("barrier(CLK_LOCAL_MEM_FENCE);", "", 1)
    hidden = simt.simulate(2, 16, 16, 16, {"TS": 8}, broken)
    assert hidden.exact and not hidden.ok and hidden.verdict.startswith("right here, by luck: ")
    shown = simt.simulate(2, 16, 16, 16, {"TS": 8}, broken, order="warps", seed=1)
    assert not shown.exact and "race" in {f.kind for f in shown.findings}


#: Kernels past the tutorial: parameters, sizes of several tiles, and which of their barriers is in
#: the loop.
BEYOND = {
    15: ({"TSM": 16, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "WARPM": 4}, (32, 32, 24), 1),
    16: ({"TSM": 64, "TSN": 64}, (64, 64, 32), 2),
    17: ({"TSM": 64, "TSN": 64, "GROUPS": 3}, (128, 64, 32), 2),
    18: ({"TSM": 64, "TSN": 64, "PARTS": 1}, (64, 64, 32), 1),
    19: ({"TSM": 128, "TSK": 8, "PARTS": 1}, (128, 128, 16), 1),
}


@pytest.mark.parametrize(
    "number", [15, 17, *(pytest.param(n, marks=pytest.mark.system) for n in (16, 18, 19))]
)
def test_beyond_the_tutorial(number):
    """Right, whole warps of them in any order, with the loads that the catalog counts; a missing
    barrier is seen.
    """
    params, sizes, which = BEYOND[number]
    for order in ("lockstep", "warps") if number < 18 else ("lockstep",):
        run = simt.simulate(number, *sizes, params, order=order)
        assert_right(run)
        assert not run.findings
    if number < 19:  # there the plain path reads A again and again
        loads = run.counts.loads["A"] + run.counts.loads["B"]
        assert loads == run.m * run.n * run.k * catalog[number].global_loads(run.params)
    barrier = "barrier(CLK_LOCAL_MEM_FENCE);"
    before, *after = text(number).split(barrier)
    without = barrier.join([before, *after[: which - 1]]) + barrier.join(after[which - 1 :])
    seen = simt.simulate(number, *sizes, params, without)
    assert "no barrier between" in seen.findings[0].message
