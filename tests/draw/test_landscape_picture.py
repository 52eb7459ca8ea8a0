"""The picture of a landscape: a cell for each setting, with its state, and the reader's own."""

import re

from gemmlab.draw.landscape import Cell, landscape, name_of
from pictures import words

CELLS = {
    (8, 1): Cell("recorded", 0.05, "slow"),
    (16, 1): Cell("recorded", 0.2, "fast"),
    (32, 1): Cell("illegal", words="no"),
    (8, 2): Cell("failed", words="it died"),
    (16, 2): Cell("missing"),
    (32, 2): Cell("recorded", 0.1, "middling"),
}


def test_each_setting_has_a_cell_that_a_widget_can_find():
    """With its share, or what is missing."""
    picture = landscape("TS", "WPT", CELLS)
    names = {name_of(column, row) for column in range(3) for row in (0, 1)}
    assert set(re.findall(r'<g id="(cell-\d+-\d+)"', picture.svg())) == names
    assert sorted(words(picture)) == sorted(["5.0", "20", "10", "×", "?"])


def test_the_description_names_the_best_and_the_readers_setting():
    alt = landscape("TS", "WPT", CELLS, here=(32, 2), title="a card").alt
    assert "the best is 20 % at TS=16, WPT=1" in alt and "you are at TS=32, WPT=2: middling" in alt
    assert "1 of 6 settings are not legal" in alt and "a card" in alt
    assert "you are" not in landscape("TS", "WPT", CELLS).alt
    assert "best" not in landscape("TS", "WPT", {(8, 1): Cell("illegal", words="no")}).alt


def test_colours_are_equal_for_equal_shares_whatever_else_is_shown():
    def colour(picture, name):
        drawn = picture.axes[0].artists + picture.axes[0].patches
        return next(artist.get_facecolor() for artist in drawn if artist.get_gid() == name)

    few = {key: CELLS[key] for key in ((8, 1), (32, 2))}
    for best, equal in ((0.2, True), (None, False)):
        full, part = (landscape("TS", "WPT", cells, best=best) for cells in (CELLS, few))
        assert (colour(full, "cell-2-1") == colour(part, "cell-1-1")) == equal


def test_a_kernel_with_one_parameter_is_one_row():
    cells = {(ts, 0): Cell("recorded", ts / 100, "so much") for ts in (8, 16, 32)}
    picture = landscape("TS", "", cells, here=(16, 0))
    assert "you are at TS=16: so much" in picture.alt
    assert 'id="cell-2-0"' in picture.svg() and 'id="cell-0-1"' not in picture.svg()
