"""The widgets in a real JupyterLab, driven by keys as a person drives them."""

import json
import statistics
import time
from pathlib import Path

import pytest
from conftest import FULL, lacking

from gemmlab.opencl.devices import NoDeviceError, find_device

try:
    from lab import Lab, browser_path, notebook
except ImportError as missing:
    Lab, why = None, f"{missing.name} is not installed"

# The cells of the notebook that most tests share, by their place in it.
EXPLORER, STEPPER, ACCESS, OTHER, SLOW, QUICK, ENDLESS, BARE = range(1, 9)
CELLS = (
    "import time\n\nimport ipywidgets\n\nimport gemmlab\nfrom gemmlab.catalog import sources\n"
    "from gemmlab.draw import diagram\nfrom gemmlab.worker import client",
    "gemmlab.Explorer(kernel=3, m=128)",
    "gemmlab.Stepper(lambda rows, cols: diagram.layout(rows, cols), rows=(3, 4), cols=(4, 5))",
    "def draw(k, identifiers):\n"
    "    source = sources.read('01_naive.cl')\n"
    "    if identifiers == 'exchanged':\n"
    "        source = source.replace('m = get_global_id(0)', 'm = get_global_id(1)')\n"
    "        source = source.replace('n = get_global_id(1)', 'n = get_global_id(0)')\n"
    "    return diagram.access(gemmlab.simulate(1, 32, 32, 8, {'TS': 32}, source), k)\n\n"
    "gemmlab.Stepper(draw, k=range(8), identifiers=('as written', 'exchanged'))",
    "gemmlab.Explorer(kernel=2, m=128)",
    "end = time.monotonic() + 12\nwhile time.monotonic() < end:\n    pass\nprint('waited')",
    "print(6 * 7)",
    "text = sources.read('03_work_per_thread.cl').replace('    // store', '    for (;;) {}\\n\\n    // store')\n"
    "client.worker().limits |= {'predict': 10, 'check': 10}\n"
    "gemmlab.Explorer(kernel=3, m=64, source=text)",
    "ipywidgets.IntSlider()",
)
START = "TS=32 WPT=8 M=128 N=128 K=128"
LIMIT = 10  # seconds that the endless kernel may take, as its cell says
CHAPTERS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("[0-9]*.ipynb"))


@pytest.fixture(scope="module")
def lab():
    """One JupyterLab on PoCL with empty caches, and one browser."""
    if Lab is None:
        lacking(why)
    if browser_path() is None:
        lacking("no Chromium")
    try:
        find_device("pocl")
    except NoDeviceError:
        lacking("no PoCL")
    with Lab("pocl") as lab:
        yield lab


@pytest.fixture(scope="module")
def ran(lab):
    """The shared notebook after Run All Cells."""
    book = lab.open(notebook(lab.notebooks / "shared.ipynb", *CELLS))
    book.run_all()
    yield book
    book.close()


@pytest.fixture
def book(ran):
    """The shared notebook, with the first explorer back at its start."""
    box = ran.box(EXPLORER)
    if box.get_by_label("allow illegal settings").is_checked():
        box.get_by_label("allow illegal settings").uncheck()
    if ran.values(EXPLORER) != START or ran.shown(EXPLORER)["key"] != START:
        box.get_by_role("button", name="Reset").click()
        ran.wait_key(EXPLORER, START)
    return ran


def gflops(shown) -> float:
    return float(shown["text"].split("kernel ")[1].split(" GFLOPS")[0].replace(",", ""))


def test_run_all_ends_with_finished_panels(ran):
    shown = ran.shown(EXPLORER)
    assert (shown["key"], shown["state"]) == (START, "ok")
    assert "Right: every element exact" in shown["text"] and gflops(shown) > 0
    assert ran.values(EXPLORER) == START, "the sliders say what was measured"
    assert ran.shown(STEPPER)["key"] == "rows=3 cols=4"
    assert ran.box(STEPPER).locator("svg[role=img]").is_visible()
    assert ran.output(QUICK) == "42"


def test_static_picture_is_hidden_while_the_widget_lives(ran):
    for number in (EXPLORER, STEPPER, OTHER, ENDLESS):
        assert ran.box(number).is_visible()
        assert ran.still(number).count() == 1
        assert not ran.still(number).is_visible()


