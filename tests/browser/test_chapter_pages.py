"""The pages' parts of the widgets, in a browser without JupyterLab: of every widget on a page that is
slow, and of an explorer's maps with clicks, drags, keys, names and focus.
"""

import json
from pathlib import Path

import pytest
from conftest import lacking
from lab import browser_path, opened

from gemmlab import widgets

pytestmark = pytest.mark.system

FOLDER = Path(widgets.__file__).parent
MODULE = """
  const url = URL.createObjectURL(new Blob([%s], { type: "text/javascript" }));
  const widget = (await import(url)).default;
"""


def page_of(browser, script: str, page: str, **filled):
    """A page with the module of a widget, when its own script has run."""
    made = browser.new_page()
    text = json.dumps((FOLDER / script).read_text(encoding="utf-8"))
    for name, value in filled.items():
        page = page.replace(name, json.dumps(value))
    made.set_content(page.replace("MODULE", MODULE % text))
    made.wait_for_function("window.ready")
    return made


@pytest.fixture(scope="module")
def browser():
    if browser_path() is None:
        lacking("no Chromium")
    with opened() as browser:
        yield browser


#: A widget that is made before it is on the page, and whose slider comes last of all.
BRIDGE = """
<div><div class="jp-OutputArea-child"></div><div>start again</div><div id="still">the static picture</div></div>
<script type="module">
  MODULE
  const frames = (number) => new Promise((done) => {
    const next = () => number-- > 0 ? requestAnimationFrame(next) : done();
    next();
  });
  const panel = document.createElement("div"), el = document.createElement("div");
  panel.className = "gemmlab";
  panel.append(el);
  const model = { get: () => null, on: () => {}, off: () => {}, widget_manager: { kernel: { status: "idle" } } };
  window.end = widget.render({ model, el });
  await frames(20);
  document.querySelector(".jp-OutputArea-child").append(panel);
  await frames(20);
  panel.insertAdjacentHTML("afterbegin", '<div class="widget-slider"><label class="widget-label">TS</label>'
    + '<div class="noUi-target"><div class="noUi-handle"></div></div><div class="widget-readout">32</div></div>');
  await frames(20);
  window.ready = true;
</script>
"""


def test_a_widget_that_is_shown_late_hides_its_picture_and_names_its_sliders(browser):
    slow = page_of(browser, "bridge.js", BRIDGE)
    assert not slow.locator("#still").is_visible()
    handle = slow.locator(".noUi-handle")
    assert [handle.get_attribute(f"aria-{what}") for what in ("label", "valuetext")] == ["TS", "32"]
    slow.evaluate("window.end()")
    assert slow.locator("#still").is_visible()
    slow.close()


#: A stand-in for anywidget's model: it keeps what is sent, and lets the test change the state.
MAPS = """
<style>.gemmlab-grid { display: grid; } button { height: 20px; }</style>
<div id="cell"><div id="maps"></div></div>
<script type="module">
  MODULE
  const actions = {};
  window.sent = [];
  window.escaped = [];
  window.state = STATE;
  document.getElementById("cell").addEventListener("keydown", (event) => window.escaped.push(event.key));
  const model = { get: (name) => window.state[name], send: (message) => window.sent.push(message),
                  on: (name, action) => actions[name] = action, off: () => {} };
  window.redraw = (what = "maps") => actions[`change:${what}`]();
  widget.render({ model, el: document.getElementById("maps") });
  window.ready = true;
</script>
"""


def cell(x: int, y: int) -> dict:
    illegal = (x, y) == (32, 2)
    state, words = ("illegal", "not legal") if illegal else ("recorded", "so much")
    return {"x": x, "y": y, "state": state, "text": "", "label": f"TS={x}, WPT={y}: {words}"}


MAP = {
    "title": "recorded",
    "names": ["TS", "WPT"],
    "hint": "",
    "across": "TS",
    "down": "WPT",
    "xs": [8, 16, 32],
    "ys": [1, 2],
    "cells": [cell(x, y) for x in (8, 16, 32) for y in (1, 2)],
}
TRIES = [
    {"number": n, "right": True, "label": f"try {n}", "text": "", "low": 0, "middle": 0, "high": 0}
    for n in (0, 1)
]
STATE = {"maps": [MAP], "here": [16, 1], "tries": {"title": "your tries", "marks": TRIES}}


@pytest.fixture
def page(browser):
    """A map of 3 x 2 cells, in which (16, 1) is the reader's and (32, 2) is illegal."""
    page = page_of(browser, "maps.js", MAPS, STATE=STATE)
    yield page
    page.close()


def at(page, x: int, y: int):
    return page.locator(f"[data-x='{x}'][data-y='{y}']")


def focused(page) -> list[int]:
    """The values of the cell that has the focus."""
    return page.evaluate("Object.values(document.activeElement.dataset).map(Number)")


def test_a_click_chooses_a_cell_and_a_drag_the_last_one(page):
    at(page, 8, 2).click()
    assert page.evaluate("sent") == [{"choose": [8, 2]}]
    assert page.locator(".gemmlab-grid [tabindex='0']").get_attribute("data-x") == "8"
    page.evaluate("window.sent = []")
    at(page, 8, 1).hover()
    page.mouse.down()
    for x, y in ((16, 1), (32, 1), (32, 2)):
        at(page, x, y).hover()
    page.mouse.up()
    places = [{"pass": [16, 1]}, {"pass": [32, 1]}, {"choose": [32, 1]}]
    assert page.evaluate("sent") == places, "an illegal cell is passed over"


def test_new_cells_keep_the_focus(page):
    at(page, 8, 2).focus()
    page.evaluate("redraw()")
    assert focused(page) == [8, 2]
    assert page.locator(".gemmlab-grid [tabindex='0']").count() == 1


def test_every_cell_and_every_try_has_a_name(page):
    assert page.get_by_role("button").count() == 8
    illegal = page.get_by_role("button", name="TS=32, WPT=2")
    assert illegal.get_attribute("aria-disabled") == "true"
    page.locator("#try-0").click()
    assert page.evaluate("sent") == [{"again": 0}]
