"""Steppers over a simulated run, in a real JupyterLab: the line, the picture and the words stay on
one screen.
"""

from __future__ import annotations

import pytest
from lab import notebook, started

from gemmlab.catalog import sources

pytestmark = pytest.mark.system

FILM, CELL = 1, 2
BROKEN = sources.read("02_tiled.cl").replace("barrier(CLK_LOCAL_MEM_FENCE);", "", 1)
CELLS = (
    "import gemmlab\n%load_ext gemmlab",
    "def walk(WPT):\n    return gemmlab.simulate(3, 16, 16, 16, {'TS': 8, 'WPT': WPT})\n\n"
    "gemmlab.Stepper(walk, WPT=(4, 1, 2, 8), start={'step': 9, 'item': 3})",
    f"%%gemm 2 TS=16 M=64 N=64 K=64\n{BROKEN}",
)
#: Whether the lit line can be seen in the kernel's text, and where all is.
SEEN = """cell => {
    const at = what => cell.querySelector(what).getBoundingClientRect();
    const code = at(".gemmlab-code"), now = at(".gemmlab-now"), svg = at(".gemmlab-result svg");
    const words = [...cell.querySelectorAll(".gemmlab-result svg text")].map(
        text => text.getScreenCTM().d * parseFloat(getComputedStyle(text).fontSize));
    return {lit: now.top >= code.top - 1 && now.bottom <= code.bottom + 1, smallest: Math.min(...words),
            height: Math.max(code.bottom, svg.bottom) - at(".gemmlab").top};
}"""


@pytest.fixture(scope="module")
def ran(caches):
    """The notebook after it has been run."""
    with started(caches=caches) as lab:
        book = lab.open(notebook(lab.notebooks / "stepper.ipynb", *CELLS), height=800)
        book.run_all()
        yield book
        book.close()


def test_the_lit_line_the_picture_and_the_words_are_on_one_screen(ran):
    for width in (1280, 800):
        ran.resize(width, 800)
        ran.sidebar(width > 800)
        for _ in range(10):
            ran.move(FILM, "step")
            seen = ran.cell(FILM).evaluate(SEEN)
            assert seen["lit"], seen
        print(width, seen)
        assert seen["height"] < 680 and seen["smallest"] >= 9
    ran.resize(1280, 800)


def test_steps_are_quick_and_a_slider_of_the_chapter_changes_the_film(ran):
    times = sorted(ran.time(FILM, "step", "ArrowRight")[0] for _ in range(9))
    print(f"a step, key to paint: median {times[4]:.0f} ms, {times[0]:.0f} to {times[-1]:.0f}")
    assert times[4] < 60_000  # a guard against hanging
    shown = ran.move(FILM, "WPT")
    assert shown["key"] == ran.values(FILM) and "Step" in shown["text"]
    assert ran.shown(FILM)["key"].startswith("WPT=8")


def test_play_moves_the_film_by_keys_alone(ran):
    ran.press(FILM, "step", "ArrowRight", "ArrowRight")
    before = int(ran.value(FILM, "step"))
    ran.box(FILM).get_by_role("button", name="Play through step").focus()
    ran.page.keyboard.press("Enter")
    ran.wait_until(lambda: int(ran.value(FILM, "step")) != before)
    ran.box(FILM).get_by_role("button", name="Pause").focus()
    ran.page.keyboard.press("Enter")
    ran.box(FILM).get_by_role("button", name="Play through step").wait_for()
    assert int(ran.value(FILM, "step")) > before, "on from where the slider has been put"
    ran.wait_key(FILM, ran.values(FILM))
    ran.box(FILM).get_by_role("button", name="Stop, and back to the start").focus()
    ran.page.keyboard.press("Enter")
    ran.wait_until(lambda: ran.value(FILM, "step") == "1")
    ran.wait_key(FILM, ran.values(FILM))


def test_a_cell_of_opencl_is_stepped_through_and_its_race_marked(ran):
    button = ran.cell(CELL).get_by_role("button", name="Step through it")
    button.focus()
    ran.page.keyboard.press("Enter")
    ran.wait_until(lambda: ran.cell(CELL).locator(".gemmlab-wrong").count() > 0)
    assert "race" in ran.cell(CELL).locator(".gemmlab-wrong").first.inner_text()
    assert "by luck" in ran.cell(CELL).inner_text()
    ran.raise_errors()
