"""The two maps and the tries: what was recorded, and what the reader has measured."""

from dataclasses import replace
from itertools import pairwise

import pytest
from landscapes import made_up

from gemmlab import catalog
from gemmlab.draw.heatmap import heatmap
from gemmlab.measurement.landscape import landscapes
from gemmlab.measurement.rungs import Allowed
from gemmlab.model import H200
from gemmlab.widgets import view
from gemmlab.widgets.maps import Plane, first_axes, strip, turn
from gemmlab.widgets.state import State, Topic
from gemmlab.widgets.tries import Try, best, load, save
from pictures import words

VALUES = {"TS": 32, "WPT": 4, "M": 64, "N": 64, "K": 64}


@pytest.fixture
def h200():
    """A made-up landscape."""
    return made_up(1, 3, 10)


def state_of(kernel, device, found, *tries, source=None) -> State:
    values = catalog[kernel].defaults | {"M": 64, "N": 64, "K": 64}
    values |= VALUES if kernel == 3 else {}
    topic = Topic(catalog[kernel], source, "", False, "", found)
    return State.begin(topic, device, values, values, tries)


def maps_of(*about, **more) -> list[dict]:
    return view.render(state_of(*about, **more))["maps"]


def cells(shown: dict) -> dict:
    return {(cell["x"], cell["y"]): cell for cell in shown["cells"]}


def tried(rate, right=True, **settings) -> Try:
    return Try(VALUES | settings, rate, right)


def test_ceilings_of_an_h200_are_not_claimed_of_another_gpu(h200, any_device):
    for landscape, has_ceiling in ((h200, True), (made_up(3, title="another GPU"), False)):
        ceilings = [Allowed(0.99 * H200.gflops, "local memory", ())]
        state = replace(state_of(3, any_device, landscape), allowed={(32, 4): ceilings})
        assert ("local memory allows" in view.render(state)["parts"]["recorded"]) == has_ceiling


def test_both_maps_have_the_same_axes_and_one_of_them_is_complete(h200, any_device):
    state = state_of(3, any_device, h200, tried((7.0, 7.5, 8.0)))
    there, here = view.render(state)["maps"]
    assert [there[part] for part in ("xs", "ys", "across")] == [
        here[part] for part in ("xs", "ys", "across")
    ]
    plane = Plane(catalog[3], VALUES, state.axes)
    place = plane.here
    assert plane.setting(place) == VALUES
    assert cells(there)[place]["text"] and cells(here)[place]["text"] == "7.50"
    assert "7.00–8.00 GFLOPS" in cells(here)[place]["label"]
    measured = [cell for cell in here["cells"] if cell["state"] == "mine"]
    assert len(measured) == 1, "it fills as the reader measures"
    assert {c["state"] for c in there["cells"]} == {"recorded", "illegal"}
    assert "you are at TS=32, WPT=4" in view.still(state).alt, "what readers without a kernel see"


def test_what_is_not_allowed_says_why(h200, any_device):
    for shown in maps_of(3, any_device, h200):
        cell = cells(shown)[20, 8]
        assert cell["state"] == "illegal" and "not a multiple of WPT=8" in cell["label"]


def test_the_still_map_has_the_share_of_each_cell_or_a_sign(h200, any_device):
    there = maps_of(3, any_device, h200)[0]
    recorded = [cell for cell in there["cells"] if cell["state"] == "recorded"]
    for cell, state in zip(recorded, ("failed", "missing"), strict=False):
        for part in ("share", "shade", "ink"):
            del cell[part]
        cell |= {"state": state, "text": ""}
    picture, best = heatmap(there, (32, 4), "a card"), recorded[-1]
    shares = [cell["text"] for cell in recorded[2:]]
    assert sorted(words(picture)) == sorted(["×", "?", *shares])
    assert f"the best is {best['text']} % at TS=64, WPT=16" in picture.alt
    assert "a card" in picture.alt and "settings are not legal" in picture.alt
    assert "you are" not in heatmap(there, (17, 1), "a card").alt


def test_only_what_belongs_to_the_present_sizes_is_on_the_own_map(h200, any_device):
    other = tried((1.0, 1.0, 1.0), M=128), tried((9.0, 9.0, 9.0), right=False)
    shown = maps_of(3, any_device, h200, *other)[1]
    assert "mine" not in [cell["state"] for cell in shown["cells"]]


def luminance(cell: dict) -> float:
    red, green, blue = (int(part) / 255 for part in cell["shade"].split(","))
    return 0.2 * red + 0.7 * green + 0.1 * blue


