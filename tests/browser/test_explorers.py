"""What a new user met in the explorers, in a real JupyterLab: each was a defect once. It prints the times it sees."""

import re
import statistics
import time
from pathlib import Path

import pytest
from conftest import FULL
from lab import notebook
from start import started

from gemmlab.catalog import sources

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
FIRST_CHAPTER = next((Path(__file__).resolve().parents[2] / "notebooks").glob("00_*.ipynb"))
#: What was timed, in seconds.
TIMES: dict[str, float] = {}
#: Where the time of moves goes: for each, the milliseconds from the key to what the page then shows (see lab.WATCH).
MOVES: dict[str, list[dict[str, float]]] = {}
PARTS = ("needle", "landscape", "start", "compile", "predict", "check", "time", "answer", "paint", "tries")
START = "TS=32 WPT=8 M=256 N=256 K=256"
WARM = "warm cache: "


@pytest.fixture(scope="module")
def own_caches(tmp_path_factory):
    """The folder for what is compiled, empty at first."""
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(scope="module")
def lab(own_caches):
    """A JupyterLab on PoCL with empty caches."""
    with started(caches=own_caches) as lab:
        yield lab


@pytest.fixture(scope="module")
def book(lab):
    """The notebook after its first two cells have run."""
    book = lab.open(notebook(lab.notebooks / "explorers.ipynb", *CELLS))
    TIMES["first answer of the first explorer (aim: 4 s)"] = first_answer(book)
    yield book
    book.close()


def first_answer(book) -> float:
    """Run the first two cells: seconds until the explorer has answered."""
    book.run(0)
    book.wait_ran(0)
    begun = time.monotonic()
    book.run(EXPLORER)
    book.wait_until(lambda: book.shown(EXPLORER)["key"] == START)
    return time.monotonic() - begun


#: The name of what has the focus.
FOCUSED = """(() => {
    const e = document.activeElement;
    return e.getAttribute("aria-label") || e.closest("label")?.textContent || e.textContent;
})()"""


def stale(book, number: int) -> bool:
    return book.box(number).locator(".gemmlab-result.gemmlab-stale").count() > 0


def settled(book, number: int) -> bool:
    return not stale(book, number) and not book.busy(number)


def gave_way(book, number: int) -> list[str]:
    return book.box(number).locator(".gemmlab-gave-way").all_inner_texts()


if FULL:  # it is there for its figures: that the chapter runs, test_chapters.py says too

    def test_times_of_the_first_chapter(tmp_path):
        """From Run All to the end of the last cell, in a JupyterLab with empty caches, and in one with filled ones."""
        for name in ("chapter 00, Run All (aim: 15 s)", f"{WARM}chapter 00, Run All"):
            with started(caches=tmp_path) as lab:
                book = lab.open(FIRST_CHAPTER)
                begun = time.monotonic()
                book.run_all()
                TIMES[name] = time.monotonic() - begun
                book.close()


def test_the_first_move_does_not_wait_for_other_kernels(book):
    """It took 49 s; the panel says what it is about, and dims until it is about the present settings."""
    shown = book.shown(EXPLORER)
    assert "TS = 32, WPT = 8, 256 x 256 x 256" in shown["text"]
    book.press(EXPLORER, "TS", "ArrowLeft")
    pressed = time.monotonic()
    book.wait_until(lambda: stale(book, EXPLORER) or book.shown(EXPLORER)["key"].startswith("TS=24 "))
    dimmed = time.monotonic() - pressed
    if book.shown(EXPLORER)["key"] == START:
        assert book.box(EXPLORER).locator(".gemmlab-status").inner_text().startswith("TS = 24, WPT = 8")
    shown = book.wait_key(EXPLORER, "TS=24 WPT=8 M=256 N=256 K=256")
    TIMES["first move, dimmed"] = dimmed
    TIMES["first move, answered (aim: 3 s)"] = time.monotonic() - pressed
    book.wait_until(lambda: settled(book, EXPLORER))
    assert "TS = 24, WPT = 8, 256 x 256 x 256" in shown["text"] and shown["state"] == "ok"
    assert time.monotonic() - pressed < 60


