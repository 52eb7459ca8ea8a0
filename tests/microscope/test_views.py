"""What pictures and chapters ask of a run: its steps, line by line, the accesses of warps, macros;
and the counts of any legal parameters.
"""

import itertools
from functools import cache

import numpy as np
import pytest
from conftest import FULL
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from microscope.cases import edited, line_of, text
from texts import without_barrier

import gemmlab
from clscope import views
from gemmlab import catalog, model


def simulated(number, params, tiles, **options):
    multiples = catalog[number].tiles(catalog[number].complete(params))
    sizes = (t * m for t, m in zip(tiles, multiples, strict=True))
    return gemmlab.simulate(number, *sizes, params, **options)


def loaded(run, *names):
    return sum(run.counts.loads.get(name, 0) for name in names)


VALUES = {"PAD": (0, 1, 2), "WIDTH": (1, 2, 4, 8), "WPTM": (1, 2, 3, 4), "WPTN": (1, 2, 3, 4),
          "GX": (1, 2, 3), "GY": (1, 2, 3), "RK": (1, 2), "RX": (1, 2, 4, 8), "RY": (1, 2, 3),
          "WPT": (1, 2, 3, 4, 6)}  # fmt: skip
NAMES = {5: ("TS", "TSK", "WPT", "PAD"), 11: ("RX", "RY", "RK", "WIDTH", "GX", "GY")}


@cache
def small(number):
    """Legal small parameters of a kernel, without those that change nothing here."""
    tiles = ("TSM", "TSN", "TSK", "WPTM", "WPTN", "PAD" if number == 6 else "WIDTH")
    names = NAMES.get(number, tiles)
    fixed = {"UNROLL": 1} if "TSM" in names else {}
    every = itertools.product(*(VALUES.get(name, (1, 2, 3, 4, 6, 8)) for name in names))
    every = ({**fixed, **dict(zip(names, v, strict=True))} for v in every)
    return [p for p in every if not catalog[number].problems(catalog[number].complete(p))]


@pytest.mark.parametrize("number", (5, 6, 7, 10, 11))
@settings(
    max_examples=300 if FULL else 8,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_any_small_legal_parameters(number, data):
    """Right with its barriers; racing without one, unless there is nobody to race with."""
    params = data.draw(st.sampled_from(small(number)))
    tiles = data.draw(st.tuples(*[st.integers(1, 3)] * 3))
    order = data.draw(st.sampled_from(("lockstep", "warps")))
    run = simulated(number, params, tiles, order=order, seed=data.draw(st.integers(0, 99)))
    assert run.ok, run.verdict
    multiply_adds, per = run.m * run.n * run.k, model.loads(number, params)
    assert loaded(run, "A", "B") == round(per["global"] * multiply_adds)
    assert loaded(run, "Atile", "Btile") == round(per["local"] * multiply_adds)
    if number == 11:
        return
    several = np.prod(catalog[number].local_size(run.params)) > 1
    barrier = data.draw(st.sampled_from((1,) if number == 10 else (1, 2)))
    torn = simulated(number, params, tiles, order=order, source=without_barrier(number, barrier))
    # barrier 2 protects a tile from the next one
    races = [finding for finding in torn.findings if finding.kind == "race"]
    assert bool(races) == (several and (barrier == 1 or tiles[2] > 1))


def test_touches_have_one_row_a_load_and_one_column_a_lane():
    run = gemmlab.simulate(1, 16, 8, 5, {"TS": 8})
    touched = views.touches(run, "A", group=0, warp=1)
    assert touched.shape == (5, 32)
    rows, ks = touched % 16, touched // 16
    assert np.array_equal(ks, np.repeat(np.arange(5)[:, None], 32, axis=1))
    assert np.array_equal(rows[0], np.tile(np.arange(8), 4))
    assert len(views.touches(run, "D")) == len(views.select(run, "C")) == 0


def test_segments():
    assert views.segments(range(32)) == 4 and views.segments([]) == 0
    assert views.segments(range(1, 33), 128) == 2
    assert views.segments(range(6, 134, 16), width=3) == 16  # the third is in the next segment


def test_a_step_is_one_execution_of_a_line():
    run = gemmlab.simulate(2, 16, 16, 16, {"TS": 8})
    source = text(2)
    a, b = line_of(source, "Atile[tn][tm] ="), line_of(source, "Btile[tn][tm] =")
    first, add = line_of(source, "barrier(CLK"), line_of(source, "acc +=")
    second, store = line_of(source, "barrier(CLK", 1), line_of(source, "= acc;")
    assert [s.line for s in views.steps(run)] == 2 * [a, b, first, *8 * [add], second] + [store]


def test_a_run_that_stops_ends_with_the_line_that_stopped_it():
    source = edited(text(2), "Atile[k][tm]", "Atile[k + 1][tm]")
    run = gemmlab.simulate(2, 16, 16, 16, {"TS": 8}, source)
    last = views.steps(run)[-1]
    assert last.line == run.stop.line == line_of(source, "Atile[k + 1][tm]") and not last.entries
