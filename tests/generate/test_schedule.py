"""A schedule is legal or refused by name, and its name contains all of it."""

from dataclasses import FrozenInstanceError

import pytest
from configurations import every, warped

from gemmlab import ParameterError
from gemmlab.generate import Schedule
from gemmlab.ladder import Limits

WARPED = {"unit": "warps", "stages": 2, "unroll": 16}


def test_schedules_that_differ_have_different_names():
    schedules = [*every(), *warped()]
    assert len({s.name for s in schedules}) == len(schedules) == len(set(schedules))
    with pytest.raises(FrozenInstanceError):
        schedules[0].precision = "d"


TENSOR = {"unit": "tensor", "stages": 2, "unroll": 16, "precision": "z"}
HALF = {"unit": "tensor", "stages": 2, "precision": "h", "depth": 32, "unroll": 32}
HALF |= {"micro_tile": (2, 4)}


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"precision": "q"}, ["precision", "'q'"]),
        ({"trans_a": "C"}, ["trans_a='C'", "'s'"]),
        ({"submatrix": True, "batch": True}, ["submatrix", "batch"]),
        ({"edges": "all"}, ["edges", "'all'"]),
        ({"unit": "tensor", "stages": 2}, ["tensor", "'s'", "depth=16", "unroll=4"]),
        (WARPED | {"load_widths": (1, 4)}, ["load_widths", "B"]),
        (TENSOR | {"precision": "d", "depth": 24, "unroll": 24}, ["depth=24", "16"]),
        (WARPED | {"precision": "h"}, ["'warps'", "'h'"]),
        (HALF | {"tile": (96, 32)}, ["96", "64"]),
        (HALF | {"unit": "warpgroups", "precision": "s"}, ["'s'", "micro_tile=(2, 4)"]),
        ({"split_k": 2}, ["split_k=2", "unit"]),
        ({"store_width": 4}, ["store_width=4", "'items'"]),
        (WARPED | {"store_width": 4, "beta": True}, ["store_width=4", "beta"]),
        ({"stages": 0}, ["stages=0", "depth", "unroll", "load_widths"]),
        ({"tile": 64}, ["tile", "64"]),
        ({"unroll": 3}, ["depth=16", "unroll=3"]),
        ({"precision": "z", "load_widths": (16, 1)}, ["load_widths", "16", "'z'"]),
        ({"tile": (8, 8), "micro_tile": (1, 1), "depth": 4}, ["64 work-items", "8 x 4", "A"]),
    ],
    ids=str,
)
def test_what_is_not_legal_is_refused_by_name(wrong, named):
    with pytest.raises(ParameterError) as error:
        Schedule(**wrong)
    assert [word for word in named if word not in str(error.value)] == [], str(error.value)


def test_limits_of_a_device():
    small = Limits("a small device", 64, (64, 4, 4), 4096, vector=2)
    s = Schedule("d", tile=(32, 32), micro_tile=(4, 4), depth=16, load_widths=(4, 1))
    found = s.problems(small)
    assert len(found) == 3 and all(small.name in problem for problem in found)
    assert "8 x 8" in found[0] and f"{s.local_memory:,}" in found[1] and "not 4" in found[2]
    assert s.problems(Limits("roomy", 1024, (1024,) * 3, 2**20)) == []
    warps = Schedule("d", unit="tensor", stages=2, unroll=16)
    for missing in ("asynchronous", "warpgroups"):
        roomy = Limits("roomy", 1024, (1024,) * 3, 2**20, **{missing: False})
        assert len(warps.problems(roomy)) == 1
