"""Kernels in files: right but unusual ones (right/), and wrong ones (wrong/).

The first line of a file names the kernel of the ladder that it takes the place of, its parameters
and the sizes of the product; the second says what is unusual, or the kind of the mistake and the
lines any of which a verdict may name. Right ones have a third line with other sizes if they
support them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
SIZES = re.compile(r"(\d+) x (\d+) x (\d+)")


@dataclass(frozen=True)
class Case:
    """A kernel of the corpus.

    Attributes:
        lines: of a wrong kernel, the lines any of which a verdict may name; empty if the mistake
            has no line.
        others: of a right kernel, other sizes that it supports.
    """

    name: str
    source: str
    kernel: int
    params: dict[str, int]
    sizes: tuple[int, ...]
    lines: frozenset[int] = frozenset()
    others: tuple[tuple[int, ...], ...] = ()

    def arguments(self, sizes: tuple[int, ...] | None = None) -> tuple:
        """The first five arguments of `trial`, `simulate` and `look`."""
        return self.kernel, *(sizes or self.sizes), self.params


def read(path: Path) -> Case:
    """The kernel in a file."""
    source = path.read_text("utf-8")
    first, second, third = source.splitlines()[:3]
    wrong = path.parent.name == "wrong"
    return Case(
        path.stem,
        source,
        int(re.match(r"// kernel (\d+), ", first)[1]),
        {name: int(value) for name, value in re.findall(r"(\w+)=(\d+)", first)},
        triples(first)[0],
        frozenset(map(int, re.findall(r"\d+", second.partition(";")[2]))) if wrong else frozenset(),
        triples(third) if third.startswith("// also ") else (),
    )


def triples(line: str) -> tuple[tuple[int, ...], ...]:
    """The sizes in a line such as `64 x 64 x 60, 16 x 24 x 5`."""
    return tuple(tuple(map(int, sizes)) for sizes in SIZES.findall(line))


def cases(folder: str) -> list:
    """The kernels of a folder as parameters of a test."""
    paths = sorted((FOLDER / folder).glob("*.cl"))
    return [pytest.param(read(path), id=path.stem) for path in paths]


def named_lines(verdict: str) -> set[int]:
    """The lines that a verdict names: "line 5", "lines 5 and 8"."""
    lists = re.findall(r"\blines? (\d+(?:(?:, | and | or |, and )\d+)*)", verdict)
    return {int(number) for numbers in lists for number in re.findall(r"\d+", numbers)}
