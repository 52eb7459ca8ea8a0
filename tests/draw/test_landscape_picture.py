"""The picture of a landscape: a cell for each setting, with its state, and the reader's own."""

from gemmlab.draw.landscape import Cell, landscape
from pictures import words

CELLS = {
    (8, 1): Cell("recorded", 0.05, "slow"),
    (16, 1): Cell("recorded", 0.2, "fast"),
    (32, 1): Cell("illegal", words="no"),
    (8, 2): Cell("failed", words="it died"),
    (16, 2): Cell("missing"),
    (32, 2): Cell("recorded", 0.1, "middling"),
}


def test_cells_and_description_say_the_share_or_what_is_missing():
    picture = landscape("TS", "WPT", CELLS, (32, 2), 0.2, "a card")
    assert sorted(words(picture)) == sorted(["5.0", "20", "10", "×", "?"])
    alt = picture.alt
    assert "the best is 20 % at TS=16, WPT=1" in alt and "you are at TS=32, WPT=2: middling" in alt
    assert "1 of 6 settings are not legal" in alt and "a card" in alt
    assert "you are" not in landscape("TS", "WPT", CELLS, (17, 1), 0.2, "a card").alt


def test_a_kernel_with_one_parameter_is_one_row():
    cells = {(ts, 0): Cell("recorded", ts / 100, "so much") for ts in (8, 16, 32)}
    picture = landscape("TS", "", cells, (16, 0), 0.32, "a card")
    assert "you are at TS=16: so much" in picture.alt and len(words(picture)) == 3
