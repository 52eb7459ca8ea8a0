"""A cell of OpenCL C that is edited and run again: what the panel keeps, and what it gives back."""

import pytest
from conftest import lacking
from lab import notebook, started

from gemmlab.ladder import sources

pytestmark = pytest.mark.system

TEXT = sources.read("03_work_per_thread.cl").rstrip("\n")
SLOWER = TEXT.replace("acc[j] +=", "acc[j] = acc[j] +", 1)
WRONG = TEXT.replace("acc[j] +=", "acc[j] -=", 1)
LINE = "%%gemm 3 TS=32"
CELL = 1
#: What a highlight marks, without blanks around it.
LIT = """name => [...CSS.highlights.get(name) ?? []].map(range => range.toString().trim()
    .replace(/ *acc\\b.*/, " acc"))"""


@pytest.fixture(scope="module")
def book():
    with started("pocl") as lab:
        cells = "%load_ext gemmlab", f"{LINE}\n{TEXT}"
        book = lab.open(notebook(lab.notebooks / "edits.ipynb", *cells))
        book.run(0)
        book.wait_ran(0)
        run(book, CELL)
        yield book
        book.close()


def write(book, text: str) -> None:
    book.page.evaluate(
        "([n, text]) => jupyterapp.shell.currentWidget.content.model.sharedModel.cells[n]"
        ".setSource(text)",
        [CELL, text],
    )


def run(book, number: int) -> dict[str, str]:
    old = book.counts(number)
    book.run(number)
    book.wait_until(lambda: book.counts(number) not in (old, [None]) or old == [None])
    book.wait_ran(number)
    book.wait_until(lambda: book.follows(number) and not book.busy(number), number)
    return book.shown(number)


def button(book, name: str):
    return book.box(CELL).get_by_role("button", name=name)


def test_an_edit_keeps_the_settings_and_what_was_open(book):
    """What the first line names wins over what was moved."""
    assert book.shown(CELL)["key"] == "TS=32 WPT=8 M=256 N=256 K=256"
    book.show_all(CELL)
    book.press(CELL, "WPT", "ArrowLeft")
    book.wait_key(CELL, "TS=32 WPT=4 M=256 N=256 K=256")
    book.press(CELL, "M", "ArrowLeft")
    moved = "WPT=4 M=200 N=200 K=200"
    book.wait_key(CELL, f"TS=32 {moved}")
    book.press(CELL, "TS", "ArrowLeft")
    book.wait_key(CELL, f"TS=24 {moved}")
    button(book, "Step through it").click()
    book.box(CELL).locator(".gemmlab-code").wait_for()
    write(book, f"{LINE}\n{SLOWER}")
    assert run(book, CELL)["key"] == f"TS=32 {moved}"
    assert (
        "before" in book.shown(CELL)["text"] and book.box(CELL).locator(".gemmlab-bar em").count()
    )
    assert book.control(CELL, "K").is_visible()
    book.box(CELL).locator(".gemmlab-code").wait_for()
    button(book, "↺ Reset").click()
    book.wait_key(CELL, "TS=32 WPT=8 M=256 N=256 K=256")


def test_a_try_gives_its_code_back(book):
    write(book, f"{LINE}\n{WRONG}")
    assert run(book, CELL)["state"] == "wrong"
    tries = book.box(CELL).locator(".gemmlab-try")
    count = tries.count()
    tries.first.click()
    difference = book.box(CELL).locator(".gemmlab-difference")
    difference.wait_for()
    assert "acc[j] +=" in difference.locator(".gemmlab-added").inner_text()
    assert "acc[j] -=" in difference.locator(".gemmlab-removed").inner_text()
    button(book, "Put this back into the cell").click()
    book.wait_until(lambda: book.cells()[CELL][1] == f"{LINE}\n{TEXT}")
    assert run(book, CELL)["state"] == "ok"
    assert tries.count() == count + 1


