"""Every kernel of the ladder, simulated: exact, with the counts of the catalog; and other texts."""

from __future__ import annotations

import time

import numpy as np
import pytest
from simulation.cases import SMALL, edited, line_of, product, text

import clscope
import gemmlab
from clscope import views
from gemmlab import ParameterError, catalog


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
    run = gemmlab.simulate(number, *sizes, params, order=order, seed=3)
    assert_right(run)
    elements = views.elements(views.select(run, "C", True))
    assert run.counts.stores["C"] == len(elements) == sizes[0] * sizes[1]


def test_groups_may_be_chosen():
    run = gemmlab.simulate(2, 16, 16, 16, {"TS": 8}, groups=[(1, 0)])
    assert run.ok
    assert np.isnan(run.c[:8]).all() and np.isnan(run.c[:, 8:]).all()
    assert np.array_equal(run.c[8:, :8], run.expected[8:, :8])


def test_without_parameters_the_defaults_or_tiles_of_8():
    assert gemmlab.simulate().params["TSM"] == 8
    assert gemmlab.simulate(2, 32, 32, 32).params == {"TS": 32}
    assert gemmlab.simulate(12, 5, 5, 5).params == catalog[12].defaults


@pytest.mark.parametrize(
    "arguments, error, part",
    [
        ({"m": 15}, ValueError, "m=15 .* multiple of 8"),
        ({"source": 3}, TypeError, "source must be OpenCL C text, not int: 3"),
        ({"params": {"TSX": 1}}, ParameterError, "no parameter 'TSX'"),
        ({"order": "backward"}, ValueError, "order must be 'lockstep' or 'warps', not 'backward'"),
        ({"groups": [(7, 7)]}, ValueError, "there are only"),
    ],
)
def test_bad_arguments_are_named(arguments, error, part):
    with pytest.raises(error, match=part.replace("(", r"\(")):
        gemmlab.simulate(**{"kernel": 6, "params": SMALL[6], **arguments})


def test_warps_in_turn_show_what_lockstep_hides():
    """Without its first barrier kernel 2 is right in lockstep, by luck; warp by warp it is
    wrong.
    """
    broken = text(2).replace("barrier(CLK_LOCAL_MEM_FENCE);", "", 1)
    hidden = gemmlab.simulate(2, 16, 16, 16, {"TS": 8}, broken)
    assert (
        hidden.exact
        and not hidden.ok
        and hidden.verdict.startswith("wrong, but right here by luck: ")
    )
    shown = gemmlab.simulate(2, 16, 16, 16, {"TS": 8}, broken, order="warps", seed=1)
    assert not shown.exact and "race" in {f.kind for f in shown.findings}


def test_straight_code_keeps_to_its_time():
    source = product(f"uint x = m; {'x = x * 3u + 1u;' * 20_000} C[n*M + m] = x;")
    start = time.thread_time()
    with pytest.raises(TimeoutError):
        gemmlab.simulate(2, 8, 8, 8, {"TS": 8}, source, seconds=0.5)
    assert time.thread_time() - start < 3


#: By kind what only a product has: the kernel's body, a part of the line, and how many do it.
RIGHT = """
    float acc = 0.0f;
    for (int k = 0; k < K; k++) {
        acc += A[k*M + m] * B[n*K + k];
    }
    C[n*M + m] = acc;"""
WRONG = [
    ("never written", RIGHT.replace("C[n*M + m]", "if (tm < 7) C[n*M + m]"), "if (tm < 7)", 8),
    ("two writers", RIGHT + "\n    if (tm == 0) C[n*M + 1] = 2.0f;", "= acc;", 2),
]


@pytest.mark.parametrize(("kind", "body", "part", "count"), WRONG)
def test_an_element_is_stored_once(kind, body, part, count):
    source = product(body)
    run = gemmlab.simulate(2, 8, 8, 8, {"TS": 8}, source)
    (finding,) = (f for f in run.findings if f.kind == kind)
    assert (finding.line, finding.count) == (line_of(source, part), count) and not run.ok


def test_a_sum_of_nothing_has_a_line():
    (finding,) = simulated_without("acc += Atile[k][tm] * Btile[tn][k];").findings
    assert finding.kind == "wrong product" and finding.line > 0


def simulated_without(part: str):
    return gemmlab.simulate(2, 8, 8, 8, {"TS": 8}, edited(text(2), part, ""))


@pytest.mark.parametrize("old, new, part", [
    (", const int K", "", "5 parameters"),
    ("__global float* C", "__global int* C", "`__global int* C`"),
    ("const __global float* A", "const __global double* A", "`__global double* A`"),
    ("const __global float* B", "__local float* B", "`__local float* B`"),
    ("const int K", "const int4 K", "`int4 K`"),
    ("(8, 8, 1)", "(8, 4, 1)", "8 x 4 x 1"),
    ("gemm", "gem", "'gemm'"),
])  # fmt: skip
def test_a_kernel_that_is_no_product(old, new, part):
    """What is wrong is named, and no kernel runs on matrices of another type."""
    source = product("for (int i = 0; i < M; i++) { C[i] = 0; }").replace(old, new)
    with pytest.raises(clscope.TextError) as caught:
        gemmlab.simulate(2, 8, 8, 8, {"TS": 8}, source)
    assert part in caught.value.message and caught.value.line > 0
