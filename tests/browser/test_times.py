"""How long a reader waits for an explorer, in a real JupyterLab. `GEMMLAB_FULL=1 pytest -s` prints
the figures.

Nothing else may compute meanwhile. So each notebook is the only one that is open: its kernel and
its worker processes have ended before the next one begins. Beside each move stands how much
processor time other processes took.
"""

import contextlib
import re
import statistics
import time
from pathlib import Path

import pytest
from conftest import FULL, lacking
from lab import PATIENCE, browser_path, notebook, opened
from start import started
from usage import Usage

pytestmark = pytest.mark.system

FIRST_CHAPTER = next((Path(__file__).resolve().parents[2] / "notebooks").glob("00_*.ipynb"))
#: By kernel: moves to settings that nobody has compiled yet, as a slider and a key.
NEW = {
    3: (("TS", "Home"), ("TS", "ArrowRight"), ("TS", "ArrowRight")),
    6: (("TSM", "Home"), ("TSM", "ArrowRight"), ("WPTM", "ArrowLeft")),
    10: (("TSN", "Home"), ("TSN", "ArrowRight"), ("WPTN", "ArrowLeft")),
}
#: After these, by kernel: moves to settings that are compiled while nobody waits.
AHEAD = {
    3: (("TS", "ArrowRight"), ("WPT", "ArrowRight")),
    6: (("TSM", "ArrowRight"), ("WPTM", "ArrowLeft")),
    10: (("TSM", "ArrowRight"), ("WPTM", "ArrowLeft")),
}
#: Seconds in which they should be answered, and settings that were compiled while nobody waited.
NEW_AIM, AHEAD_AIM = {3: 1.0, 6: 2.5, 10: 2.5}, 0.5
#: Without GEMMLAB_FULL nobody reads the figures, and a move of each kind is enough.
TIMED = list(NEW) if FULL else [3]
WARM = "warm cache: "
#: What the page shows after a move, in its usual order (see lab.WATCH).
PARTS = (
    "needle",
    "landscape",
    "start",
    "compile",
    "predict",
    "check",
    "time",
    "answer",
    "paint",
    "tries",
)


class Report:
    """What was timed, to be printed in one block."""

    def __init__(self):
        self.seconds: dict[str, float] = {}
        # the "key" of the settings, and what `Book.moments` has
        self.moves: dict[str, list[dict]] = {}

    def median(self, what: str) -> float:
        """Seconds from the key to the painted answer."""
        return statistics.median(moments["paint"] for moments in self.moves[what]) / 1000

    def __str__(self) -> str:
        lines = ["Seconds, with empty caches unless said otherwise, medians:"]
        lines += [f"  {what}: {seconds:.2f}" for what, seconds in self.seconds.items()]
        lines += ["", "Milliseconds from the key to what the page shows, medians:"]
        lines.append(" " * 27 + "".join(f"{part:>10}" for part in PARTS))
        for what, moves in self.moves.items():
            seen = [[moments[part] for moments in moves if part in moments] for part in PARTS]
            shown = (
                f"{statistics.median(times):10.0f}" if times else f"{'-':>10}" for times in seen
            )
            lines.append(f"  {what:25}{''.join(shown)}")
        return "\n".join(lines)


@pytest.fixture(scope="module")
def report():
    """Filled by all tests, and printed after the last."""
    report = Report()
    yield report
    print(f"\n{report}")


@pytest.fixture(scope="module")
def browser():
    """One browser for all JupyterLabs."""
    if browser_path() is None:
        lacking("no Chromium")
    with opened() as browser:
        yield browser


@pytest.fixture(scope="module")
def own_caches(tmp_path_factory):
    """The folder for what is compiled, empty at first."""
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(scope="module")
def lab(browser, own_caches):
    """A JupyterLab on PoCL that begins with empty caches."""
    with started(caches=own_caches, browser=browser) as lab:
        yield lab


@contextlib.contextmanager
def alone(lab, path: Path):
    """A notebook, from `with` to its end the only one that has a kernel."""
    assert kernels(lab) == []
    book = lab.open(path)
    try:
        yield book
    finally:
        book.close()
        late = time.monotonic() + PATIENCE
        while kernels(lab) and time.monotonic() < late:
            time.sleep(0.1)


def kernels(lab) -> list:
    """The kernels of notebooks that run, and their worker processes."""
    return lab.processes("ipykernel_launcher") + lab.processes("gemmlab.worker.child")


if FULL:  # it is there for its figures: that the chapter runs, test_chapters.py says too

    def test_the_first_chapter(browser, tmp_path, report):
        """From Run All to the end of the last cell, in a JupyterLab with empty caches, and in one
        with filled ones.
        """
        for name in ("chapter 00, Run All (aim: 15 s)", f"{WARM}chapter 00, Run All"):
            with (
                started(caches=tmp_path, browser=browser) as lab,
                alone(lab, FIRST_CHAPTER) as book,
            ):
                begun = time.monotonic()
                book.run_all()
                report.seconds[name] = time.monotonic() - begun


def test_the_first_explorer(lab, report):
    """Its first answer, and its first move."""
    first_explorer(lab, report, "")