def test_the_original_is_always_there(book):
    write(book, f"{LINE} M=64\n{WRONG}")
    run(book, CELL)
    button(book, "Original").click()
    book.wait_until(lambda: book.cells()[CELL][1] == f"{LINE} M=64\n{TEXT}")
    # the verdict is about the code that was there, and the panel says what to do
    book.page.locator(".gemmlab-result.gemmlab-older").wait_for()
    assert "Shift-Enter" in book.page.locator(".gemmlab-copied").all_inner_texts()[0]
    assert run(book, CELL)["state"] == "ok"
    assert button(book, "Original").count() == 0
    assert book.page.locator(".gemmlab-result.gemmlab-older").count() == 0


def test_settings_are_copied_as_code_and_tries_saved(book):
    """By the clipboard; where the page may not write there, from a field."""
    button(book, "Copy as %%gemm").click()
    field = book.box(CELL).get_by_label("code to copy")
    copied = book.box(CELL).locator(".gemmlab-copied")
    book.wait_until(lambda: field.count() or "%%gemm" in copied.inner_text())
    text = field.input_value() if field.count() else copied.inner_text()
    assert "%%gemm 3 TS=32 WPT=8 M=64 N=64 K=64" in text
    with book.page.expect_download() as download:
        button(book, "Tries as CSV").click()
    lines = download.value.path().read_text().splitlines()
    assert lines[0].startswith("TS,WPT,M,N,K,gflops") and len(lines) > 3


def test_a_line_of_the_verdict_is_a_link_into_the_editor(book):
    """The cursor goes there, and the line is marked."""
    write(book, f"{LINE} M=64\n{TEXT.replace('float acc', 'flot acc', 1)}")
    assert run(book, CELL)["state"] == "BuildError"
    number = 2 + next(n for n, row in enumerate(TEXT.splitlines()) if "float acc" in row)
    book.box(CELL).get_by_role("link", name=f"line {number}").first.click()
    book.wait_until(lambda: book.page.evaluate(LIT, "gemmlab-line") == ["flot acc"])
    cursor = (
        "number => jupyterapp.shell.currentWidget.content.widgets[number].editor"
        ".getCursorPosition().line"
    )
    book.wait_until(lambda: book.page.evaluate(cursor, CELL) == number - 1)


def test_a_hand_at_a_slider_lights_the_uses_of_its_name(book):
    write(book, f"{LINE} M=64\n{TEXT}")
    run(book, CELL)
    book.control(CELL, "WPT").hover()
    book.wait_until(lambda: {*book.page.evaluate(LIT, "gemmlab-name")} == {"WPT"})
    book.box(CELL).locator(".gemmlab-title").first.hover()
    book.wait_until(lambda: book.page.evaluate(LIT, "gemmlab-name") == [])


def test_the_editor_completes_names_of_opencl(book):
    book.cell(CELL).locator(".cm-line").last.click()
    for key in ("End", "Enter", *"get_gl", "Tab"):
        book.page.keyboard.press(key)
    book.page.locator(".jp-Completer", has_text="get_global_id").wait_for()
    book.page.keyboard.press("Escape")
    write(book, f"{LINE} M=64\n{TEXT}")


@pytest.mark.parametrize("theme", ["JupyterLab Light", "JupyterLab Dark"])
def test_axe_finds_nothing(book, theme):
    """In a panel with tries, a difference, the stepper and all that folds away."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        lacking("no axe-playwright-python")
    book.page.evaluate(
        "theme => jupyterapp.commands.execute('apputils:change-theme', { theme }).then(() => null)",
        theme,
    )
    dark = str(theme == "JupyterLab Light").lower()
    book.page.wait_for_selector(f"body[data-jp-theme-light={dark}]", state="attached")
    book.show_all(CELL)
    if not book.box(CELL).locator(".gemmlab-code").count():
        button(book, "Step through it").click()
        book.box(CELL).locator(".gemmlab-code").wait_for()
    book.box(CELL).locator(".gemmlab-try.gemmlab-older").first.click()
    book.box(CELL).locator(".gemmlab-difference").wait_for()
    for width in (1280, 800):
        book.resize(width)
        found = Axe().run(book.page, context=".gemmlab").response["violations"]
        seen = [(one["id"], node["html"][:200]) for one in found for node in one["nodes"]]
        assert seen == [], width
    book.resize(1280)
