"""What a new user met in the explorers, in a real JupyterLab: each was a defect once."""

import time

import pytest
from lab import notebook, started

from gemmlab.catalog import sources

pytestmark = pytest.mark.system

EXPLORER, GEMM, ENDLESS, QUICK = range(1, 5)
TEXT = sources.read("03_work_per_thread.cl")
FOREVER = TEXT.replace("    // store", "    for (;;) {}\n\n    // store")
CELLS = (
    "%load_ext gemmlab\nimport gemmlab",
    "gemmlab.Explorer(kernel=3)",
    f"%%gemm 3 M=64 N=64 K=64\n{TEXT}",
    f"%%gemm 3 M=64 N=64 K=64\n{FOREVER}",
    "print(6 * 7)",
)
START = "TS=32 WPT=8 M=256 N=256 K=256"


@pytest.fixture(scope="module")
def lab():
    """A JupyterLab on PoCL with empty caches."""
    with started() as lab:
        yield lab


@pytest.fixture(scope="module")
def book(lab):
    """The notebook after its first two cells have run."""
    book = lab.open(notebook(lab.notebooks / "explorers.ipynb", *CELLS))
    book.run(0)
    book.wait_ran(0)
    book.run(EXPLORER)
    book.wait_until(lambda: book.shown(EXPLORER)["key"] == START)
    yield book
    book.close()


#: The name of what has the focus.
FOCUSED = """(() => {
    const e = document.activeElement;
    return e.getAttribute("aria-label") || e.labels?.[0]?.textContent || e.closest("label")?.textContent
        || e.title || e.textContent;
})()"""


def stale(book, number: int) -> bool:
    return book.box(number).locator(".gemmlab-result.gemmlab-stale").count() > 0


def settled(book, number: int) -> bool:
    return not stale(book, number) and not book.busy(number)


def note(book) -> str:
    return book.box(EXPLORER).locator(".gemmlab-right .gemmlab-note").inner_text()


def gave_way(book, number: int) -> list[str]:
    return book.box(number).locator(".gemmlab-gave-way").all_inner_texts()


def test_the_first_move_does_not_wait_for_other_kernels(book):
    """It took 49 s; the panel says what it is about, and dims until it is about the present
    settings.
    """
    shown = book.shown(EXPLORER)
    assert "This is your start" in shown["text"]
    book.press(EXPLORER, "TS", "ArrowLeft")
    pressed = time.monotonic()
    book.wait_until(
        lambda: stale(book, EXPLORER) or book.shown(EXPLORER)["key"].startswith("TS=24 ")
    )
    shown = book.wait_key(EXPLORER, "TS=24 WPT=8 M=256 N=256 K=256")
    book.wait_until(lambda: settled(book, EXPLORER))
    assert shown["state"] == "ok"
    assert time.monotonic() - pressed < 60


def test_a_drag_is_measured_where_it_ends_and_its_reasons_stay(book):
    """The mouse from TS = 24 over 20 and 16 back to 20: one try, WPT marked with the reason from
    start to end.
    """
    book.wait_until(lambda: settled(book, EXPLORER))
    count, handle = int(book.shown(EXPLORER)["count"]), book.control(EXPLORER, "TS")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    track = book.box(EXPLORER).locator(".noUi-target").first.bounding_box()
    stop = track["width"] / 7  # eight values
    book.control(EXPLORER, "M").focus()  # the first drag takes the focus from another control
    book.page.mouse.move(*middle)
    book.page.mouse.down()
    for steps in (1, 2, 1):
        book.page.mouse.move(middle[0] - steps * stop, middle[1], steps=4)
        book.page.wait_for_timeout(250)
    book.wait_until(lambda: book.value(EXPLORER, "TS") == "20")
    assert book.value(EXPLORER, "TS") == "20" and int(book.shown(EXPLORER)["count"]) == count, (
        "held, not measured"
    )
    book.page.mouse.up()
    shown = book.wait_key(EXPLORER, "TS=20 WPT=4 M=256 N=256 K=256")
    reason = "WPT moved from 8 to 4, because TS=20 is not a multiple of WPT=8"
    assert int(shown["count"]) == count + 1
    book.wait_until(lambda: reason in note(book))
    assert len(gave_way(book, EXPLORER)) == 1 and reason in gave_way(book, EXPLORER)[0]
    book.press(EXPLORER, "TS", "ArrowLeft")
    book.wait_until(lambda: gave_way(book, EXPLORER) == [])
    book.wait_key(EXPLORER, "TS=16 WPT=4 M=256 N=256 K=256")


