"""Find the OpenCL C files and read them; the recorded results are found the same way."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path

from ..caches import cached

_PACKAGE = Path(__file__).resolve().parent.parent


def folder(name: str = "kernels") -> Path:
    """A folder of data (kernels or results): inside an installed package, or beside it in a checkout."""
    for place in (_PACKAGE / name, _PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise FileNotFoundError(
        f"gemmlab's {name} are neither in {_PACKAGE / name} nor in {_PACKAGE.parent / name}; "
        "the installation is incomplete"
    )


def own_folder() -> Path:
    """Where files of the user's own go: landscapes, tries, progress. ``~/.local/share/gemmlab`` on Linux, for example.

    The environment variable GEMMLAB_DATA names another folder.
    """
    from platformdirs import user_data_path  # only who keeps files of their own needs it

    return Path(os.environ.get("GEMMLAB_DATA") or user_data_path("gemmlab", appauthor=False))


@cached(64)
def read(file: str) -> str:
    """The text of one kernel file, such as ``read("03_work_per_thread.cl")`` or ``read("support/pad.cl")``."""
    return (folder() / file).read_text(encoding="utf-8")


def body(text: str) -> str:
    """A kernel's text without its header: from the first line that is no comment."""
    lines = text.strip().splitlines()
    start = next((i for i, line in enumerate(lines) if line.strip() and not line.startswith("//")), 0)
    return "\n".join(lines[start:])


def part(text: str, name: str) -> str:
    """A part of a kernel's text: from the comment that begins with `name` to the next empty line or the block's end.

    Args:
        text: of a kernel.
        name: the first word of a comment, such as "compute"; or two of them, "load-compute", for all from the first
            part to the second.

    Raises:
        ValueError: if no comment, or more than one, begins so.
    """
    lines = text.splitlines()
    first, _, last = name.partition("-")
    return "\n".join(lines[_begin(lines, first) : _end(lines, _begin(lines, last or first))])


def _begin(lines: list[str], word: str) -> int:
    """The number of the line with the comment that begins with this word."""
    found = [i for i, line in enumerate(lines) if re.match(rf"\s+// {re.escape(word)}\b", line)]
    if len(found) != 1:
        raise ValueError(f"part={word} must be the first word of one comment of the kernel; {len(found)} begin so")
    return found[0]


def _end(lines: list[str], begin: int) -> int:
    """The number of the first line after `begin` that is empty, or less indented."""
    margin = len(lines[begin]) - len(lines[begin].lstrip())
    return next(i for i in range(begin, len(lines)) if len(lines[i]) - len(lines[i].lstrip()) < margin)


def without_rules(text: str) -> str:
    """A kernel's text without `#if !(rule)` and its error, and without `#ifndef` around a parameter's default."""
    text = re.sub(r"#if !\(.*\n#error .*\n#endif\n", "", text)
    return re.sub(r"#ifndef (\w+)\n(#define \1 .*\n)#endif\n", r"\2", text)


def code_lines(text: str) -> int:
    """How many lines of a kernel's text are code: no comments, empty lines or rules; one for each parameter."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", without_rules(text), flags=re.S)
    return sum(bool(line.strip()) for line in code.splitlines())


def diff(old: str, new: str, context: int = 2) -> str:
    """A unified diff of two kernel texts without their headers: what a step of the ladder changes."""
    old_lines, new_lines = ([line for line in body(x).splitlines() if line.strip()] for x in (old, new))
    lines = list(difflib.unified_diff(old_lines, new_lines, lineterm="", n=context))
    return "\n".join(lines[2:])  # without the names of the files
