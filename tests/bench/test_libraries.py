"""Side by side with cuBLAS and CLBlast."""

import ctypes.util
import json
import types

import numpy as np
import pyopencl.array as cla
import pytest
from conftest import lacking

from gemmlab import cli
from gemmlab.bench import libraries
from gemmlab.family import selection


@pytest.mark.parametrize("kernel", ("auto", 3, "warp_tiling"))
def test_rounds_of_our_own(kernel, device):
    params = {"warp_tiling": {"TSM": 32, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "GROUPS": 3}}.get(kernel)
    rates = libraries.ours(64, 96, 32, device, kernel, params)
    assert len(rates) == libraries.ROUNDS and all(rate > 0 for rate in rates)


def test_a_round_lasts_from_before_the_first_call_until_all_is_done(monkeypatch):
    now = [0.0]

    def later(seconds):
        now[0] += seconds

    monkeypatch.setattr(libraries, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))
    queue = types.SimpleNamespace(finish=lambda: later(100))
    rates = libraries._rounds(3, 5, 7, queue, lambda: later(10))
    assert rates == [pytest.approx(2 * 3 * 5 * 7 / (10 + 100 / libraries.CALLS) * 1e-9)] * libraries.ROUNDS


def test_what_a_comparison_records(any_device, monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(libraries, "cublas", lambda m, n, k: asked.append((m, n, k)) or [3.0, 1.0, 2.0])
    monkeypatch.setattr(libraries, "errors", lambda sizes, device: [{"sizes": sizes}])
    found = libraries.recorded([64, (32, 96, 64)], any_device)
    assert asked == [(64, 64, 64), (32, 96, 64)]
    assert found["yardsticks"] == [{"name": "cuBLAS SGEMM", "m": m, "n": n, "k": k, "gflops": 2.0} for m, n, k in asked]
    for one, sizes in zip(found["side_by_side"], asked, strict=True):
        assert (one["m"], one["n"], one["k"]) == sizes and one["cublas"] == [3.0, 1.0, 2.0]
        assert (one["kernel"], tuple(one["params"].items())) == selection.choose(any_device, sizes)
        assert len(one["auto"]) == libraries.ROUNDS and min(one["auto"]) > 0
    assert "32 x 96 x 64: cublas 2 (1 to 3), auto" in capsys.readouterr().out
    assert libraries.spread([3000.0, 1000.0, 2000.0]) == "2,000 (1,000 to 3,000)"
    json.dumps(found)


@pytest.fixture
def on_the_device(monkeypatch):
    """The arrays that a comparison has put there, in turn."""
    found = []

    def to_device(queue, array):
        found.append(cla.to_device(queue, array))
        return found[-1]

    monkeypatch.setattr(libraries, "cla", types.SimpleNamespace(to_device=to_device))
    return found


def test_clblast_multiplies(any_device, on_the_device):
    """The library itself: rates of all rounds, and the product."""
    library = ctypes.util.find_library("clblast")
    if not library:
        lacking("CLBlast is not installed")
    rates = libraries.clblast(24, 40, 56, any_device, library)
    assert len(rates) == libraries.ROUNDS and min(rates) > 0
    a, b, c = (x.get().astype(float) for x in on_the_device)
    assert c.shape == (40, 24)
    np.testing.assert_allclose(c, b @ a, atol=1e-4)


def test_a_library_that_refuses_or_is_missing(any_device, monkeypatch):
    with pytest.raises(OSError, match="no-such-library"):
        libraries.clblast(8, 8, 8, any_device, "no-such-library.so")
    with pytest.raises(ValueError, match="is not CLBlast: it has no function CLBlastSgemm"):
        libraries.clblast(8, 8, 8, any_device, ctypes.util.find_library("c"))
    refusing = types.SimpleNamespace(CLBlastSgemm=lambda *args: -1010)
    monkeypatch.setattr(libraries.ctypes, "CDLL", lambda name: refusing)
    with pytest.raises(RuntimeError, match="CLBlast refuses 8 x 16 x 24 with status -1010"):
        libraries.clblast(8, 16, 24, any_device, "libclblast.so.1")


def test_with_clblast_a_comparison_has_both_yardsticks(any_device, monkeypatch, capsys):
    monkeypatch.setattr(libraries, "cublas", lambda m, n, k: [3.0, 1.0, 2.0])
    monkeypatch.setattr(libraries, "clblast", lambda m, n, k, device, library: [4.0, 6.0, 5.0])
    monkeypatch.setattr(libraries, "errors", lambda sizes, device: [])
    found = libraries.recorded([64], any_device, "a library")
    assert [(y["name"], y["gflops"]) for y in found["yardsticks"]] == [("cuBLAS SGEMM", 2.0), ("CLBlast SGEMM", 5.0)]
    assert found["side_by_side"][0]["clblast"] == [4.0, 6.0, 5.0]
    assert "clblast 5 (4 to 6)" in capsys.readouterr().out


def test_clblast_needs_no_pytorch(any_device, monkeypatch, capsys, tmp_path):
    """Neither for the comparison nor for its record; and both are asked for without a file, too."""
    monkeypatch.setattr(libraries, "cublas", lambda *sizes: pytest.fail("PyTorch was asked"))
    monkeypatch.setattr(libraries, "clblast", lambda m, n, k, device, library: [4.0, 6.0, 5.0])
    command = ["compare", "--sizes", "64", "--device", str(any_device.index)]
    file = tmp_path / "both.json"
    for more in ([], ["--json", str(file), "--repeats", "1"]):
        assert cli.main([*command, "--clblast", "a library", *more]) == 0
        assert "64 x 64 x 64: auto " in (said := capsys.readouterr().out) and "clblast 5 (4 to 6)" in said
    found = json.loads(file.read_text(encoding="utf-8"))
    assert [y["name"] for y in found["yardsticks"]] == ["CLBlast SGEMM"] and found["errors"] == []
