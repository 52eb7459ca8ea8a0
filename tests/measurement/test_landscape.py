"""Landscapes: which settings they hold, and what they answer."""

import itertools
import json

import pytest
import record_landscape
from landscapes import H200, PEAK, made_up, write

from gemmlab import catalog, clear_caches, model
from gemmlab.ladder import sources
from gemmlab.measurement import landscape, records

PART = [11, "warp_tiling", "tensor_cores"]


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


def test_a_rate_is_that_of_exactly_these_settings(own):
    write(own / "landscape_nvidia_h200.json", 3, 6)
    spec = catalog[3]
    for place, params in enumerate(record_landscape.settings(spec, H200)):
        row = landscape.rate(3, {**params, "M": 300})
        assert row.params == params and row.gflops == round(PEAK * (place + 1) / 31)
        assert (row.registers, row.spilled, row.size) == (32 + place, 0, 4096)
    assert landscape.rate(3, {"TS": 32, "WPT": 3}) is None
    assert landscape.rate(3, {"TS": 32}) is None and landscape.rate(2, {"TS": 32}) is None
    assert landscape.rate(3, spec.defaults, device="K40m") is None
    made = landscape.find_landscape("h200")
    assert made.best(3).gflops == max(row.gflops for row in made.rows(3).values())
    assert made.best(2) is None and made.limits == H200 and made.size == 4096
    assert made.over_sizes(3)[4096].gflops == 1000 and made.over_sizes(2) == {}


def test_the_peak_of_a_known_chip_is_its_own(own):
    write(own / "landscape_a.json", 3, peak=60_000.0)
    write(own / "landscape_b.json", 3, title="My card", peak=9000.0)
    assert [one.peak for one in landscape.landscapes()] == [model.H200.gflops, 9000.0]
    assert [one.title for one in landscape.landscapes()] == ["NVIDIA H200", "My card"]
    start = catalog[3].defaults
    assert landscape.rate(3, start, "my CARD").gflops < landscape.rate(3, start).gflops


def test_a_refused_setting_has_a_reason_and_is_not_the_best(own):
    path, why = own / "landscape_x.json", "it did not compile"
    write(path, 3)
    head = json.loads(path.read_text())[0]
    del head["tables"]
    best = made_up(3).best(3)
    row = {"series": "landscape", "kernel": 3, "code": best.code, **best.params}
    row |= {"m": 4096, "n": 4096, "k": 4096, "metric": "refused", "note": why}
    records.append(path, head, [row])
    found = landscape.find_landscape()
    assert found.rate(3, best.params).note == why
    assert found.best(3).params != best.params


def test_all_landscapes_are_found_and_a_broken_file_is_named(own):
    assert landscape.landscapes() == () and landscape.rate(3, catalog[3].defaults) is None
    write(own / "results" / "landscape_nvidia_h200.json", 3)
    (own / "landscape_broken.json").write_text('{"title": "half a f')
    clear_caches()
    with pytest.warns(UserWarning, match="landscape_broken.json is not a record"):
        assert [found.title for found in landscape.landscapes()] == ["NVIDIA H200"]


@pytest.mark.parametrize(
    "entries",
    [{"limits": {"name": "x", "work_group": "many", "per_dimension": [1], "local_memory": 1}},
     {"limits": None}, {"tables": [{"series": "landscape", "columns": ["median"], "rows": [[9]]}]},
     {"tables": [{"metric": "GFLOPS", "columns": ["registers"], "rows": [["<img src=x>"]]}]}],
    ids=str,
)  # fmt: skip
def test_a_file_of_somebody_else_with_wrong_types_is_named_and_left_out(own, entries):
    """It may hold HTML, which an explorer would show."""
    path = own / "landscape_x.json"
    write(path, 1)
    (session,) = json.loads(path.read_text())
    tables = session["tables"]
    session |= entries
    session["tables"] = tables + session["tables"][:1] if "tables" in entries else tables
    path.write_text(json.dumps([session]))
    with pytest.warns(UserWarning, match="landscape_x.json is not a"):
        assert landscape.landscapes() == ()


@pytest.mark.parametrize(
    ("edit", "counts"), [(("__kernel", "// a remark\n__kernel"), True), (("acc", "sum"), False)]
)
def test_a_record_of_an_older_text_does_not_count(own, monkeypatch, edit, counts):
    real = sources.read
    write(own / "landscape_x.json", 2, 3)
    monkeypatch.setattr(sources, "read", lambda file: real(file).replace(*edit))
    clear_caches()
    assert (landscape.rate(3, catalog[3].defaults) is not None) == counts
    hidden = [landscape.fingerprint_of(f"x; {mark} wgmma") for mark in ("//", "//@")]
    assert hidden[0] == landscape.fingerprint_of("x;\n\n") != hidden[1], "instructions count"


def test_what_is_recorded_is_legal_and_current():
    for found in landscape.landscapes():
        rows = records.rows(record=found.origin.record, series="landscape")
        assert sum(map(len, found.settings.values())) == len(rows) - 1, "record the rest anew"
        for kernel, settings in found.settings.items():
            for row in settings.values():
                assert not catalog[kernel].problems(row.params, found.limits)


def test_occupancy_follows_from_registers_and_local_memory():
    spec = catalog[6]  # 16 x 16 work-items, 16.5 KB of local memory
    row = records.rows(record="nvidia_h200", kernel=6)[0]._replace(params=spec.defaults)
    occupancy = [landscape.occupancy(row._replace(registers=n)) for n in (32, 128, None)]
    assert occupancy == [100, 25, None]  # with 128: 2 groups of 8 warps of 64
    assert landscape.occupancy(row._replace(registers=32, device="a card")) is None