def test_key_press_to_result(book):
    """Prints its figures; asserts only generous guards, as machines differ."""
    seen, cold, warm = {START}, [], []
    for _ in range(4):  # TS = 24, 20, 16, 12, each compiled for the first time
        ms, shown = book.time(EXPLORER, "TS", "ArrowLeft")
        assert shown["state"] == "ok" and shown["key"] not in seen
        assert shown["key"] == book.values(EXPLORER)
        seen.add(shown["key"])
        cold.append(ms)
    book.time(EXPLORER, "WPT", "ArrowLeft")  # WPT is now one that all of these TS can take
    for key in ["ArrowRight"] * 3 + ["ArrowLeft"] * 3:
        book.time(EXPLORER, "TS", key)
    for key in ["ArrowRight"] * 3 + ["ArrowLeft"] * 3 + ["ArrowRight"] * 3:
        ms, shown = book.time(EXPLORER, "TS", key)
        assert shown["state"] == "ok"
        warm.append(ms)
    for name, times, target in (("cold", cold, 3000), ("warm", warm, 400)):
        print(
            f"key press to result, kernel 3, 128 cubed, PoCL, {name}: median {statistics.median(times):.0f} ms, "
            f"{min(times):.0f} to {max(times):.0f} ms over {len(times)} changes (aim: under {target} ms)"
        )
    assert statistics.median(cold) < 60_000
    assert statistics.median(warm) < 60_000


def test_fast_keys_end_on_the_last_value(book):
    for name, keys, end in (
        ("TS", "L" * 6 + "R" * 6 + "L" * 6 + "R" * 2, "TS=12"),  # 4 8 12 16 20 24 32 64
        ("M", "L" * 8 + "R" * 7 + "L" * 3 + "R" * 2, "M=256 N=256 K=256"),  # 16 32 64 100 128 200 256 384
    ):
        start = time.monotonic()
        book.press(EXPLORER, name, *({"L": "ArrowLeft", "R": "ArrowRight"}[key] for key in keys))
        pressed = time.monotonic() - start
        assert len(keys) == 20 and pressed < 120
        book.wait_until(lambda: book.shown(EXPLORER)["key"] == book.values(EXPLORER) and not book.busy(EXPLORER))
        shown = book.shown(EXPLORER)
        print(
            f"\n20 keys in {pressed:.2f} s; the result stood {time.monotonic() - start - pressed:.2f} s after the last"
        )
        assert end in shown["key"] and shown["state"] == "ok"
        assert book.values(EXPLORER) == shown["key"]
        book.page.wait_for_timeout(500)  # nothing older comes late
        assert book.shown(EXPLORER)["key"] == shown["key"] == book.values(EXPLORER)


def test_a_slider_reacts_while_a_cell_runs(ran):
    """The slider is one that nobody has touched: its first event is the one that used to wait."""
    ran.run(SLOW)
    ran.wait_until(lambda: ran.prompt(SLOW) == "[*]:")
    ms, shown = ran.time(OTHER, "TS", "ArrowLeft")
    assert shown["key"].startswith("TS=24 ") and shown["state"] == "ok"
    assert ran.prompt(SLOW) == "[*]:", "the cell still runs"
    print(f"key press to result while a cell runs: {ms:.0f} ms")
    ran.wait_ran(SLOW)


def test_a_cell_runs_while_a_kernel_hangs(ran):
    before, old = ran.shown(ENDLESS), ran.prompt(QUICK)
    ran.press(ENDLESS, "WPT", "ArrowLeft")
    pressed = time.monotonic()
    ran.wait_until(lambda: ran.busy(ENDLESS))
    ran.run(QUICK)
    ran.wait_until(lambda: ran.prompt(QUICK) not in (old, "[*]:"))
    print(f"a cell beside a running measurement took {time.monotonic() - pressed:.2f} s from the key press on")
    assert ran.shown(ENDLESS) == before and ran.busy(ENDLESS), "the kernel still hangs"
    assert ran.output(QUICK) == "42"
    shown = ran.wait_key(ENDLESS, "TS=32 WPT=4 M=64 N=64 K=64", seconds=LIMIT + 90)
    taken = time.monotonic() - pressed
    print(f"the hang was reported {taken:.1f} s after the key press; its limit was {LIMIT} s")
    assert shown["state"] == "hang"
    assert f"took over {LIMIT} s" in shown["text"] and "loop that never ends" in shown["text"]
    # The notebook lives on: another cell, another explorer, and the same one again.
    old = ran.prompt(QUICK)
    ran.run(QUICK)
    ran.wait_until(lambda: ran.prompt(QUICK) not in (old, "[*]:"))
    key = ran.values(OTHER)
    ran.press(OTHER, "TS", "ArrowLeft")
    ran.wait_until(lambda: ran.shown(OTHER)["key"] not in (key, ""))
    assert ran.shown(OTHER)["state"] == "ok"


