"""Find the OpenCL C files and read them; the recorded results are found the same way."""

from __future__ import annotations

import difflib
import os
import re
from pathlib import Path, PurePosixPath

from ..caches import cached
from .header import PARAM, RULE, Params, evaluated

_PACKAGE = Path(__file__).resolve().parent.parent


def folder(name: str = "kernels") -> Path:
    """A folder of data (kernels or results): inside an installed package, or next to it."""
    for place in (_PACKAGE / name, _PACKAGE.parent / name):
        if place.is_dir():
            return place
    raise FileNotFoundError(
        f"gemmlab's {name} are neither in {_PACKAGE / name} nor in {_PACKAGE.parent / name}; "
        "the installation is incomplete"
    )


def own_folder() -> Path:
    """The user's files, on Linux in ``~/.local/share/gemmlab``, or in the folder that the
    environment variable GEMMLAB_DATA names. Raises OSError for a user without a home.
    """
    from platformdirs import user_data_path  # few callers need it

    try:
        return Path(os.environ.get("GEMMLAB_DATA") or user_data_path("gemmlab", appauthor=False))
    except RuntimeError as error:  # neither HOME nor an entry in the list of users
        raise OSError(f"{error}; GEMMLAB_DATA=FOLDER names a folder for your files") from error


@cached(64)
def read(file: str) -> str:
    """Return the text of a kernel file, such as "03_work_per_thread.cl" or "support/pad.cl". The
    parts that it includes replace their `#include` lines.
    """
    return _assembled(file, None)


def read_for(file: str, values: Params) -> str:
    """The text of a kernel file without the parts that these `values` of macros do not need."""
    return _assembled(file, values)


#: A part of a kernel's text, perhaps under a condition that reads the same in C and in Python.
_INCLUDE = re.compile(
    r'^(?:#if (?P<condition>.+)\n)?#include "(?P<part>[^"]+)"(?: *//.*)?\n(?(condition)#endif\n)',
    re.MULTILINE,
)


def _assembled(file: str, values: Params | None) -> str:
    def part(found: re.Match[str]) -> str:
        text = _assembled(str(PurePosixPath(file).parent / found["part"]), values)
        condition = found["condition"]
        if condition is None:
            return text
        if values is None:
            return f"#if {condition}\n{text}#endif\n"
        return text if evaluated(condition, values) else ""

    return _INCLUDE.sub(part, (folder() / file).read_text(encoding="utf-8"))


def body(text: str) -> str:
    """Return a kernel's text without its header, the comment that it begins with."""
    lines = text.strip().splitlines()
    code = (i for i, line in enumerate(lines) if not line.startswith("//"))
    return "\n".join(lines[next(code, 0) :]).strip()


def part(text: str, name: str) -> str:
    """A part of a kernel's text: from the comment that begins with the word `name`, such as
    "compute", to the end of its block; with two words, "load-compute", to the end of the second.
    Raises ValueError unless one comment begins so.
    """
    lines = text.splitlines()

    def begin(word: str) -> int:
        found = [i for i, line in enumerate(lines) if re.match(rf"\s+// {re.escape(word)}\b", line)]
        if len(found) != 1:
            raise ValueError(
                f"part={word} must be the first word of one comment of the kernel; "
                f"{len(found)} begin so"
            )
        return found[0]

    def margin(i: int) -> int:
        return len(lines[i]) - len(lines[i].lstrip())

    first, _, last = name.partition("-")
    start, end = begin(first), begin(last or first)
    after = next(i for i in range(end, len(lines)) if margin(i) < margin(end))
    return "\n".join(lines[start:after])


def with_values(text: str, params: Params | None = None) -> str:
    """Return a kernel's text with a `#define` for each parameter, by default of its default, and
    without its rules: it compiles without options. Its lines keep their numbers up to the rules.
    """

    def define(line: re.Match[str]) -> str:
        name, default, meaning, _ = line.groups()
        return f"#define {name} {(params or {}).get(name, default)} // {meaning}"

    return PARAM.sub(define, RULE.sub("", text)).rstrip() + "\n"


def code(text: str) -> str:
    """Return a kernel's text as a `%%gemm` cell needs it: without its header and its rules."""
    return body(RULE.sub("", text))


def code_lines(text: str) -> int:
    """How many lines of a kernel's text are code, not counting rules; one for each parameter."""
    code = re.sub(r"/\*.*?\*/|//[^\n]*", "", with_values(text), flags=re.DOTALL)
    return sum(bool(line.strip()) for line in code.splitlines())


def diff(old: str, new: str, context: int = 2) -> str:
    """What a step of the ladder changes in a kernel's text without its header: lines marked with -
    or +, with so many unchanged lines around each change, and a line @@ before each group of them.

    As in `diff -w`, a line that only moved to the right or to the left is unchanged.
    """
    before, after = (
        [line for line in body(text).splitlines() if line.strip()] for text in (old, new)
    )
    old_words, new_words = ([" ".join(line.split()) for line in lines] for lines in (before, after))
    matcher = difflib.SequenceMatcher(None, old_words, new_words, autojunk=False)
    changes = list[str]()
    for group in matcher.get_grouped_opcodes(context):
        changes.append("@@")
        for what, i1, i2, j1, j2 in group:
            if what == "equal":
                changes += [f" {line}" for line in after[j1:j2]]
            else:
                changes += [f"-{line}" for line in before[i1:i2]]
                changes += [f"+{line}" for line in after[j1:j2]]
    return "\n".join(changes)
