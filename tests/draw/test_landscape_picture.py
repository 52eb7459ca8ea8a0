"""The picture of a landscape: a cell for each setting, with its state, and the reader's own."""

import pytest
from matplotlib.patches import Rectangle

from gemmlab.draw.landscape import Cell, landscape

CELLS = {
    (8, 1): Cell("recorded", 0.05, "slow"),
    (16, 1): Cell("recorded", 0.2, "fast"),
    (32, 1): Cell("illegal", words="no"),
    (8, 2): Cell("failed", words="it died"),
    (16, 2): Cell("missing"),
    (32, 2): Cell("recorded", 0.1, "middling"),
}


def boxes(picture) -> dict:
    """The rectangles of the cells by column and row."""
    found = [a for a in picture.axes[0].get_children() if isinstance(a, Rectangle)]
    return {tuple(b.get_center().round()): b for b in found if b.get_width() == 0.94}


def words(picture) -> list[str]:
    return [text.get_text() for ax in picture.axes for text in ax.texts]


def test_the_cells_say_the_share_or_what_is_missing():
    assert sorted(words(landscape("TS", "WPT", CELLS))) == sorted(["5.0", "20", "10", "×", "?"])


def test_the_description_names_the_best_and_the_readers_setting():
    alt = landscape("TS", "WPT", CELLS, here=(32, 2), title="a card").alt
    assert "the best is 20 % at TS=16, WPT=1" in alt and "you are at TS=32, WPT=2: middling" in alt
    assert "1 of 6 settings are not legal" in alt and "a card" in alt
    assert "you are" not in landscape("TS", "WPT", CELLS).alt


@pytest.mark.parametrize(("here", "rings"), [(None, 0), ((16, 1), 2), ((17, 1), 0)])
def test_the_ring_is_where_the_reader_is(here, rings):
    picture = landscape("TS", "WPT", CELLS, here=here)
    found = [
        (line.get_xdata()[0], line.get_ydata()[0])
        for line in picture.axes[0].lines
        if line.get_marker() == "o"
    ]
    assert found == [(1, 0)] * rings


def test_colours_are_equal_for_equal_shares_whatever_else_is_shown():
    def colour(picture, column, row):
        return boxes(picture)[column, row].get_facecolor()

    few = {key: CELLS[key] for key in ((8, 1), (32, 2))}
    one, other = (landscape("TS", "WPT", cells, best=0.2) for cells in (CELLS, few))
    assert colour(one, 2, 1) == colour(other, 1, 1)
    one, other = (landscape("TS", "WPT", cells) for cells in (CELLS, few))
    assert colour(one, 2, 1) != colour(other, 1, 1)


def test_a_kernel_with_one_parameter_is_one_row():
    cells = {(ts, 0): Cell("recorded", ts / 100, "so much") for ts in (8, 16, 32)}
    picture = landscape("TS", "", cells, here=(16, 0))
    assert "you are at TS=16: so much" in picture.alt
    assert sorted(boxes(picture)) == [(0, 0), (1, 0), (2, 0)]


def test_a_landscape_without_any_rate_is_a_picture_all_the_same():
    picture = landscape("TS", "WPT", {(8, 1): Cell("illegal", words="no")})
    assert picture.png() and "best" not in picture.alt
