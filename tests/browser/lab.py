"""A real JupyterLab in a real browser, apart from everything of the user's."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import nbformat
import psutil
from playwright.sync_api import Browser, Error, Page, TimeoutError, sync_playwright

import gemmlab

#: Seconds that nothing in a test exceeds, even on a slow machine that does much else meanwhile.
PATIENCE = 240.0
SETTINGS = {
    "@jupyterlab/apputils-extension:notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    # all cells are in the page, seen or not, and nothing below the last
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none", "scrollPastEnd": False},
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}
CHROMIUM = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)
#: What points programs to files of the user that are not in HOME.
ELSEWHERE = "JUPYTER", "IPYTHON", "MPL", "XDG", "GEMMLAB_DATA", "POCL_CACHE"


def browser_path() -> str | None:
    """A Chromium of this machine: GEMMLAB_CHROMIUM, or the first one on the path."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return os.environ.get("GEMMLAB_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@contextlib.contextmanager
def opened(*flags: str) -> Iterator[Browser]:
    """A browser with more flags than `CHROMIUM`."""
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=browser_path(), args=(*CHROMIUM, *flags))
        yield browser
        browser.close()


def started(*devices: str, startup: str = "", **options) -> contextlib.AbstractContextManager[Lab]:
    """A JupyterLab for tests; without a browser or one of the devices the test is skipped.

    Args:
        devices: GEMMLAB_DEVICE names the first of them in the notebooks.
        startup, options: those of `running`.
    """
    import patient
    from conftest import lacking

    from gemmlab.opencl.devices import NoDeviceError, find_device

    if browser_path() is None:
        lacking("no Chromium")
    for device in devices:
        try:
            find_device(device)
        except NoDeviceError:
            lacking(f"no {device} device")
    return running(*devices[:1], startup=startup + patient.STARTUP + patient.BUSY, **options)


