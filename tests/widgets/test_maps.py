"""The two maps and the tries: what was recorded, and what the reader has measured."""

from dataclasses import replace

import pytest
from landscapes import made_up

from gemmlab import catalog
from gemmlab.draw.landscape import landscape
from gemmlab.widgets import maps
from gemmlab.widgets.maps import Maps
from gemmlab.widgets.tries import Try, best, load, save
from pictures import words

VALUES = {"TS": 32, "WPT": 4, "M": 64, "N": 64, "K": 64}


@pytest.fixture
def h200(monkeypatch):
    """A made-up landscape, and no other."""
    found = made_up(1, 3, 10)
    monkeypatch.setattr(maps, "recorded", lambda: (found,))
    return found


def cells(shown: dict) -> dict:
    return {(cell["x"], cell["y"]): cell for cell in shown["cells"]}


def tried(rate, right=True, **settings) -> Try:
    return Try(VALUES | settings, rate, right)


def test_both_maps_have_the_same_axes_and_one_of_them_is_complete(h200):
    made = Maps(catalog[3], h200.limits)
    made.show(VALUES, [tried((7.0, 7.5, 8.0))])
    there, here = made.maps
    assert [there[part] for part in ("xs", "ys", "across")] == [
        here[part] for part in ("xs", "ys", "across")
    ]
    place = tuple(made.here)
    assert made.setting(VALUES, place) == VALUES
    assert cells(there)[place]["text"] and cells(here)[place]["text"] == "7.50"
    assert "7.00–8.00 GFLOPS" in cells(here)[place]["label"]
    measured = [cell for cell in here["cells"] if cell["state"] == "mine"]
    assert len(measured) == 1, "it fills as the reader measures"
    assert 0 < measured[0]["low"] < measured[0]["high"] == 1, "with whiskers"
    assert {c["state"] for c in there["cells"]} == {"recorded", "illegal"}
    assert "you are at TS=32, WPT=4" in made.still().alt, "what readers without a kernel see"


def test_the_still_map_has_the_share_of_each_cell_or_a_sign(h200):
    made = Maps(catalog[3], h200.limits)
    made.show(VALUES, [])
    there = made.maps[0]
    recorded = [cell for cell in there["cells"] if cell["state"] == "recorded"]
    for cell, state in zip(recorded, ("failed", "missing"), strict=False):
        for part in ("share", "shade", "ink"):
            del cell[part]
        cell |= {"state": state, "text": ""}
    picture, best = landscape(there, (32, 4), "a card"), recorded[-1]
    shares = [cell["text"] for cell in recorded[2:]]
    assert sorted(words(picture)) == sorted(["×", "?", *shares])
    assert f"the best is {best['text']} % at TS=64, WPT=16" in picture.alt
    assert "a card" in picture.alt and "settings are not legal" in picture.alt
    assert "you are" not in landscape(there, (17, 1), "a card").alt


def test_only_what_belongs_to_the_present_sizes_is_on_the_own_map(h200):
    made = Maps(catalog[3], h200.limits)
    made.show(VALUES, [tried((1.0, 1.0, 1.0), M=128), tried((9.0, 9.0, 9.0), right=False)])
    assert "mine" not in [cell["state"] for cell in made.maps[1]["cells"]]


def test_an_axis_is_turned_and_both_are_never_the_same(h200):
    made = Maps(catalog[10], h200.limits)
    for side, name in (("across", "TSK"), ("down", "TSK"), ("across", "TSK"), ("down", "M")):
        made.turn(side, name)
        made.show(catalog[10].defaults | {"M": 64, "N": 64, "K": 64}, [])
        first = made.maps[0]
        assert first["across"] != first["down"] and {first["across"], first["down"]} <= set(
            catalog[10].defaults
        )


def test_an_unrecorded_kernel_has_one_map_a_text_none_and_one_parameter_a_row(h200):
    text = Maps(catalog[3], h200.limits, source="any text")
    text.show(VALUES, [tried((7.0, 7.5, 8.0))])
    assert text.maps == [] and text.still() is None and len(text.tries["marks"]) == 1
    other = Maps(catalog[6], h200.limits)
    other.show(catalog[6].defaults | {"M": 64, "N": 64, "K": 64}, [])
    assert len(other.maps) == 1 and other.still() is None
    single = Maps(catalog[1], h200.limits)
    single.show({"TS": 16, "M": 64, "N": 64, "K": 64}, [])
    assert "you are at TS=16: " in single.still().alt


def test_a_wrong_try_has_no_height_and_sets_no_scale(h200):
    made = Maps(catalog[3], h200.limits)
    made.show(VALUES, [tried((4.0, 5.0, 6.0)), tried((5000.0,) * 3, right=False), tried(None)])
    right, wrong, refused = made.tries["marks"]
    assert right["high"] == 1.0 and wrong["high"] == refused["high"] == 0.0
    assert [mark["right"] for mark in (right, wrong, refused)] == [True, False, False]


def test_the_best_try_is_the_highest_in_the_map():
    lucky, sure = tried((1.0, 4.0, 9.0)), tried((3.9, 4.1, 4.2), TS=16)
    assert best([lucky, sure, tried((90.0,) * 3, right=False)]) is sure and best([]) is None


def test_tries_come_back_the_next_day(tmp_path, monkeypatch):
    monkeypatch.setenv("GEMMLAB_DATA", str(tmp_path))
    history = [tried((4.0, 5.0, 6.0)), tried(None, right=False)]
    save("one", history)
    save("another", [])
    assert load("one") == history and load("a third") == []
    (file,) = (path for path in tmp_path.rglob("*.json") if '"one"' in path.read_text())
    for damaged in (
        "{",
        file.read_text().replace('"TS": 32', '"TS"'),
        '{"codes": [], "tries": [{"settings": null}]}',
    ):
        file.write_text(damaged)
        assert load("one") == []


def test_each_code_is_stored_once(tmp_path, monkeypatch):
    monkeypatch.setenv("GEMMLAB_DATA", str(tmp_path))
    history = [replace(tried((4.0, 5.0, 6.0), TS=ts), code="x" * 1000) for ts in (8, 16, 32)]
    save("one", history)
    assert load("one") == history
    (file,) = tmp_path.rglob("*.json")
    assert file.stat().st_size < 2000
