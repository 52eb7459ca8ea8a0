"""What the model allows for a measured rate, in numbers and words that JSON can hold."""

import pytest

from gemmlab import model
from gemmlab.catalog import sources
from gemmlab.measurement import explained
from gemmlab.measurement.explained import allowed
from gemmlab.model import H200


def test_a_recorded_device_has_the_roof_that_the_model_finds():
    roof = model.explain(3, {"TS": 32, "WPT": 8}, H200, 12_000, 4096, registers=40).roof
    found = allowed(3, {"TS": 32, "WPT": 8}, chip="NVIDIA H200", gflops=12_000, registers=40)
    assert (
        found.gflops == pytest.approx(roof.share * H200.gflops) and found.resource == roof.resource
    )


def test_an_edited_text_has_a_ceiling_too():
    text = sources.read("03_work_per_thread.cl")
    params = {"TS": 32, "WPT": 8}
    assert allowed(3, params, source=text) == allowed(3, params)
    slower = text.replace("acc[j] += a *", "acc[j] += Atile[k][tm] *")
    assert slower != text
    assert allowed(3, params, source=slower).gflops < allowed(3, params).gflops


def test_what_the_model_does_not_know_is_an_error():
    with pytest.raises(ValueError, match="chip must be the title"):
        allowed(3, {"TS": 32, "WPT": 8}, chip="My card")
    with pytest.raises(ValueError, match="tensor"):
        allowed("tensor_cores", {})


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
