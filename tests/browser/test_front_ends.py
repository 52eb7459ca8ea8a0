"""Chapter 01 in Notebook 7 and in Voila: its explorer answers a move by key."""

from pathlib import Path

import pytest
from lab import PATIENCE
from start import started

pytestmark = pytest.mark.system

CHAPTER = Path(__file__).resolve().parents[2] / "notebooks" / "01_naive.ipynb"


@pytest.mark.parametrize("front_end", ["notebooks", "voila/render"])
def test_the_explorer_of_a_chapter_answers(caches, front_end):
    with started(caches=caches, idle=False) as lab:
        lab.copy(CHAPTER)
        page = lab.browser.new_page()
        page.set_default_timeout(2000 * PATIENCE)
        page.goto(f"{lab.url}/{front_end}/{CHAPTER.name}?token={lab.token}")
        if front_end == "notebooks":
            page.get_by_role("menuitem", name="Run").click()
            page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        instrument = page.locator(".gemmlab-instrument")
        answer = instrument.locator("[data-key]")
        answer.wait_for()
        before = answer.get_attribute("data-key")
        handle = instrument.locator(".noUi-handle").first
        handle.focus()
        page.keyboard.press("ArrowLeft")
        moved = instrument.locator(f"[data-state=ok]:not([data-key='{before}'])")
        moved.wait_for()
        assert "GFLOPS" in moved.inner_text()
        assert "No kernel runs" not in page.locator("body").inner_text()
        page.close()
