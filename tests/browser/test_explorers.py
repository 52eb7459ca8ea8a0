"""The widgets in a real JupyterLab, by keys and mouse; the tests share a notebook."""

import re

import pytest
from lab import notebook, started

from gemmlab.ladder import sources

pytestmark = pytest.mark.system

TEXT = sources.read("03_work_per_thread.cl")
WAITS = "    while (*(volatile const __global float*)A < 1e6f) {}"
FOREVER = TEXT.replace("    // store", f"{WAITS}\n\n    // store")
RACE = sources.read("02_tiled.cl").replace("barrier(CLK_LOCAL_MEM_FENCE);", "", 1)
#: The cells, by their place in the notebook.
EXPLORER, OTHER, STEPPER, FILM, GEMM, BROKEN, ENDLESS, SLOW, QUICK, BARE = range(1, 11)
CELLS = (
    "%load_ext gemmlab\nfrom pathlib import Path\n\nimport ipywidgets\n\nimport gemmlab\n"
    "from gemmlab.draw import diagram\nfrom gemmlab.sandbox import client\n\n"
    "client.shared_sandbox().limits |= {'predict': 20, 'check': 20}",
    "gemmlab.Explorer(kernel=3, m=128)",
    "gemmlab.Explorer(kernel=2, m=128)",
    "gemmlab.Stepper(lambda rows, cols: diagram.layout(rows, cols), rows=(3, 4), cols=(4, 5))",
    "def walk(WPT):\n    return gemmlab.simulate(3, 16, 16, 16, {'TS': 8, 'WPT': WPT})\n\n"
    "gemmlab.Stepper(walk, WPT=(4, 1, 2, 8), start={'step': 9, 'item': 3})",
    f"%%gemm 3 M=64 N=64 K=64\n{TEXT}",
    f"%%gemm 2 TS=16 M=64 N=64 K=64\n{RACE}",
    f"%%gemm 3 M=64 N=64 K=64\n{FOREVER}",
    "while Path('wait').exists():\n    pass\nprint('waited')",
    "print(6 * 7)",
    "ipywidgets.IntSlider()",
)
SIZES = "M=128 N=128 K=128"
START = f"TS=32 WPT=8 {SIZES}"
WHY = "WPT moved from 8 to 4, because TS=20 is not a multiple of WPT=8"
#: The name of what has the focus.
FOCUSED = """(() => {
    const e = document.activeElement;
    return e.getAttribute("aria-label") || e.labels?.[0]?.textContent
        || e.closest("label")?.textContent
        || e.title || e.textContent;
})()"""
#: Whether the lit line can be seen in a kernel's text, and where all is.
SEEN = """cell => {
    const at = what => cell.querySelector(what).getBoundingClientRect();
    const code = at(".gemmlab-code"), now = at(".gemmlab-now"), svg = at(".gemmlab-result svg");
    return {lit: now.top >= code.top - 1 && now.bottom <= code.bottom + 1,
            height: Math.max(code.bottom, svg.bottom) - at(".gemmlab").top};
}"""


@pytest.fixture(scope="module")
def lab():
    """A JupyterLab on PoCL with empty caches."""
    with started("pocl") as lab:
        yield lab


@pytest.fixture(scope="module")
def ran(lab):
    """The notebook after Run All Cells."""
    book = lab.open(notebook(lab.notebooks / "shared.ipynb", *CELLS))
    book.run_all()
    yield book
    book.close()


@pytest.fixture
def book(ran):
    """The notebook with the first explorer at its start."""
    ran.wait_until(lambda: settled(ran, EXPLORER))
    if ran.values(EXPLORER) != START or ran.shown(EXPLORER)["key"] != START:
        button(ran, EXPLORER, "Reset").click()
        ran.wait_key(EXPLORER, START)
        ran.wait_until(lambda: settled(ran, EXPLORER))
    return ran


def button(book, number: int, name: str):
    return book.box(number).get_by_role("button", name=name)


def settled(book, number: int) -> bool:
    stale = book.box(number).locator(".gemmlab-result.gemmlab-stale").count()
    return not stale and not book.busy(number)


def rerun(book, number: int) -> None:
    old = book.counts(number)
    book.run(number)
    book.wait_until(lambda: book.counts(number) not in (old, [None]))


def counting(book, number: int) -> None:
    """Wait until the clock of a kernel that hangs counts down."""
    clock = book.box(number).locator(".gemmlab-status")
    book.wait_until(lambda: clock.count() and "it is stopped in" in clock.inner_text())


