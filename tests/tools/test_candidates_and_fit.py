"""The record of candidates is continued; `fit.py` recovers constants from a record."""

import json

import compare
import fit
import numpy as np
import pytest
import record_candidates

from gemmlab.generate import candidates
from gemmlab.ladder import NARROW, sources

TILE = {"LINES": 2, "ROWS": 0, "TSK": 64, "WPT": 1, "WIDTH": 1}


@pytest.fixture
def tiny(monkeypatch):
    """Two shapes, with two candidates each."""

    def two(device, sizes, precision="float32"):
        return [("narrow", tuple((TILE | {"GROUPS": groups}).items())) for groups in (0, 2)]

    monkeypatch.setattr(record_candidates, "shapes", lambda: [(2, 40, 100), (1, 33, 130)])
    monkeypatch.setattr(record_candidates, "settings_at", two)


def test_the_recorded_shapes_are_not_those_of_comparisons():
    recorded = record_candidates.shapes()
    assert len(recorded) == len(set(recorded)) >= record_candidates.RANDOM
    assert set(record_candidates.PROMISED) < set(recorded)
    for seed in range(4):
        compared = compare.random_shapes(60, seed, compare.MOST_FLOPS["GPU"])
        assert not {shape for shape in compared if min(shape) > 64} & set(recorded)


def test_the_range_check_is_timed(any_device, monkeypatch):
    precisions = []
    elements, microseconds = record_candidates.range_check(any_device, 16)
    assert elements == 2 * 16**2 and 0 < microseconds < 1e7

    def matmul(*operands, precision, **options):
        precisions.append(precision)

    monkeypatch.setattr(record_candidates, "matmul", matmul)
    assert record_candidates.call_with_range_check(any_device) > 0
    assert {*precisions} == {"tf32"} and len(precisions) > 1


@pytest.mark.system
def test_a_record_is_continued(any_device, tiny, tmp_path):
    path = tmp_path / "candidates.json"
    command = [str(path), "--device", str(any_device.index)]
    record_candidates.main(command)
    both = json.loads(path.read_text())
    assert [one["sizes"] for one in both["shapes"]] == [[40, 2, 100], [33, 1, 130]]
    assert both["kernels"] == [["narrow", TILE | {"GROUPS": g}] for g in (0, 2)]
    for one in both["shapes"]:
        runs = one["float32"]["runs"]
        assert {run[0] for run in runs} == {0, 1} and one["float32"]["failed"] == []
        assert all(0 < least <= median < 1e7 for _, least, median in runs)
    path.write_text(json.dumps(both | {"shapes": both["shapes"][:1]}))
    record_candidates.main(command)
    again = json.loads(path.read_text())["shapes"]
    assert len(again) == 2 and again[0] == both["shapes"][0]
    path.write_text(json.dumps(both | {"device": {"device": "another"}}))
    with pytest.raises(ValueError, match="another"):
        record_candidates.main(command)


def made(units: int = 20) -> tuple[dict, dict]:
    """A record in which every time follows from constants, and these constants."""
    rng = np.random.default_rng(0)
    chip = candidates.FittedChip(1e-12, 1e-12, 5e-6, units)
    kernels, texts, registers = [], {}, []
    for lines in (2, 4, 8):
        for groups in (0, 20, 40):
            params = TILE | {"LINES": lines, "GROUPS": groups}
            kernels.append(["narrow", params])
            text = record_candidates.text_of((NARROW.number, tuple(params.items())))
        registers.append(["narrow", dict(text[1]), 16 * lines])
        held = fit.resident(text, fit.reported({"registers": registers}))
        texts[text] = candidates.Constants(4e-6, 5e-7, 1e-6 * lines, 5e-7 * lines, 2e-6, 1e-7, held)
    shapes = []
    for _ in range(60):
        low, high = np.log((50, 1, 50)), np.log((5000, 8, 5000))
        m, n, k = np.exp(rng.uniform(low, high)).astype(int).tolist()
        runs = []
        for number, (_, params) in enumerate(kernels):
            taken = (NARROW.number, tuple(params.items()))
            text = record_candidates.text_of(taken)
            time = candidates.seconds(candidates.work(taken, (m, n, k)), texts[text], chip)
            time *= float(np.exp(rng.normal(0, 0.02)))
            runs.append([number, 1e6 * time, 1e6 * time])
        shapes.append({"sizes": [m, n, k], "float32": {"runs": runs}})
    device = {"device": "made up", "platform": "NVIDIA CUDA", "driver": "1.0", "units": units}
    record = {"device": device, "date": "2026-11-23", "kernels": kernels, "shapes": shapes}
    looks = {"range_us": [[100, 20.0], [10**6, 30.0], [10**7, 120.0]], "range_call_us": 100.0}
    return record | looks | {"registers": registers}, texts


def test_constants_are_recovered(tmp_path, capsys):
    """From times with a spread of 2 %, well enough to choose as the times themselves would."""
    record, texts = made()
    file, table = tmp_path / "record.json", tmp_path / "choice.json"
    file.write_text(json.dumps(record))
    table.write_text(json.dumps({"gpu": {"device": "another", "texts": []}}))
    fit.main([str(file), str(table)])
    written = json.loads(table.read_text())
    assert written["gpu"] == {"device": "another", "texts": []}
    found = written["nvidia"]["model"]
    assert found["date"] == record["date"] and found["commands"]
    start, element, host = found["check"]
    assert 5e3 < start < 3e4 and 5 < 1e3 * element < 20
    assert start + host == pytest.approx(1e5, rel=1e-3)
    chip = candidates.FittedChip(
        **{name: 1e-9 * ns for name, ns in found["chip"].items()}, units=20
    )
    own = {
        (name, tuple(params.items())): candidates.Constants(
            *(1e-9 * ns for ns in constants), resident=resident
        )
        for name, params, constants, _, resident in found["texts"]
    }
    assert own.keys() <= texts.keys()
    errors = [
        np.log(candidates.seconds(row.work, own[text], chip) / row.seconds)
        for row in fit.timed(record)
        if row.best > 0.5 * row.seconds and (text := record_candidates.text_of(row.setting)) in own
    ]
    assert np.median(np.abs(errors)) < 0.1
    judged = found["held_out"]  # at shapes that were left out
    assert judged["shapes"] == 60 and 0.9 < judged["mean"] <= 1 and judged["least"] > 0.5
    assert f"left out of the fit: {judged}" in capsys.readouterr().out


def test_the_recorded_constants_are_those_of_the_record():
    """Each text of the table was recorded, and the table says how good its choice is."""
    folder = sources.folder("results")
    entry = json.loads((folder / "choice.json").read_text(encoding="utf-8"))["nvidia"]["model"]
    record = json.loads((folder / "nvidia_h200_candidates.json").read_text(encoding="utf-8"))
    recorded = {
        record_candidates.text_of((name, tuple(params.items())))
        for name, params in record["kernels"]
    }
    assert {(name, tuple(params.items())) for name, params, *_ in entry["texts"]} <= recorded
    assert entry["device"] == record["device"]["device"] and entry["held_out"]["mean"] > 0.9
    assert entry["held_out"]["shapes"] == len(record["shapes"])