@pytest.mark.parametrize("kernel", TIMED)
def test_new_settings(lab, report, kernel):
    """Settings that nobody has compiled, and settings that were compiled while nobody waited."""
    new, ahead = f"kernel {kernel}, new", f"kernel {kernel}, compiled ahead"
    with alone(lab, explorer(lab, kernel)) as book:
        book.run_all()
        for name, key in NEW[kernel] if FULL else NEW[kernel][:1]:
            time_move(book, report, new, name, key)
        for name, key in AHEAD[kernel] if FULL else AHEAD[kernel][:1]:
            work_ahead(lab, 10 if FULL else 1)
            time_move(book, report, ahead, name, key)
        settings = [move["key"] for move in report.moves[new] + report.moves[ahead]]
        assert len({*settings}) == len(settings), "none was measured before"
        report.seconds[f"{new} (aim: {NEW_AIM[kernel]} s)"] = report.median(new)
        report.seconds[f"{ahead} (aim: {AHEAD_AIM} s)"] = report.median(ahead)
        report.seconds[f"kernel {kernel}, recorded needle (aim: 0.1 s)"] = needle_ms(book) / 1000


def test_a_stepper(lab, report):
    """Its moves along a run, and to settings for which the kernel is simulated first."""
    cell = (
        "import gemmlab\nsettings = {'TS': 8}\n"
        "gemmlab.Stepper(lambda WPT: gemmlab.simulate(3, 16, 16, 16, {**settings, 'WPT': WPT}), "
        "WPT=(1, 2, 4, 8), start={'step': 1, 'item': 0})"
    )
    with alone(lab, notebook(lab.notebooks / "stepper.ipynb", cell)) as book:
        book.run_all()
        for name, moves in (("step", 9), ("item", 5), ("WPT", 3)):
            times = [book.time(0, name, "ArrowRight")[0] for _ in range(moves if FULL else 3)]
            seconds = statistics.median(times) / 1000
            report.seconds[f"stepper, {name} (aim: 0.12 s)"] = seconds
            assert seconds < 60, "it hangs"


if FULL:  # also there for its figures

    def test_a_warm_cache(browser, own_caches, report):
        """The first answer, the first move and settings new to this process, all of them compiled
        once before.
        """
        with started(caches=own_caches, browser=browser) as lab:
            first_explorer(lab, report, WARM)
            for kernel in TIMED:
                what = f"{WARM}kernel {kernel}"
                with alone(lab, explorer(lab, kernel)) as book:
                    book.run_all()
                    for name, key in NEW[kernel]:
                        time_move(book, report, what, name, key)
                    report.seconds[f"{what}, new settings"] = report.median(what)
                    report.seconds[f"{what}, recorded needle"] = needle_ms(book) / 1000


def work_ahead(lab, seconds: float) -> None:
    """Wait until the workers have computed for so many seconds, which is enough to compile the next
    settings.

    On a machine that does much else this takes longer.
    """
    mine = {process.pid for process in lab.processes("gemmlab.worker.child")}
    begun, late = Usage.now(), time.monotonic() + PATIENCE
    while (Usage.now() - begun).seconds(mine) < seconds and time.monotonic() < late:
        time.sleep(0.5)
        mine |= {process.pid for process in lab.processes("gemmlab.worker.child")}


def explorer(lab, kernel: int) -> Path:
    """A notebook with one explorer."""
    return notebook(
        lab.notebooks / f"kernel_{kernel}.ipynb", f"import gemmlab\ngemmlab.Explorer({kernel})"
    )


def first_explorer(lab, report: Report, caches: str) -> None:
    """Time the first answer of a notebook's first explorer, and its first move."""
    cells = "%load_ext gemmlab\nimport gemmlab", "gemmlab.Explorer(kernel=3)"
    with alone(lab, notebook(lab.notebooks / "first.ipynb", *cells)) as book:
        book.run(0)
        book.wait_ran(0)
        begun = time.monotonic()
        book.run(1)
        book.wait_until(lambda: book.shown(1)["state"] == "ok")
        report.seconds[f"{caches}first answer (aim: 4 s)"] = time.monotonic() - begun
        time_move(book, report, f"{caches}first move", "TS", "ArrowLeft", cell=1)
        report.seconds[f"{caches}first move, answered (aim: 3 s)"] = report.median(
            f"{caches}first move"
        )


def time_move(book, report: Report, what: str, name: str, key: str, cell: int = 0) -> None:
    """Press a key with a slider focused; note when the page shows what, to the last picture."""
    before = Usage.now()
    ms, shown = book.time(cell, name, key)
    used = Usage.now() - before
    assert shown["state"] == "ok", shown
    facts = book.box(cell).locator(".gemmlab-facts").text_content()
    compiled = re.search(r"compiled in ([\d.]+) s", facts)[1]
    print(
        f"\n{what}: {ms:.0f} ms, of which the compiler took {compiled} s, for {shown['key']}; "
        f"{used}"
    )
    book.wait_until(lambda: "tries" in book.moments())
    report.moves.setdefault(what, []).append({"key": shown["key"], **book.moments()})


def needle_ms(book) -> float:
    """Milliseconds from a key to the recorded rate of the new settings."""
    book.control(0, book.names(0)[0]).focus()
    book.page.evaluate("""() => {
        const said = () => document.querySelector("[data-share]").innerHTML, before = said();
        window.needle = new Promise(done => {
            let pressed;
            addEventListener("keydown", () => pressed = performance.now(), { capture: true, once: true });
            new MutationObserver((changes, me) => {
                if (said() === before) return;
                me.disconnect();
                done(performance.now() - pressed);
            }).observe(document.querySelector(".gemmlab"), { subtree: true, childList: true });
        });
    }""")
    book.page.keyboard.press("ArrowLeft")
    return book.promised("needle")
