"""What the model allows for a measured rate, as the worker is asked for it: in numbers and words that JSON can hold."""

from dataclasses import asdict

import pytest

from gemmlab import model
from gemmlab.bench.explained import allowed, points, rates
from gemmlab.model import H200, Peaks


def test_a_recorded_device_has_the_roof_that_the_model_finds():
    roof = model.explain(3, {"TS": 32, "WPT": 8}, H200, 12_000, 4096, registers=40).roof
    found = allowed(3, {"TS": 32, "WPT": 8}, 4096, 4096, 4096, 12_000, chip="NVIDIA H200", registers=40)
    assert found.gflops == pytest.approx(roof.share * H200.gflops) and found.resource == roof.resource


def test_a_device_at_hand_needs_its_peaks(any_device):
    peaks = asdict(Peaks(gflops=100.0, bandwidth=20.0, local_bandwidth=4.0, cache_bandwidth=60.0))
    found = allowed(1, {"TS": 8}, 64, 64, 64, 0.1, device=any_device, peaks=peaks)
    assert 0.1 < found.gflops < 100


def test_what_the_model_does_not_know_is_an_error():
    with pytest.raises(ValueError, match="chip must be the title"):
        allowed(3, {"TS": 32, "WPT": 8}, 64, 64, 64, 1.0, chip="My card")
    with pytest.raises(ValueError, match="tensor"):
        allowed("tensor_cores", {}, 64, 64, 64, 1.0, chip="NVIDIA H200")


def test_recorded_kernels_stand_at_what_they_request_and_what_they_reached():
    found = points((1, 2))
    assert list(found) == ["kernel 1", "kernel 2"] and [rate for _, rate in found.values()] == [rates()[1], rates()[2]]
    assert found["kernel 1"][0] == pytest.approx(0.25, rel=1e-3)  # two loads of four bytes for two operations
    assert found["kernel 2"][0] == pytest.approx(0.25 * 32, rel=0.01)  # each load serves TS = 32 work-items
    assert H200.peaks == Peaks(H200.gflops, H200.bandwidth)
    with pytest.raises(ValueError, match="kernel 18 is not recorded"):
        points([18])