def test_a_drag_is_measured_where_it_ends_and_its_reasons_stay(book):
    """The mouse from TS = 24 over 20 and 16 back to 20: one try, WPT marked with the reason from start to end."""
    book.wait_until(lambda: settled(book, EXPLORER))
    count, handle = int(book.shown(EXPLORER)["count"]), book.control(EXPLORER, "TS")
    handle.scroll_into_view_if_needed()
    box = handle.bounding_box()
    middle = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    track = book.box(EXPLORER).locator(".noUi-target").first.bounding_box()
    stop = track["width"] / 7  # eight values
    book.page.mouse.move(*middle)
    book.page.mouse.down()
    for steps in (1, 2, 1):
        book.page.mouse.move(middle[0] - steps * stop, middle[1], steps=4)
        book.page.wait_for_timeout(250)
    status = book.box(EXPLORER).locator(".gemmlab-status")
    book.wait_until(lambda: "work-group 20 x 5 = 100" in status.inner_text())
    assert book.value(EXPLORER, "TS") == "20" and int(book.shown(EXPLORER)["count"]) == count, "held, not measured"
    book.page.mouse.up()
    shown = book.wait_key(EXPLORER, "TS=20 WPT=4 M=256 N=256 K=256")
    reason = "WPT moved from 8 to 4, because TS=20 is not a multiple of WPT=8"
    assert int(shown["count"]) == count + 1 and reason in shown["text"]
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
    assert book.value(EXPLORER, "TS") == "16" and book.shown(EXPLORER)["key"] == book.values(EXPLORER)


def test_by_keyboard_alone(book):
    """One Tab stop for each control; a try can be returned to from the list."""
    book.wait_until(lambda: settled(book, EXPLORER))
    book.control(EXPLORER, "TS").focus()
    passed = []
    for _ in range(6):
        book.page.keyboard.press("Tab")
        passed.append(book.page.evaluate(FOCUSED))
    assert passed[:4] == ["WPT", "M", "N", "K"] and "M = N = K" in passed[4], passed
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert book.page.evaluate(outline) != "none", "the focus is visible"
    tries = book.box(EXPLORER).get_by_label("tries", exact=True)
    tries.select_option(index=tries.locator("option").count() - 1)
    book.wait_key(EXPLORER, START)
    assert book.values(EXPLORER) == START


def test_a_try_in_the_chart_can_be_clicked(book):
    book.wait_until(lambda: settled(book, EXPLORER))
    mark = book.box(EXPLORER).locator("#try-1")
    assert "TS 24, WPT 8, M 256" in mark.locator("title").text_content()
    mark.locator("use").click()
    book.wait_key(EXPLORER, "TS=24 WPT=8 M=256 N=256 K=256")


def test_an_edited_cell_keeps_its_tries_beside_the_original(book):
    book.run(GEMM)
    book.wait_until(lambda: book.shown(GEMM)["count"] == "1")
    assert "the same as the original" in book.shown(GEMM)["text"]
    edited = CELLS[GEMM].replace("float acc", "float  acc", 1)
    assert edited != CELLS[GEMM]
    book.page.evaluate("([n, text]) => jupyterapp.shell.currentWidget.content.model.sharedModel.cells[n]"
                       ".setSource(text)", [GEMM, edited])  # fmt: skip
    old = book.prompt(GEMM)
    book.run(GEMM)
    book.wait_until(lambda: book.prompt(GEMM) not in (old, "[*]:"))
    book.wait_until(lambda: book.box(GEMM).locator("[id^=try-]").count() == 2)
    book.wait_until(lambda: "the original" in book.shown(GEMM)["text"] and "x the original" in book.shown(GEMM)["text"])
    book.wait_until(lambda: "original" in book.box(GEMM).locator("svg").text_content())
    assert "changes to the original" in book.shown(GEMM)["text"]


def test_an_endless_kernel_counts_down_and_can_be_stopped(book):
    """While its cell still runs: by the button, and the next cell does not wait."""
    book.run(ENDLESS)
    clock = book.box(ENDLESS).locator(".gemmlab-clock")
    book.wait_until(lambda: clock.count() and "it is stopped in" in clock.inner_text())
    assert book.prompt(ENDLESS) == "[*]:" and book.busy(ENDLESS)
    pressed = time.monotonic()
    book.box(ENDLESS).get_by_role("button", name="Stop").click()
    book.wait_until(lambda: book.shown(ENDLESS)["state"] == "stopped")
    assert "Stopped" in book.shown(ENDLESS)["text"] and "as you asked" in book.shown(ENDLESS)["text"]
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


#: By kernel: moves to settings that nobody has compiled yet, as a slider and a key.
NEW = {
    3: (("TS", "Home"), ("TS", "ArrowRight"), ("TS", "ArrowRight")),
    6: (("TSM", "Home"), ("TSM", "ArrowRight"), ("WPTM", "ArrowLeft")),
    10: (("TSN", "Home"), ("TSN", "ArrowRight"), ("WPTN", "ArrowLeft")),
}


TIMED = list(NEW) if FULL else [3]


