"""Every kernel of the ladder, simulated: exact, with the counts of the catalog."""

from __future__ import annotations

import numpy as np
import pytest
from simt.cases import BLOCKS, SMALL, text

import gemmlab
from gemmlab import ParameterError, catalog, simt
from gemmlab.simt import views


def assert_right(run):
    assert run.ok, run.verdict
    assert np.array_equal(run.c, run.a @ run.b)
    assert run.verdict.startswith("right")


def tiles(tsm, tsn, tsk, wptm, wptn, **more):
    return {"TSM": tsm, "TSN": tsn, "TSK": tsk, "WPTM": wptm, "WPTN": wptn, **more}


#: Small tiles, and awkward sizes.
CASES = [
    *((number, params, (16, 32, 16)) for number, params in SMALL.items()),
    (12, {"TS": 4, "WPT": 2}, (9, 11, 5)),
    (13, tiles(4, 8, 4, 2, 2, UNROLL=1), (7, 17, 1)),
    ("warp_tiling", tiles(16, 32, 8, 4, 4, WARPM=4, WIDTH=1), (17, 35, 9)),
    ("warp_tiling", tiles(32, 16, 4, 4, 4, WARPM=8, WIDTH=1, STAGES=4), (1, 1, 1)),
]


@pytest.mark.parametrize("number, params, sizes", CASES)
@pytest.mark.parametrize("order", ["lockstep", "warps"])
def test_a_product_is_right_and_stores_each_element_once(number, params, sizes, order):
    run = simt.simulate(number, *sizes, params, order=order, seed=3)
    assert_right(run)
    elements = views.elements(views.select(run, "C", True))
    assert run.counts.stores["C"] == len(elements) == sizes[0] * sizes[1]


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
        ({"source": 3}, TypeError, "source must be OpenCL C text, not int: 3"),
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
