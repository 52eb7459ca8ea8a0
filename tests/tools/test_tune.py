"""`tools/tune.py` measures constants of what is right, and keeps the rest of a table."""

import dataclasses
import json

import pytest
import tune

from gemmlab.generate.candidates import Constants, FittedChip, kind_of, seconds
from gemmlab.generate.tiles import complete_tile, generated_work


def test_constants_follow_from_whole_products(any_device, monkeypatch, tmp_path):
    """Products that take as long as the model says give back the model's constants."""
    tile = complete_tile({"TSM": 64, "TSN": 32})
    known = Constants(2.5e-6 + 16 * 4e-8, 0.0, 2e-6, 0.5e-6, 1.294e-6, 2.94e-7, 5)
    device = dataclasses.replace(any_device, units=132)

    def call_seconds(device, letter, tile, sizes):
        chip = FittedChip(0.0, 0.0, 0.0, device.units)
        return seconds(generated_work(tile, sizes), known, chip)

    monkeypatch.setattr(tune, "call_seconds", call_seconds)
    monkeypatch.setattr(tune, "find_device", lambda index: device)
    monkeypatch.setattr(tune, "with_constants", lambda letter: [complete_tile({"TSM": 32}), tile])
    monkeypatch.setattr(tune, "fits", lambda letter, tile, device: True)
    monkeypatch.setattr(tune, "is_exact", lambda device, letter, tile: tile["TSM"] == 64)
    file, kind = tmp_path / "choice.json", kind_of(device.platform, device.kind)
    file.write_text(json.dumps({kind: {"tiles": {"commands": ["before"]}}, "other": {"rows": []}}))
    tune.main([str(file), "--letter", "d"])
    written = json.loads(file.read_text())
    found = written[kind]["tiles"]
    wanted = [tile, pytest.approx([1e9 * x for x in known[:-1]], rel=1e-2), 5]
    assert found["constants"] == {"d": [wanted]} and len(found["commands"]) == 2
    assert written["other"] == {"rows": []}


def test_a_file_that_is_no_table_is_refused_before_the_search(tmp_path):
    file = tmp_path / "x.json"
    for text in ("", "{", "[]"):
        file.write_text(text)
        with pytest.raises(ValueError, match="damaged"):
            tune.main([str(file), "--letter", "d"])
        assert file.read_text() == text
