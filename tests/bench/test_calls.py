"""Comparisons of whole calls: which shapes, timed how, summed up how."""

import json
import types

import numpy as np
import pytest

from gemmlab import cli
from gemmlab.bench import calls


def test_random_shapes_are_as_the_seed_says_and_within_bounds():
    shapes = calls.random_shapes(400, 3, 2e12)
    assert shapes == calls.random_shapes(400, 3, 2e12) != calls.random_shapes(400, 4, 2e12)
    assert all(1 <= side <= calls.LONGEST for shape in shapes for side in shape)
    assert all(2 * m * n * k <= 2e12 for m, n, k in shapes)
    whole = sum(all(side % 64 == 0 for side in shape) for shape in shapes)
    thin = sum(min(shape) <= 64 for shape in shapes)
    assert 60 < whole < 140 and 80 < thin < 380
    assert all(2 * m * n * k <= 1e6 for m, n, k in calls.random_shapes(20, 0, 1e6))


def test_a_round_lasts_until_all_results_are_there(monkeypatch):
    now = [0.0]

    def later(seconds):
        now[0] += seconds

    monkeypatch.setattr(calls, "time", types.SimpleNamespace(perf_counter=lambda: now[0]))
    way = calls.Way(lambda: later(2), lambda: later(10))
    assert calls.wall_seconds(way, 5) == pytest.approx((5 * 2 + 10) / 5)


def test_rounds_alternate_and_are_of_equal_length(monkeypatch):
    asked = []
    ways = {name: calls.Way(lambda name=name: asked.append(name), lambda: None) for name in ("ours", "theirs")}
    found = calls._alternating(ways)
    assert {name: len(rounds) for name, rounds in found.items()} == {"ours": calls.ROUNDS, "theirs": calls.ROUNDS}
    assert asked.count("ours") == asked.count("theirs") == 2 + calls.ROUNDS * calls.CALLS
    assert asked[4 : 4 + calls.CALLS] == calls.CALLS * ["ours"]


@pytest.mark.parametrize(("busy", "watched"), [(0, 1), (3, 4), (1000, 40)])
def test_a_round_waits_until_threads_sleep(busy, watched, monkeypatch):
    spent = [0.0]  # seconds slept so far

    def sleep(seconds):
        spent[0] += seconds

    clocks = types.SimpleNamespace(
        sleep=sleep,
        perf_counter=lambda: spent[0],
        process_time=lambda: min(spent[0], busy * calls.WATCHED),  # a thread is busy for so long
    )
    monkeypatch.setattr(calls, "time", clocks)
    calls._let_threads_sleep()
    assert spent[0] == pytest.approx(watched * calls.WATCHED)


def test_device_time_leaves_out_what_the_host_takes(monkeypatch):
    """On a host that needs 1 per call, and a device that needs 2 per call and 10 per long product."""
    now, until = 0.0, 0.0  # of the host; the device's end of all that it was given

    def given(host, device):
        nonlocal now, until
        now += host
        until = max(now, until) + device

    def wait(end=None):
        nonlocal now
        now = max(now, until if end is None else end)

    def occupy(count):
        given(0, 10 * count)
        end = until
        return calls.Long(lambda: now >= end, lambda: wait(end))

    monkeypatch.setattr(calls, "time", types.SimpleNamespace(perf_counter=lambda: now))
    assert calls.device_seconds(calls.Way(lambda: given(1, 2), wait, occupy), 25) == 2.0
    with pytest.raises(RuntimeError, match="25 calls"):
        calls.device_seconds(calls.Way(lambda: [given(1, 2), wait()], wait, occupy), 25)


def test_a_queue_is_kept_busy_by_long_products(any_device, monkeypatch):
    monkeypatch.setattr(calls, "BUSY", 64)
    way = calls._on(any_device.queue, *(calls._normal(8, 8, np.dtype(np.float32), seed) for seed in (0, 1)))
    products = way.occupy(2)
    way.call()
    products.wait()
    assert products.over()
    way.wait()


def test_precisions_are_compared_with_float32(any_device, monkeypatch):
    asked = []
    monkeypatch.setattr(calls, "matmul", lambda x, y, precision: asked.append(precision))
    monkeypatch.setattr(calls.tuning, "compile_ahead", lambda device, settings: None)
    (row,) = calls.compare([(8, 9, 10)], any_device, precisions=("tf32x3", "tf32"))
    assert [*row.seconds] == ["tf32x3", "tf32", "float32"] and len(row.ratios("tf32")) == calls.MOST_ROUNDS
    assert asked.count("tf32x3") == asked.count("tf32") == asked.count("float32") > 0
    with pytest.raises(ValueError, match="float64"):
        calls.compare([(8, 9, 10)], any_device, dtype="float64", precisions=("tf32",))
    with pytest.raises(ValueError, match="device_time"):
        calls.compare([(8, 9, 10)], any_device, precisions=("tf32",), device_time=True)


def test_the_summary():
    rows = [
        calls.Row(8, 8, 8, {"ours": [1.0, 2.0, 4.0], "theirs": [2.0, 2.0, 2.0]}),
        calls.Row(8, 8, 8, {"ours": [1.0, 1.0, 1.0], "theirs": [0.25, 0.25, 0.25]}),
    ]
    assert rows[0].ratios("ours") == [2.0, 1.0, 0.5]
    assert calls.summary(rows) == {"ours": pytest.approx({"mean": 0.5, "share": 0.5, "least": 0.25, "spread": 0.75})}


def test_large_products_are_summed_up_apart():
    rows = [calls.Row(side, side, side, {"ours": [1.0], "theirs": [2.0 * side]}) for side in (10, 1000)]
    assert [row.flops for row in rows] == [2e3, 2e9] and calls.Row(10, 10, 10, {}, "complex64").flops == 8e3
    assert calls.large(rows, "CPU") == calls.large(rows, "GPU") == rows[1:]
    found = calls.recorded(rows, "CPU")
    assert found["large"]["ours"]["mean"] == pytest.approx(2000) and calls.recorded(rows[:1], "CPU")["large"] == {}


def test_calls_are_compared_and_recorded(any_device, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(calls, "ROUND_SECONDS", 0)
    file, command = tmp_path / "calls.json", ["compare", "--device", str(any_device.index), "--sizes", "16,8x12x20"]
    if any_device.kind == "GPU":
        pytest.importorskip("torch")
    assert cli.main([*command, "--random", "1", "--most-flops", "1e4", "--json", str(file)]) == 0
    assert "geometric mean" in capsys.readouterr().out
    found = json.loads(file.read_text(encoding="utf-8"))
    assert [(r["m"], r["n"], r["k"]) for r in found["calls"][:2]] == [(16, 16, 16), (8, 12, 20)]
    assert len(found["calls"]) == 3 and len(found["summary"]) == 1
    assert {"device", "date", "command", "versions"} <= set(found)
    assert cli.main([*command, "--types", "float32,complex64", "--json", str(file)]) == 0
    found = json.loads(file.read_text(encoding="utf-8"))
    assert [r["dtype"] for r in found["calls"]] == ["float32"] * 2 + ["complex64"] * 2
    with pytest.raises(SystemExit):
        cli.main([*command, "--types", "float16"])
    assert "float16" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        cli.main([*command, "--precision", "tf16"])
    assert "tf16" in capsys.readouterr().err
    assert cli.main([*command, "--numpy"]) == 0 and "matmul of NumPy arrays" in capsys.readouterr().out
