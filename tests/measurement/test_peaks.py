"""The measured peaks: what the loops compute, and that no kernel of ours stays above them."""

import dataclasses

import numpy as np
import pytest

import gemmlab
from gemmlab import simt
from gemmlab.catalog.sources import read
from gemmlab.measurement import peaks

TEXT = read("support/peaks.cl")


@pytest.mark.parametrize("fused", (0, 1))
@pytest.mark.parametrize("width", (1, 4))
def test_the_loop_of_multiply_adds_computes_what_it_says(width, fused):
    defines = {"CHAINS": 2, "WIDTH": width, "FUSED": fused}
    run = simt.run(TEXT, "fma_loop", (4,), (4,), [3, 0.5, 1.0, simt.Empty(4)], defines)
    assert run.ok, run.verdict
    assert run.counts.multiply_adds >= 4 * 2 * width * 3
    starts = np.arange(4)[:, None] + np.arange(2)
    for _ in range(3):
        starts = starts * 0.5 + 1.0
    assert np.allclose(run.arrays["out"], width * starts.sum(1))


@pytest.mark.parametrize("width", (1, 4))
def test_local_memory_is_read_without_conflicts(width):
    defines = {"CHAINS": 3, "WIDTH": width, "ITEMS": 32}
    run = simt.run(TEXT, "local_loop", (64,), (32,), [5, 1, simt.Empty(64)], defines)
    assert run.ok, run.verdict
    rows = np.add.outer(np.arange(5) & 3, np.arange(3))
    assert np.allclose(run.arrays["out"], [width * (rows + i % 32).sum() for i in range(64)])
    assert run.counts.loads["tile"] == 64 * 3 * width * 5
    # loads, and the stores before
    assert run.counts.turns == (run.counts.loads["tile"] + 7 * 64 * width) // 32


def test_the_cache_is_read_as_often_as_it_says():
    data = np.arange(16 + 3 * 4, dtype=np.float32)
    defines = {"CHAINS": 3, "WIDTH": 1}
    run = simt.run(TEXT, "cache_loop", (8,), (8,), [4, 16, 2, 5, 4, data, simt.Empty(8)], defines)
    assert run.ok, run.verdict
    expected = [
        sum(data[((r * 5 + i * 2) & 15) + c * 4] for r in range(4) for c in range(3))
        for i in range(8)
    ]
    assert np.allclose(run.arrays["out"], expected) and run.counts.loads["in"] == 8 * 3 * 4


def test_peaks_of_every_device(device):
    quick, full = peaks.peaks(device), peaks.peaks(device, caches=True)
    assert quick.gflops > 0 and quick.bandwidth > 0 and quick.how and quick.local_bandwidth == 0
    assert full.local_bandwidth > 0 and full.cache_bandwidth > 0
    assert dataclasses.replace(full, local_bandwidth=0.0, cache_bandwidth=0.0) == quick


@pytest.fixture
def result(any_device):
    """A rate above every peak, of a small product that was measured."""
    found = gemmlab.measure(1, 64, device=any_device, params={"TS": 8}, repeats=1)
    fast = {"ok": True, "m": 4096, "n": 4096, "k": 4096, "kernel_ms": (1.0, 1.0, 1.0)}
    yield dataclasses.replace(found, **fast)
    gemmlab.clear_caches()


def test_a_kernel_that_beats_the_peak_corrects_it(any_device, result):
    before = peaks.peaks(any_device)
    for change in ({"ok": False}, {"kernel": "tensor_cores"}, {"kernel_ms": (1e-3, 1e-3, 1e-3)}):
        peaks.note(any_device, dataclasses.replace(result, **change))
        assert peaks.peaks(any_device) == before, "wrong, of other units, or too short"
    peaks.note(any_device, result)
    after = peaks.peaks(any_device)
    assert after.gflops == result.gflops and "kernel 1 at 4096 x 4096 x 4096" in after.how
    peaks.note(any_device, dataclasses.replace(result, kernel_ms=(2.0, 2.0, 2.0)))
    assert peaks.peaks(any_device) == after


def test_loops_that_do_not_build_are_left_out(any_device, monkeypatch):
    """Mesa 26.2 of Debian compiles no fma."""
    device = dataclasses.replace(any_device, kind="CPU")  # loops of both kinds
    real, refuses = peaks.build, {"fused"}

    def build(device, context, title, text, params, *others):
        if params.get("FUSED") or "all" in refuses:
            raise gemmlab.BuildError(title, "Internal compilation error", text)
        return real(device, context, title, text, params, *others)

    gemmlab.clear_caches()
    monkeypatch.setattr(peaks, "build", build)
    assert "a*b + c" in peaks.peaks(device).how
    gemmlab.clear_caches()
    refuses.add("all")
    with pytest.raises(gemmlab.BuildError, match="Internal compilation error"):
        peaks.peaks(device)
    gemmlab.clear_caches()
