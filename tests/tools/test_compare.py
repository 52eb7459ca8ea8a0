"""`tools/compare.py`: which shapes, timed how, summed up how; and launches alone."""

import ctypes.util
import dataclasses
import json
import types

import calls
import compare
import numpy as np
import pyopencl.array as cla
import pytest
from conftest import lacking

from gemmlab.generate import choice


def test_random_shapes_follow_the_seed_and_the_bounds():
    shapes = calls.random_shapes(400, 3, 2e12)
    assert shapes == calls.random_shapes(400, 3, 2e12) != calls.random_shapes(400, 4, 2e12)
    assert all(1 <= side <= calls.LONGEST for shape in shapes for side in shape)
    assert all(2 * m * n * k <= 2e12 for m, n, k in shapes)
    aligned = sum(all(side % 64 == 0 for side in shape) for shape in shapes)
    thin = sum(min(shape) <= 64 for shape in shapes)
    assert 60 < aligned < 140 and 80 < thin < 380
    assert all(2 * m * n * k <= 1e6 for m, n, k in calls.random_shapes(20, 0, 1e6))


class Machine:
    """A host whose calls take so many seconds, and a device that works behind it."""

    def __init__(self, host: float, device: float):
        self.host, self.device = host, device
        self.now = self.until = 0.0

    def call(self) -> None:
        self.given(self.host, self.device)

    def given(self, host: float, device: float) -> None:
        self.now += host
        self.until = max(self.now, self.until) + device

    def wait(self, end: float | None = None) -> None:
        self.now = max(self.now, self.until if end is None else end)

    def occupy(self, count: int):
        self.given(0, 10 * count)
        end = self.until
        return lambda: self.now >= end, lambda: self.wait(end)


def test_a_round_lasts_until_all_results_are_there(monkeypatch):
    machine = Machine(2, 0.5)
    monkeypatch.setattr("time.perf_counter", lambda: machine.now)
    contender = calls.Contender(machine.call, machine.wait)
    assert contender.wall_seconds(5) == pytest.approx((5 * 2 + 0.5) / 5)


def test_device_time_leaves_out_the_host(monkeypatch):
    machine = Machine(1, 2)
    monkeypatch.setattr("time.perf_counter", lambda: machine.now)
    contender = calls.Contender(machine.call, machine.wait, machine.occupy)
    assert contender.device_seconds(25) == 2.0

    def call_and_wait():
        machine.call()
        machine.wait()

    waiting = calls.Contender(call_and_wait, machine.wait, machine.occupy)
    with pytest.raises(RuntimeError, match="25 calls"):
        waiting.device_seconds(25)


def test_rounds_alternate_and_are_of_equal_length():
    made = []

    def contender(name):
        return calls.Contender(lambda: made.append(name), lambda: None)

    found = calls.alternating({name: contender(name) for name in "ab"})
    assert [len(found[name]) for name in "ab"] == [calls.ROUNDS] * 2
    assert made.count("a") == made.count("b")
    first = made[4 : 6 + 2 * calls.CALLS]  # after two calls of each to warm up
    assert first == ["a"] * (1 + calls.CALLS) + ["b"] * (1 + calls.CALLS)


def test_a_queue_is_kept_busy_by_long_products(any_device, monkeypatch):
    monkeypatch.setattr(calls, "BUSY", 64)
    contender = calls.on_queue(any_device.queue, lambda: None)
    done, wait = contender.occupy(2)
    wait()
    assert done()


def test_the_summary():
    rows = [
        calls.Row(8, 8, 8, {"ours": [1.0, 2.0, 4.0], "theirs": [2.0, 2.0, 2.0]}),
        calls.Row(8, 8, 8, {"ours": [1.0, 1.0, 1.0], "theirs": [0.25, 0.25, 0.25]}),
    ]
    assert rows[0].ratios("ours") == [2.0, 1.0, 0.5]
    expected = {"mean": 0.5, "share": 0.5, "least": 0.25, "spread": 0.75}
    assert calls.summary(rows) == {"ours": pytest.approx(expected)}
    sides = [calls.Row(side, side, side, {}) for side in (10, 1000)]
    assert [row.flops for row in sides] == [2e3, 2e9]
    assert calls.Row(10, 10, 10, {}, "complex64").flops == 8e3
    assert calls.large(sides, "CPU") == calls.large(sides, "GPU") == sides[1:]