def tab_to(book, name: str) -> None:
    """Press Tab until the focus is on what begins with this name."""
    for _ in range(20):
        book.page.keyboard.press("Tab")
        if book.page.evaluate(FOCUSED).startswith(name):
            return
    raise AssertionError(f"Tab ends at {book.page.evaluate(FOCUSED)!r}, not at {name!r}")


def test_run_all_ends_with_finished_panels(ran):
    shown = ran.shown(EXPLORER)
    assert (shown["key"], shown["state"]) == (START, "ok")
    assert "Right: every element exact" in shown["text"] and "This is your start" in shown["text"]
    assert re.search(r"[1-9].* GFLOPS", shown["text"])
    assert ran.values(EXPLORER) == START, "the sliders say what was measured"
    assert ran.shown(ENDLESS)["state"] == "hang" and "loop that never" in ran.shown(ENDLESS)["text"]
    assert ran.shown(STEPPER)["key"] == "rows=3 cols=4"
    assert ran.box(STEPPER).locator("svg[role=img]").is_visible()
    for number in (EXPLORER, STEPPER, FILM, GEMM):
        assert ran.box(number).is_visible()
        assert ran.still(number).count() == 1 and not ran.still(number).is_visible()


def test_fast_keys_end_on_the_last_value(book):
    keys = "L" * 6 + "R" * 6 + "L" * 6 + "R" * 2  # 4 8 12 16 20 24 32 64
    book.press(EXPLORER, "TS", *({"L": "ArrowLeft", "R": "ArrowRight"}[key] for key in keys))
    book.wait_until(lambda: book.follows(EXPLORER) and not book.busy(EXPLORER))
    shown = book.shown(EXPLORER)
    assert "TS=12" in shown["key"] and shown["state"] == "ok"
    book.page.wait_for_timeout(500)  # nothing older comes late
    assert book.shown(EXPLORER)["key"] == shown["key"] and book.follows(EXPLORER)


def test_a_drag_is_measured_where_it_ends_and_its_reasons_stay(book):
    """From TS = 32 over 20 and 16 back to 20: one try, WPT marked with the reason for all of it."""
    count, handle = int(book.shown(EXPLORER)["count"]), book.control(EXPLORER, "TS")
    handle.scroll_into_view_if_needed()
    track = handle.bounding_box()
    stop = (track["width"] - 16) / 7  # eight values, and a thumb of 16 pixels
    middle = track["x"] + 8 + 6 * stop, track["y"] + track["height"] / 2
    book.control(EXPLORER, "M").focus()  # the first drag takes the focus from another control
    book.page.mouse.move(*middle)
    book.page.mouse.down()
    for steps in (2, 3, 2):
        book.page.mouse.move(middle[0] - steps * stop, middle[1], steps=4)
        book.page.wait_for_timeout(250)
    book.wait_until(lambda: book.value(EXPLORER, "TS") == "20")
    assert int(book.shown(EXPLORER)["count"]) == count, "held, not measured"
    book.page.mouse.up()
    shown = book.wait_key(EXPLORER, f"TS=20 WPT=4 {SIZES}")
    assert int(shown["count"]) == count + 1
    marked = book.box(EXPLORER).locator(".gemmlab-gave-way")
    book.wait_until(lambda: WHY in book.shown(EXPLORER)["note"])
    assert marked.count() == 1 and "elements of C" in marked.inner_text()
    book.press(EXPLORER, "TS", "ArrowLeft")
    book.wait_until(lambda: marked.count() == 0)


def test_a_move_by_key_is_explained_and_spoken(book):
    """A screen reader says the verdict, the rate, and why another slider gave way."""
    book.show_all(EXPLORER)
    sliders = book.box(EXPLORER).get_by_role("slider").all()
    names = "slider => slider.labels[0].textContent"
    assert [s.evaluate(names) for s in sliders] == ["TS", "WPT", "M", "N", "K"]
    assert sliders[0].get_attribute("aria-valuetext") == "32"
    assert sliders[2].get_attribute("aria-description").startswith("rows of A and C")
    book.press(EXPLORER, "TS", "ArrowLeft", "ArrowLeft")
    shown = book.wait_key(EXPLORER, f"TS=20 WPT=4 {SIZES}")
    assert shown["state"] == "ok" and book.value(EXPLORER, "WPT") == "4"
    spoken = book.box(EXPLORER).locator(".gemmlab-spoken")
    book.wait_until(lambda: WHY in spoken.text_content())
    assert "Right" in spoken.text_content() and "GFLOPS" in spoken.text_content()
    book.press(EXPLORER, "M", "ArrowLeft")
    shown = book.wait_key(EXPLORER, "TS=20 WPT=4 M=100 N=100 K=100")
    book.wait_until(lambda: "moved" not in book.shown(EXPLORER)["note"])
    book.press(EXPLORER, "K", "ArrowLeft")
    assert book.wait_key(EXPLORER, "TS=20 WPT=4 M=100 N=100 K=64")["state"] == "ok"


