"""The profiler: a rule for each size, only exact tiles, and no work done twice after it was stopped."""

import dataclasses
import itertools
import json

import pytest

from gemmlab import cli
from gemmlab.bench import profile, tiles
from gemmlab.family import split
from gemmlab.family.selection import dimensions
from gemmlab.family.tiles import complete_tile

SMALL = complete_tile({"TSM": 16, "TSN": 16, "TSK": 8, "WPTM": 2, "WPTN": 2})
LONG = complete_tile({"TSM": 32, "TSN": 8, "TSK": 8, "WPTM": 2, "WPTN": 2})
WRONG = complete_tile({"TSM": 30})


def test_a_small_run_of_the_profiler(any_device, tmp_path):
    """A tile that is not legal does not count; what is written is a rule that selection takes."""
    file = tmp_path / "family.json"
    profile.profile(file, [32], any_device, "s", "a command", [SMALL, WRONG])
    (entry,) = json.loads(file.read_text()).values()
    assert entry["commands"] == ["a command"]
    (rule,) = entry["s"]
    assert rule["size"] == 32 and rule["tiles"] == [SMALL] and rule["fallback"] == SMALL
    assert len(split.launches((64, 64, 64), [rule])) == 1 and len(split.launches((63, 63, 63), [rule])) == 4
    assert list(tmp_path.iterdir()) == [file], "notes are gone when all is done"


def test_the_fastest_first_the_best_split_as_fallback_and_nothing_twice(any_device, tmp_path, monkeypatch):
    file, asked = tmp_path / "family.json", []

    def rates(device, letter, sizes, tile):
        asked.append((sizes, tile["TSM"]))
        if len(asked) == 3:
            raise KeyboardInterrupt
        return (2.0, 1.0, "") if tile == SMALL else (1.0, 2.0, "")

    monkeypatch.setattr(profile, "rates", rates)
    with pytest.raises(KeyboardInterrupt):
        profile.profile(file, [32, [64, 48, 16]], any_device, "d", "x", [LONG, SMALL])
    profile.profile(file, [32, [64, 48, 16]], any_device, "d", "x", [LONG, SMALL])
    assert len(asked) == 5 and len(set(asked)) == 4, "only what was interrupted is done again"
    (entry,) = json.loads(file.read_text()).values()
    assert [rule["size"] for rule in entry["d"]] == [32, [64, 48, 16]]
    for rule in entry["d"]:
        assert rule["tiles"] == [SMALL, LONG] and rule["fallback"] == LONG


@pytest.mark.parametrize("kind", ["CPU", "GPU"])
def test_the_space_for_kernel_tuner_is_ours(kind, any_device):
    """What its restrictions leave over is what the family takes, among a sample of all combinations."""
    device = dataclasses.replace(any_device, kind=kind)
    for letter in "sz":
        values, restrictions = profile.kernel_tuner(device, letter)
        conditions = compile(" and ".join(f"({r})" for r in restrictions), "restrictions", "eval")
        for tile in tiles.candidates(device, letter):
            assert eval(conditions, {"max": max}, dict(tile)), tile
        combinations = itertools.islice(itertools.product(*values.values()), 0, None, 97)
        for tile in itertools.islice((dict(zip(values, numbers, strict=True)) for numbers in combinations), 2000):
            assert bool(eval(conditions, {"max": max}, tile)) == tiles.takes(device, letter, tile), tile


def test_the_command(any_device, tmp_path, monkeypatch):
    asked = []
    monkeypatch.setattr(profile, "profile", lambda *given: asked.append(given))
    file = str(tmp_path / "family.json")
    device = ["--device", str(any_device.index)]
    assert cli.main(["tune", file, "--profile", "--family", "d", "--sizes", "32,64x48x16", *device]) == 0
    ((where, sizes, on, letter, _),) = asked
    assert (where, on.index, letter) == (file, any_device.index, "d")
    assert [dimensions(size) for size in sizes] == [(32, 32, 32), (64, 48, 16)]
