"""The search for the family's tiles: legal candidates, none that is wrong, and a table that the selection can read."""

import dataclasses
import json
from math import prod

import pytest

from gemmlab.bench import tiles
from gemmlab.catalog import Limits
from gemmlab.family.pace import Pace, microseconds
from gemmlab.family.precision import PRECISIONS
from gemmlab.family.tiles import DEFAULTS, by_rule, complete_tile


def kinds(device):
    gpu = Limits("a GPU", 1024, (1024, 1024, 64), 48 * 1024)
    return device, dataclasses.replace(device, kind="GPU", platform="NVIDIA CUDA", limits=gpu, units=132)


@pytest.mark.parametrize("letter", PRECISIONS)
def test_candidates_are_legal_and_the_rule_s_own_comes_first(letter, any_device):
    for device in kinds(any_device):
        found = tiles.candidates(device, letter)
        assert len(found) >= 12 and found[0] == by_rule(device, letter, (4096,) * 3)
        assert all(set(tile) == set(DEFAULTS) and tiles.takes(device, letter, tile) for tile in found)
        assert all(a != b for i, a in enumerate(found) for b in found[:i])


def test_the_fastest_comes_first_and_what_is_wrong_does_not_count(any_device, monkeypatch):
    space = tiles.candidates(any_device, "s")[:4]
    speeds = {str(tile): speed for tile, speed in zip(space, (1.0, 9.0, 3.0, 4.0), strict=True)}
    monkeypatch.setattr(tiles, "checked", lambda device, letter, tile, sizes: tile != space[1])
    monkeypatch.setattr(tiles, "rate", lambda *_, params, **options: speeds[str(params)])
    said: list[str] = []
    rated = tiles.best(any_device, "s", (64, 64, 64), space, said.append)
    assert rated == [(4.0, space[3]), (3.0, space[2]), (1.0, space[0])]
    assert len(said) == 1 and "not exact" in said[0]


def test_what_is_found_goes_into_the_table_and_the_rest_stays(any_device, tmp_path, monkeypatch):
    file = tmp_path / "family.json"
    monkeypatch.setattr(tiles, "candidates", lambda device, letter: [by_rule(device, letter, (64, 64, 64))])
    monkeypatch.setattr(tiles, "best", lambda device, letter, sizes, found, say: [(5.0, tile) for tile in found])
    for letter, sizes in (("d", [64, (64, 32, 16)]), ("z", [64]), ("d", [64])):
        tiles.fill(file, sizes, any_device, letter, "the command", say=lambda line: None)
    ((kind, entry),) = json.loads(file.read_text(encoding="utf-8")).items()
    assert [row["size"] for row in entry["d"]] == [64, [64, 32, 16]] and len(entry["z"]) == 1
    assert entry["commands"] == ["the command"] and entry["device"] == any_device.name and entry["date"] and kind
    assert all(len(row["tiles"]) == len(row["gflops"]) >= 1 for row in entry["d"] + entry["z"])


def test_a_tile_is_checked_and_timed(any_device):
    tile = by_rule(any_device, "c", (40, 40, 40))
    assert tiles.checked(any_device, "c", tile, (40, 33, 21), (2, 1), beta=True)
    assert tiles.rate(any_device, "c", (40, 40, 40), 0.01, beta=True, kernel="family", params=tile) > 0


def test_a_pace_is_found_from_whole_products(any_device, monkeypatch, tmp_path):
    """Products that take as long as the model says give back the figures that the model was given."""
    tile = complete_tile({"TSM": 64, "TSN": 32})
    known, device = Pace(tile, 2.0, 0.5), dataclasses.replace(any_device, units=132)

    def rate(device, letter, sizes, seconds, **options):
        return 1e-3 * 2 * prod(sizes) / microseconds(known, 8, sizes, device.units)

    monkeypatch.setattr(tiles, "rate", rate)
    found = tiles.pace(device, "d", tile)
    assert found.alone == pytest.approx(2.0) and found.shared == pytest.approx(0.5)
    monkeypatch.setattr(tiles, "checked", lambda device, letter, tile, sizes: tile["TSM"] == 64)
    file = tmp_path / "family.json"
    tiles.add(file, device, "d", 1000, [(5.0, tile)], "rows")
    tiles.add_paces(file, device, "d", [complete_tile({"TSM": 32}), tile], "paces")
    (entry,) = json.loads(file.read_text()).values()
    assert entry["paces"] == {"d": [{"tile": tile, "alone": 2.0, "shared": 0.5}]}, "the other tile is not exact"
    assert entry["commands"] == ["rows", "paces"] and entry["d"][0]["size"] == 1000