def test_by_keyboard_alone(book):
    """One Tab stop for each control; Enter chooses cells of the map, legal or not, and tries."""
    book.control(EXPLORER, "TS").focus()
    passed = []
    for _ in range(2):
        book.page.keyboard.press("Tab")
        passed.append(book.page.evaluate(FOCUSED))
    assert passed == ["WPT", "M"]
    tab_to(book, "your setting: TS=32, WPT=8")
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    assert book.page.evaluate(outline) != "none", "the focus is visible"
    for key in ("ArrowLeft", "Enter"):
        book.page.keyboard.press(key)
    key = f"TS=24 WPT=8 {SIZES}"
    assert book.wait_key(EXPLORER, key)["state"] == "ok" and book.values(EXPLORER) == key
    for press in ("ArrowUp", "Enter"):
        book.page.keyboard.press(press)
    refused = book.box(EXPLORER).get_by_role("alert")
    refused.wait_for()
    assert "not a multiple of WPT=16" in refused.inner_text()
    assert book.values(EXPLORER) == key, "no slider has moved"
    book.box(EXPLORER).locator("#try-1").focus()
    book.page.keyboard.press("ArrowLeft")
    book.page.keyboard.press("Enter")  # the first try
    book.wait_key(EXPLORER, START)


def test_a_hand_on_the_map_moves_the_sliders_and_measures_where_it_lets_go(book):
    def cell(ts: int, wpt: int):
        return book.box(EXPLORER).locator(f"[data-x='{ts}'][data-y='{wpt}']").first

    count = int(book.shown(EXPLORER)["count"])
    cell(8, 1).hover()
    book.page.mouse.down()
    for ts, wpt in ((16, 1), (16, 2), (20, 8)):  # what is not legal is passed over
        cell(ts, wpt).hover()
    book.wait_until(lambda: book.value(EXPLORER, "WPT") == "2")
    assert int(book.shown(EXPLORER)["count"]) == count, "held, not measured"
    book.page.mouse.up()
    assert int(book.wait_key(EXPLORER, f"TS=16 WPT=2 {SIZES}")["count"]) == count + 1
    ring = book.box(EXPLORER).locator("[aria-current=true]").first
    assert ring.get_attribute("aria-label").startswith("your setting: TS=16, WPT=2")


def test_what_is_typed_beside_a_slider_is_taken_or_refused(book):
    def type_(name: str, text: str) -> None:
        book.readout(EXPLORER, name).click()
        for key in ("Control+A", *text, "Enter"):
            book.page.keyboard.press(key)

    type_("M", "300")
    book.wait_key(EXPLORER, "TS=32 WPT=8 M=300 N=300 K=300")
    type_("TS", "many")
    alert = book.box(EXPLORER).get_by_role("alert")
    alert.wait_for()
    assert "TS cannot be 'many'" in alert.inner_text() and "1 to 8,192" in alert.inner_text()
    assert book.value(EXPLORER, "TS") == "32"
    assert book.follows(EXPLORER)
    type_("TS", "56")  # a new position: those after it move up
    book.wait_until(lambda: book.value(EXPLORER, "TS") == "56" and settled(book, EXPLORER))
    book.press(EXPLORER, "TS", "End")
    book.wait_until(lambda: book.value(EXPLORER, "TS") == "64" and settled(book, EXPLORER))
    book.box(EXPLORER).locator("[data-x='64'][data-y='8']").first.click()
    book.wait_key(EXPLORER, "TS=64 WPT=8 M=300 N=300 K=300")
    assert book.values(EXPLORER) == "TS=64 WPT=8 M=300 N=300 K=300"


def test_nothing_has_an_empty_tooltip(book):
    assert book.page.locator(".gemmlab [title='null']:visible").count() == 0


