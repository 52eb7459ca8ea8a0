"""The counts of any legal parameters, and the races without a barrier."""

import itertools
from functools import cache

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from texts import without_barrier

import gemmlab
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
    max_examples=8,
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
