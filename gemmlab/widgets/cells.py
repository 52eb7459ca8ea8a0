"""Notebook cells of OpenCL C: their code, and what is kept while a reader edits them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from IPython import get_ipython

from ..ladder import KernelSpec
from ..ladder.spec import Limits

#: A line of a hole, before anybody has written there.
HOLE = "// your lines"
SIZE_NAMES = ("M", "N", "K")


@dataclass
class Kept:
    """What outlives a run of a cell, as long as the kernel of the notebook runs.

    Attributes:
        moved: settings that differ from those of the first line.
        device: the index of a device or "browser", if a person chose one.
        unfolded, stepping: whether the other settings and the stepper are open.
        hole: the code of an exercise, as it was before anybody wrote there.
    """

    moved: dict[str, int] = field(default_factory=dict)
    device: int | str | None = None
    unfolded: bool = False
    stepping: bool = False
    hole: str = ""


_kept: dict[tuple[str, str, str], Kept] = {}


@dataclass(frozen=True)
class Cell:
    """A cell of OpenCL C.

    Attributes:
        id: that of the notebook's cell; empty where the front end sends none.
        code: its text below the first line.
        source: that of the kernel with this code in it.
        original: what the kernel has in its place.
        part: the part of the kernel that it holds, or empty for the whole.
        lines: those of the kernel that the code takes, if it is a part.
        named: the settings that its first line names.
    """

    id: str
    code: str
    source: str
    original: str
    part: str = ""
    lines: range | None = None
    named: frozenset[str] = frozenset()

    @property
    def kept(self) -> Kept:
        if not self.id:
            return Kept()
        kept = _kept.setdefault((self.id, self.part, self.original), Kept())
        if HOLE in self.code:
            kept.hole = self.code
        return kept

    @property
    def first(self) -> str:
        """The code to return to: the kernel's own, or an exercise with its hole."""
        return self.kept.hole or self.original

    def restore(self, spec: KernelSpec, start: Mapping[str, int], limits: Limits) -> dict[str, int]:
        """Return the settings of the first line with those that a person had moved, if legal."""
        sizes = SIZE_NAMES if self.named & {*SIZE_NAMES} else ()
        fixed = {*self.named, *sizes}
        moved = {n: v for n, v in self.kept.moved.items() if n in start and n not in fixed}
        values = {**start, **moved}
        params = {name: values[name] for name in spec.defaults}
        latest = next((name for name in spec.defaults if name in fixed), next(iter(params)))
        near, _ = spec.nearest_legal(params, latest, limits)
        return {**values, **near} if not spec.problems(near, limits) else dict(start)


def running_cell() -> str:
    """Return the id of the notebook cell that runs; empty where the front end sends none."""
    shell: Any = get_ipython()
    parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
    return parent.get("metadata", {}).get("cellId", "")
