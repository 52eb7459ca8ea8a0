"""Templates of OpenCL C, and lines that remember which function wrote them.

A template is C as one would write it by hand, with gaps: a dollar sign, which C does not use, and a
word. Python's `string.Template` fills a gap within a line. A gap that stands alone on its line
takes any number of lines, including none, and indents them.
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
        """The line with its writer; a line that has one keeps it: the innermost function counts."""
        signed = cls(line)
        signed.writer = line.writer if isinstance(line, Line) else writer
        return signed


Lines = list[str]


class Text(str):
    """A kernel's text; `writers` names for each line the function that wrote it."""

    writers: tuple[str, ...]

    @classmethod
    def of(cls, lines: Lines) -> Text:
        text = cls("\n".join(lines) + "\n")
        text.writers = tuple(Line.by("", line).writer for line in lines)
        return text


def fill(template: str, **gaps: str | int | Iterable[str]) -> Lines:
    """The lines of a template, indented like the Python code around it, with its gaps filled."""
    lines: Lines = []
    for line in dedent(template).strip("\n").splitlines():
        content = gaps.get(line.strip().removeprefix("$"), "")
        if line.strip().startswith("$") and not isinstance(content, (str, int)):
            indent = line[: len(line) - len(line.lstrip())]
            lines += [_indented(indent, inner) for inner in content]
        else:
            lines.append(Template(line).substitute(gaps))
    return lines


def _indented(indent: str, line: str) -> str:
    moved = indent + line if line else ""
    return Line.by(line.writer, moved) if isinstance(line, Line) else moved


def writes(function: Callable[..., Lines]) -> Callable[..., Lines]:
    """A decorator: signs the lines that a function returns, unless another one has signed them."""
    name = f"{function.__module__.rpartition('.')[2]}.{function.__name__}"

    @wraps(function)
    def signed(*args, **options) -> Lines:
        return [Line.by(name, line) for line in function(*args, **options)]

    return signed


def times(expression: str, factor: int) -> str:
    """An expression in C times a factor, which is left out if it is 1."""
    return expression if factor == 1 else f"{expression}*{factor}"


def over(expression: str, divisor: int) -> str:
    """An expression in C over a divisor, which is left out if it is 1."""
    return expression if divisor == 1 else f"{expression}/{divisor}"