def test_what_is_typed_beside_a_slider_is_taken_or_refused(book):
    row = book._row(EXPLORER, "M")
    row.locator(".widget-readout").click()
    book.page.keyboard.press("Control+A")
    book.page.keyboard.type("300")
    book.page.keyboard.press("Enter")
    book.wait_key(EXPLORER, "TS=16 WPT=4 M=300 N=300 K=300")
    readout = book._row(EXPLORER, "TS").locator(".widget-readout")
    readout.click()
    book.page.keyboard.press("Control+A")
    book.page.keyboard.type("17")
    book.page.keyboard.press("Enter")
    alert = book.box(EXPLORER).get_by_role("alert")
    alert.wait_for()
    assert "TS cannot be '17'" in alert.inner_text() and "choose one of" in alert.inner_text()
    assert book.value(EXPLORER, "TS") == "16" and book.shown(EXPLORER)["key"] == book.values(
        EXPLORER
    )


def test_by_keyboard_alone(book):
    """One Tab stop for each control; a try can be returned to from the list."""
    book.wait_until(lambda: settled(book, EXPLORER))
    book.control(EXPLORER, "TS").focus()
    passed = []
    for _ in range(2):
        book.page.keyboard.press("Tab")
        passed.append(book.page.evaluate(FOCUSED))
    assert passed[:2] == ["WPT", "M"], passed
    tab_to(book, "your setting")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert book.page.evaluate(outline) != "none", "the focus is visible"
    book.box(EXPLORER).locator("#try-1").focus()
    book.page.keyboard.press("ArrowLeft")
    book.page.keyboard.press("Enter")  # the first try
    book.wait_key(EXPLORER, START)
    assert book.values(EXPLORER) == START


def test_a_move_by_key_is_explained_and_spoken(book):
    """Where another slider gives way, a screen reader says the verdict, the rate, and why; and the
    slider knows it.
    """
    book.wait_until(lambda: settled(book, EXPLORER))
    book.press(EXPLORER, "TS", "ArrowLeft", "ArrowLeft")
    book.wait_key(EXPLORER, "TS=20 WPT=4 M=256 N=256 K=256")
    why = "WPT moved from 8 to 4, because TS=20 is not a multiple of WPT=8"
    assert gave_way(book, EXPLORER) and why in gave_way(book, EXPLORER)[0]
    assert book.control(EXPLORER, "WPT").get_attribute("aria-description") == why
    assert (
        book.control(EXPLORER, "M").get_attribute("aria-description").startswith("rows of A and C")
    )
    spoken = book.box(EXPLORER).locator(".gemmlab-spoken[role=status]")
    book.wait_until(lambda: why in spoken.text_content())
    assert "Right" in spoken.text_content() and "GFLOPS" in spoken.text_content()


def test_a_cell_of_the_landscape_is_chosen_by_key(book):
    """From the slider on by Tab alone; what is not legal says so and moves nothing."""
    book.wait_until(lambda: settled(book, EXPLORER))
    book.control(EXPLORER, "TS").focus()
    tab_to(book, "your setting: TS=20, WPT=4")
    for key in ("ArrowRight", "Enter"):
        book.page.keyboard.press(key)
    shown = book.wait_key(EXPLORER, "TS=24 WPT=4 M=256 N=256 K=256")
    assert shown["state"] == "ok" and book.values(EXPLORER) == shown["key"]
    spoken = book.box(EXPLORER).locator(".gemmlab-spoken[role=status]")
    book.wait_until(
        lambda: "Right" in spoken.text_content() and "moved" not in spoken.text_content()
    )
    for key in ("ArrowUp", "ArrowUp", "Enter"):
        book.page.keyboard.press(key)
    book.wait_until(lambda: "TS=24 is not a multiple of WPT=16" in note(book))
    assert book.values(EXPLORER) == shown["key"]


def tab_to(book, name: str) -> None:
    """Press Tab until the focus is on what begins with this name."""
    for _ in range(20):
        book.page.keyboard.press("Tab")
        if book.page.evaluate(FOCUSED).startswith(name):
            return
    raise AssertionError(
        f"Tab does not come to {name!r}, but ends at {book.page.evaluate(FOCUSED)!r}"
    )


def test_a_try_in_the_chart_can_be_clicked(book):
    book.wait_until(lambda: settled(book, EXPLORER))
    mark = book.box(EXPLORER).locator("#try-1")
    assert "TS 24, WPT 8, M 256" in mark.get_attribute("title")
    mark.click()
    book.wait_key(EXPLORER, "TS=24 WPT=8 M=256 N=256 K=256")


