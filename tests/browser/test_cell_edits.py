"""A cell of OpenCL C that is edited and run again: what the panel keeps, and what it gives back."""

import pytest
from lab import notebook, started

from gemmlab.ladder import sources

pytestmark = pytest.mark.system

TEXT = sources.read("03_work_per_thread.cl").rstrip("\n")
SLOWER = TEXT.replace("acc[j] +=", "acc[j] = acc[j] +", 1)
WRONG = TEXT.replace("acc[j] +=", "acc[j] -=", 1)
LINE = "%%gemm 3 TS=32"
CELL = 1


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
    assert run(book, CELL)["state"] == "ok"
    assert button(book, "Original").count() == 0


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
