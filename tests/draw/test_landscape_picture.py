"""The picture of a landscape: a cell for each setting, with its state, and the reader's own."""

from gemmlab.draw.landscape import landscape
from pictures import words


def shown(across: str, down: str, cells: dict) -> dict:
    """A map: "state", "share" and "label" of each cell."""
    xs, ys = (sorted({place[axis] for place in cells}) for axis in (0, 1))
    every = []
    for (x, y), (state, share, label) in cells.items():
        place = f"{across}={x}" + f", {down}={y}" * bool(down)
        cell = {"x": x, "y": y, "state": state, "label": f"{place}: {label}", "text": ""}
        if share:
            cell |= {"share": share, "text": f"{100 * share:g}", "shade": "9,9,9", "ink": "white"}
        every.append(cell)
    return {"across": across, "down": down, "xs": xs, "ys": ys, "cells": every}


CELLS = {
    (8, 1): ("recorded", 0.05, "slow"),
    (16, 1): ("recorded", 0.2, "fast"),
    (32, 1): ("illegal", 0, "no"),
    (8, 2): ("failed", 0, "it died"),
    (16, 2): ("missing", 0, ""),
    (32, 2): ("recorded", 0.1, "middling"),
}


def test_cells_and_description_say_the_share_or_what_is_missing():
    made = shown("TS", "WPT", CELLS)
    picture = landscape(made, (32, 2), "a card")
    assert sorted(words(picture)) == sorted(["5", "20", "10", "×", "?"])
    alt = picture.alt
    assert "the best is 20 % at TS=16, WPT=1" in alt and "you are at TS=32, WPT=2: middling" in alt
    assert "1 of 6 settings are not legal" in alt and "a card" in alt
    assert "you are" not in landscape(made, (17, 1), "a card").alt


def test_a_kernel_with_one_parameter_is_one_row():
    cells = {(ts, 0): ("recorded", ts / 100, "so much") for ts in (8, 16, 32)}
    picture = landscape(shown("TS", "", cells), (16, 0), "a card")
    assert "you are at TS=16: so much" in picture.alt and len(words(picture)) == 3
