"""`tools/tune.py` finds what is fastest and right, loses nothing, and keeps the rest of a table."""

import dataclasses
import json
from math import prod

import pytest
import tune

from gemmlab.catalog import Limits, catalog
from gemmlab.generate import split, table
from gemmlab.generate.cost import Chip, Constants, generated_work, seconds
from gemmlab.generate.tiles import DEFAULTS, by_rule, complete_tile

SMALL = complete_tile({"TSM": 16, "TSN": 16, "TSK": 8, "WPTM": 2, "WPTN": 2})
LONG = complete_tile({"TSM": 32, "TSN": 8, "TSK": 8, "WPTM": 2, "WPTN": 2})
ILLEGAL = complete_tile({"TSM": 30})


# Kernels


def test_the_search_finds_the_fastest_and_never_a_wrong_one(any_device):
    """On a made-up device that likes kernel 7 with WIDTH 2, and on which kernel 9 fails."""
    rated = []

    def rate(setting, sizes):
        kernel, params = setting
        rated.append(str(setting))
        assert sizes == (512, 512, 512)
        if kernel == 9:
            return 0.0
        width, side = abs(params.get("WIDTH", 2) - 2), abs(params.get("TSM", 64) - 64)
        return (160 if kernel == 7 else 110) - 5 * width - side / 4

    row = tune.best_row(tune.Search(any_device, tries=2), 512, rate)
    assert row["kernel"] == 7 and row["params"]["WIDTH"] == 2 and row["params"]["TSM"] == 64
    assert (row["size"], row["gflops"]) == (512, 160)
    assert len(rated) == len(set(rated)), "nothing is rated twice"


def test_what_the_table_has_stays_unless_something_is_faster(any_device):
    sizes = 512, 512, 512
    known = table.nearest(any_device, sizes, "pad")
    other = next(kernel for kernel in (3, 6) if kernel != known[0])
    search = tune.Search(any_device, kernels=[other], tries=2)

    def rate(setting, sizes):
        return 100.0 if (setting[0], tuple(setting[1].items())) == known else 50.0

    row = tune.best_row(search, 512, rate)
    assert (row["kernel"], tuple(row["params"].items())) == known and row["gflops"] == 100
    row = tune.best_row(search, 512, lambda setting, sizes: 200.0 if setting[0] == other else 1.0)
    assert row["kernel"] == other and row["gflops"] == 200


def test_kernels_go_into_their_list_and_the_rest_stays(tmp_path, any_device, monkeypatch):
    monkeypatch.setattr(tune, "best_row", lambda search, size, rate: {"size": size, "new": 1})
    file, kind = tmp_path / "choice.json", table.kind(any_device)
    kept = [{"size": 101, "kernel": 1}, {"size": 1002, "kernel": 1}]
    known = {kind: {"kernels": {"guard": kept, "commands": ["before"]}}, "other": {"rows": []}}
    file.write_text(json.dumps(known))
    options = ["--edges", "guard", "--device", str(any_device.index)]
    tune.main(["kernels", str(file), "--sizes", "1002,512", *options])
    found = json.loads(file.read_text())
    new = [{"size": 512, "new": 1}, {"size": 1002, "new": 1}]
    assert found[kind]["kernels"]["guard"] == [kept[0], *new]
    assert found["other"] == {"rows": []} and len(found[kind]["kernels"]["commands"]) == 2


@pytest.mark.system
def test_a_trial_rates_a_setting(any_device):
    params = catalog[3].validate({"TS": 16, "WPT": 4})
    assert tune.by_trial((3, params), (64, 64, 64), any_device) > 0
    assert tune.by_trial((3, {"TS": 20}), (64, 64, 64), any_device) == 0


# Tiles


def kinds(device):
    gpu = Limits("a GPU", 1024, (1024, 1024, 64), 48 * 1024)
    yield device
    yield dataclasses.replace(device, kind="GPU", platform="NVIDIA CUDA", limits=gpu, units=132)


@pytest.mark.parametrize("letter", tune.WARPS)
def test_candidates_are_legal_and_the_rule_s_own_comes_first(letter, any_device):
    for device in kinds(any_device):
        found = tune.candidates(device, letter)
        assert len(found) >= 12 and found[0] == by_rule(device, letter, (4096,) * 3)
        assert len({str(tile) for tile in found}) == len(found)
        assert all(set(tile) == set(DEFAULTS) for tile in found)
        assert all(tune.is_legal(device, letter, tile) for tile in found)


