"""The browser's GPU in a real JupyterLab: Chromium's own, which its CPU plays."""

import re

import pytest
from conftest import lacking
from lab import CHROMIUM, browser_path, notebook, opened, started

from gemmlab.ladder import sources

pytestmark = pytest.mark.system

WEBGPU = "--enable-unsafe-webgpu"  # on Linux, Chromium offers pages no GPU without it
#: The page keeps the devices that it opens, for the test to destroy them.
KEEP = """() => {
    const open = GPUAdapter.prototype.requestDevice;
    GPUAdapter.prototype.requestDevice = async function (...given) {
        const device = await open.apply(this, given);
        (window.opened ??= []).push(device);
        return device;
    };
}"""


@pytest.fixture(scope="module")
def lab():
    if browser_path() is None:
        lacking("no Chromium")
    with opened(WEBGPU) as browser, started(browser=browser) as lab:
        yield lab


KERNEL = sources.read("03_work_per_thread.cl")
EXPLORER, WRONG, LOOP, RIGHT = range(1, 5)


def cell(old: str, new: str) -> str:
    """A cell with the part of kernel 3 that computes, edited."""
    part = sources.part(KERNEL, "compute")
    assert old in part
    return f"%%gemm 3 M=128 part=compute device=browser\n{part.replace(old, new)}"


def below(book, number: int) -> str:
    """What is below the bar of a rate: there with the device."""
    facts = book.box(number).locator(".gemmlab-facts-below")
    return facts.inner_text() if facts.count() else ""


def test_the_explorer_and_the_magic_on_the_browsers_gpu(lab):
    """A first answer, a move, another device and back; edits with an error, a loop, and neither."""
    book = lab.open(
        notebook(
            lab.notebooks / "explorer.ipynb",
            "%load_ext gemmlab\nimport gemmlab",
            'gemmlab.Explorer(3, 128, device="browser")',
            cell("a *", "aa *"),
            cell("k++", "k += 0"),
            cell("a *", "a * 1.0f *"),
        )
    )
    book.run(0)
    book.wait_ran(0)

    def answered(number: int, key: str) -> dict[str, str]:
        return book.wait_key(number, f"{key} M=128 N=128 K=128")

    book.page.evaluate(KEEP)
    book.run(EXPLORER)
    first = answered(EXPLORER, "TS=32 WPT=8")
    assert first["state"] == "ok" and "swiftshader" in first["text"]
    assert "this browser, GFLOPS" in book.box(EXPLORER).inner_text()
    book.press(EXPLORER, "TS", "ArrowLeft")
    moved = answered(EXPLORER, "TS=24 WPT=8")
    assert moved["state"] == "ok" and "your start" in moved["text"]

    book.page.evaluate("opened.at(-1).destroy()")
    book.wait_until(lambda: "The next product opens it again." in book.box(EXPLORER).inner_text())
    book.press(EXPLORER, "TS", "ArrowRight")
    assert answered(EXPLORER, "TS=32 WPT=8")["state"] == "ok"
    book.wait_until(lambda: "was opened again" in book.box(EXPLORER).inner_text())

    states = [(WRONG, "refused", "aa"), (LOOP, "refused", "line "), (RIGHT, "ok", "")]
    for number, state, words in states:
        book.run(number)
        shown = answered(number, "TS=32 WPT=8")
        assert shown["state"] == state and words in shown["text"].lower(), shown
        assert state == "ok" or re.search(r"line \d+:", shown["text"].lower())

    devices = book.box(EXPLORER).locator("select").first
    if devices.locator("option").count() > 1:  # this machine has OpenCL, too
        browser = {"label": "this browser's GPU"}
        for choice, name in (({"index": 0}, "("), (browser, "swiftshader")):
            devices.select_option(**choice)
            book.wait_until(lambda name=name: name in below(book, EXPLORER))
    book.close()


def test_without_an_adapter_the_panel_says_what_helps(lab):
    chromium = lab.browser.browser_type.launch(executable_path=browser_path(), args=CHROMIUM)
    cells = "import gemmlab", 'gemmlab.Explorer(3, 128, device="browser")'
    none = notebook(lab.notebooks / "none.ipynb", *cells)
    book = lab.open(none, page=lab.load(chromium))
    for number in range(2):
        book.run(number)
        book.wait_ran(number)
    book.wait_until(lambda: book.shown(1)["state"] == "page")
    shown = book.shown(1)["text"]
    assert "offers no GPU" in shown and "chrome://flags" in shown
    book.close()
    chromium.close()
