"""What the model allows for a measured rate, as the worker is asked for it: in numbers and words
that JSON can hold.
"""

from dataclasses import asdict

import pytest

from gemmlab import model
from gemmlab.measurement import explained
from gemmlab.measurement.explained import allowed
from gemmlab.model import H200, Peaks


def test_a_recorded_device_has_the_roof_that_the_model_finds():
    roof = model.explain(3, {"TS": 32, "WPT": 8}, H200, 12_000, 4096, registers=40).roof
    found = allowed(
        3, {"TS": 32, "WPT": 8}, 4096, 4096, 4096, 12_000, chip="NVIDIA H200", registers=40
    )
    assert (
        found.gflops == pytest.approx(roof.share * H200.gflops) and found.resource == roof.resource
    )


def test_a_device_at_hand_needs_its_peaks(any_device):
    peaks = asdict(Peaks(gflops=100.0, bandwidth=20.0, local_bandwidth=4.0, cache_bandwidth=60.0))
    found = allowed(1, {"TS": 8}, 64, 64, 64, 0.1, device=any_device, peaks=peaks)
    assert 0.1 < found.gflops < 100


def test_what_the_model_does_not_know_is_an_error():
    with pytest.raises(ValueError, match="chip must be the title"):
        allowed(3, {"TS": 32, "WPT": 8}, 64, 64, 64, 1.0, chip="My card")
    with pytest.raises(ValueError, match="tensor"):
        allowed("tensor_cores", {}, 64, 64, 64, 1.0, chip="NVIDIA H200")


def test_the_roofline_of_recorded_kernels_has_their_rates_below_the_chips_peak():
    peaks, points, title = explained.roofline((5, 6))
    assert list(points) == ["kernel 5", "kernel 6"] and H200.name in title and peaks == H200.peaks
    (few, slow), (many, fast) = points.values()
    # 2 / (4 (1/TS + 1/TS))
    assert few == pytest.approx(8, rel=0.01) and many == pytest.approx(32, rel=0.02)
    assert slow == explained.rung(5).measured < fast < peaks.gflops
    with pytest.raises(ValueError, match="chip must be one of"):
        explained.roofline((5,), "My card")


def test_a_kernel_that_does_less_is_faster():
    for kernel in (3, 6, 7):
        parts = explained.parts(kernel)
        assert max(parts["loaded once"], parts["computing alone"]) > parts["as it is"] > 0
    merged = explained.merged_loads()
    assert merged["OpenCL, tiles declared as aligned(16)"] > 1.5 * merged["OpenCL, as it is"]