@pytest.mark.system
def test_tiles_are_profiled(any_device, tmp_path, monkeypatch):
    """A tile that is not legal does not count; what is written is a rule for the selection."""
    file = tmp_path / "choice.json"
    monkeypatch.setattr(tune, "candidates", lambda device, letter: [SMALL, ILLEGAL])
    device = ["--device", str(any_device.index)]
    tune.main(["tiles", str(file), "--letter", "s", "--sizes", "32", *device])
    (entry,) = json.loads(file.read_text()).values()
    entry = entry["tiles"]
    assert len(entry["commands"]) == 1 and entry["device"] == any_device.name
    (rule,) = entry["rules"]["s"]
    assert rule["size"] == 32 and rule["tiles"] == [SMALL]
    assert len(split.launches((64, 64, 64), [rule])) == 1
    assert len(split.launches((63, 63, 63), [rule])) == 4
    assert list(tmp_path.iterdir()) == [file], "notes are gone when all is done"


def test_a_profile_ranks_tiles_and_continues(any_device, tmp_path, monkeypatch):
    file, rated = tmp_path / "choice.json", []

    def rate(device, letter, tile, sizes):
        rated.append((sizes, tile["TSM"]))
        if len(rated) == 3:
            raise KeyboardInterrupt
        return (2.0, "") if tile == SMALL else (1.0, "")

    monkeypatch.setattr(tune, "rate", rate)
    monkeypatch.setattr(tune, "compile_tiles", lambda *given: None)
    sizes = [32, (64, 48, 16)]
    with pytest.raises(KeyboardInterrupt):
        tune.profile(file, sizes, any_device, "d", [LONG, SMALL])
    tune.profile(file, sizes, any_device, "d", [LONG, SMALL])
    assert len(rated) == 5 and len(set(rated)) == 4, "only what was interrupted is done again"
    (entry,) = json.loads(file.read_text()).values()
    assert [rule["size"] for rule in entry["tiles"]["rules"]["d"]] == [32, [64, 48, 16]]
    for rule in entry["tiles"]["rules"]["d"]:
        assert rule["tiles"] == [SMALL, LONG]


def test_constants_follow_from_whole_products(any_device, monkeypatch, tmp_path):
    """Products that take as long as the model says give back the model's constants."""
    tile = complete_tile({"TSM": 64, "TSN": 32})
    known = Constants(2.5e-6 + 16 * 4e-8, 0.0, 2e-6, 0.5e-6, 1.294e-6, 2.94e-7)
    device = dataclasses.replace(any_device, units=132)

    def call_rate(device, letter, sizes, spent, **options):
        work, chip = generated_work(tile, sizes), Chip(0.0, 0.0, 0.0, 0.0, device.units)
        return 1e-9 * 2 * prod(sizes) / seconds(work, known, chip)

    monkeypatch.setattr(tune, "call_rate", call_rate)
    monkeypatch.setattr(tune, "find_device", lambda index: device)
    monkeypatch.setattr(tune, "warp_tiles", lambda letter: [complete_tile({"TSM": 32}), tile])
    monkeypatch.setattr(tune, "is_legal", lambda device, letter, tile: True)
    monkeypatch.setattr(tune, "is_exact", lambda device, letter, tile, sizes: tile["TSM"] == 64)
    file = tmp_path / "choice.json"
    tune.main(["constants", str(file), "--letter", "d"])
    (entry,) = json.loads(file.read_text()).values()
    assert entry["tiles"]["constants"] == {"d": [[tile, pytest.approx([1e9 * x for x in known])]]}


@pytest.mark.parametrize("what", ["kernels", "tiles --letter s"])
def test_a_file_that_is_no_table_is_refused_before_the_search(what, tmp_path, any_device):
    file = tmp_path / "x.json"
    for text in ("", "{", "[]"):
        file.write_text(text)
        with pytest.raises(ValueError, match="damaged"):
            tune.main([*what.split(), str(file), "--sizes", "8"])
        assert file.read_text() == text


@pytest.mark.parametrize("more", ["kernels", "kernels --sizes 8 --kernels auto",
                                  "tiles --sizes 8 --letter x"])  # fmt: skip
def test_what_makes_no_sense_is_refused(more):
    command, *options = more.split()
    with pytest.raises(SystemExit):
        tune.main([command, "x.json", *options])
