"""Every kernel of the ladder, simulated: exact, with the counts of the catalog; and other texts."""

from __future__ import annotations

import numpy as np
import pytest
from microscope.cases import SMALL, text
from microscope.test_count import by_hand

import clscope
import gemmlab
from clscope import views
from clscope.count import total
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
def test_a_product_is_right_and_its_log_adds_up(number, params, sizes, order):
    """Each element is stored once; the counts are those made by hand, and those of all steps."""
    run = gemmlab.simulate(number, *sizes, params, order=order, seed=3)
    assert_right(run)
    elements = views.elements(views.select(run, "C", True))
    assert run.counts.stores["C"] == len(elements) == sizes[0] * sizes[1]
    assert (run.counts.transactions, run.counts.turns) == by_hand(run.table)
    groups = run.global_size[0] * run.global_size[1] // (run.local_size[0] * run.local_size[1])
    steps = [step for group in range(groups) for step in views.steps(run, group)]
    assert all(e.site.line == s.line for s in steps for e in s.entries)
    whole = total({number: step.counts for number, step in enumerate(steps)})
    assert whole.loads == run.counts.loads and whole.stores == run.counts.stores
    assert whole.multiply_adds == run.counts.multiply_adds


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
        ({"m": 15}, ValueError, "m=15 is not a multiple of 8"),
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
    assert hidden.exact and not hidden.ok and hidden.verdict.startswith("right here, by luck: ")
    shown = gemmlab.simulate(2, 16, 16, 16, {"TS": 8}, broken, order="warps", seed=1)
    assert not shown.exact and "race" in {f.kind for f in shown.findings}


# ---- kernels that are no products
def test_half_numbers():
    """Which CPU runtimes do not have."""
    text = """__kernel void f(__global half* out) {
        half h = (half)0.5h;
        out[0] = (h + h)*h; h = 0.1h; out[1] = h == 0.1h && 0.1h*3 == h*3;
    }"""
    run = clscope.run(text, "f", (1,), (1,), [clscope.Empty(2, "f2")])
    assert run.ok and run.arrays["out"].tolist() == [0.5, 1]


def test_a_function_waits_at_barriers_and_changes_memory():
    text = """
    void twice(__local int* x, int i) {
        barrier(CLK_LOCAL_MEM_FENCE); x[i] *= 2; barrier(CLK_LOCAL_MEM_FENCE);
    }
    void change(int* x) { *x += 3; }
    __kernel void f(__global int* out) {
        __local int shared[8];
        int g = get_global_id(0), by = 1;
        shared[g] = g; twice(shared, g); change(&by);
        out[g] = shared[7 - g] + by;
    }"""
    run = clscope.run(text, "f", (8,), (8,), [clscope.Empty(8, "i4")])
    assert run.ok and run.arrays["out"].tolist() == [2 * (7 - g) + 4 for g in range(8)]


def test_three_dimensions_and_printf():
    text = """__kernel void f(__global int* out) {
        int at = (get_global_id(2)*get_global_size(1) + get_global_id(1))*get_global_size(0)
                 + get_global_id(0);
        out[at] = get_group_id(2)*100 + get_local_id(1)*10 + get_num_groups(0);
        if (at == 5) printf("%d and %.1f\\n", at, 0.5f);
    }"""
    run = clscope.run(text, "f", (4, 2, 2), (2, 2, 1), [clscope.Empty(16, "int32")])
    assert run.ok and run.printed == ["5 and 0.5\n"]
    expected = [[[z * 100 + y * 10 + 2] * 4 for y in (0, 1)] for z in (0, 1)]
    assert run.arrays["out"].reshape(2, 2, 4).tolist() == expected


COPY = (
    "__kernel void f(const int n, const __global float* x, __global float* out) { "
    "out[get_global_id(0)] = x[0]; }"
)
ONE, OUT = np.zeros(1, "f4"), clscope.Empty(8)


@pytest.mark.parametrize(
    "local, args, error, part",
    [
        (None, [1, ONE, OUT], ValueError, "local_size is missing"),
        ((3,), [1, ONE, OUT], ValueError, "(8,) is not made of whole work-groups"),
        ((8,), [1], ValueError, "args has 1 entries, but f has 3 parameters: n, x, out"),
        ((8,), [2**31, ONE, OUT], ValueError, "n=2147483648 does not fit an int"),
        ((8,), [1, np.zeros(1), OUT], TypeError, "x needs an array of float32, not of float64"),
        ((8,), [1, [0.0], OUT], TypeError, "x is a pointer and needs a NumPy array, not list"),
    ],
)
def test_arguments_that_do_not_fit_are_named(local, args, error, part):
    with pytest.raises(error) as caught:
        clscope.run(COPY, "f", (8,), local, args)
    assert part in str(caught.value)


ATOMICS = {"add(p, 3)": 25, "sub(p, 1)": -7, "inc(p)": 9, "dec(p)": -7, "min(p, g)": 0,
           "max(p, g)": 7, "and(p, 6)": 0, "or(p, g)": 7, "xor(p, 1 << g)": 254, "xchg(p, 5)": 5,
           "cmpxchg(p, g, g + 1)": 8}  # fmt: skip


def test_atomics_and_that_arguments_are_copied():
    for op, after in ATOMICS.items():
        text, given = f"int g = get_global_id(0); atomic_{op};", np.ones(1, np.int32)
        run = clscope.run(
            f"__kernel void f(__global int* p) {{ {text} }}", "f", (8,), (4,), [given]
        )
        assert run.arrays["p"][0] == after and given[0] == 1, op