@pytest.mark.parametrize("width", (1280, 800))
def test_nothing_moves_and_nothing_is_cut(book, width):
    """The reason of a move, what changed and the titles of the maps can be read whole. Over twenty
    more moves, at some of which WPT gives way, the instrument keeps its height.
    """
    book.resize(width)
    box = book.box(EXPLORER)
    fold = box.locator(".gemmlab-fold[open] > summary")
    if fold.count():
        fold.click()
        book.control(EXPLORER, "K").wait_for(state="hidden")
    heights = {box.bounding_box()["height"]}
    book.press(EXPLORER, "TS", "ArrowLeft", "ArrowLeft")
    book.wait_key(EXPLORER, f"TS=20 WPT=4 {SIZES}")
    book.wait_until(lambda: settled(book, EXPLORER))
    note = box.locator(".gemmlab-note").inner_text()
    cut = box.evaluate(
        "box => [...box.querySelectorAll('.gemmlab-note, .gemmlab-said, .gemmlab-heading, .gemmlab-axes')]"
        ".filter(e => e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1)"
        ".map(e => e.textContent)"
    )
    for move in range(20):
        heights.add(box.bounding_box()["height"])
        book.press(EXPLORER, "TS", "ArrowLeft" if move % 8 < 4 else "ArrowRight")
    book.wait_until(lambda: settled(book, EXPLORER))
    heights.add(box.bounding_box()["height"])
    book.resize(1280)
    assert WHY in note and (width > 800 or not cut), (note, cut)
    assert len(heights) == 1 and (width < 1280 or max(heights) <= 640), heights


#: The texts of a panel that do not fit their place, and those in type below 11 px.
UNREADABLE = """box => [...box.querySelectorAll(":not(option, input)")].filter(e => {
    const own = [...e.childNodes].some(node => node.nodeType === Node.TEXT_NODE && node.data.trim());
    if (!own || !e.checkVisibility() || e.closest(".gemmlab-spoken")) return false;
    const [panel, place] = [box, e].map(one => one.getBoundingClientRect());
    const cut = e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1;
    return (cut && getComputedStyle(e).display !== "inline") || place.right > panel.right + 1
        || place.left < panel.left - 1 || parseFloat(getComputedStyle(e).fontSize) < 11;
}).map(e => e.textContent)"""


@pytest.mark.parametrize("width", (320, 360, 520))
def test_a_narrow_panel_can_be_read(book, width):
    """As beside an open side bar: the pipes and their words too."""
    box = book.box(EXPLORER)
    book.wait_until(lambda: box.locator(".gemmlab-scarce").count())
    box.evaluate("(box, width) => { box.style.width = `${width}px`; }", width)
    book.settle()
    pipes = box.locator(".gemmlab-pipe")
    places = [pipe.bounding_box() for pipe in pipes.all()]
    unreadable = box.evaluate(UNREADABLE)
    box.evaluate("box => { box.style.width = ''; }")
    assert unreadable == []
    assert len(places) == 4 and places[0]["y"] < places[3]["y"], "they flow down"


def test_keys_in_a_control_reach_no_shortcut(book):
    before = book.cells()
    book.show_all(EXPLORER)
    focus = {
        "slider": book.control(EXPLORER, "TS"),
        "list": book.box(EXPLORER).locator("select").first,
        "button": button(book, EXPLORER, "Reset"),
        "stepper": book.control(STEPPER, "rows"),
    }
    for name, control in focus.items():
        control.focus()
        for key in "ddabxmy00":
            book.page.keyboard.press(key)
        book.page.wait_for_timeout(200)
        assert book.cells() == before, f"keys pressed in the {name} changed the notebook"
        assert book.page.locator(".jp-Dialog").count() == 0, f"a dialog, by keys in the {name}"
    old = book.counts(OTHER)
    book.press(OTHER, "TS", "Shift+Enter")
    book.wait_until(lambda: book.counts(OTHER) not in (old, [None]))


def test_the_same_keys_delete_the_cell_of_a_bare_control(ran):
    """The control for the test above: without our bridge the cell is gone."""
    before = ran.cells()
    ran.cell(BARE).locator(".noUi-handle").focus()
    ran.page.keyboard.press("d")
    ran.page.keyboard.press("d")
    ran.wait_until(lambda: ran.cells() == before[:BARE])


def test_the_lit_line_the_picture_and_the_words_are_on_one_screen(ran):
    for width in (1280, 800):
        ran.resize(width, 800, sidebar=width > 800)
        for _ in range(10):
            ran.move(FILM, "step")
            seen = ran.cell(FILM).evaluate(SEEN)
            assert seen["lit"], seen
        assert seen["height"] < 680, (width, seen)
    ran.resize(1280)
    shown = ran.move(FILM, "WPT")
    assert shown["key"] == ran.values(FILM) and shown["key"].startswith("WPT=8")


