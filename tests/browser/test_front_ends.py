"""The first minute in JupyterLab and in Notebook 7; chapter 03 in Notebook 7 and in Voila: its explorer
answers a move by key.
"""

import contextlib
import re
from pathlib import Path

import pytest
from lab import PATIENCE, started
from playwright.sync_api import TimeoutError

pytestmark = pytest.mark.system

CHAPTER = Path(__file__).resolve().parents[2] / "notebooks" / "03_work_per_thread.ipynb"
FIRST = CHAPTER.with_name("00_start_here.ipynb")
#: What a reader changes first, on a CPU and on a GPU: in which cell, and what becomes what.
ON_A_CPU = re.compile("%%gemm 11 "), {"RX=1 RY=1 WIDTH=1": "RX=16 RY=6 WIDTH=8"}
ON_A_GPU = re.compile("%%gemm 1(?!1)"), {"m = get_global_id(1": "m = get_global_id(0",
                                         "n = get_global_id(0": "n = get_global_id(1"}  # fmt: skip


@pytest.fixture(scope="module")
def lab(caches):
    """One server: Notebook and Voila are extensions of it, as JupyterLab is."""
    with started("pocl", caches=caches) as lab:
        lab.copy(CHAPTER)
        yield lab


def edit(page, cell, old: str, new: str) -> None:
    """Replace a part of a line in a cell, by mouse and keys."""
    line = cell.locator(".cm-line", has_text=old).first
    place = line.inner_text().index(old)
    line.click()
    for key in ("Home", "Home", *["ArrowRight"] * place, *["Shift+ArrowRight"] * len(old)):
        page.keyboard.press(key)
    page.keyboard.insert_text(new)


@pytest.mark.parametrize("instruction", [ON_A_CPU, ON_A_GPU], ids=["on a CPU", "on a GPU"])
@pytest.mark.parametrize("front_end", ["lab/tree", "notebooks"])
def test_the_first_instruction_of_the_first_chapter_succeeds(lab, front_end, instruction):
    """In a fresh kernel, before any cell has run."""
    page = lab.browser.new_page()
    page.set_default_timeout(1000 * PATIENCE)
    page.goto(f"{lab.url}/{front_end}/{FIRST.name}?token={lab.token}")
    text, edits = instruction
    cell = page.locator(".jp-CodeCell", has_text=text).first
    cell.wait_for()
    while not has_a_kernel(page, lab):
        page.wait_for_timeout(200)
    for old, new in edits.items():
        edit(page, cell, old, new)
    page.keyboard.press("Shift+Enter")
    printed = "[data-mime-type$=error], [data-mime-type$=stderr]"
    answer = cell.locator(f".jp-OutputArea [data-state], {printed}").first
    answer.wait_for()
    assert answer.get_attribute("data-state") == "ok", answer.inner_text()
    assert "GFLOPS" in answer.inner_text()
    page.close()


def has_a_kernel(page, lab) -> bool:
    """Whether a page is connected to a kernel; while one starts, the server may answer an error."""
    answer = page.request.get(f"{lab.url}/api/kernels?token={lab.token}")
    return answer.ok and any(kernel["connections"] for kernel in answer.json())


@pytest.mark.parametrize("front_end", ["notebooks", "voila/render"])
def test_the_explorer_of_a_chapter_answers(lab, front_end):
    page = lab.browser.new_page()
    page.set_default_timeout(2000 * PATIENCE)
    page.goto(f"{lab.url}/{front_end}/{CHAPTER.name}?token={lab.token}")
    prompts = page.locator(".jp-InputPrompt")
    if front_end == "notebooks":
        # until the page has a kernel, Run All does nothing, or asks for one
        while not has_a_kernel(page, lab):
            page.wait_for_timeout(200)
        page.locator(".jp-Notebook-ExecutionIndicator[data-status=idle]").wait_for()
    instrument = page.locator(".gemmlab-instrument")
    answer = instrument.locator("[data-state=ok]")
    for attempt in range(3):  # a busy page may lose a Run All, and Voila the first message
        if front_end == "notebooks":
            page.get_by_role("menuitem", name="Run").click()
            page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        elif attempt:
            page.reload()
        with contextlib.suppress(TimeoutError):
            answer.wait_for(timeout=500 * PATIENCE)
            break
    assert answer.count(), page.inner_text("body")[-3000:]
    while prompts.filter(has_text="[*]").count():  # until then, the focus moves from cell to cell
        page.wait_for_timeout(200)
    start = answer.get_attribute("data-key")
    cells = page.locator(".jp-Cell").count()
    for key in ("d", "d", "ArrowLeft"):  # the first two delete a cell, if they are not kept
        instrument.get_by_role("slider", name="TS").press(key)
    moved = instrument.locator(f"[data-state=ok]:not([data-key='{start}'])")
    moved.wait_for()
    assert "GFLOPS" in moved.inner_text() and page.locator(".jp-Cell").count() == cells
    page.close()
