"""The page's part of a landscape, in a browser without JupyterLab: clicks, keys, names and
focus.
"""

import json
from pathlib import Path

import pytest
from conftest import lacking
from lab import browser_path, opened

from gemmlab import widgets
from gemmlab.draw.landscape import Cell, landscape, name_of

pytestmark = pytest.mark.system

SCRIPT = (Path(widgets.__file__).parent / "landscape.js").read_text(encoding="utf-8")
#: A stand-in for anywidget's model: it keeps what is sent, and lets the test change the picture.
PAGE = """
<div id="cell"><div id="grid"></div></div>
<script type="module">
  const source = %s;
  const widget = (await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })))).default;
  const actions = {};
  window.sent = [];
  window.escaped = [];
  window.state = %s;
  document.getElementById("cell").addEventListener("keydown", (event) => window.escaped.push(event.key));
  const model = { get: (name) => window.state[name], send: (message) => window.sent.push(message.choose),
                  on: (name, action) => actions[name] = action, off: () => {} };
  window.redraw = (what = "svg") => actions[`change:${what}`]();
  widget.render({ model, el: document.getElementById("grid") });
  window.ready = true;
</script>
"""


@pytest.fixture(scope="module")
def page():
    """A page with a landscape of 3 x 2 cells, in which (1, 0) is the reader's and (2, 1) is not
    legal.
    """
    if browser_path() is None:
        lacking("no Chromium")
    values = {
        (x, y): Cell("recorded", 0.1 * x + 0.05 * y, "so much") for x in (8, 16, 32) for y in (1, 2)
    }
    values[32, 2] = Cell("illegal", words="too large")
    svg = landscape(
        "TS", "WPT", {k: v._replace(share=v.share / 10) for k, v in values.items()}, here=(16, 1)
    ).svg()
    cells = [
        {"id": name_of(c, r), "column": c, "row": r, "x": x, "y": y, "label": f"TS={x}, WPT={y}",
         "legal": (x, y) != (32, 2), "here": (x, y) == (16, 1)}
        for c, x in enumerate((8, 16, 32)) for r, y in enumerate((1, 2))
    ]  # fmt: skip
    with opened() as browser:
        page = browser.new_page()
        page.set_content(
            PAGE
            % (json.dumps(SCRIPT), json.dumps({"svg": svg, "cells": cells, "words": "two axes"}))
        )
        page.wait_for_function("window.ready")
        yield page


def focused(page) -> str:
    return page.evaluate("document.activeElement.id")


def test_a_click_chooses_a_cell_wherever_in_it(page):
    for name, place in (("cell-0-1", [8, 2]), ("cell-2-0", [32, 1])):
        box = page.locator(f"#{name}").bounding_box()
        for share in (0.1, 0.5):  # in a corner, and on its number
            page.evaluate("window.sent = []")
            page.mouse.click(box["x"] + share * box["width"], box["y"] + share * box["height"])
            assert page.evaluate("window.sent") == [place]
            assert page.locator("[tabindex='0']").get_attribute("id") == name, (
                "the keyboard goes on from there"
            )


def test_tab_stops_once_and_arrows_and_enter_do_the_rest(page):
    page.evaluate(
        "document.activeElement.blur(); window.sent = []; window.escaped = []; window.redraw()"
    )
    assert page.locator("[tabindex='0']").count() == 1
    page.keyboard.press("Tab")
    assert focused(page) == "cell-1-0", "one begins where the sliders are"
    for key, name in (
        ("ArrowUp", "cell-1-1"),
        ("ArrowUp", "cell-1-1"),
        ("ArrowRight", "cell-2-1"),
        ("ArrowDown", "cell-2-0"),
        ("ArrowLeft", "cell-1-0"),
        ("ArrowLeft", "cell-0-0"),
    ):
        page.keyboard.press(key)
        assert focused(page) == name
    page.keyboard.press("Enter")
    page.keyboard.press("ArrowUp")
    page.keyboard.press(" ")
    assert page.evaluate("window.sent") == [[8, 1], [8, 2]]
    kept = [key for key in page.evaluate("window.escaped") if key != "Tab"]
    assert kept == [], "JupyterLab would act upon them"
    assert page.locator("[tabindex='0']").count() == 1


def test_a_new_picture_keeps_the_focus(page):
    page.locator("#cell-0-1").focus()
    page.evaluate("window.redraw()")
    assert (
        focused(page) == "cell-0-1"
        and page.locator("[tabindex='0']").get_attribute("id") == "cell-0-1"
    )


def test_the_ring_moves_to_the_readers_cell_in_the_same_picture(page):
    """Its middle is the middle of that cell, and the page says where it is."""
    middle = """name => {
        const box = document.querySelector(`#${name}`).getBoundingClientRect();
        return [box.x + box.width / 2, box.y + box.height / 2];
    }"""
    mark = "id => { state.cells.forEach(cell => cell.here = cell.id === id); redraw('cells'); }"
    for name in ("cell-2-1", "cell-0-0", "cell-1-0"):
        page.evaluate(mark, name)
        for ring in ("ring-black", "ring-white"):
            assert page.evaluate(middle, ring) == pytest.approx(
                page.evaluate(middle, name), abs=0.1
            )
        assert page.locator("[aria-current=true]").get_attribute("id") == name
    assert page.get_by_role("group", name="two axes").count() == 1


def test_every_cell_has_a_name_and_says_what_it_is(page):
    cells = page.get_by_role("button")
    assert cells.count() == 6
    assert page.get_by_role("button", name="TS=32, WPT=2").get_attribute("aria-disabled") == "true"
    assert page.get_by_role("button", name="TS=16, WPT=1").get_attribute("aria-current") == "true"
    assert page.locator("#cell-0-0 > title").text_content() == "TS=8, WPT=1"
