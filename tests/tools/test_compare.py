"""`tools/compare.py`: which shapes, timed how, and summed up how."""

import json

import compare
import pytest

from gemmlab.measurement import clock


def test_random_shapes_follow_the_seed_and_the_bounds():
    shapes = compare.random_shapes(400, 3, 2e12)
    assert shapes == compare.random_shapes(400, 3, 2e12) != compare.random_shapes(400, 4, 2e12)
    assert all(1 <= side <= compare.LONGEST for shape in shapes for side in shape)
    assert all(2 * m * n * k <= 2e12 for m, n, k in shapes)
    aligned = sum(all(side % 64 == 0 for side in shape) for shape in shapes)
    thin = sum(min(shape) <= 64 for shape in shapes)
    assert 60 < aligned < 140 and 80 < thin < 380


def test_rounds_alternate_and_are_of_equal_length():
    made = []
    rivals = {name: (lambda name=name: made.append(name), lambda: None) for name in "ab"}
    found = compare.alternating(rivals, 3)
    assert [len(found[name]) for name in "ab"] == [3, 3]
    one = clock.MOST_CALLS + 1
    assert made[4:] == (["a"] * one + ["b"] * one) * 3  # after two calls of each to warm up


def test_the_summary():
    rows = [
        compare.Row(8, 8, 8, {"ours": [1.0, 2.0, 4.0], "theirs": [2.0, 2.0, 2.0]}),
        compare.Row(8, 8, 8, {"ours": [1.0, 1.0, 1.0], "theirs": [0.25, 0.25, 0.25]}),
    ]
    assert rows[0].ratios("ours") == [2.0, 1.0, 0.5]
    expected = {"mean": 0.5, "share": 0.5, "least": 0.25, "spread": 0.75}
    assert compare.summary(rows) == {"ours": pytest.approx(expected)}
    sides = [compare.Row(side, side, side, {}) for side in (10, 1000)]
    assert [row.flops for row in sides] == [2e3, 2e9]
    assert compare.Row(10, 10, 10, {}, "complex64").flops == 8e3
    assert compare.large(sides, "CPU") == compare.large(sides, "GPU") == sides[1:]


def test_calls_are_compared_recorded_and_joined(any_device, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(compare, "ROUND_SECONDS", 0)
    monkeypatch.setattr(compare, "PAUSE", 0)
    if any_device.kind == "GPU":
        pytest.importorskip("torch")
    file, device = tmp_path / "calls.json", ["--device", str(any_device.index)]
    command = ["calls", *device, "--sizes", "16,8x12x20", "--json", str(file), "--title", "mine"]
    compare.main([*command, "--random", "1", "--most-flops", "1e4", "--types", "float32,complex64"])
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
    monkeypatch.setattr(compare, "ROUND_SECONDS", 0)
    monkeypatch.setattr(compare, "matmul", lambda x, y, precision="float32": None)
    (row,) = compare.compare([(8, 9, 10)], any_device, precisions=("tf32x3", "tf32"))
    assert [*row.seconds] == ["tf32x3", "tf32", "float32"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("calls", "nothing to compare"),
        ("calls --sizes 8 --types float80", "float80"),
        ("calls --random 3 --most-flops 0", "--most-flops"),
        ("calls --sizes 8 --title x", "--title"),
        ("calls --sizes 8 --types float64 --precision tf32", "float64"),
        ("join x.json x no-file", "SHAPES=FILE"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments, words, any_device, capsys):
    with pytest.raises((SystemExit, ValueError)) as refused:
        compare.main(arguments.split())
    assert words in capsys.readouterr().err + str(refused.value)