def test_keys_in_a_control_reach_no_shortcut(book):
    before = book.cells()
    focus = {
        "slider": book.control(EXPLORER, "TS"),
        "checkbox": book.box(EXPLORER).get_by_label("allow illegal settings"),
        "button": book.box(EXPLORER).get_by_role("button", name="Reset"),
        "stepper": book.control(STEPPER, "rows"),
    }
    for name, control in focus.items():
        control.focus()
        for key in "ddabxmy00":
            book.page.keyboard.press(key)
        book.page.wait_for_timeout(200)
        assert book.cells() == before, f"keys pressed in the {name} changed the notebook"
        assert book.page.locator(".jp-Dialog").count() == 0, f"keys pressed in the {name} opened a dialog"
    assert book.values(EXPLORER) == START
    assert book.time(EXPLORER, "TS", "ArrowLeft")[1]["key"].startswith("TS=24 ")
    assert book.time(EXPLORER, "TS", "ArrowUp")[1]["key"].startswith("TS=32 ")
    assert book.time(STEPPER, "rows", "ArrowRight")[1]["key"] == "rows=4 cols=4"
    assert book.time(STEPPER, "rows", "ArrowLeft")[1]["key"] == "rows=3 cols=4"


def test_the_same_keys_delete_the_cell_of_a_bare_control(ran):
    """The control for the test above: without our bridge the cell is gone."""
    before = ran.cells()
    ran.cell(BARE).locator(".noUi-handle").focus()
    ran.page.keyboard.press("d")
    ran.page.keyboard.press("d")
    ran.wait_until(lambda: ran.cells() == before[:BARE])


def test_shift_enter_runs_the_cell_of_a_control(ran):
    old = ran.prompt(OTHER)
    ran.press(OTHER, "TS", "Shift+Enter")
    ran.wait_until(lambda: ran.prompt(OTHER) not in (old, "[*]:"))
    ran.wait_key(OTHER, "TS=32 M=128 N=128 K=128")
    assert ran.values(OTHER) == "TS=32 M=128 N=128 K=128"


def test_dependent_sliders_move_and_say_why(book):
    book.press(EXPLORER, "TS", "ArrowLeft")
    book.wait_key(EXPLORER, "TS=24 WPT=8 M=128 N=128 K=128")
    book.press(EXPLORER, "TS", "ArrowLeft")
    shown = book.wait_key(EXPLORER, "TS=20 WPT=4 M=128 N=128 K=128")
    assert "WPT moved from 8 to 4, because TS=20 is not a multiple of WPT=8" in shown["text"]
    assert shown["state"] == "ok" and book.value(EXPLORER, "WPT") == "4"
    book.press(EXPLORER, "M", "ArrowLeft")
    shown = book.wait_key(EXPLORER, "TS=20 WPT=4 M=100 N=100 K=100")
    assert book.values(EXPLORER) == shown["key"], "N and K follow M"
    assert "moved" not in shown["text"]
    book.box(EXPLORER).get_by_label("M = N = K").uncheck()
    book.press(EXPLORER, "K", "ArrowLeft")
    shown = book.wait_key(EXPLORER, "TS=20 WPT=4 M=100 N=100 K=64")
    assert book.values(EXPLORER) == shown["key"] and shown["state"] == "ok"
    book.box(EXPLORER).get_by_label("M = N = K").check()
    book.wait_key(EXPLORER, "TS=20 WPT=4 M=100 N=100 K=100")


