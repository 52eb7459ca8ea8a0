"""Every chapter in a real JupyterLab: as it is stored, after Run All, and its widgets moved."""

import contextlib
from pathlib import Path

import pytest
from conftest import browser_device
from lab import started

pytestmark = pytest.mark.system

CHAPTERS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("[0-9]*.ipynb"))
#: By file: the runtime on which a chapter runs here.
DEVICE_OF = {path.name: browser_device(path.stem) for path in CHAPTERS}
#: What makes a widget in a cell.
WIDGETS = (
    "gemmlab.Explorer(",
    "%%gemm ",
    "gemmlab.Stepper(",
    "gemmlab.Generator(",
    "gemmlab.Prediction(",
)
#: In a hole of a kernel: it is wrong until the learner fills it.
HOLE = "// your lines"
#: Where a chapter's other %%gemm cells are wrong until the learner repairs them: by the settings of
#: the sliders.
WRONG = {
    "07_wide_loads": lambda TSM, WPTM, **others: 1 < WPTM < TSM,
    "10_any_size": lambda TSM, TSN, **others: TSM != TSN,
    "15_warp_tiles": lambda **settings: True,  # a hole
    "16_async_copies": lambda **settings: True,
}
#: The states of a panel whose kernel did not come to its end.
NO_RESULT = ("crash", "hang")


#: For the kernel of a notebook, which runs it before the first cell: the chapter's device.
OF_CHAPTER = f"""
import os

os.environ["GEMMLAB_DEVICE"] = {DEVICE_OF}[os.path.basename(os.environ["JPY_SESSION_NAME"])]
del os
"""


@pytest.fixture(scope="module")
def lab(caches):
    """One JupyterLab for all the chapters that this process tests."""
    with started(*sorted(set(DEVICE_OF.values())), caches=caches, startup=OF_CHAPTER) as lab:
        yield lab


@pytest.fixture(scope="module", params=CHAPTERS, ids=lambda path: path.stem)
def chapter(lab, request):
    """A chapter as it is stored. The tests of a chapter share it, in their order here."""
    book = lab.open(request.param)
    yield book
    book.close()


@pytest.fixture(scope="module")
def alive(chapter):
    """A chapter after Run All Cells, when its page shows what its cells have made."""
    chapter.run_all()
    widgets = written(chapter, *WIDGETS)

    def finished() -> bool:
        return chapter.widgets() == widgets and all(map(chapter.follows, widgets))

    with contextlib.suppress(TimeoutError):  # the tests say what is missing
        chapter.wait_until(finished)
    return chapter


def written(book, *words: str) -> list[int]:
    """The code cells that hold one of the words."""
    return [
        n
        for n, (kind, text) in enumerate(book.cells())
        if kind == "code" and any(word in text for word in words)
    ]


def too_wide(book, number: int) -> list[str]:
    """What of a cell's output sticks out of it, but for pictures that scroll in a narrow cell."""
    return book.cell(number).evaluate("""cell => [
        ...cell.querySelectorAll(".jp-OutputArea-output")].flatMap(area => {
        const right = area.getBoundingClientRect().right + 1, found = [];
        const scrolls = e => e.closest(".gemmlab-wide")
            || (e.closest(".jp-RenderedImage") && area.clientWidth < 520);
        const parts = ".gemmlab, .gemmlab-result, .gemmlab-result > *, svg, img";
        for (const e of area.querySelectorAll(parts))
            if (!scrolls(e) && e.getBoundingClientRect().right > right)
                found.push(`${e.tagName}.${e.getAttribute("class")}`);
        const picture = area.querySelector("svg, img");
        if (picture && !scrolls(picture) && area.scrollWidth > area.clientWidth + 1)
            found.push(`${area.scrollWidth} > ${area.clientWidth}`);
        return found;
    })""")


