"""Find the OpenCL C files and read them; the recorded results lie beside them."""

from __future__ import annotations

import difflib
from functools import cache
from pathlib import Path

_HERE = Path(__file__).resolve().parent


def folder(name: str = "kernels") -> Path:
    """A folder of data (kernels or results): inside an installed package, or beside it in a checkout."""
    for place in (_HERE / name, _HERE.parent / name):
        if place.is_dir():
            return place
    raise FileNotFoundError(
        f"gemmlab's {name} are neither in {_HERE / name} nor in {_HERE.parent / name}; the installation is incomplete"
    )


@cache
def read(file: str) -> str:
    """The text of one kernel file, for example ``read("03_work_per_thread.cl")``."""
    return (folder() / file).read_text(encoding="utf-8")


def body(text: str) -> str:
    """A kernel's text without its header: from the first line that is no comment."""
    lines = text.strip().splitlines()
    start = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("//")), 0)
    return "\n".join(lines[start:])


def diff(old: str, new: str, context: int = 2) -> str:
    """A unified diff of two kernel texts without their headers: what a step of the ladder changes."""
    old_lines, new_lines = ([line for line in body(x).splitlines() if line.strip()] for x in (old, new))
    lines = list(difflib.unified_diff(old_lines, new_lines, lineterm="", n=context))
    return "\n".join(lines[2:])  # without the names of the files