def notebook(path: Path, *cells: str) -> Path:
    """Write a notebook of code cells."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    spec = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book.metadata["kernelspec"] = spec
    nbformat.write(book, path)
    return path


@contextlib.contextmanager
def running(
    device: str | None = None,
    startup: str = "",
    caches: Path | None = None,
    browser: Browser | None = None,
) -> Iterator[Lab]:
    """A JupyterLab whose home is a temporary folder, and a browser.

    Args:
        device: what GEMMLAB_DEVICE says in the notebooks; by default what it says here.
        startup: Python that the kernel of a notebook runs before the first cell.
        caches: a folder for XDG_CACHE_HOME and Matplotlib's fonts; by default both begin empty.
        browser: one that is open, because Playwright starts no second one; by default a new one.
    """
    with contextlib.ExitStack() as end:
        home = Path(tempfile.mkdtemp(prefix="gemmlab-lab-"))
        end.callback(shutil.rmtree, home, ignore_errors=True)
        inherited = {k: v for k, v in os.environ.items() if not k.startswith(ELSEWHERE)}
        env = inherited | {"HOME": str(home), "JUPYTER_RUNTIME_DIR": str(home / "runtime")}
        if caches:
            env |= {"XDG_CACHE_HOME": str(caches), "MPLCONFIGDIR": str(caches / "matplotlib")}
        if device:
            env["GEMMLAB_DEVICE"] = device
        own = home / ".local/share/jupyter/labextensions/gemmlab"  # and not an installed one
        own.parent.mkdir(parents=True)
        own.symlink_to(Path(gemmlab.__file__).parent / "widgets" / "labextension")
        for file, words in {
            ".jupyter/labconfig/default_setting_overrides.json": json.dumps(SETTINGS),
            ".ipython/profile_default/startup/first.py": startup,
        }.items():
            (home / file).parent.mkdir(parents=True)
            (home / file).write_text(words)
        lab = Lab(home, env)
        end.callback(lab.stop)
        lab.wait_started()
        lab.browser = browser or end.enter_context(opened())
        yield lab


class Lab:
    """JupyterLab and a browser. Notebooks are copied, so that the originals stay as they are."""

    browser: Browser

    def __init__(self, home: Path, env: dict[str, str]):
        self.home, self.notebooks, self.token = home, home / "notebooks", secrets.token_hex(16)
        self.notebooks.mkdir()
        options = (
            *("--no-browser", "--allow-root", "--ServerApp.ip=127.0.0.1"),
            f"--IdentityProvider.token={self.token}",
            f"--ServerApp.root_dir={self.notebooks}",
            *("--LabApp.news_url=", "--LabApp.extension_manager=readonly"),
            "--LabApp.expose_app_in_browser=True",
        )
        self.log = home / "jupyterlab.log"
        with self.log.open("wb") as words:
            self.server = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab", *options],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
            )

    def wait_started(self) -> None:
        late = time.monotonic() + PATIENCE
        while self.server.poll() is None and time.monotonic() < late:
            # until then the file is not there, or being written
            with contextlib.suppress(StopIteration, ValueError):
                file = next((self.home / "runtime").glob("jpserver-*.json"))
                self.url = json.loads(file.read_text())["url"].rstrip("/")
                return
            time.sleep(0.1)
        words = self.log.read_text(errors="replace")[-3000:]
        raise RuntimeError(f"JupyterLab did not start:\n{words}")

    def stop(self) -> None:
        self.server.terminate()  # it ends its kernels first
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.server.wait(15)
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()
        self.server.wait()

    def processes(self, *words: str) -> list[psutil.Process]:
        """Living processes of this JupyterLab, orphans included, whose command line has `words`."""
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                ours = process.environ().get("HOME") == str(self.home)
                living = process.status() != psutil.STATUS_ZOMBIE
                if ours and living and set(words) <= set(process.cmdline()):
                    found.append(process)
        return found

    def copy(self, path: Path) -> None:
        if path.parent != self.notebooks:
            unneeded = shutil.ignore_patterns("__pycache__", ".*")
            shutil.copytree(path.parent, self.notebooks, ignore=unneeded, dirs_exist_ok=True)

    @cached_property
    def page(self) -> Page:
        return self.load(self.browser)

    def load(self, browser: Browser) -> Page:
        """JupyterLab in a new page of a browser."""
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(1000 * PATIENCE)
        page.goto(f"{self.url}/lab?reset&token={self.token}")
        try:
            page.wait_for_selector(".jp-Launcher", timeout=60_000)
        except TimeoutError:  # a browser that starts beside three others may miss a file
            page.reload()
            page.wait_for_selector(".jp-Launcher")
        # the file browser says so if the server, busy, did not list its folder
        lost = page.locator(".jp-Dialog", has_text="Directory not found").first
        page.add_locator_handler(lost, lambda dialog: dialog.get_by_role("button").click())
        return page

    def open(self, path: Path, page: Page | None = None) -> Book:
        """Copy a notebook, and what is beside it, into the lab, and open it in the lab's page,
        because loading JupyterLab takes seconds, or in another one. Nothing is run.
        """
        self.copy(path)
        book = Book(page or self.page, path)
        book.page.evaluate(
            "path => jupyterapp.commands.execute('docmanager:open', { path }).then(() => null)",
            path.name,
        )
        book.page.wait_for_selector(".jp-Notebook .jp-Cell")
        book.page.wait_for_function("!document.querySelector('.jp-Spinner')")
        book.wait_idle()
        return book


class Book:
    """A notebook open in a page. Cells are counted from 0, text cells included."""

    def __init__(self, page: Page, path: Path):
        self.page, self.path = page, path

    def close(self) -> None:
        """Shut the kernel down, if there is one, and close the notebook without saving it."""
        with contextlib.suppress(Error):
            self.command("kernelmenu:shutdown")
        self.page.evaluate("""() => {
            const book = jupyterapp.shell.currentWidget;
            book.context.model.dirty = false;
            book.close();
        }""")
        self.page.wait_for_function("!document.querySelector('.jp-Notebook')")

    def command(self, name: str) -> None:
        """Run a command of JupyterLab and wait for its end."""
        self.page.evaluate("name => jupyterapp.commands.execute(name).then(() => null)", name)

    def cells(self) -> list[list[str]]:
        """Type and text of every cell."""
        return self.page.evaluate(
            "jupyterapp.shell.currentWidget.content.model.sharedModel.cells.map(c => [c.cell_type, "
            "c.source])"
        )

    def cell(self, number: int):
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def counts(self, *numbers: int) -> list[int | None]:
        """The numbers that code cells got when they ran; None before, and while they run."""
        return self.page.evaluate(
            "numbers => numbers.map("
            "n => jupyterapp.shell.currentWidget.content.model.cells.get(n).executionCount)",
            numbers,
        )

    def output(self, number: int) -> str:
        """The text that a cell printed."""
        return self.cell(number).locator(".jp-OutputArea").inner_text().strip()

    def box(self, number: int):
        """The widget in the output of a cell."""
        return self.cell(number).locator(".gemmlab").first  # a stepper may be in it

    def still(self, number: int):
        """The static picture in the output of a cell."""
        again = ".jp-OutputArea-child:has(.gemmlab-again)"
        return self.cell(number).locator(f"{again} + .jp-OutputArea-child")

    def wait_idle(self) -> None:
        """Wait until the kernel is ready, which the execution indicator says too early."""
        self.page.wait_for_function(
            "/\\| Idle/.test(document.querySelector('#jp-main-statusbar')?.textContent)"
        )

    def run_all(self) -> None:
        """Run all cells and wait for the last. Raises at the first cell that fails."""
        self.page.evaluate("void jupyterapp.commands.execute('notebook:run-all-cells')")
        self.wait_ran(*(n for n, (kind, text) in enumerate(self.cells())
                        if kind == "code" and text.strip()))  # fmt: skip

    def run(self, number: int) -> None:
        """Start one cell, and do not wait; its output is left alone."""
        self.page.evaluate(
            """number => {
                const book = jupyterapp.shell.currentWidget.content;
                book.deselectAll();
                book.activeCellIndex = number;
                void jupyterapp.commands.execute('notebook:run-cell');
            }""",
            number,
        )

    def wait_ran(self, *numbers: int) -> None:
        """Wait until these code cells have run. Raises at the first that fails."""
        late = time.monotonic() + 2 * PATIENCE
        while None in self.counts(*numbers):
            self.page.wait_for_timeout(200)
            if time.monotonic() > late:
                raise TimeoutError(f"cells still at {self.counts(*numbers)}")
            self.raise_errors()
        self.raise_errors()

    def raise_errors(self) -> None:
        error = self.page.locator('[data-mime-type="application/vnd.jupyter.error"]')
        if error.count():
            raise RuntimeError(f"a cell failed:\n{error.first.inner_text()}")

    def control(self, number: int, name: str):
        """A slider, by its label."""
        return self._row(number, name).locator("input[type=range]")

    def readout(self, number: int, name: str):
        """The number beside a slider."""
        return self._row(number, name).locator(".gemmlab-value")

    def value(self, number: int, name: str) -> str:
        return self.readout(number, name).input_value()

    def values(self, number: int) -> str:
        """What all controls say, in the words of a panel's data-key."""
        return self.box(number).evaluate(VALUES)

    def show_all(self, number: int) -> None:
        """Open what an explorer folds away."""
        fold = self.box(number).locator(".gemmlab-fold:not([open]) > summary:visible")
        if fold.count():
            fold.click()
        self.control(number, "K").wait_for(state="visible")

    def _row(self, number: int, name: str):
        return self.box(number).locator(f".gemmlab-control[data-name='{name}']").first

    def press(self, number: int, name: str, *keys: str) -> None:
        """Press keys with a slider focused."""
        self.control(number, name).wait_for(state="visible")  # only then it can have the focus
        self.control(number, name).focus()
        for key in keys:
            self.page.keyboard.press(key)

    def widgets(self) -> list[int]:
        """The cells that show a living widget."""
        return self.page.evaluate("""() => {
            const cells = [...document.querySelectorAll(".jp-Notebook .jp-Cell")];
            const shown = cell => cell.querySelector(".jp-OutputArea .gemmlab");
            return cells.flatMap((cell, n) => shown(cell) ? [n] : []);
        }""")

    def names(self, number: int) -> list[str]:
        """The labels of a widget's sliders."""
        return self.box(number).locator(".gemmlab-slider > label").all_text_contents()

    def move(self, number: int, name: str) -> dict[str, str]:
        """Move a slider by one, by key; what the panel then shows.

        A parameter goes to the right unless it is at its end, a size to the left: a smaller product
        is never too slow. Waits until the panel's key is what all the sliders say, with another
        value for this one.
        """
        handle, old = self.control(number, name), self.value(number, name)
        if not handle.is_visible():
            self.show_all(number)
        place, most = int(handle.input_value()), int(handle.get_attribute("max"))
        left = place > 0 if name in ("M", "N", "K") else place == most
        self.press(number, name, "ArrowLeft" if left else "ArrowRight")
        self.wait_until(lambda: self.value(number, name) != old and self.follows(number), number)
        return self.shown(number)

    def wait_key(self, number: int, key: str) -> dict[str, str]:
        """Wait for the result of the settings `key`; its data attributes and text."""
        self.wait_until(lambda: self.shown(number)["key"] == key, number)
        return self.shown(number)

    def wait_until(self, true, number: int | None = None) -> None:
        """Wait until `true()` is; or fail with what a widget's controls and its panel show."""
        late = time.monotonic() + PATIENCE
        while not true():
            if time.monotonic() > late:
                seen = "" if number is None else (self.values(number), self.shown(number))
                raise TimeoutError(f"waited {PATIENCE:g} s in vain: {seen}")
            # looking all the time would slow down what is waited for
            self.page.wait_for_timeout(100)

    def busy(self, number: int) -> bool:
        """Whether an explorer says that it is compiling or running."""
        return self.box(number).locator(".gemmlab-busy:visible").count() > 0

    def follows(self, number: int) -> bool:
        """Whether a panel shows what its sliders say."""
        return self.shown(number)["key"] == self.values(number)

    def shown(self, number: int) -> dict[str, str]:
        """The data attributes of a result, its text, and the note below it, if any."""
        found = self.box(number).evaluate(
            """box => {
                const said = box.querySelector("[data-key]");
                const note = box.querySelector(".gemmlab-note.gemmlab-said")?.innerText ?? "";
                const text = said?.closest(".gemmlab-result").innerText;
                return said ? {...said.dataset, note, text} : {};
            }"""
        )
        return {"key": "", "state": "", "count": "0", "text": "", "note": "", **found}

    def resize(self, width: int, height: int = 900, sidebar: bool = True) -> None:
        """Resize the window, with or without the file browser."""
        self.page.set_viewport_size({"width": width, "height": height})
        self.page.evaluate(f"jupyterapp.shell.{'expandLeft' if sidebar else 'collapseLeft'}()")
        self.settle()

    def settle(self) -> None:
        """Let the page lay itself out."""
        self.page.evaluate(
            "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => done())))"
        )
        self.page.wait_for_timeout(250)  # Lumino lays its panels out on a timer of its own

    def restart(self) -> None:
        """Restart the kernel, and confirm."""
        self.page.evaluate("void jupyterapp.commands.execute('kernelmenu:restart')")
        self.page.locator(".jp-Dialog button.jp-mod-accept").click()
        self.page.wait_for_function("!document.querySelector('.jp-Dialog')")
        self.wait_idle()


# What all controls of a widget say, in the order of the panel's key.
VALUES = """box => {
    const key = box.querySelector("[data-key]")?.dataset.key ?? "";
    const order = key.split(" ").map((pair) => pair.split("=")[0]);
    const words = { yes: "True", no: "False", on: "1", off: "0" };
    const own = row => row.closest(".gemmlab") === box; // and not of a stepper in it
    return [...box.querySelectorAll(".gemmlab-control")].filter(own).map(row => {
        const slider = row.querySelector("input[type=range]");
        const said = slider?.ariaValueText ?? row.querySelector("label:has(:checked)").textContent;
        return [row.dataset.name, slider ? said : words[said] ?? said];
    }).sort(([one], [two]) => order.indexOf(one) - order.indexOf(two))
        .map((pair) => pair.join("=")).join(" ");
}"""
