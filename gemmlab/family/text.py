"""Blocks of OpenCL C with gaps, and lines that remember who wrote them.

A block is C as one would write it by hand; a gap is a word after a dollar sign, which C itself does not use. Python's
`string.Template` fills a gap within a line; a gap that stands alone in its line takes any number of lines, none
included, and indents them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from string import Template
from textwrap import dedent


class Line(str):
    """A line of a text; `writer` is the function that wrote it, as "module.function"."""

    writer: str

    @classmethod
    def by(cls, writer: str, line: str) -> Line:
        made = cls(line)
        made.writer = line.writer if isinstance(line, Line) else writer  # the innermost function keeps the credit
        return made


Lines = list[str]


class Text(str):
    """A kernel's text; `writers` has for each of its lines the function that wrote it, as "module.function"."""

    writers: tuple[str, ...]

    @classmethod
    def of(cls, lines: Lines) -> Text:
        made = cls("\n".join(lines) + "\n")
        made.writers = tuple(Line.by("", line).writer for line in lines)
        return made


def fill(block: str, **gaps: str | int | Iterable[str]) -> Lines:
    """The lines of a block, with its gaps filled.

    Args:
        block: C with gaps, indented as the Python around it.
        gaps: for each gap what to put there: a word, or lines where the gap stands alone in its line.
    """
    lines: Lines = []
    for line in dedent(block).strip("\n").splitlines():
        gap = line.strip().removeprefix("$")
        if line.strip().startswith("$") and not isinstance(gaps.get(gap, ""), (str, int)):
            indent = line[: len(line) - len(line.lstrip())]
            lines += [_indented(indent, inner) for inner in gaps[gap]]  # type: ignore[union-attr]
        else:
            lines.append(Template(line).substitute(gaps))
    return lines


def _indented(indent: str, line: str) -> str:
    moved = indent + line if line else ""
    return Line.by(line.writer, moved) if isinstance(line, Line) else moved


def writes(function: Callable[..., Lines]) -> Callable[..., Lines]:
    """A decorator: the lines that a function returns remember it, unless another wrote them before."""
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"

    @wraps(function)
    def signed(*args, **options) -> Lines:
        return [Line.by(name, line) for line in function(*args, **options)]

    return signed
