"""A real JupyterLab in a real browser, apart from everything of the user's."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
import psutil
from playwright.sync_api import Browser, Page, sync_playwright

#: Nothing that a test does takes longer, in seconds, on a slow machine that does much else
#: meanwhile.
PATIENCE = 240.0
SETTINGS = {
    "apputils-extension/notification": {
        "fetchNews": "false",
        "checkForUpdates": False,
        "doNotDisturbMode": True,
    },
    # all cells are in the page, seen or not, and nothing below the last
    "notebook-extension/tracker": {"windowingMode": "none", "scrollPastEnd": False},
    "docmanager-extension/plugin": {"autosave": False},
}
CHROMIUM = (
    *("--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
)


def browser_path() -> str | None:
    """A Chromium of this machine: GEMMLAB_CHROMIUM, or the first one on the path."""
    names = ("chromium", "chromium-browser", "google-chrome", "chrome")
    return os.environ.get("GEMMLAB_CHROMIUM") or next(filter(None, map(shutil.which, names)), None)


@contextlib.contextmanager
def opened(*flags: str) -> Iterator[Browser]:
    """A browser, from `with` to its end, with more flags than `CHROMIUM`."""
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=browser_path(), args=(*CHROMIUM, *flags))
        yield browser
        browser.close()


def started(*devices: str, startup: str = "", **options) -> Lab:
    """A JupyterLab for tests, to be entered by `with`; without a browser or a device the test is
    skipped.

    Args:
        devices: those that are needed, PoCL by default; GEMMLAB_DEVICE says the first in the
            notebooks.
        startup: Python that the kernel of a notebook runs before the first cell.
        options: those of `Lab`.
    """
    import patient
    from conftest import lacking

    from gemmlab.opencl.devices import NoDeviceError, find_device

    if browser_path() is None:
        lacking("no Chromium")
    devices = devices or ("pocl",)
    for device in devices:
        try:
            find_device(device)
        except NoDeviceError:
            lacking(f"no {device} device")
    return Lab(devices[0], startup=startup + patient.STARTUP + patient.BUSY, **options)


def notebook(path: Path, *cells: str) -> Path:
    """Write a notebook of code cells."""
    book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    book.metadata["kernelspec"] = {
        "name": "python3",
        "display_name": "Python 3",
        "language": "python",
    }
    nbformat.write(book, path)
    return path


class Lab:
    """JupyterLab and a browser, from `with` to its end. Notebooks are copied, so that the originals
    stay as they are.

    Args:
        device: what GEMMLAB_DEVICE says in the notebooks; by default what it says here.
        caches: a folder for XDG_CACHE_HOME and Matplotlib's fonts; by default both begin empty.
        startup: Python that the kernel of a notebook runs before the first cell.
        browser: one that is open, because Playwright starts no second one; by default a new one.
    """

    def __init__(
        self,
        device: str | None = None,
        caches: Path | None = None,
        startup: str = "",
        browser: Browser | None = None,
    ):
        self._given = browser
        self.folder = Path(tempfile.mkdtemp(prefix="gemmlab-lab-"))
        self.notebooks = self.folder / "notebooks"
        self.notebooks.mkdir()
        self.token = secrets.token_hex(16)
        self._end = contextlib.ExitStack()
        self._env = {
            k: v for k, v in os.environ.items() if not k.startswith(("JUPYTER", "POCL_CACHE"))
        }
        for name in (
            "HOME",
            "JUPYTER_CONFIG_DIR",
            "JUPYTER_DATA_DIR",
            "JUPYTER_RUNTIME_DIR",
            "JUPYTERLAB_SETTINGS_DIR",
            "JUPYTERLAB_WORKSPACES_DIR",
            "IPYTHONDIR",
            "MPLCONFIGDIR",
            "XDG_CACHE_HOME",
            "GEMMLAB_DATA",
        ):
            self._env[name] = str(self.folder / name.lower())
            Path(self._env[name]).mkdir(parents=True, exist_ok=True)
        if caches:
            self._env |= {"XDG_CACHE_HOME": str(caches), "MPLCONFIGDIR": str(caches / "matplotlib")}
        if device:
            self._env["GEMMLAB_DEVICE"] = device
        if startup:
            folder = Path(self._env["IPYTHONDIR"], "profile_default", "startup")
            folder.mkdir(parents=True)
            (folder / "first.py").write_text(startup)

    def __enter__(self) -> Lab:
        try:
            self._end.callback(shutil.rmtree, self.folder, ignore_errors=True)
            self._end.callback(self._stop_server)
            self._start_server()
            self.browser = self._given or self._end.enter_context(opened())
            # its pages share what the browser has loaded of JupyterLab
            self._context = self.browser.new_context()
            self._end.callback(self._context.close)
        except BaseException:
            self._end.close()
            raise
        return self

    def __exit__(self, *what) -> None:
        self._end.close()

    def _start_server(self) -> None:
        for name, settings in SETTINGS.items():
            file = Path(
                self._env["JUPYTERLAB_SETTINGS_DIR"], "@jupyterlab", f"{name}.jupyterlab-settings"
            )
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(settings))
        log = self.folder / "jupyterlab.log"
        options = (
            "--no-browser",
            "--allow-root",
            "--ServerApp.ip=127.0.0.1",
            f"--IdentityProvider.token={self.token}",
            f"--ServerApp.root_dir={self.notebooks}",
            "--LabApp.news_url=",
            "--LabApp.extension_manager=readonly",
            "--LabApp.expose_app_in_browser=True",
        )
        with log.open("wb") as words:
            self._server = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab", *options],
                env=self._env,
                stdin=subprocess.DEVNULL,
                stdout=words,
                stderr=words,
            )
        late = time.monotonic() + PATIENCE
        while self._server.poll() is None and time.monotonic() < late:
            # until then the file is not there, or being written
            with contextlib.suppress(StopIteration, ValueError):
                file = next(Path(self._env["JUPYTER_RUNTIME_DIR"]).glob("jpserver-*.json"))
                self.url = json.loads(file.read_text())["url"].rstrip("/")
                return
            time.sleep(0.1)
        raise RuntimeError(f"JupyterLab did not start:\n{log.read_text(errors='replace')[-3000:]}")

    def _stop_server(self) -> None:
        if not hasattr(self, "_server"):
            return
        self._server.send_signal(signal.SIGTERM)  # it ends its kernels first
        try:
            self._server.wait(15)
        except subprocess.TimeoutExpired:
            self._server.kill()
            self._server.wait()
        for process in self.processes():
            with contextlib.suppress(psutil.Error):
                process.kill()

    def processes(self, *words: str) -> list[psutil.Process]:
        """Living processes of this JupyterLab, orphans included, whose command line holds all
        `words`.
        """
        found = []
        for process in psutil.process_iter():
            with contextlib.suppress(psutil.Error):
                ours = process.environ().get("HOME") == self._env["HOME"]
                if (
                    ours
                    and process.status() != psutil.STATUS_ZOMBIE
                    and set(words) <= set(process.cmdline())
                ):
                    found.append(process)
        return found

    def copy(self, path: Path) -> Path:
        """Copy a notebook, and the modules next to it, into the lab."""
        target = self.notebooks / path.name
        if path != target:
            for file in (path, *path.parent.glob("*.py")):
                shutil.copy(file, self.notebooks)
            lessons = path.parent / "lessons"
            if lessons.is_dir():
                shutil.copytree(lessons, self.notebooks / "lessons", dirs_exist_ok=True)
        return target

    def open(
        self,
        path: str | Path,
        width=1280,
        height=900,
        theme="light",
        page: Page | None = None,
    ) -> Book:
        """Copy a notebook, and the modules beside it, into the lab and open it in a page of its
        own; nothing is run.

        Args:
            path: the notebook.
            width, height: of the window, in CSS pixels.
            theme: "light" or "dark".
            page: one that another notebook has left, for this one; loading JupyterLab anew takes
                seconds.
        """
        target = self.copy(Path(path))
        if page is None:
            page = self._context.new_page()
            page.set_default_timeout(1000 * PATIENCE)
            page.goto(f"{self.url}/lab/tree/{target.name}?reset&token={self.token}")
        else:
            page.evaluate(
                "path => jupyterapp.commands.execute('docmanager:open', { path }).then(() => null)",
                target.name,
            )
        page.set_viewport_size({"width": width, "height": height})
        book = Book(page, target)
        page.wait_for_selector(".jp-Notebook .jp-Cell")
        page.wait_for_function("!document.querySelector('.jp-Spinner')")
        book.wait_idle()
        book.theme(theme)
        return book


class Book:
    """A notebook open in a page of its own. Cells are counted from 0, text cells included."""

    def __init__(self, page: Page, path: Path):
        self.page, self.path = page, path

    def close(self) -> None:
        """Shut the kernel down and close the page."""
        with contextlib.suppress(Exception):
            self.page.evaluate("jupyterapp.commands.execute('kernelmenu:shutdown')")
            self.page.wait_for_timeout(300)
        self.page.close()

    def leave(self) -> Page:
        """Shut the kernel down and close the notebook as it is on the disk; the page, for another
        one.
        """
        self.command("kernelmenu:shutdown")
        self.page.evaluate("""() => {
            const book = jupyterapp.shell.currentWidget;
            book.context.model.dirty = false;
            book.close();
        }""")
        self.page.wait_for_function("!document.querySelector('.jp-Notebook')")
        return self.page

    def command(self, name: str, **arguments) -> None:
        """Run a command of JupyterLab and wait for its end."""
        self.page.evaluate(
            "([n, a]) => jupyterapp.commands.execute(n, a).then(() => null)", [name, arguments]
        )

    def cells(self) -> list[list[str]]:
        """Type and text of every cell."""
        return self.page.evaluate(
            "jupyterapp.shell.currentWidget.content.model.sharedModel.cells.map(c => [c.cell_type, "
            "c.source])"
        )

    def cell(self, number: int):
        return self.page.locator(".jp-Notebook .jp-Cell").nth(number)

    def prompt(self, number: int) -> str:
        """The prompt of a code cell: "[ ]:", "[*]:" or "[n]:"; if its code is folded away, "[n]:"
        once it has run.
        """
        folded = self.cell(number).locator(".jp-Placeholder-prompt")
        if folded.count():
            cells = "jupyterapp.shell.currentWidget.content.model.cells"
            return f"[{self.page.evaluate(f'{cells}.get({number}).executionCount') or ' '}]:"
        return self.cell(number).locator(".jp-InputPrompt").inner_text().strip()

    def output(self, number: int) -> str:
        """The text that a cell printed."""
        return self.cell(number).locator(".jp-OutputArea").inner_text().strip()

    def box(self, number: int):
        """The widget in the output of a cell."""
        return self.cell(number).locator(".gemmlab")

    def still(self, number: int):
        """The static picture in the output of a cell."""
        again = ".jp-OutputArea-child:has(.gemmlab-again)"
        return self.cell(number).locator(f"{again} + .jp-OutputArea-child")

    def wait_idle(self) -> None:
        """Wait until the kernel is ready. The execution indicator says so too early, the status bar
        does not.
        """
        self.page.wait_for_function(
            "/\\| Idle/.test(document.querySelector('#jp-main-statusbar')?.textContent)"
        )

    def run_all(self, seconds: float = 2 * PATIENCE) -> None:
        """Run all cells and wait for the last. Raises at the first cell that fails."""
        self.page.evaluate("void jupyterapp.commands.execute('notebook:run-all-cells')")
        self.wait_ran(seconds=seconds)

    def wait_ran(self, *numbers: int, seconds: float = 2 * PATIENCE) -> None:
        """Wait until the code cells `numbers` (by default all) have run. Raises at the first that
        fails.
        """
        numbers = numbers or [
            n for n, (kind, text) in enumerate(self.cells()) if kind == "code" and text.strip()
        ]
        late = time.monotonic() + seconds
        while not self.page.evaluate(RAN, numbers):
            self.page.wait_for_timeout(200)
            if time.monotonic() > late:
                raise TimeoutError(f"cells still at {[self.prompt(number) for number in numbers]}")
            self.raise_errors()
        self.raise_errors()

    def raise_errors(self) -> None:
        error = self.page.locator('[data-mime-type="application/vnd.jupyter.error"]')
        if error.count():
            raise RuntimeError(f"a cell failed:\n{error.first.inner_text()}")

    def select(self, number: int) -> None:
        """Make a cell the active one, without touching its output."""
        self.page.evaluate(
            "n => { const b = jupyterapp.shell.currentWidget.content; b.deselectAll(); "
            "b.activeCellIndex = n; }",
            number,
        )

    def run(self, number: int) -> None:
        """Start one cell, and do not wait."""
        self.select(number)
        self.page.evaluate("void jupyterapp.commands.execute('notebook:run-cell')")

    def control(self, number: int, name: str):
        """The handle of a slider, by its label."""
        return self._row(number, name).locator(".noUi-handle")

    def value(self, number: int, name: str) -> str:
        """What a slider's readout says."""
        return self._row(number, name).locator(".widget-readout").text_content().strip()

    def values(self, number: int) -> str:
        """What all controls say, in the words of a panel's data-key."""
        return self.box(number).evaluate(VALUES)

    def show_all(self, number: int) -> None:
        """Open what an explorer folds away."""
        fold = self.box(number).locator(".gemmlab-fold:not(.mod-active)")
        if fold.count():
            fold.click()
        self.control(number, "K").wait_for(state="visible")  # the kernel opens it

    def _row(self, number: int, name: str):
        return self.box(number).locator(f'.widget-hslider:has(.widget-label:text-is("{name}"))')

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
        return self.box(number).locator(".widget-hslider > .widget-label").all_text_contents()

    def move(self, number: int, name: str) -> dict[str, str]:
        """Move a slider by one, by key; what the panel then shows.

        A parameter goes to the right unless it is at its end, a size to the left: a smaller product
        is never too slow. Waits until the panel's key is what all the sliders say, with another
        value for this one.
        """
        handle, old = self.control(number, name), self.value(number, name)
        if not handle.is_visible():
            self.show_all(number)
            handle.wait_for(state="visible")
        handle.focus()
        least, place, most = (
            float(handle.get_attribute(f"aria-value{what}")) for what in ("min", "now", "max")
        )
        left = place > least if name in ("M", "N", "K") else place == most
        self.page.keyboard.press("ArrowLeft" if left else "ArrowRight")

        def arrived() -> bool:
            return self.value(number, name) != old and self.shown(number)["key"] == self.values(
                number
            )

        try:
            self.wait_until(arrived)
        except TimeoutError:
            shown, values = self.shown(number), self.values(number)
            raise TimeoutError(
                f"{name} was {old}; the sliders say {values!r}, the panel shows {shown}"
            ) from None
        return self.shown(number)

    def wait_key(self, number: int, key: str) -> dict[str, str]:
        """Wait for the result of the settings `key`; its data attributes and text."""
        try:
            self.wait_until(lambda: self.shown(number)["key"] == key)
        except TimeoutError:
            raise TimeoutError(
                f"waited for {key!r}, and the panel shows {self.shown(number)}"
            ) from None
        return self.shown(number)

    def wait_until(self, true, seconds: float = PATIENCE) -> None:
        """Wait until `true()` is."""
        late = time.monotonic() + seconds
        while not true():
            if time.monotonic() > late:
                raise TimeoutError(f"waited {seconds:g} s in vain")
            # looking all the time would slow down what is waited for
            self.page.wait_for_timeout(100)

    def busy(self, number: int) -> bool:
        """Whether an explorer says that it is compiling or running."""
        return self.box(number).get_by_text("…").count() > 0

    def shown(self, number: int) -> dict[str, str]:
        """The data attributes of the result shown, its text, and the note below it (empty before
        the first).
        """
        found = self.box(number).evaluate(
            """box => {
                const said = box.querySelector("[data-key]");
                const note = box.querySelector(".gemmlab-note.gemmlab-said")?.innerText ?? "";
                const text = said?.closest(".gemmlab-result").innerText;
                return said ? {...said.dataset, note, text} : {};
            }"""
        )
        return {"key": "", "state": "", "count": "0", "text": "", "note": "", **found}

    def theme(self, name: str) -> None:
        """Switch to the light or the dark theme."""
        self.command("apputils:change-theme", theme=f"JupyterLab {name.capitalize()}")
        self.page.wait_for_function(
            "light => document.body.dataset.jpThemeLight == light",
            arg="true" if name == "light" else "false",
        )

    def sidebar(self, shown: bool) -> None:
        """Show or hide the file browser, which takes a third of a narrow window."""
        self.page.evaluate(f"jupyterapp.shell.{'expandLeft' if shown else 'collapseLeft'}()")
        self.settle()

    def resize(self, width: int, height: int = 900) -> None:
        self.page.set_viewport_size({"width": width, "height": height})
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


