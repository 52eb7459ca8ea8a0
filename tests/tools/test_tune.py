"""`tools/tune.py` finds what is fastest and right, and keeps the rest of a table."""

import dataclasses
import json
import types

import pytest
import tune
from landscapes import made_up

from gemmlab.generate import table
from gemmlab.generate.cost import Chip, Constants, generated_work, seconds
from gemmlab.generate.tiles import complete_tile
from gemmlab.worker.client import Outcome

# Kernels


def made_up_trial(rate):
    """A trial whose rate is made up; 0 for a kernel that is wrong."""

    def trial(kernel, m, n, k, params, **options):
        gflops = rate(kernel, params)
        result = types.SimpleNamespace(ok=gflops > 0, pipeline_gflops=gflops, verdict="wrong")
        return Outcome({}, result)

    return trial


def test_the_fastest_of_a_landscape_is_found_and_never_a_wrong_one(any_device, monkeypatch):
    """On a made-up device on which kernel 3 is fast, and kernel 2 faster, but wrong."""
    tried = []

    def rate(kernel, params):
        tried.append((kernel, tuple(params.items())))
        return {2: 0.0, 3: 100.0 + params.get("WPT", 0)}.get(kernel, 1.0)

    monkeypatch.setattr(tune, "trial", made_up_trial(rate))
    known = made_up(2, 3, 12)
    row = tune.fastest(any_device, "pad", (512, 512, 512), known)
    best = {values for number, values in tried if number == 3}
    assert row["kernel"] == 3 and tuple(row["params"].items()) in best
    assert row["gflops"] == 100 + max(dict(values)["WPT"] for values in best)
    assert len(tried) == len(set(tried)) and not any(number == 12 for number, _ in tried)
    assert len(best) <= tune.TRIED + 1
    # what the table has stays unless something is faster
    number, params = table.nearest(any_device, (512, 512, 512), "pad")
    before = {"kernel": number, "params": dict(params), "gflops": 5.0}
    monkeypatch.setattr(
        tune, "trial", made_up_trial(lambda k, p: 5.0 if (k, p) == (number, dict(params)) else 1.0)
    )
    assert tune.fastest(any_device, "pad", (512, 512, 512), known) == before


def test_kernels_go_into_their_list_and_the_rest_stays(tmp_path, any_device, monkeypatch):
    monkeypatch.setattr(tune, "TRIED", 1)
    file, recorded = tmp_path / "choice.json", tmp_path / "landscape.json"
    made_up(12, limits=any_device.limits).save(recorded)
    kind, kept = table.kind(any_device), [{"size": 101, "kernel": 1}, {"size": 1002, "kernel": 1}]
    known = {kind: {"kernels": {"guard": kept, "commands": ["before"]}}, "other": {"rows": []}}
    file.write_text(json.dumps(known))
    monkeypatch.setattr(tune, "file_of", lambda device: recorded)
    options = ["--edges", "guard", "--device", str(any_device.index)]
    tune.main(["kernels", str(file), "--sizes", "1002,64", *options])
    written = json.loads(file.read_text())
    first, *others = written[kind]["kernels"]["guard"]
    assert [first["size"], *(row["size"] for row in others)] == [64, 101, 1002]
    assert others[0] == kept[0] and min(first["gflops"], others[1]["gflops"]) > 0
    assert written["other"] == {"rows": []} and len(written[kind]["kernels"]["commands"]) == 2


# Tiles of warps


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
    assert entry["tiles"]["constants"] == {"d": [[tile, pytest.approx([1e9 * x for x in known], rel=1e-3)]]}


def test_a_file_that_is_no_table_is_refused_before_the_search(tmp_path):
    file = tmp_path / "x.json"
    for text in ("", "{", "[]"):
        file.write_text(text)
        with pytest.raises(ValueError, match="damaged"):
            tune.main(["kernels", str(file), "--sizes", "8"])
        assert file.read_text() == text
