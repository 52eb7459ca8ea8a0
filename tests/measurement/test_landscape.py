"""Landscapes: which settings they hold, how they are written and read, and what they answer."""

import itertools
import json
from pathlib import Path

import pytest
import record_landscape
from landscapes import FACTS, H200, PEAK, made_up

from gemmlab import catalog, clear_caches, model
from gemmlab.ladder import sources
from gemmlab.measurement import landscape
from gemmlab.measurement.landscape import Landscape

PART = [11, "warp_tiling", "tensor_cores"]
RECORDED = sorted((Path(__file__).resolve().parents[2] / "results").glob("landscape_*.json"))


@pytest.fixture
def own(tmp_path, monkeypatch, fresh):
    """A folder for the user's own landscapes, empty at first, and no others."""
    (tmp_path / "results").mkdir()
    monkeypatch.setenv("GEMMLAB_DATA", str(tmp_path))
    monkeypatch.setattr(sources, "folder", lambda name="kernels", real=sources.folder: (
        tmp_path / "results" if name == "results" else real(name)
    ))  # fmt: skip
    return tmp_path


@pytest.mark.parametrize("number", catalog)
def test_every_setting_that_an_explorer_offers_is_chosen_once_or_those_around_the_defaults(number):
    spec = catalog[number]
    chosen = record_landscape.settings(spec, H200)
    assert chosen[0] == spec.fit(H200) and chosen == record_landscape.settings(spec, H200)
    different = {tuple(setting.items()) for setting in chosen}
    assert len(different) == len(chosen)
    assert all(not spec.problems(setting, H200) for setting in chosen)
    offered = itertools.product(*(p.choices for p in spec.params))
    every = (dict(zip(spec.defaults, values, strict=True)) for values in offered)
    if number in PART:  # those that differ in two parameters at most
        every = (s for s in every if sum(s[name] != chosen[0][name] for name in s) <= 2)
    assert different == {tuple(one.items()) for one in every if not spec.problems(one, H200)}


def test_a_landscape_is_written_a_line_per_setting_and_read_again(tmp_path):
    made, path = made_up(3, 6), tmp_path / "landscape_test.json"
    refusal = 'refused "in quotes" and [brackets]'
    made.add(3, {"TS": 4, "WPT": 16}, [refusal])
    made.save(path)
    settings = sum(len(made.rows(kernel)) for kernel in (3, 6))
    assert settings <= len(path.read_text(encoding="utf-8").splitlines()) <= settings + 80
    read = Landscape.load(path)
    assert read.head == json.loads(json.dumps(made.head))
    assert read.kernels == made.kernels and read.limits == H200
    assert all(read.rows(kernel) == made.rows(kernel) for kernel in (3, 6))
    refused = read.rate(3, {"TS": 4, "WPT": 16})
    assert (refused.gflops, refused.share, refused.problem) == (0.0, 0.0, refusal)
    assert read.over_sizes(3) == {4096: 1000} and read.over_sizes(2) == {}
    assert list(tmp_path.iterdir()) == [path], "nothing unfinished stays behind"


def test_a_rate_is_that_of_exactly_these_settings(own):
    made = made_up(3, 6)
    made.save(own / "landscape_nvidia_h200.json")
    spec = catalog[3]
    for place, params in enumerate(record_landscape.settings(spec, H200)):
        found, gflops = landscape.rate(3, {**params, "M": 300}), round(PEAK * (place + 1) / 31)
        wanted = landscape.Record(3, params, 4096, gflops, gflops / PEAK, 32 + place, 0, 50)
        assert found == wanted
    assert made_up(3, peak=60_000.0).peak == model.H200.gflops  # of a known chip, its own
    assert made_up(3, title="My card", peak=9000.0).peak == 9000.0
    assert landscape.rate(3, {"TS": 32, "WPT": 3}) is None
    assert landscape.rate(3, {"TS": 32}) is None and landscape.rate(2, {"TS": 32}) is None
    assert landscape.rate(3, spec.defaults, device="K40m") is None
    best = landscape.find_landscape("h200").best(3)
    assert best.gflops == max(row[0] for row in made.rows(3).values())


def test_all_landscapes_are_found_and_a_broken_file_is_named(own):
    assert landscape.recorded() == () and landscape.rate(3, catalog[3].defaults) is None
    made_up(3).save(own / "results" / "landscape_nvidia_h200.json")
    made_up(3, title="My card", peak=9000.0).save(own / "landscape_my_card.json")
    (own / "landscape_broken.json").write_text('{"title": "half a f')
    clear_caches()
    with pytest.warns(UserWarning, match="landscape_broken.json is no landscape"):
        assert [found.title for found in landscape.recorded()] == ["NVIDIA H200", "My card"]
    start = catalog[3].defaults
    assert landscape.rate(3, start, "my CARD").gflops < landscape.rate(3, start).gflops


@pytest.mark.parametrize(
    "entries",
    [
        {"title": None},
        {"size": 0},
        {"limits": {"name": "x", "work_group": "many", "per_dimension": [1], "local_memory": 1}},
        {"kernels": {"99": {}}},
        {"registers": "<img src=x onerror=alert(1)>"},
    ],
    ids=str,
)
def test_a_file_of_somebody_else_with_wrong_types_is_named_and_left_out(own, entries):
    """It may hold HTML, which an explorer would show."""
    path = own / "landscape_x.json"
    made_up(1).save(path)
    found = json.loads(path.read_text())
    if "registers" in entries:
        found["kernels"]["1"]["settings"][0][-3] = entries["registers"]
    else:
        found |= entries
    path.write_text(json.dumps(found))
    with pytest.warns(UserWarning, match="landscape_x.json is no landscape"):
        assert landscape.recorded() == ()


@pytest.mark.parametrize(
    ("edit", "counts"), [(("__kernel", "// a remark\n__kernel"), True), (("acc", "sum"), False)]
)
def test_a_record_of_an_older_text_does_not_count(own, monkeypatch, edit, counts):
    made, real = made_up(2, 3), sources.read
    made.save(own / "landscape_x.json")
    monkeypatch.setattr(sources, "read", lambda file: real(file).replace(*edit))
    clear_caches()
    read = Landscape.load(own / "landscape_x.json")
    assert (read.rate(3, catalog[3].defaults) is not None) == counts
    hidden = [landscape.fingerprint_of(f"x; {mark} wgmma") for mark in ("//", "//@")]
    assert hidden[0] == landscape.fingerprint_of("x;\n\n") != hidden[1], "instructions count"


def test_what_is_recorded_is_legal_current_and_below_the_peak():
    for path in RECORDED:
        found = Landscape.load(path)
        assert found.head["device"].keys() == FACTS.keys() and found.size > 0 and found.kernels
        for kernel in found.kernels:
            spec = catalog[kernel]
            assert found.current(kernel), f"kernel {kernel} has changed: record it anew"
            assert found.rows(kernel)
            for key, row in found.rows(kernel).items():
                assert not spec.problems(dict(zip(spec.defaults, key, strict=True)), found.limits)
                if not isinstance(row[0], str):
                    assert row[0] > 0 and (spec.tensor or row[0] <= 1.05 * found.peak)