# Whether code cells have run, by their prompts; where the code is folded away there is none.
RAN = """numbers => {
    const cells = document.querySelectorAll(".jp-Notebook .jp-Cell");
    const { model } = jupyterapp.shell.currentWidget.content;
    return numbers.every(n => cells[n].querySelector(".jp-Placeholder-prompt")
        ? model.cells.get(n).executionCount
        : /^\\[\\d+\\]:$/.test(cells[n].querySelector(".jp-InputPrompt").textContent.trim()));
}"""

# What all controls of a widget say, in the order of the panel's key.
VALUES = """box => {
    const key = box.querySelector("[data-key]")?.dataset.key ?? "";
    const order = key.split(" ").map((pair) => pair.split("=")[0]);
    const words = { yes: "True", no: "False", on: "1", off: "0" };
    const labels = ".widget-hslider > .widget-label, .gemmlab-words > .widget-label";
    return [...box.querySelectorAll(labels)].map(label => {
        const row = label.closest(".widget-hslider, .gemmlab-words");
        const said = row.querySelector(".widget-readout, button.mod-active").textContent.trim();
        return [label.textContent, row.matches(".gemmlab-words") ? words[said] ?? said : said];
    }).sort(([one], [two]) => order.indexOf(one) - order.indexOf(two))
        .map((pair) => pair.join("=")).join(" ");
}"""
