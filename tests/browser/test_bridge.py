"""The page's part of every widget, in a browser without JupyterLab, on a page that is slow."""

import json
from pathlib import Path

import pytest
from conftest import lacking
from lab import browser_path, opened

from gemmlab import widgets

pytestmark = pytest.mark.system

SCRIPT = (Path(widgets.__file__).parent / "bridge.js").read_text(encoding="utf-8")
#: A widget that is made before it is on the page, and whose slider comes last of all.
PAGE = """
<div><div class="jp-OutputArea-child"></div><div>start again</div><div id="still">the static picture</div></div>
<script type="module">
  const source = %s;
  const widget = (await import(URL.createObjectURL(new Blob([source], { type: "text/javascript" })))).default;
  const frames = (number) => new Promise((done) => {
    const next = () => number-- > 0 ? requestAnimationFrame(next) : done();
    next();
  });
  const panel = document.createElement("div"), el = document.createElement("div");
  panel.className = "gemmlab";
  panel.append(el);
  window.held = [];
  let now = false;
  const model = { get: () => now, set: (name, value) => { now = value; window.held.push(value); }, save_changes: () => {}, on: () => {}, off: () => {}, widget_manager: { kernel: { status: "idle" } } };
  window.end = widget.render({ model, el });
  await frames(20);
  document.querySelector(".jp-OutputArea-child").append(panel);
  await frames(20);
  panel.insertAdjacentHTML("afterbegin", '<div class="widget-slider"><label class="widget-label">TS</label>'
    + '<div class="noUi-target"><div class="noUi-handle"></div></div><div class="widget-readout">32</div></div><input>');
  await frames(20);
  window.ready = true;
</script>
"""


@pytest.fixture(scope="module")
def page():
    if browser_path() is None:
        lacking("no Chromium")
    with opened() as browser:
        page = browser.new_page()
        page.set_content(PAGE % json.dumps(SCRIPT))
        page.wait_for_function("window.ready")
        yield page


def test_a_widget_that_is_shown_late_hides_its_picture(page):
    assert not page.locator("#still").is_visible()


def test_a_slider_that_comes_late_has_a_name_and_a_value(page):
    handle = page.locator(".noUi-handle")
    assert [handle.get_attribute(f"aria-{what}") for what in ("label", "valuetext")] == ["TS", "32"]
    page.evaluate("document.querySelector('.widget-readout').textContent = 24")
    page.wait_for_function(
        "document.querySelector('.noUi-handle').getAttribute('aria-valuetext') === '24'"
    )


def test_a_slider_is_held_although_another_control_loses_the_focus(page):
    """As at the first drag of any slider: the window hears of it too, in the capture phase."""
    page.locator("input").focus()
    page.evaluate("""() => {
        document.querySelector(".noUi-handle").dispatchEvent(new Event("pointerdown", { bubbles: true }));
        document.querySelector("input").blur();
    }""")
    page.wait_for_timeout(50)
    assert page.evaluate("window.held") == [True]
    page.evaluate("window.dispatchEvent(new Event('pointerup'))")
    page.wait_for_function("window.held.length === 2")


def test_without_the_widget_the_picture_is_back(page):
    page.evaluate("window.end()")
    assert page.locator("#still").is_visible()
