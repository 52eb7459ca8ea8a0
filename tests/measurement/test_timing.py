"""What a measurement does before it measures."""

import pytest

import gemmlab
from gemmlab.measurement import timing


def test_what_would_take_too_long_is_refused_before_it_runs(any_device):
    """By a small product, whose time the words extrapolate."""
    steps = []
    with pytest.raises(timing.TooSlow, match=r"2048 x 2048 x 2048 would take about .* enough for"):
        gemmlab.measure(1, 2048, device=any_device, most_seconds=1e-4, on_step=steps.append)
    assert steps == ["compile", "predict"]
    assert gemmlab.measure(1, 64, device=any_device, repeats=1, most_seconds=1e-9).ok, "no smaller"