def test_illegal_settings_are_refused_in_words(book):
    count = book.shown(EXPLORER)["count"]
    book.box(EXPLORER).get_by_label("allow illegal settings").check()
    book.press(EXPLORER, "TS", "ArrowLeft", "ArrowLeft")
    shown = book.wait_key(EXPLORER, "TS=20 WPT=8 M=128 N=128 K=128")
    assert shown["state"] == "ParameterError"
    assert "Not run" in shown["text"] and "TS=20 is not a multiple of WPT=8" in shown["text"]
    assert int(shown["count"]) <= int(count) + 1, "only TS=24 on the way ran"
    book.box(EXPLORER).get_by_label("allow illegal settings").uncheck()
    book.press(EXPLORER, "TS", "ArrowLeft")
    assert book.wait_key(EXPLORER, "TS=16 WPT=8 M=128 N=128 K=128")["state"] == "ok"


def test_reset_and_best_so_far(ran):
    start = "TS=32 M=128 N=128 K=128"
    ran.run(OTHER)  # a new explorer, with no tries yet
    ran.wait_until(lambda: ran.prompt(OTHER) != "[*]:" and ran.shown(OTHER)["count"] == "1")
    found = [ran.wait_key(OTHER, start)]
    for _ in range(4):
        found.append(ran.time(OTHER, "TS", "ArrowLeft")[1])
    assert len({shown["key"] for shown in found}) == 5 and found[-1]["key"].startswith("TS=12 ")
    ran.box(OTHER).get_by_role("button", name="Reset").click()
    found.append(ran.wait_key(OTHER, start))
    assert ran.values(OTHER) == start
    for _ in range(3):  # one after another: a setting that is only passed through may be the fastest of all
        found.append(ran.time(OTHER, "TS", "ArrowLeft")[1])
    assert found[-1]["key"] == "TS=16 M=128 N=128 K=128"
    best = max(map(gflops, found))
    fastest = {shown["key"] for shown in found if gflops(shown) == best}
    count = ran.shown(OTHER)["count"]
    ran.box(OTHER).get_by_role("button", name="Best so far").click()
    ran.wait_until(lambda: ran.shown(OTHER)["count"] != count)
    assert ran.shown(OTHER)["key"] == ran.values(OTHER)
    assert ran.values(OTHER) in fastest


def test_controls_and_result_have_names(book):
    for number, names in ((EXPLORER, ["TS", "WPT", "M", "N", "K"]), (STEPPER, ["rows", "cols"])):
        sliders = book.box(number).get_by_role("slider")
        assert [s.get_attribute("aria-label") for s in sliders.all()] == names
        assert [s.get_attribute("aria-valuetext") for s in sliders.all()] == [book.value(number, n) for n in names]
        assert book.box(number).get_by_role("status").locator("[data-key]").count() == 1
        assert book.box(number).get_by_role("img").get_attribute("aria-label")
    book.time(EXPLORER, "TS", "ArrowLeft")
    book.wait_until(lambda: book.control(EXPLORER, "TS").get_attribute("aria-valuetext") == "24")


