"""The measured peaks: what the loops compute, and that no kernel of ours stays above them."""

import dataclasses

import numpy as np
import pytest

import clscope
import gemmlab
from gemmlab.caches import Notes
from gemmlab.ladder.sources import read
from gemmlab.measurement import peaks

TEXT = read("support/peaks.cl")


@pytest.mark.parametrize("fused", (0, 1))
@pytest.mark.parametrize("width", (1, 4))
def test_the_loop_of_multiply_adds_computes_what_it_says(width, fused):
    defines = {"CHAINS": 2, "WIDTH": width, "FUSED": fused}
    arguments = [3, 0.5, 1.0, clscope.Empty(4 * width)]
    run = clscope.run(TEXT, "fma_loop", (4,), (4,), arguments, defines)
    assert run.ok, run.verdict
    assert run.counts.multiply_adds >= 4 * 2 * width * 3
    starts = np.arange(4)[:, None] + np.arange(2)
    for _ in range(3):
        starts = starts * 0.5 + 1.0
    assert np.allclose(run.arrays["out"].reshape(4, width), starts.sum(1)[:, None])


@pytest.fixture(autouse=True)
def own_notes(monkeypatch, tmp_path):
    """Other tests raise the peaks, too."""
    monkeypatch.setattr(peaks, "highest", Notes(str(tmp_path / "peaks.json")))


def test_peaks_of_every_device(device):
    found = peaks.peaks(device)
    assert found.gflops > 0 and found.bandwidth > 0


def test_a_kernel_that_beats_the_peak_corrects_it(any_device, fresh):
    """A rate above every peak, of a small product that was measured."""
    found = gemmlab.measure(1, 64, device=any_device, params={"TS": 8}, repeats=1)
    fast = {"ok": True, "m": 4096, "n": 4096, "k": 4096, "kernel_ms": (1.0, 1.0, 1.0)}
    result = dataclasses.replace(found, **fast)
    before = peaks.peaks(any_device)
    for change in ({"ok": False}, {"kernel": "tensor_cores"}, {"kernel_ms": (1e-3, 1e-3, 1e-3)}):
        peaks.note(any_device, dataclasses.replace(result, **change))
        assert peaks.peaks(any_device) == before, "wrong, of other units, or too short"
    peaks.note(any_device, result)
    after = peaks.peaks(any_device)
    assert after.gflops == result.gflops
    peaks.note(any_device, dataclasses.replace(result, kernel_ms=(2.0, 2.0, 2.0)))
    assert peaks.peaks(any_device) == after


def test_the_highest_peak_of_all_processes_counts(any_device):
    found = peaks.peaks(any_device)
    higher = [2 * found.gflops, 0.5 * found.bandwidth]
    peaks.highest.write(any_device.identity, higher)  # as another process does
    assert peaks.peaks(any_device) == dataclasses.replace(found, gflops=higher[0])
    peaks.highest.write(any_device.identity, ["nonsense"])
    assert peaks.peaks(any_device) == found


def test_loops_that_do_not_build_are_left_out(any_device, monkeypatch, fresh):
    """Mesa 26.2 of Debian compiles no fma."""
    device = dataclasses.replace(any_device, kind="CPU")  # loops of both kinds
    real, refuses = peaks.build, {"fused"}

    def build(device, context, title, text, params, *others):
        if params.get("FUSED") or "all" in refuses:
            raise gemmlab.BuildError(title, "Internal compilation error", text)
        return real(device, context, title, text, params, *others)

    monkeypatch.setattr(peaks, "build", build)
    assert peaks.peaks(device).gflops > 0
    gemmlab.clear_caches()
    refuses.add("all")
    with pytest.raises(gemmlab.BuildError, match="Internal compilation error"):
        peaks.peaks(device)
