"""The needles and the landscape beside an explorer: they show what was recorded for exactly these
settings.
"""

import re

import ipywidgets as w
import pytest
from landscapes import PEAK, made_up

from gemmlab import catalog
from gemmlab.measurement.explained import Allowed
from gemmlab.widgets import recorded
from gemmlab.widgets.recorded import Measured, Recorded, slice_of


@pytest.fixture
def h200(monkeypatch):
    """A made-up landscape, and no other; pictures are drawn at once, and not by a thread."""
    monkeypatch.setattr(recorded, "Newest", lambda work: work)
    found = made_up(1, 3, 10)
    monkeypatch.setattr(recorded, "recorded", lambda: (found,))
    return found


def mine(box) -> list[tuple[int, int]]:
    """Where the picture shows the reader."""
    return [(cell["x"], cell["y"]) for cell in box._grid.cells if cell["here"]]


def rows(box) -> list:
    """The groups of controls."""
    return [child for child in box.children if isinstance(child, w.HBox)]


def test_the_needles_show_both_rates_at_once(h200):
    box, spec = Recorded(catalog[3]), catalog[3]
    values = {"TS": 32, "WPT": 4}
    expected = h200.rate(3, values)
    box.show({**values, "M": 100, "N": 100, "K": 100})
    assert (
        f'data-share="{expected.share:.4f}"' in box._needles.value
        and "not measured" in box._needles.value
    )
    assert f"{expected.gflops:,} GFLOPS" in box._needles.value
    box.show(values, Measured(7.5, 15.0, "My <card>"))
    assert (
        "My &lt;card&gt;" in box._needles.value
        and "7.5 GFLOPS, 50 % of the peak" in box._needles.value
    )
    box.show(values, Measured(7.5))
    assert "7.5 GFLOPS; its peak is not measured yet" in box._needles.value
    assert "cuBLAS" in box._needles.value and recorded.CEILING not in box._needles.value
    assert f"{spec.local_memory(values):,} bytes" in box._needles.value


def test_what_the_model_allows_is_a_line_in_both_needles(h200):
    """Each on its own device; none where the rate is above it, which shows that the model does not
    know all.
    """
    values, known = {"TS": 32, "WPT": 4}, [Allowed(0.9 * PEAK, "L1 cache")]
    box = Recorded(catalog[3], allowed=lambda found, params: known[0] if params == values else None)
    box.show(values, Measured(7.5, 15.0, allowed=Allowed(12.0, "local memory")))
    lines = re.findall(r"dashed line: .*?, set by (.*?), (\d+) %", box._needles.value)
    assert (
        lines == [("local memory", "80"), ("the L1 cache", "90")]
        and box._needles.value.count("dashed current") == 2
    )
    known[0] = Allowed(1.0, "L1 cache")
    box.show(values, Measured(7.5, 15.0, allowed=Allowed(7.0, "local memory")))
    assert "dashed" not in box._needles.value
    known[0] = Allowed(0.9 * PEAK, "L1 cache")
    box.show(values | {"TS": 16})
    assert "dashed" not in box._needles.value


def test_a_setting_without_a_record_says_so(h200):
    box = Recorded(catalog[3])
    box.show({"TS": 48, "WPT": 4})
    assert (
        "not recorded on NVIDIA H200" in box._needles.value
        and 'data-share="0.0000"' in box._needles.value
    )
    box.show({"TS": 64, "WPT": 2})
    assert "not legal" in box._needles.value and "over the limit of 1024" in box._needles.value
    h200.add(3, {"TS": 32, "WPT": 4}, ["it died"])
    box.show({"TS": 32, "WPT": 4})
    assert "it died" in box._needles.value


def test_an_edited_kernel_has_no_record(h200):
    box = Recorded(catalog[3], source="any text")
    box.show({"TS": 32, "WPT": 4}, Measured(1.0, 2.0))
    assert "no record of a text of your own" in box._needles.value
    assert len(box.children) == 1 and box.landscape is None


def test_the_defaults_tell_their_rates_at_other_sizes(h200):
    h200.add_size(3, 256, 1234.0)
    box = Recorded(catalog[3])
    box.show(catalog[3].fit(h200.limits))
    assert "1,234 at 256" in box._needles.value
    box.show({"TS": 16, "WPT": 4})
    assert "1,234 at 256" not in box._needles.value


def test_readers_without_a_kernel_see_the_landscape(h200):
    box = Recorded(catalog[3])
    assert "you are at TS=32, WPT=8" in box.still().alt and Recorded(catalog[6]).still() is None


def test_a_kernel_that_nobody_recorded_says_how_to(h200):
    box = Recorded(catalog[6])
    box.show(catalog[6].defaults)
    assert "record.py landscape --kernels 6" in box._needles.value and len(box.children) == 1