# What is wider than its cell, or hard to tell from its ground, in one widget.
LOOK = """box => {
    const wide = [], texts = [];
    const output = box.closest(".jp-OutputArea-output"), area = output.getBoundingClientRect();
    if (output.scrollWidth > output.clientWidth + 1) wide.push(`output: ${output.scrollWidth} > ${output.clientWidth}`);
    const numbers = colour => {
        const [r, g, b, a = 1] = colour.match(/[\\d.]+/g).map(Number);
        return [r, g, b, a];
    };
    const ground = (element, x, y) => {  // the first opaque colour below a point
        for (const below of document.elementsFromPoint(x, y).filter(e => e.tagName !== "text")) {
            const style = getComputedStyle(below);
            const drawn = below instanceof SVGGeometryElement, colour = drawn ? style.fill : style.backgroundColor;
            const opaque = drawn ? style.opacity * style.fillOpacity : 1;
            if (colour.startsWith("rgb") && numbers(colour)[3] * opaque > 0.5) return numbers(colour);
        }
    };
    const light = ([r, g, b]) => [r, g, b].map(v => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
        .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
    for (const element of box.querySelectorAll("*")) {
        const r = element.getBoundingClientRect();
        const inside = element.closest("svg") && element.tagName !== "svg" && element.tagName !== "text";
        if (!r.width || !r.height || inside || getComputedStyle(element).visibility === "hidden") continue;
        const name = `${element.tagName}.${element.getAttribute("class")} "${element.textContent.trim().slice(0, 30)}"`;
        if (r.left < area.left - 1 || r.right > area.right + 1) wide.push(`${name}: ${r.left} to ${r.right}`);
        if (element.scrollWidth > element.clientWidth + 1 && getComputedStyle(element).overflowX !== "visible"
            && element.clientWidth) wide.push(`${name}: cut, ${element.scrollWidth} > ${element.clientWidth}`);
        if (![...element.childNodes].some(n => n.nodeType === 3 && /[^\\s\\u200b]/.test(n.textContent))) continue;
        const below = ground(element, r.left + r.width / 2, r.top + r.height / 2);
        const style = getComputedStyle(element);
        const ink = numbers(element.tagName === "text" ? style.fill : style.color);
        let opaque = ink[3];
        for (let up = element; up !== box; up = up.parentElement) opaque *= getComputedStyle(up).opacity;
        const seen = below && ink.slice(0, 3).map((v, i) => opaque * v + (1 - opaque) * below[i]);
        const [high, low] = below ? [light(seen), light(below)].sort((a, b) => b - a) : [0, 0];
        const m = element.tagName === "text" ? element.getScreenCTM() : { a: 1, b: 0 };
        texts.push({ text: name, contrast: (high + 0.05) / (low + 0.05),
            size: Math.hypot(m.a, m.b) * parseFloat(style.fontSize) });
    }
    return { wide, texts };
}"""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_nothing_is_too_wide_or_unreadable(book, theme):
    book.time(EXPLORER, "TS", "ArrowLeft")
    book.time(EXPLORER, "TS", "ArrowLeft")  # with a sentence about WPT
    book.theme(theme)
    try:
        for width, sidebar in ((1280, True), (800, True), (800, False)):
            book.sidebar(sidebar)
            book.resize(width, 5000)
            for number in (EXPLORER, STEPPER, ACCESS, ENDLESS):
                found = book.box(number).evaluate(LOOK)
                least, smallest = (min(found["texts"], key=lambda t: t[what]) for what in ("contrast", "size"))
                where = f"{theme}, {width} px, {'with' if sidebar else 'without'} the file browser, cell {number}"
                print(f"{where}: least contrast {least['contrast']:.1f} ({least['text']}), "
                      f"smallest text {smallest['size']:.1f} px ({smallest['text']})")  # fmt: skip
                assert len(found["texts"]) > 5
                assert found["wide"] == [], where
                assert least["contrast"] > 3, f"{where}: {least}"
                if not (sidebar and width == 800):  # there everything shrinks with the cell
                    assert smallest["size"] > 7, f"{where}: {smallest}"
    finally:
        book.sidebar(True)
        book.resize(1280)
        book.theme("light")


def test_a_restart_leaves_no_child_and_shows_the_picture(lab):
    book = lab.open(notebook(lab.notebooks / "restart.ipynb", "import gemmlab", "gemmlab.Explorer(kernel=2, m=128)"))
    others = {p.pid for p in lab.processes("gemmlab.worker.child")}
    book.run_all()
    children = [p for p in lab.processes("gemmlab.worker.child") if p.pid not in others]
    assert len(children) == 1
    book.restart()
    book.wait_until(lambda: not [p for p in lab.processes("gemmlab.worker.child") if p.pid not in others])
    assert not children[0].is_running()
    book.wait_until(lambda: book.still(1).is_visible())
    assert book.page.locator(".jupyter-widgets-disconnected:visible").count() == 0, "no broken controls are left"
    book.run_all()  # and all is alive again
    book.wait_key(1, "TS=32 M=128 N=128 K=128")
    assert book.box(1).is_visible() and not book.still(1).is_visible()
    book.command("docmanager:save")
    book.close()


