"""Chromium for the tests of pages, with the GPU that its CPU plays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from browser.lab import browser_path, opened
from conftest import lacking

WEBGPU = "--enable-unsafe-webgpu"  # on Linux, Chromium offers pages no GPU without it


@contextlib.contextmanager
def chromium(*flags: str) -> Iterator:
    """A browser, from `with` to its end; without one the test is skipped."""
    if browser_path() is None:
        lacking("no Chromium")
    with opened(*flags) as browser:
        yield browser
