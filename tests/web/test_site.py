"""The site in Chromium, from a folder, on the GPU that its CPU plays."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from conftest import lacking

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.system


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    sys.path.insert(0, str(ROOT / "site"))
    from build import build

    folder = tmp_path_factory.mktemp("site")
    return folder, build(folder, None)


@pytest.fixture(scope="module")
def browser():
    sync = pytest.importorskip("playwright.sync_api")
    path = "/usr/bin/chromium"
    if not os.path.exists(path):
        lacking("no Chromium")
    with sync.sync_playwright() as p:
        # without the flag, Chromium on Linux offers pages no GPU: for the last test
        flags = {"gpu": ["--no-sandbox", "--enable-unsafe-webgpu"], "none": ["--no-sandbox"]}
        yield lambda kind: p.chromium.launch(executable_path=path, args=flags[kind])


def opened(browser, folder, requests):
    page = browser.new_page()
    page.on("request", lambda r: requests.append(r.url))
    page.on("pageerror", lambda e: requests.append(f"error: {e}"))
    page.goto((folder / "index.html").as_uri())
    page.wait_for_function("() => /cpu|on|off/.test(document.querySelector('#gpu').className)")
    return page


def test_the_first_page_is_small(site):
    assert sum(size for name, size in site[1].items() if name != "translator.js") < 300_000


def test_a_visitor_runs_the_kernel_and_solves_a_puzzle(site, browser):
    requests: list[str] = []
    chromium = browser("gpu")
    page = opened(chromium, site[0], requests)
    page.click("#try .run")
    page.wait_for_selector("#try .rate:not(:empty)", timeout=60_000)
    assert "elements exact" in page.inner_text("#try .words")
    page.click("#puzzle >> text=Check")
    page.wait_for_selector("#puzzle .words.bad")
    assert page.inner_text("#puzzle .words").startswith("y[0] is 0; it should be")
    page.click("text=Show a solution")
    page.click("#puzzle >> text=Check")
    page.wait_for_selector("#puzzle .words.good")
    assert all(url.startswith("file:") for url in requests), requests
    chromium.close()


def test_without_a_gpu_the_page_says_why_and_shows_the_record(site, browser):
    requests: list[str] = []
    chromium = browser("none")
    page = opened(chromium, site[0], requests)
    assert "offers no GPU" in page.inner_text("#gpu")
    page.click("#try .run")
    page.wait_for_function("() => /H200/.test(document.querySelector('#try .words').textContent)")
    assert "TFLOPS" in page.inner_text("#chart")
    chromium.close()
