"""`tools/tune.py` finds what is fastest and right, and keeps the rest of a table."""

import dataclasses
import json

import pytest
import tune
from landscapes import made_up

from gemmlab.generate import table
from gemmlab.generate.cost import Chip, Constants, generated_work, seconds
from gemmlab.generate.tiles import complete_tile


def test_kernels_come_from_a_landscape_and_the_rest_stays(tmp_path, any_device):
    file, recorded = tmp_path / "choice.json", tmp_path / "landscape.json"
    known = made_up(2, 3, 12)
    wrong = known.kernels[3]["settings"].pop()  # the fastest
    known.kernels[3]["refused"].append([*wrong[:2], "wrong"])
    known.save(recorded)
    kind, kept = table.kind(any_device), [{"size": 101, "kernel": 1}, {"size": 4096, "kernel": 1}]
    before = {kind: {"kernels": {"guard": kept, "commands": ["before"]}}, "other": {"rows": []}}
    file.write_text(json.dumps(before))
    device = ["--device", str(any_device.index)]
    tune.main(["kernels", str(file), *device, "--landscape", str(recorded)])
    written = json.loads(file.read_text())
    rows = written[kind]["kernels"]
    ((pad,), (old, guard)) = rows["pad"], rows["guard"]
    assert pad["params"] == dict(zip(("TS", "WPT"), known.kernels[3]["settings"][-1], strict=False))
    assert (pad["kernel"], guard["kernel"], old) == (3, 12, kept[0]) and "shift" not in rows
    assert pad["size"] == guard["size"] == 4096 and pad["gflops"] < wrong[2]
    assert written["other"] == {"rows": []} and len(rows["commands"]) == 2


def test_constants_follow_from_whole_products(any_device, monkeypatch, tmp_path):
    """Products that take as long as the model says give back the model's constants."""
    tile = complete_tile({"TSM": 64, "TSN": 32})
    known = Constants(2.5e-6 + 16 * 4e-8, 0.0, 2e-6, 0.5e-6, 1.294e-6, 2.94e-7)
    device = dataclasses.replace(any_device, units=132)

    def call_seconds(device, letter, tile, sizes):
        chip = Chip(0.0, 0.0, 0.0, device.units)
        return seconds(generated_work(tile, sizes), known, chip)

    monkeypatch.setattr(tune, "call_seconds", call_seconds)
    monkeypatch.setattr(tune, "find_device", lambda index: device)
    monkeypatch.setattr(tune, "with_constants", lambda letter: [complete_tile({"TSM": 32}), tile])
    monkeypatch.setattr(tune, "fits", lambda letter, tile, device: True)
    monkeypatch.setattr(tune, "is_exact", lambda device, letter, tile: tile["TSM"] == 64)
    file = tmp_path / "choice.json"
    tune.main(["constants", str(file), "--letter", "d"])
    (entry,) = json.loads(file.read_text()).values()
    assert entry["tiles"]["constants"] == {
        "d": [[tile, pytest.approx([1e9 * x for x in known], rel=1e-3)]]
    }


def test_a_file_that_is_no_table_is_refused_before_the_search(tmp_path):
    file = tmp_path / "x.json"
    for text in ("", "{", "[]"):
        file.write_text(text)
        with pytest.raises(ValueError, match="damaged"):
            tune.main(["kernels", str(file)])
        assert file.read_text() == text