def test_an_edited_cell_keeps_its_tries_beside_the_original(book):
    book.run(GEMM)
    book.wait_until(lambda: book.shown(GEMM)["count"] == "1")
    assert "the original text" in book.shown(GEMM)["text"]
    edited = CELLS[GEMM].replace("acc[j] +=", "acc[j] = acc[j] +", 1)
    assert edited != CELLS[GEMM]
    book.page.evaluate(
        "([n, text]) => jupyterapp.shell.currentWidget.content.model.sharedModel.cells[n]"
        ".setSource(text)",
        [GEMM, edited],
    )
    old = book.prompt(GEMM)
    book.run(GEMM)
    book.wait_until(lambda: book.prompt(GEMM) not in (old, "[*]:"))
    book.wait_until(lambda: book.box(GEMM).locator("[id^=try-]").count() == 2)
    book.wait_until(lambda: "the original" in book.shown(GEMM)["text"])
    assert "unchanged" not in book.shown(GEMM)["text"]
    reach = book.box(GEMM).locator("[data-allowed]")
    book.wait_until(lambda: reach.count() and "local memory" in reach.inner_text())


def test_nothing_moves(book):
    """Twenty moves and an error: the instrument is as tall as before, and fits on one screen."""
    box, seen = book.box(EXPLORER), set()
    for move in range(20):
        book.press(EXPLORER, "TS", "ArrowLeft" if move % 4 < 2 else "ArrowRight")
        seen.add(box.bounding_box()["height"])
    book.wait_until(lambda: settled(book, EXPLORER))
    seen.add(box.bounding_box()["height"])
    book.show_all(EXPLORER)
    illegal = box.get_by_label("allow illegal settings")
    illegal.check()
    box.locator(".gemmlab-fold").click()
    illegal.wait_for(state="hidden")  # the kernel closes it, which takes a moment
    for key in ("ArrowLeft",) * 8:  # over TS=20 and TS=12, which WPT=8 does not divide
        book.press(EXPLORER, "TS", key)
        seen.add(box.bounding_box()["height"])
    book.wait_until(lambda: settled(book, EXPLORER))
    seen.add(box.bounding_box()["height"])
    print(f"\nheights: {seen}")
    assert len(seen) == 1 and max(seen) <= 640


def test_an_endless_kernel_counts_down_and_can_be_stopped(book):
    """While its cell still runs: by the button, and the next cell does not wait."""
    book.run(ENDLESS)
    clock = book.box(ENDLESS).locator(".gemmlab-clock")
    book.wait_until(lambda: clock.count() and "it is stopped in" in clock.inner_text())
    assert book.prompt(ENDLESS) == "[*]:" and book.busy(ENDLESS)
    pressed = time.monotonic()
    book.box(ENDLESS).get_by_role("button", name="Stop").click()
    book.wait_until(lambda: book.shown(ENDLESS)["state"] == "stopped")
    assert (
        "Stopped" in book.shown(ENDLESS)["text"] and "as you asked" in book.shown(ENDLESS)["text"]
    )
    book.run(QUICK)
    book.wait_until(lambda: book.output(QUICK) == "42")
    print(f"\nthe next cell ran {time.monotonic() - pressed:.1f} s after the button was pressed")
    book.raise_errors()


def test_interrupting_a_cell_is_one_sentence(book):
    book.run(ENDLESS)
    clock = book.box(ENDLESS).locator(".gemmlab-clock")
    book.wait_until(lambda: clock.count() and "it is stopped in" in clock.inner_text())
    pressed = time.monotonic()
    book.command("notebook:interrupt-kernel")
    book.wait_until(lambda: book.prompt(ENDLESS) != "[*]:")
    book.wait_until(lambda: book.shown(ENDLESS)["state"] == "stopped")
    book.raise_errors()
    count = book.shown(EXPLORER)["count"]
    book.box(EXPLORER).get_by_role("button", name="Reset").click()  # these settings are compiled
    book.wait_until(lambda: book.shown(EXPLORER)["count"] != count and settled(book, EXPLORER))
    assert book.shown(EXPLORER)["key"] == START
    print(f"\nanother explorer was answered {time.monotonic() - pressed:.1f} s after the interrupt")


def test_without_a_kernel_the_explorer_says_so(book):
    """The last test of this notebook: its kernel is shut down."""
    book.page.evaluate("jupyterapp.commands.execute('kernelmenu:shutdown')")
    gone = book.cell(EXPLORER).locator(".gemmlab-again")
    book.wait_until(gone.is_visible)
    assert "No kernel runs" in gone.inner_text()
    assert not book.box(EXPLORER).is_visible() and book.still(EXPLORER).is_visible()
