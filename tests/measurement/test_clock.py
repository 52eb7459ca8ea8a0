"""A device's clock is believed only where it agrees with wall-clock time."""

import pytest

import gemmlab
from gemmlab.measurement import clock, peaks


@pytest.mark.parametrize(
    ("seconds", "wall", "credible"),
    [
        (10e-6, 8e-3, True),  # a busy machine
        (10e-3, 10.1e-3, True),
        (1e-9, 60e-6, False),
        (0.4, 10e-3, False),  # ticks that are no nanoseconds
    ],
)
def test_what_is_credible(seconds, wall, credible):
    assert clock.credible(seconds, wall) is credible


@pytest.fixture(params=[1e-9, 100.0])
def wrong_clock(request, monkeypatch, fresh):
    """Each command takes a nanosecond, as Mesa 22.3 says, or minutes."""

    def device_seconds(*events):
        for event in events:
            event.wait()
        return request.param

    monkeypatch.setattr(clock, "device_seconds", device_seconds)


def test_a_wrong_clock_gives_way_to_wall_clock_time(wrong_clock, any_device):
    result = gemmlab.measure(1, 100, device=any_device, repeats=3)
    assert result.ok and "clock" in result.verdict
    assert 1e-3 < result.gflops < 1e4
    found = peaks.peaks(any_device)
    assert 1e-2 < found.gflops < 1e5 and 1e-2 < found.bandwidth < 1e4
