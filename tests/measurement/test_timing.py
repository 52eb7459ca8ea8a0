"""What a measurement does before it measures."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gemmlab
from gemmlab.catalog import catalog, find
from gemmlab.measurement import timing

SIDES = st.integers(1, 700)
SETTINGS = {number: find(number).sample(count=10) for number in catalog}


@pytest.mark.parametrize("number", catalog)
@given(data=st.data())
def test_a_smaller_product_is_legal_and_no_larger_than_it_must_be(number, data):
    spec = find(number)
    params = data.draw(st.sampled_from(SETTINGS[number]))
    least, units = spec.minimum_sizes(params), spec.units(params)
    sizes = data.draw(st.tuples(SIDES, SIDES, SIDES))
    if spec.edges == "shift":
        sizes = tuple(map(max, sizes, least))
    small = timing.smaller(spec, params, sizes, 128)
    for size, chosen, few, unit in zip(sizes, small, least, units, strict=True):
        assert min(size, 128) <= chosen <= min(size, max(128, few) + unit)
        assert chosen == size or chosen % unit == 0
        assert spec.edges != "shift" or chosen >= few


def test_what_would_take_too_long_is_refused_before_it_runs(any_device):
    """By a small product, whose time the words extrapolate."""
    steps = []
    with pytest.raises(timing.TooSlow, match=r"2048 x 2048 x 2048 would take about .* enough for"):
        gemmlab.measure(1, 2048, device=any_device, most_seconds=1e-4, on_step=steps.append)
    assert steps == ["compile", "predict"]
    assert gemmlab.measure(1, 64, device=any_device, repeats=1, most_seconds=1e-9).ok, "no smaller"