def test_chapter_reads_well_without_being_run(chapter):
    """As it is stored: a picture for every widget, and no error in place of one."""
    chapter.wait_until(lambda: chapter.page.get_by_text("Loading widget").count() == 0)
    assert chapter.page.get_by_text("Error displaying widget").count() == 0
    assert (
        chapter.page.locator(".jupyter-widgets-disconnected:visible, .gemmlab-panel").count() == 0
    )
    assert chapter.widgets() == []
    kinds = "jupyterapp.shell.currentWidget.content.widgets.map(cell => cell.model.mimeType)"
    for number in written(chapter, "%%gemm "):
        chapter.wait_until(
            lambda number=number: chapter.page.evaluate(kinds)[number] == "text/x-csrc"
        )
        assert chapter.cell(number).locator(".cm-lineNumbers").count() == 1
    outer = chapter.page.locator(".jp-Notebook .jp-WindowedPanel-outer")
    assert outer.evaluate("e => e.scrollWidth <= e.clientWidth"), "the page scrolls sideways"
    stills = written(chapter, "gemmlab.Explorer(", "gemmlab.Stepper(", "%%gemm ")
    assert stills
    for number in stills:
        assert chapter.still(number).count() == 1, (
            f"cell {number} has no picture: {chapter.output(number)!r}"
        )
        chapter.wait_until(lambda number=number: chapter.still(number).is_visible())
        image = chapter.still(number).locator("img")
        if image.count():  # a cell of OpenCL has words
            assert image.evaluate("i => i.complete && i.naturalWidth > 300")
        assert "To use this, run" in chapter.output(number)
        assert not chapter.output(number).startswith("["), "what a page cannot show"
        assert too_wide(chapter, number) == []


def test_chapter_runs_and_all_its_widgets_live(alive):
    alive.raise_errors()
    explorers = written(alive, "gemmlab.Explorer(", "%%gemm ")
    assert explorers or written(alive, "gemmlab.Stepper(")
    assert alive.widgets() == written(alive, *WIDGETS), "every widget of the text is on the page"
    for number in alive.widgets():
        shown = alive.shown(number)
        assert shown["key"] == alive.values(number)
        assert ("state" in shown and shown["state"] != "") == (number in explorers)
        assert alive.box(number).is_visible()
        assert alive.still(number).count() == 1 and not alive.still(number).is_visible(), (
            f"cell {number}: two pictures"
        )
    assert alive.page.get_by_text("Error displaying widget").count() == 0
    for width in (1280, 800):
        alive.resize(width)
        wide = {number: too_wide(alive, number) for number in range(len(alive.cells()))}
        assert {number: what for number, what in wide.items() if what} == {}, width
    alive.resize(1280)


def test_chapter_steppers_move(alive):
    for number in written(alive, "gemmlab.Stepper("):
        names, changed = alive.names(number), []
        drawing = alive.box(number).locator("svg[role=img]")
        words = alive.box(number).locator(".gemmlab-words input:not(:checked)")
        if not names:  # buttons for words alone
            before = drawing.inner_html()
            words.first.click()
            alive.wait_until(lambda number=number: alive.follows(number))
            changed += ["words"] if drawing.inner_html() != before else []
        for name in names:
            before = drawing.inner_html()
            shown = alive.move(number, name)
            where = f"cell {number}, {shown['key']}"
            assert shown["key"] == alive.values(number), where
            assert "Error: " not in shown["text"], f"{where}: {shown['text']}"
            assert drawing.count() == 1 and drawing.is_visible(), where
            assert drawing.get_attribute("aria-label").strip(), where
            changed += [name] if drawing.inner_html() != before else []
        assert changed, f"cell {number}: no slider changes the picture"
    alive.raise_errors()


def test_chapter_explorers_move(alive):
    stubs, holes = written(alive, "%%gemm "), written(alive, HOLE)
    for number in written(alive, "gemmlab.Explorer(", "%%gemm "):

        def right(shown, number=number) -> None:
            where = f"cell {number}, {shown['key']}: {shown['state']}, {shown['text'][:300]}"
            values = {
                name: int(value)
                for name, value in (pair.split("=") for pair in shown["key"].split())
            }
            wrong = WRONG.get(alive.path.stem, lambda **values: False)
            broken = number in holes or (number in stubs and wrong(**values))
            # what is written outside a tile may also end the process, or a loop's counter
            assert shown["state"] in (("wrong", *NO_RESULT) if broken else ("ok",)), where
            assert ("Right: every element exact" in shown["text"]) == (not broken), where
            assert shown["key"] == alive.values(number), where

        alive.show_all(number)
        right(alive.shown(number))
        names = alive.names(number)
        assert {"M", "N", "K"} < {*names}
        for name in (names[0], "M"):
            count = int(alive.shown(number)["count"])
            shown = alive.move(number, name)
            right(shown)
            assert int(shown["count"]) == count + 1 or shown["state"] in NO_RESULT, (
                "one move, one measurement"
            )
    alive.raise_errors()
