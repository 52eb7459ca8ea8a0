"""What a measurement does before it measures."""

from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gemmlab.blas.problem import Problem, plan
from gemmlab.catalog import catalog, find
from gemmlab.measurement import timing

SIDES = st.integers(1, 700)


@cache
def settings(number) -> list[dict[str, int]]:
    return find(number).sample(count=10)


def passes(spec, params, sizes) -> list[str]:
    return [f"{step.kind} {step.operand}" for step in plan(spec, params, Problem.compact(*sizes))]


@pytest.mark.parametrize("number", catalog)
@given(data=st.data())
def test_a_smaller_product_takes_the_same_passes(number, data):
    """Else what it compiles is not all that the whole product needs, and a slider waits for the
    rest.
    """
    spec = find(number)
    params = data.draw(st.sampled_from(settings(number)))
    least, units = spec.minimum_sizes(params), spec.units(params)
    sizes = data.draw(st.tuples(SIDES, SIDES, SIDES))
    if spec.edges == "shift":
        sizes = tuple(map(max, sizes, least))
    small = timing.smaller(spec, params, sizes, 128)
    assert passes(spec, params, small) == passes(spec, params, sizes)
    for size, chosen, few, unit in zip(sizes, small, least, units, strict=True):
        assert 1 <= chosen <= min(size, max(128, few) + unit), "not larger than it must be"
        assert spec.edges != "shift" or chosen >= few


def test_what_is_padded_is_padded_in_the_smaller_product_too():
    """A tile of 160 rows: 256 rows are padded to 320, and the smaller product to one tile."""
    params = find(10).complete({"TSM": 160, "TSN": 32, "WPTM": 10, "WPTN": 4})
    assert timing.smaller(find(10), params, (256, 256, 256), 128) == (159, 128, 128)
    assert timing.smaller(find(10), params, (320, 256, 256), 128) == (160, 128, 128)
    assert timing.smaller(find(10), params, (20, 100, 250), 128) == (20, 100, 127)