def test_a_cell_of_opencl_is_stepped_through_and_its_race_marked(ran):
    ran.cell(BROKEN).get_by_role("button", name="Step through it").focus()
    ran.page.keyboard.press("Enter")
    ran.wait_until(lambda: ran.cell(BROKEN).locator(".gemmlab-wrong").count() > 0)
    assert "race" in ran.cell(BROKEN).locator(".gemmlab-wrong").first.inner_text()
    assert "by luck" in ran.cell(BROKEN).inner_text()


def test_an_edited_cell_keeps_its_tries_beside_the_original(ran):
    assert "as in the ladder" in ran.shown(GEMM)["text"]
    edited = CELLS[GEMM].replace("acc[j] +=", "acc[j] = acc[j] +", 1)
    assert edited != CELLS[GEMM]
    ran.page.evaluate(
        "([n, text]) => jupyterapp.shell.currentWidget.content.model.sharedModel.cells[n]"
        ".setSource(text)",
        [GEMM, edited],
    )
    rerun(ran, GEMM)
    ran.wait_until(lambda: ran.box(GEMM).locator("[id^=try-]").count() == 2)
    ran.wait_until(lambda: "the original" in ran.shown(GEMM)["text"])
    assert "as in the ladder" not in ran.shown(GEMM)["text"]
    ran.wait_until(lambda: "local memory allows" in ran.box(GEMM).inner_text())


def test_a_slider_reacts_while_a_cell_runs(lab, ran):
    """The slider is one that nobody has touched: its first event is the one that used to wait."""
    rerun(ran, OTHER)
    wait = lab.notebooks / "wait"
    wait.touch()
    try:
        ran.run(SLOW)
        ran.wait_until(lambda: ran.counts(SLOW) == [None])
        ran.press(OTHER, "TS", "ArrowLeft")
        assert ran.wait_key(OTHER, f"TS=24 {SIZES}")["state"] == "ok"
        assert ran.counts(SLOW) == [None], "the cell still runs"
    finally:
        wait.unlink()
    ran.wait_ran(SLOW)


def test_a_kernel_that_hangs_stops_nothing_else_and_can_be_stopped(ran):
    """While its cell runs, by the button and by an interrupt; and after a move."""
    for how in ("button", "interrupt"):
        ran.run(ENDLESS)
        counting(ran, ENDLESS)
        assert ran.counts(ENDLESS) == [None] and ran.busy(ENDLESS)
        if how == "button":
            button(ran, ENDLESS, "■ Stop").click()
        else:
            ran.command("notebook:interrupt-kernel")
        ran.wait_until(lambda: ran.shown(ENDLESS)["state"] == "stopped")
        assert "as requested" in ran.shown(ENDLESS)["text"]
        ran.wait_until(lambda: ran.counts(ENDLESS) != [None])
    ran.show_all(ENDLESS)
    ran.press(ENDLESS, "WPT", "ArrowLeft")
    counting(ran, ENDLESS)
    rerun(ran, QUICK)
    assert ran.output(QUICK) == "42" and ran.busy(ENDLESS), "the kernel still hangs"
    button(ran, ENDLESS, "■ Stop").click()
    ran.wait_until(lambda: ran.shown(ENDLESS)["key"].startswith("TS=32 WPT=4 "))
    ran.raise_errors()
    assert ran.move(OTHER, "TS")["state"] == "ok"


def test_a_restart_leaves_no_child_and_shows_the_picture(lab, ran):
    """The last test of this notebook."""
    (child,) = lab.processes("gemmlab.sandbox.child")
    ran.restart()
    ran.wait_until(lambda: not child.is_running())
    ran.wait_until(lambda: ran.still(OTHER).is_visible())
    assert ran.page.locator(".jupyter-widgets-disconnected:visible").count() == 0
    for number in (0, OTHER):
        ran.run(number)
    ran.wait_ran(0, OTHER)
    ran.wait_until(lambda: ran.box(OTHER).is_visible())  # and all is alive again
    ran.wait_key(OTHER, f"TS=32 {SIZES}")
    assert not ran.still(OTHER).is_visible()
    ran.command("kernelmenu:shutdown")
    gone = ran.cell(OTHER).locator(".gemmlab-again")
    ran.wait_until(gone.is_visible)
    assert "To use this" in gone.inner_text()
    assert not ran.box(OTHER).is_visible() and ran.still(OTHER).is_visible()
