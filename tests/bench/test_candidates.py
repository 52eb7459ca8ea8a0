"""The record of candidates: every shape once, continued and renewed; and constants that are found again in a record."""

import json
import re

import numpy as np
import pytest

from gemmlab.bench import calls, candidates, fitting
from gemmlab.catalog import NARROW
from gemmlab.family import choice, ranking
from gemmlab.family.candidates import KERNELS

TILE = {"LINES": 2, "ROWS": 0, "TSK": 64, "WPT": 1, "WIDTH": 1}


@pytest.fixture
def tiny(monkeypatch):
    """Two shapes, with two candidates each."""

    def few(device, sizes, precision="float32"):
        return [("narrow", tuple((TILE | {"GROUPS": groups}).items())) for groups in (0, 2)]

    monkeypatch.setattr(candidates, "shapes", lambda random: [(2, 40, 100), (1, 33, 130)][: random or None])
    monkeypatch.setattr(candidates.candidates, "candidates", few)
    monkeypatch.setattr(candidates, "peaks", lambda device: type("Peaks", (), {"gflops": 1000.0}))


def test_the_shapes_to_record_are_no_shapes_of_comparisons():
    found = candidates.shapes()
    assert len(found) == len(set(found)) >= candidates.RANDOM and set(candidates.PROMISED) < set(found)
    for seed in (0, 1, 2, 3):
        compared = {s for s in calls.random_shapes(60, seed, calls.MOST_FLOPS["GPU"]) if min(s) > 64}
        assert not compared & set(found)


def test_the_look_at_operands_is_timed(any_device, monkeypatch):
    monkeypatch.setattr(calls, "BUSY", 512)
    bench, asked = candidates._Bench(any_device), []
    elements, microseconds = bench.range_check(16)
    assert elements == 2 * 16**2 and 0 < microseconds < 1e7
    monkeypatch.setattr(candidates, "matmul", lambda *given, **options: asked.append(options["precision"]))
    assert bench.call_with_range_check() > 0 and {*asked} == {"tf32"} and len(asked) > calls.CALLS


def test_a_record_is_continued_and_renewed(any_device, tiny, tmp_path):
    path = tmp_path / "candidates.json"
    candidates.record(any_device, path, "python -m gemmlab record candidates", random=1)
    first = json.loads(path.read_text())
    assert [s["sizes"] for s in first["shapes"]] == [[40, 2, 100]]
    assert first["kernels"] == [["narrow", TILE | {"GROUPS": g}] for g in (0, 2)]
    (one,) = first["shapes"]
    assert {run[0] for run in one["float32"]["runs"]} == {0, 1} and one["float32"]["failed"] == []
    assert all(0 < least <= median < 1e7 and launches == 1 for _, least, median, launches in one["float32"]["runs"])
    candidates.record(any_device, path, "again", random=0)
    both = json.loads(path.read_text())
    assert len(both["shapes"]) == 2 and both["shapes"][0] == one
    both["shapes"][0]["float32"]["runs"] = [[0, 1e9, 1e9, 1]]
    path.write_text(json.dumps(both))
    candidates.record(any_device, path, "anew", random=0, anew="narrow")
    renewed = json.loads(path.read_text())
    assert {run[0] for run in renewed["shapes"][0]["float32"]["runs"]} == {0, 1}
    assert all(run[1] < 1e9 for shape in renewed["shapes"] for run in shape["float32"]["runs"])
    path.write_text(json.dumps(renewed | {"device": {"device": "another"}}))
    with pytest.raises(ValueError, match="another"):
        candidates.record(any_device, path, "elsewhere")


