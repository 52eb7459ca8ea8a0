"""Kernels that are no matrix products, right ones and ones with a mistake, to judge what is found.

In corpus/*.txt a kernel begins with `=== name | launch`: sizes and arguments as on the command line
of clscope. A mistake of it begins with `--- name | lines | kinds`: parts of the lines to blame, as
a race has two ends, and the kinds of findings that name it. Then come edits: `old --> new` for the
first occurrence, `old ==> new` for all.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import clscope
from clscope.__main__ import arguments

FOLDER = Path(__file__).with_name("corpus")


class Case(NamedTuple):
    """A kernel with its launch; `lines` and `kinds` of a right one are empty."""

    name: str
    text: str
    launch: tuple[int, ...]
    group: tuple[int, ...]
    values: dict[str, str]
    lines: frozenset[int] = frozenset()
    kinds: frozenset[str] = frozenset()

    @property
    def arguments(self) -> list[Any]:
        """The kernel's arguments for `clscope.run`."""
        kernels = (f for f in clscope.parse(self.text).functions if f.kernel)
        return arguments(next(kernels), self.values.items())

    def run(self, **options: Any) -> clscope.Run:
        return clscope.run(self.text, None, self.launch, self.group, self.arguments, **options)


def edited(text: str, line: str) -> str:
    """The text after an edit, as a line of a file says it."""
    all_places = "  ==>" in line
    old, _, new = (
        part.replace("\\n", "\n") for part in line.partition("  ==>" if all_places else "  -->")
    )
    assert old in text, f"{old!r} is not in the text"
    return text.replace(old, new.strip(), -1 if all_places else 1)


def numbered(text: str, parts: str) -> frozenset[int]:
    """The numbers of the lines that contain one of these parts."""
    lines = [part.strip() for part in parts.split(";") if part.strip()]
    return frozenset(
        i for i, line in enumerate(text.split("\n"), 1) if any(p in line for p in lines)
    )


def read(name: str) -> tuple[list[Case], list[Case]]:
    """The kernels of a file, and their mistakes."""
    kernels, mistakes = [], []
    for block in (FOLDER / name).read_text().split("=== ")[1:]:
        whole, *edits = block.split("\n--- ")
        head, _, text = whole.partition("\n")
        title, _, launch = head.partition(" | ")
        values = dict(word.split("=") for word in launch.split())
        sizes = [tuple(map(int, values.pop(key).split(","))) for key in ("global", "local")]
        kernel = Case(title, text.strip() + "\n", *sizes, values)
        kernels.append(kernel)
        for edit in edits:
            head, *lines = edit.strip().split("\n")
            what, parts, kinds = head.split(" | ")
            changed = kernel.text
            for line in lines:
                changed = edited(changed, line)
            case = kernel._replace(name=f"{title}: {what}", text=changed)
            kinds = frozenset(kinds.split("|"))
            mistakes.append(case._replace(lines=numbered(changed, parts), kinds=kinds))
    return kernels, mistakes


_BASES, MISTAKES = read("mistakes.txt")
RIGHT = [*_BASES, *read("right.txt")[0]]