def test_a_saved_notebook_shows_the_picture_without_being_run(lab, ran):
    ran.command("docmanager:save")
    saved = json.loads(ran.path.read_text())
    assert "widgets" not in saved["metadata"], "no widget state is stored"
    copy = lab.notebooks / "saved.ipynb"
    copy.write_text(ran.path.read_text())
    book = lab.open(copy)
    for number in (EXPLORER, STEPPER):
        book.wait_until(lambda number=number: book.still(number).is_visible())
        assert book.still(number).locator("img").evaluate("i => i.complete && i.naturalWidth > 300")
        assert book.box(number).count() == 0
    assert book.page.locator(".jupyter-widgets-disconnected, .widget-slider").count() == 0
    book.close()


#: Where a chapter's %%gemm cell is wrong until the learner repairs it: by the settings of the sliders.
WRONG = {
    "02_tiled": lambda TS, **others: TS > 1,
    "03_work_per_thread": lambda TS, WPT, **others: 1 < WPT < TS,
    "07_wide_loads": lambda TSM, WPTM, **others: 1 < WPTM < TSM,
    "10_any_size": lambda TSM, TSN, **others: TSM != TSN,
}


@pytest.fixture(scope="module", params=CHAPTERS, ids=lambda path: path.stem)
def chapter(lab, request):
    """A chapter as it is stored. The tests of a chapter share it, in their order here."""
    book = lab.open(request.param)
    yield book
    book.close()


@pytest.fixture(scope="module")
def alive(chapter):
    """A chapter after Run All Cells."""
    chapter.run_all(seconds=300)
    return chapter


def written(book, *words: str) -> list[int]:
    """The code cells that hold one of the words, where an explorer, a stepper or a %%gemm cell is made."""
    return [n for n, (kind, text) in enumerate(book.cells()) if kind == "code" and any(word in text for word in words)]


def error_text(text: str) -> str | None:
    """The first name of an exception in a text."""
    return next((word for word in text.split() if word.endswith(("Error:", "Exception:"))), None)


def too_wide(book, number: int) -> list[str]:
    """What of a cell's output sticks out of it."""
    return book.cell(number).evaluate("""cell => [...cell.querySelectorAll(".jp-OutputArea-output")].flatMap(area => {
        const right = area.getBoundingClientRect().right + 1, found = [];
        for (const e of area.querySelectorAll(".gemmlab, .gemmlab-result, .gemmlab-result > *, svg, img"))
            if (e.getBoundingClientRect().right > right) found.push(`${e.tagName}.${e.getAttribute("class")}`);
        const picture = area.querySelector("svg, img");
        if (picture && area.scrollWidth > area.clientWidth + 1) found.push(`${area.scrollWidth} > ${area.clientWidth}`);
        return found;
    })""")


def test_chapter_reads_well_without_being_run(chapter):
    """As it is stored: a picture for every widget, and no word about a widget that cannot be shown."""
    chapter.wait_until(lambda: chapter.page.get_by_text("Loading widget").count() == 0)
    assert chapter.page.get_by_text("Error displaying widget").count() == 0
    assert chapter.page.locator(".jupyter-widgets-disconnected:visible, .widget-slider").count() == 0
    assert chapter.widgets() == []
    stills = written(chapter, "gemmlab.Explorer(", "gemmlab.Stepper(", "%%gemm ")
    assert stills
    for number in stills:
        assert chapter.still(number).count() == 1, f"cell {number} has no picture: {chapter.output(number)!r}"
        chapter.wait_until(lambda number=number: chapter.still(number).is_visible())
        assert chapter.still(number).locator("img").evaluate("i => i.complete && i.naturalWidth > 300")
        assert "run the cell to move it" in chapter.output(number)
        assert too_wide(chapter, number) == []


def test_chapter_runs_and_all_its_widgets_live(alive):
    alive.raise_errors()
    explorers, steppers = written(alive, "gemmlab.Explorer(", "%%gemm "), written(alive, "gemmlab.Stepper(")
    assert explorers and steppers
    assert alive.widgets() == sorted([*explorers, *steppers]), "every widget of the text is on the page"
    for number in alive.widgets():
        shown = alive.shown(number)
        assert shown["key"] == alive.values(number)
        assert ("state" in shown and shown["state"] != "") == (number in explorers)
        assert alive.box(number).is_visible()
        assert alive.still(number).count() == 1 and not alive.still(number).is_visible(), f"cell {number}: two pictures"
    assert alive.page.get_by_text("Error displaying widget").count() == 0
    wide = {number: too_wide(alive, number) for number in range(len(alive.cells()))}
    assert {number: what for number, what in wide.items() if what} == {}