def test_calls_are_compared_recorded_and_joined(any_device, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(calls, "ROUND_SECONDS", 0)
    monkeypatch.setattr(calls, "PAUSE", 0)
    if any_device.kind == "GPU":
        pytest.importorskip("torch")
    file, device = tmp_path / "calls.json", ["--device", str(any_device.index)]
    command = ["calls", *device, "--sizes", "16,8x12x20", "--json", str(file), "--title", "mine"]
    compare.main([*command, "--random", "1", "--most-flops", "1e4", "--types", "float32,complex64"])
    assert "geometric mean" in capsys.readouterr().out
    found = json.loads(file.read_text(encoding="utf-8"))
    shapes = [(call["m"], call["n"], call["k"], call["dtype"]) for call in found["calls"]]
    assert shapes[:2] == [(16, 16, 16, "float32"), (8, 12, 20, "float32")]
    assert [dtype for *_, dtype in shapes] == ["float32"] * 3 + ["complex64"] * 3
    assert {"device", "date", "command", "versions"} <= set(found) and len(found["summary"]) == 1
    compare.main(["calls", *device, "--sizes", "16", "--numpy"])
    assert "matmul of NumPy arrays" in capsys.readouterr().out
    joined = tmp_path / "joined.json"
    compare.main(["join", str(joined), "a device", f"some shapes={file}"])
    (one,) = json.loads(joined.read_text(encoding="utf-8"))["sets"]
    assert (one["title"], one["shapes"], len(one["calls"])) == ("mine", "some shapes", 6)


def test_precisions_are_compared_with_float32(any_device, monkeypatch):
    precisions = []
    monkeypatch.setattr(calls, "ROUND_SECONDS", 0)
    monkeypatch.setattr(calls, "compile_ahead", lambda device, choices: None)
    monkeypatch.setattr(calls, "matmul", lambda x, y, precision: precisions.append(precision))
    (row,) = calls.compare([(8, 9, 10)], any_device, precisions=("tf32x3", "tf32"))
    assert [*row.seconds] == ["tf32x3", "tf32", "float32"]
    assert precisions.count("tf32x3") == precisions.count("tf32") == precisions.count("float32") > 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("calls", "nothing to compare"),
        ("calls --sizes 8 --types float80", "float80"),
        ("calls --sizes 8 --precision tf16", "tf16"),
        ("calls --random -1", "--random"),
        ("calls --random 3 --most-flops 0", "--most-flops"),
        ("calls --sizes 8 --title x", "--title"),
        ("calls --sizes 8 --types float64 --precision tf32", "float64"),
        ("calls --sizes 8 --numpy --device-time", "device_time"),
        ("launches --sizes 8", "--cublas"),
        ("launches --cublas", "--sizes"),
        ("launches --sizes 8 --clblast no-such-library.so", "no-such-library.so"),
        ("launches --sizes 8 --clblast libc.so.6", "is not CLBlast"),
        ("join x.json x no-file", "SHAPES=FILE"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, words, any_device, capsys):
    with pytest.raises((SystemExit, ValueError, OSError)) as refused:
        compare.main(arguments.split())
    assert words in capsys.readouterr().err + str(refused.value)


def test_launches_alone_are_recorded(any_device, monkeypatch, capsys, tmp_path):
    """With both libraries' rates made up; ours are measured."""
    monkeypatch.setattr(compare, "cublas", lambda sizes: [3.0, 1.0, 2.0])
    monkeypatch.setattr(compare, "clblast", lambda sizes, device, library: [4.0, 6.0, 5.0])
    monkeypatch.setattr(compare, "errors", lambda sizes, device: [{"sizes": sizes}])
    file, device = tmp_path / "both.json", ["--device", str(any_device.index)]
    more = ["--cublas", "--clblast", "a library", "--json", str(file), *device]
    compare.main(["launches", "--sizes", "64,32x96x64", *more])
    assert "32 x 96 x 64: cublas 2, auto" in capsys.readouterr().out
    found = json.loads(file.read_text(encoding="utf-8"))
    names = [(y["name"], y["m"], y["gflops"]) for y in found["yardsticks"]]
    libraries = (("cuBLAS SGEMM", 2.0), ("CLBlast SGEMM", 5.0))
    assert names == [(name, m, rate) for name, rate in libraries for m in (64, 32)]
    for one, sizes in zip(found["side_by_side"], [(64, 64, 64), (32, 96, 64)], strict=True):
        assert (one["m"], one["n"], one["k"]) == sizes
        chosen = choice.choose(any_device, sizes)
        assert (one["kernel"], tuple(one["params"].items())) == chosen
        assert len(one["auto"]) == compare.ROUNDS and min(one["auto"]) > 0
    assert all(result["ok"] for result in found["auto"]) and len(found["auto"]) == 2


@pytest.mark.system
def test_launches_on_tensor_cores(any_device, monkeypatch):
    """Emulated, unless the device has them."""
    monkeypatch.setattr(compare, "PRODUCTS", 1)
    able = dataclasses.replace(any_device, features=any_device.features | {"tensor"})
    for precision in compare.tensor_precisions(able):
        assert min(compare.ours((96, 96, 96), able, precision)) > 0


@pytest.mark.system
def test_clblast_multiplies(any_device):
    """The library itself: rates of all rounds, and the product."""
    library = ctypes.util.find_library("clblast")
    if not library:
        lacking("CLBlast is not installed")
    rates = compare.clblast((24, 40, 56), any_device, library)
    assert len(rates) == compare.ROUNDS and min(rates) > 0
    rng, queue = np.random.default_rng(0), any_device.queue
    shapes = (56, 24), (40, 56), (40, 24)
    a, b, c = (cla.to_device(queue, rng.random(shape, np.float32)) for shape in shapes)
    compare.clblast_sgemm(library, queue, (24, 40, 56))(a.base_data, b.base_data, c.base_data)
    np.testing.assert_allclose(c.get(), b.get() @ a.get(), atol=1e-4)


def test_clblast_may_refuse(any_device, monkeypatch):
    refusing = types.SimpleNamespace(CLBlastSgemm=lambda *args: -1010)
    monkeypatch.setattr(compare.ctypes, "CDLL", lambda name: refusing)
    with pytest.raises(RuntimeError, match="CLBlast refuses 8 x 16 x 24 with status -1010"):
        compare.clblast((8, 16, 24), any_device, "libclblast.so.1")