def made(units: int = 20) -> tuple[dict, dict]:
    """A record in which every time follows from constants, and these constants."""
    rng = np.random.default_rng(0)
    chip = ranking.Chip(1e-12, 1e-12, 5e-6, 1e-7, units)
    kernels, texts = [], {}
    for lines in (2, 4, 8):
        constants = ranking.Constants(4e-6, 5e-7, 1e-6 * lines, 5e-7 * lines, 2e-6, 1e-7)
        for groups in (0, 20, 40):
            params = TILE | {"LINES": lines, "GROUPS": groups}
            kernels.append(["narrow", params])
            texts[ranking.text_of((NARROW.number, tuple(params.items())))] = constants
    shapes = []
    for _ in range(60):
        m, n, k = (int(x) for x in np.exp(rng.uniform(np.log((50, 1, 50)), np.log((5000, 8, 5000)))))
        runs = []
        for number, (_, params) in enumerate(kernels):
            taken = (NARROW.number, tuple(params.items()))
            time = ranking.seconds(ranking.work(taken, (m, n, k)), texts[ranking.text_of(taken)], chip)
            time *= float(np.exp(rng.normal(0, 0.02)))
            runs.append([number, 1e6 * time, 1e6 * time, 1])
        shapes.append({"sizes": [m, n, k], "float32": {"runs": runs}, "cublas_us": [10.0, 10.0]})
    device = {"device": "made up", "platform": "NVIDIA CUDA", "driver": "1.0", "units": units}
    record = {"device": device, "date": "2026-11-23", "kernels": kernels, "shapes": shapes}
    looks = {"range_us": [[100, 20.0], [10**6, 30.0], [10**7, 120.0]], "range_call_us": 100.0}
    return record | looks, texts


def test_constants_are_found_again(tmp_path, any_device, monkeypatch):
    """From times with a spread of 2 %, well enough to choose as well as the times themselves would."""
    record, texts = made()
    file, table = tmp_path / "record.json", tmp_path / "choice.json"
    file.write_text(json.dumps(record))
    table.write_text(json.dumps({"gpu": {"device": "another", "texts": []}}))
    monkeypatch.setattr(fitting, "judged", lambda record: {"mean": 1.0})
    found = fitting.write(file, table, "python -m gemmlab record choice")
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", found["date"]) and found["held_out"] == {"mean": 1.0}
    assert json.loads(table.read_text()) == {"gpu": {"device": "another", "texts": []}, "nvidia": found}
    start, element, host = found["check"]
    assert 5e3 < start < 3e4 and 5 < 1e3 * element < 20 and start + host == pytest.approx(1e5, rel=1e-3)
    assert {KERNELS[name] for name, *_ in found["texts"]} == {NARROW.number}
    assert {ranking.text_of((KERNELS[name], tuple(p.items()))) for name, p, *_ in found["texts"]} <= texts.keys()
    chip = ranking.Chip(**{name: 1e-9 * value for name, value in found["chip"].items()}, units=20)
    own = {(KERNELS[name], tuple(p.items())): [1e-9 * c for c in constants] for name, p, constants, _ in found["texts"]}
    errors = [
        np.log(ranking.seconds(row.work, ranking.Constants(*own[ranking.text_of(row.choice)]), chip) / row.seconds)
        for row in fitting.timed(record)
        if row.best > 0.5 * row.seconds and ranking.text_of(row.choice) in own
    ]
    assert np.median(np.abs(errors)) < 0.1


def test_the_choice_is_judged_by_shapes_that_were_left_out():
    record, _ = made()
    record["shapes"] = record["shapes"][:24]
    found = fitting.judged(record, folds=2)
    assert found["shapes"] == 24 and 0.9 < found["mean"] <= 1 and found["least"] > 0.5 and found["mean_cublas"] > 0


def test_the_recorded_constants_are_those_of_the_record():
    """Each text of the table was recorded, and the table says how good its choice is."""
    folder = choice.sources.folder("results")
    entry = json.loads((folder / "choice.json").read_text(encoding="utf-8"))["nvidia"]
    record = json.loads((folder / "nvidia_h200_candidates.json").read_text(encoding="utf-8"))
    recorded = {ranking.text_of((KERNELS[name], tuple(params.items()))) for name, params in record["kernels"]}
    assert {(KERNELS[name], tuple(params.items())) for name, params, *_ in entry["texts"]} <= recorded
    assert entry["device"] == record["device"]["device"] and entry["held_out"]["shapes"] == len(record["shapes"])
    assert entry["held_out"]["mean"] > 0.9