def test_an_old_record_is_called_old(h200, monkeypatch):
    h200.kernels[3]["text"] = "another"
    box = Recorded(catalog[3])
    box.show(catalog[3].defaults)
    assert "older text" in box._needles.value


def test_the_cell_of_the_reader_follows_the_sliders(h200):
    box = Recorded(catalog[3])
    for ts, wpt in ((32, 8), (16, 4)):
        box.show({"TS": ts, "WPT": wpt})
        assert mine(box) == [(ts, wpt)]
    assert len(box._grid.cells) == len(catalog[3].params[0].choices) * len(
        catalog[3].params[1].choices
    )
    legal = [cell for cell in box._grid.cells if cell["legal"]]
    assert len(legal) == len(h200.rows(3)) and all(
        "% of the peak" in cell["label"] for cell in legal
    )
    assert all(cell["id"] in box._grid.svg for cell in box._grid.cells)


def test_a_move_in_the_landscape_moves_the_ring_and_draws_nothing(h200, monkeypatch):
    """Another landscape is drawn: with another value of a parameter that is no axis."""
    drawn, draw = [], recorded.landscape
    monkeypatch.setattr(recorded, "landscape", lambda *view: drawn.append(view) or draw(*view))
    box, start = Recorded(catalog[10]), catalog[10].defaults
    box.show(start)
    box._across.value, box._down.value = "WPTM", "WPTN"
    count, words = len(drawn), box._grid.words
    box.show({**start, "WPTM": 4})
    assert len(drawn) == count and mine(box) == [(4, start["WPTN"])]
    assert words != box._grid.words and "you are at WPTM=4" in box._grid.words
    box.show({**start, "TSK": 8})
    assert len(drawn) == count + 1


def test_a_chosen_cell_is_told_and_an_illegal_one_explained(h200):
    box, chosen = Recorded(catalog[10]), []
    box.on_choose(chosen.append)
    start = catalog[10].defaults
    box.show(start)
    box._across.value, box._down.value = "WPTM", "WPTN"
    box._heard(box._grid, {"choose": [4, 8]}, [])
    assert chosen == [{**start, "WPTM": 4}] and box._note.value == ""
    box._heard(box._grid, {"choose": [10, 8]}, [])
    assert len(chosen) == 1 and "TSM=128 is not a multiple of WPTM=10" in box._note.value
    assert 'role="status"' in box._note.value
    box.show({**start, "WPTM": 4})
    assert box._note.value == ""


def test_both_axes_are_never_the_same(h200):
    box = Recorded(catalog[3])
    box.show(catalog[3].defaults)
    box._across.value = "WPT"
    assert (box._across.value, box._down.value) == ("WPT", "TS")
    box._down.value = "WPT"
    assert (box._across.value, box._down.value) == ("TS", "WPT")


def test_a_kernel_with_one_parameter_has_one_axis(h200):
    box, chosen = Recorded(catalog[1]), []
    box.on_choose(chosen.append)
    box.show(catalog[1].defaults)
    assert mine(box) == [(32, 0)] and not any(box._across in line.children for line in rows(box))
    box._heard(box._grid, {"choose": [16, 0]}, [])
    assert chosen == [{"TS": 16}]


def test_a_card_of_ones_own_appears_beside(h200, monkeypatch):
    own = made_up(3, title="My card", peak=9000.0)
    monkeypatch.setattr(recorded, "recorded", lambda: (h200, own))
    box = Recorded(catalog[3])
    box.show(catalog[3].defaults)
    assert box.landscape is h200 and any(box._chip in line.children for line in rows(box))
    assert (
        "NVIDIA H200, recorded" in box._needles.value and "My card, recorded" in box._needles.value
    )
    box._chip.value = own
    assert box.landscape is own and box._needles.value.index("My card") < box._needles.value.index(
        "NVIDIA H200"
    )
    assert [found.title for found in box._found] == ["NVIDIA H200", "My card"]
    assert Recorded(catalog[10])._found == [h200]


def test_a_slice_has_every_pair_of_offered_values(h200):
    spec = catalog[10]
    cells = slice_of(h200, spec, spec.defaults, "TSM", "WPTM")
    for (tsm, wptm), cell in cells.items():
        setting = {**spec.defaults, "TSM": tsm, "WPTM": wptm}
        problems = spec.problems(setting, h200.limits)
        assert cell.state == ("illegal" if problems else "recorded")
        if problems:
            assert problems[0] in cell.words
        else:
            assert cell.share == h200.rate(10, setting).gflops / PEAK
    assert len(cells) == 16