@pytest.mark.parametrize("peak", [100.0, None])
def test_a_lone_try_does_not_look_like_the_best(h200, any_device, peak):
    """The brightest colour is that of the peak; how bright another try is does not depend on it."""
    state = state_of(3, any_device, h200, tried((2.0, 2.0, 2.0)))
    lone = cells(view.render(replace(state, peak=peak))["maps"][1])[32, 4]
    fast = state_of(3, any_device, h200, tried((2.0,) * 3), tried((100.0,) * 3, TS=16))
    own = cells(view.render(replace(fast, peak=100.0))["maps"][1])
    assert luminance(lone) < luminance(own[16, 4]) - 0.2
    assert peak is None or lone["shade"] == own[32, 4]["shade"]


def test_what_the_cells_without_a_rate_mean_is_said_below_the_maps(h200, any_device):
    """Only what there is: a kernel with one parameter has nothing that is not allowed."""
    legend = view.render(state_of(3, any_device, h200))["parts"]["legend"]
    assert "not allowed" in legend and "not measured" in legend and "did not run" not in legend
    assert "not allowed" not in view.render(state_of(1, any_device, h200))["parts"]["legend"]
    assert view.render(state_of(3, any_device, None, source="a"))["parts"]["legend"] == ""


@pytest.mark.parametrize("kernel", catalog)
def test_the_sliders_of_both_axes_are_in_view(any_device, kernel):
    """At first, and when a reader puts the last parameter on an axis; never more than five."""
    found = next((one for one in landscapes() if one.rows(kernel)), None)
    state = state_of(kernel, any_device, found)
    for axes in (state.axes, turn(state.axes, "across", [*catalog[kernel].defaults][-1])):
        shown = view.render(replace(state, axes=axes))["controls"]
        seen = {row["name"] for row in shown if not row["more"]}
        assert {*axes} - {""} <= seen and len(seen) <= 5


def test_an_axis_is_turned_and_both_are_never_the_same(h200):
    axes = first_axes(catalog[10], h200)
    for side, name in (("across", "TSK"), ("down", "TSK"), ("across", "TSK")):
        axes = turn(axes, side, name)
        assert axes[0] != axes[1] and {*axes} <= {*catalog[10].defaults}


def test_an_unrecorded_kernel_has_one_map_a_cell_none_and_one_parameter_a_row(h200, any_device):
    text = state_of(3, any_device, None, tried((7.0, 7.5, 8.0)), source="any text")
    shown = view.render(text)
    assert shown["maps"] == [] and len(shown["tries"]["marks"]) == 1
    other = state_of(6, any_device, None)
    assert len(view.render(other)["maps"]) == 1
    single = view.still(state_of(1, any_device, h200))
    assert "you are at TS=32: " in single.alt


def test_a_wrong_try_has_no_height_and_sets_no_scale():
    tries = [tried((4.0, 5.0, 6.0)), tried((5000.0,) * 3, right=False), tried(None)]
    right, wrong, refused = strip(tries, "")["marks"]
    assert right["high"] == 1.0 and wrong["high"] == refused["high"] == 0.0
    assert [mark["right"] for mark in (right, wrong, refused)] == [True, False, False]


def test_a_try_says_its_settings_and_what_is_new_since_the_one_before():
    """All of them to a hand and to a screen reader, what is new in a few words below its mark."""
    history = [tried((4.0, 5.0, 6.0)), tried((7.0, 7.5, 8.0), WPT=8, **dict.fromkeys("MNK", 128))]
    first, second, third, again = strip(
        [*history, replace(history[1], code="edited"), replace(history[1], code="edited")], ""
    )["marks"]
    assert first["label"].startswith("TS 32, WPT 4, M\u00a0=\u00a0N\u00a0=\u00a0K\u00a0=\u00a064: ")
    assert "TS 32, WPT 8" in second["label"] and "WPT 4 → 8" in second["label"]
    assert first["labels"] == ["TS 32", "WPT 4"] and second["labels"] == ["WPT 8", "M 128"]
    assert third["labels"] == ["code"] and again["labels"] == []


def test_small_rates_can_be_told_apart_beside_a_large_one():
    """The distance of two marks is that of their ratio; at least a decade is shown."""
    rates = (0.5, 1.0, 2.0, 100.0)
    heights = [mark["middle"] for mark in strip([tried((r, r, r)) for r in rates], "")["marks"]]
    steps = [after - before for before, after in pairwise(heights)]
    assert heights[0] > 0 and heights[-1] == 1
    assert steps[0] > 0.1 and steps[0] == pytest.approx(steps[1])
    close = strip([tried((9.9,) * 3), tried((10.0,) * 3)], "")
    assert close["marks"][0]["middle"] > 0.95 and close["scale"] == ["10.0 GFLOPS", "1.00"]


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
