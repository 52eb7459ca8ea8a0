"""`tools/compare.py`: which shapes, timed how, and summed up how."""

import compare
import pytest

from gemmlab.measurement import clock, records


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
    found = compare.alternate(rivals)
    assert [len(found[name]) for name in "ab"] == [compare.ROUNDS] * 2
    one = clock.MOST_CALLS + 1
    assert made[4:] == (["a"] * one + ["b"] * one) * compare.ROUNDS  # after two calls to warm up


def test_the_summary():
    rows = [
        compare.Pair(8, 8, 8, {"ours": [1.0, 2.0, 4.0], "theirs": [2.0, 2.0, 2.0]}),
        compare.Pair(8, 8, 8, {"ours": [1.0, 1.0, 1.0], "theirs": [0.25, 0.25, 0.25]}),
    ]
    assert rows[0].ratios == [2.0, 1.0, 0.5]
    expected = {"mean": 0.5, "least": 0.25, "spread": 0.75}
    assert compare.summary(rows) == pytest.approx(expected)
    sides = [compare.Pair(side, side, side, {"ours": [1], "theirs": [side]}) for side in (10, 1000)]
    assert [row.flops for row in sides] == [2e3, 2e9]
    assert compare.Pair(10, 10, 10, {}, "complex64").flops == 8e3
    for kind in ("CPU", "GPU", "other"):
        large = compare.large(sides, kind)
        assert [compare.summary(part)["least"] for part in (sides, large)] == [10, 1000]


@pytest.fixture
def quick(monkeypatch):
    monkeypatch.setattr(compare, "ROUNDS", 2)
    monkeypatch.setattr(compare, "ROUND_SECONDS", 0)
    monkeypatch.setattr(compare, "PAUSE", 0)
    monkeypatch.setattr(compare, "MOST_FLOPS", {"GPU": 1e4, "CPU": 1e4})


def test_calls_are_compared_and_each_run_is_a_set_of_the_record(any_device, quick, tmp_path):
    if any_device.kind == "GPU":
        pytest.importorskip("torch")
    file, device = tmp_path / "calls.json", ["--device", str(any_device.index)]
    command = [*device, "--json", str(file), "--title", "mine"]
    compare.main([*command, "--sizes", "16,8x12x20", "--random", "1"])
    compare.main([*command, "--sizes", "16", "--dtype", "complex64"])
    rows = records.read(file)
    assert all(row.title == "mine" and row.head["command"] and row.runs == 2 for row in rows)
    first = [row for row in rows if row.series == "2 shapes and 1 random shapes, seed 0"]
    shapes = [(pair.m, pair.n, pair.k, pair.precision) for pair in compare.pairs(first)]
    assert shapes[:2] == [(16, 16, 16, "float32"), (8, 12, 20, "float32")] and len(shapes) == 3
    (second,) = compare.pairs(row for row in rows if row not in first)
    assert second.precision == "complex64" and len(second.seconds) == 2


def test_an_interrupt_keeps_what_was_compared(any_device, quick, tmp_path, monkeypatch):
    rounds = iter([{"ours": [1.0], "theirs": [2.0]}])

    def once(rivals):
        for one in rounds:
            return one
        raise KeyboardInterrupt

    monkeypatch.setattr(compare, "alternate", once)
    file = tmp_path / "calls.json"
    with pytest.raises(KeyboardInterrupt):
        compare.main(["--sizes", "8,9", "--device", str(any_device.index), "--json", str(file)])
    pairs = compare.pairs(records.read(file))
    assert len(pairs) == 1 and compare.summary(pairs)["mean"] == pytest.approx(2.0)


def test_a_precision_is_compared_with_float32(any_device, quick, monkeypatch):
    monkeypatch.setattr(compare, "matmul", lambda x, y, precision="float32": None)
    (row,) = compare.compare([(8, 9, 10)], any_device, precision="tf32x3")
    assert [*row.seconds] == ["tf32x3", "float32"]