@pytest.mark.parametrize("kernel", TIMED)
def test_times_of_new_settings(lab, kernel):
    """Settings that nobody has compiled, and settings that were compiled while nobody waited; it prints them.

    In full runs: else a move of each kind is enough, for nobody reads the figures.
    """
    book = lab.open(notebook(lab.notebooks / f"times_{kernel}.ipynb", f"import gemmlab\ngemmlab.Explorer({kernel})"))
    book.run_all()
    new, ahead = f"kernel {kernel}, new", f"kernel {kernel}, compiled ahead"
    for name, key in NEW[kernel] if FULL else NEW[kernel][:1]:
        time_move(book, new, name, key)
    book.page.wait_for_timeout(8_000 if FULL else 1_000)  # nobody waits, and the settings next to these are compiled
    first, second = book.names(0)[:2]
    time_move(book, ahead, first, "ArrowRight")
    if FULL:
        book.time(0, first, "ArrowLeft")  # back to what was measured before
        time_move(book, ahead, second, "ArrowRight")
    for what, aim in ((new, NEW_AIM[kernel]), (ahead, 0.5)):
        TIMES[f"{what} (aim: {aim} s)"] = statistics.median(moments["paint"] for moments in MOVES[what]) / 1000
    ms = needle_ms(book)
    TIMES[f"kernel {kernel}, recorded needle (aim: 0.1 s)"] = ms / 1000
    book.close()


#: Seconds in which the settings of `NEW` should be answered.
NEW_AIM = {3: 1.0, 6: 2.5, 10: 2.5}


if FULL:  # also there for its figures

    def test_times_with_a_warm_cache(lab, own_caches):
        """The first answer, the first move and settings new to this process, all of them compiled once before."""
        with started(caches=own_caches, browser=lab.browser) as warm:
            book = warm.open(notebook(warm.notebooks / "warm.ipynb", *CELLS[:2]))
            TIMES[f"{WARM}first answer"] = first_answer(book)
            time_move(book, f"{WARM}first move", "TS", "ArrowLeft", EXPLORER)
            TIMES[f"{WARM}first move"] = MOVES[f"{WARM}first move"][0]["paint"] / 1000
            book.close()
            for kernel in TIMED:
                cell = f"import gemmlab\ngemmlab.Explorer({kernel})"
                book = warm.open(notebook(warm.notebooks / f"{kernel}.ipynb", cell))
                book.run_all()
                what = f"{WARM}kernel {kernel}"
                for name, key in NEW[kernel]:
                    time_move(book, what, name, key)
                TIMES[f"{what}, new settings"] = statistics.median(moments["paint"] for moments in MOVES[what]) / 1000
                TIMES[f"{what}, recorded needle"] = needle_ms(book) / 1000
                book.close()


def time_move(book, what: str, name: str, key: str, cell: int = 0) -> None:
    """Press a key with a slider focused; note when the page shows what, to the last picture."""
    ms, shown = book.time(cell, name, key)
    assert shown["state"] == "ok", shown
    compiled = re.search(r"compiled in ([\d.]+) s", shown["text"])[1]
    print(f"\n{what}: {ms:.0f} ms, of which the compiler took {compiled} s, for {shown['key']}")
    book.wait_until(lambda: "tries" in book.moments())
    MOVES.setdefault(what, []).append(book.moments())


def needle_ms(book) -> float:
    """Milliseconds from a key to the recorded rate of the new settings."""
    book.control(0, book.names(0)[0]).focus()
    book.page.evaluate("""() => {
        const box = document.querySelector(".gemmlab-recorded"), old = box.querySelector("[data-share]").parentElement;
        const before = old.innerHTML;
        window.needle = new Promise(done => {
            let pressed;
            addEventListener("keydown", () => pressed = performance.now(), { capture: true, once: true });
            new MutationObserver((changes, me) => {
                if (box.querySelector("[data-share]").parentElement.innerHTML === before) return;
                me.disconnect();
                done(performance.now() - pressed);
            }).observe(box, { subtree: true, childList: true });
        });
    }""")
    book.page.keyboard.press("ArrowLeft")
    return book.promised("needle")


def test_times_in_one_block():
    """Prints what the others found; nothing is asserted, as machines differ."""
    print("\nSeconds, with empty caches unless said otherwise, medians:")
    for what, seconds in TIMES.items():
        print(f"  {what}: {seconds:.2f}")
    print("\nMilliseconds from the key to what the page shows, medians:")
    print(" " * 26, *(f"{part:>9}" for part in PARTS))
    for what, moves in MOVES.items():
        seen = [[moments[part] for moments in moves if part in moments] for part in PARTS]
        print(f"  {what:24}", *(f"{statistics.median(times):9.0f}" if times else f"{'-':>9}" for times in seen))


def test_without_a_kernel_the_explorer_says_so(book):
    """The last test of this notebook: its kernel is shut down."""
    book.page.evaluate("jupyterapp.commands.execute('kernelmenu:shutdown')")
    gone = book.cell(EXPLORER).locator(".gemmlab-gone")
    book.wait_until(gone.is_visible)
    assert "No kernel runs" in gone.inner_text()
    assert not book.box(EXPLORER).is_visible() and book.still(EXPLORER).is_visible()