def test_chapter_steppers_move(alive):
    for number in written(alive, "gemmlab.Stepper("):
        names, changed = alive.names(number), []
        drawing = alive.box(number).locator("svg[role=img]")
        assert names
        for name in names:
            before = drawing.inner_html()
            shown = alive.move(number, name)
            where = f"cell {number}, {shown['key']}"
            assert shown["key"] == alive.values(number), where
            assert error_text(shown["text"]) is None, f"{where}: {shown['text']}"
            assert drawing.count() == 1 and drawing.is_visible(), where
            assert drawing.get_attribute("aria-label").strip(), where
            assert drawing.bounding_box()["height"] > 50, where
            assert too_wide(alive, number) == [], where
            assert not alive.still(number).is_visible(), where
            changed += [name] if drawing.inner_html() != before else []
        print(f"cell {number}: moved {names}; the picture changed with {changed}")
        assert changed, f"cell {number}: no slider changes the picture"
    alive.raise_errors()


def test_chapter_explorers_move(alive):
    stubs = written(alive, "%%gemm ")
    for number in written(alive, "gemmlab.Explorer(", "%%gemm "):

        def right(shown, number=number) -> None:
            where = f"cell {number}, {shown['key']}: {shown['state']}, {shown['text'][:300]}"
            values = {name: int(value) for name, value in (pair.split("=") for pair in shown["key"].split())}
            broken = number in stubs and WRONG.get(alive.path.stem, lambda **values: False)(**values)
            # what is written outside a tile may also end the process
            assert shown["state"] in (("wrong", "crash") if broken else ("ok",)), where
            assert ("Right: every element exact" in shown["text"]) == (not broken), where
            assert error_text(shown["text"]) is None, where
            assert shown["key"] == alive.values(number), where
            assert alive.box(number).locator("svg[role=img]").is_visible(), where
            assert too_wide(alive, number) == [], where
            assert not alive.still(number).is_visible(), where

        right(alive.shown(number))
        names = alive.names(number)
        assert names[-3:] == ["M", "N", "K"] and len(names) > 3
        for name in names if FULL else [*names[:-3][:2], "M"]:
            count = int(alive.shown(number)["count"])
            shown = alive.move(number, name)
            right(shown)
            assert int(shown["count"]) == count + 1 or shown["state"] == "crash", "one move, one measurement"
    alive.raise_errors()


def test_chapter_is_readable_in_both_themes(alive):
    """Every widget, at two widths of the window and in the narrowest cell: nothing too wide, too small or too faint."""
    least, smallest = {"contrast": 99}, {"size": 99}
    looks = [("light", 800), ("dark", 1280), *([("light", 1280), ("dark", 800)] if FULL else [])]
    try:
        for theme, width in looks:
            alive.theme(theme)
            alive.sidebar(width > 1000)
            alive.resize(width, 3000)
            for number in alive.widgets():
                alive.box(number).evaluate("box => box.scrollIntoView({ block: 'center' })")
                found = alive.box(number).evaluate(LOOK)
                where = f"{theme}, {width} px, cell {number}"
                assert len(found["texts"]) > 5, where
                assert found["wide"] == [], where
                for text in found["texts"]:
                    assert text["contrast"] > 3, f"{where}: {text}"
                    assert text["size"] > 6, f"{where}: {text}"
                least = min(least, *found["texts"], key=lambda text: text["contrast"])
                smallest = min(smallest, *found["texts"], key=lambda text: text["size"])
        print(f"least contrast {least['contrast']:.1f} ({least['text']}), "
              f"smallest text {smallest['size']:.1f} px ({smallest['text']})")  # fmt: skip
        alive.sidebar(True)
        alive.resize(800)
        wide = {number: too_wide(alive, number) for number in range(len(alive.cells()))}
        assert {number: what for number, what in wide.items() if what} == {}, "in a cell beside the file browser"
    finally:
        alive.sidebar(True)
        alive.resize(1280)
        alive.theme("light")
