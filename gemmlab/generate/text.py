"""Templates of OpenCL C, and texts that remember which function wrote each of their lines.

A template is C as one would write it by hand, with gaps: a dollar sign, which C does not use, and a
word. Python's `string.Template` fills a gap within a line. A gap that stands alone on its line
takes any number of lines, including none, and indents them.
"""

from __future__ import annotations

from collections.abc import Iterable
from string import Template
from textwrap import dedent

Lines = list[str]


class Text(str):
    """A kernel's text; `writers` names for each line the function that wrote it, as
    "module.function".
    """

    writers: tuple[str, ...]


def fill(template: str, **gaps: str | int | Iterable[str]) -> Lines:
    """Return the lines of a template, indented like the Python code around it, with its gaps
    filled.
    """
    lines: Lines = []
    for line in dedent(template).strip("\n").splitlines():
        content = gaps.get(line.strip().removeprefix("$"), "")
        if line.strip().startswith("$") and not isinstance(content, (str, int)):
            lines += indented(content, line[: len(line) - len(line.lstrip())])
        else:
            lines.append(Template(line).substitute(gaps))
    return lines


def indented(lines: Iterable[str], by: str = "    ") -> Lines:
    """Return the lines further to the right; empty ones stay empty."""
    return [by + line if line else "" for line in lines]


def times(expression: str, factor: int) -> str:
    """Return an expression in C times a factor, which is left out if it is 1."""
    return expression if factor == 1 else f"{expression}*{factor}"


def over(expression: str, divisor: int) -> str:
    """Return an expression in C over a divisor, which is left out if it is 1."""
    return expression if divisor == 1 else f"{expression}/{divisor}"
