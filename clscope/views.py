"""What pictures and chapters ask of a run: its steps, the accesses of an array, of a warp, of a
work-item.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from .api import Run
from .count import Counts, cost
from .wave import WARP, Entry


class Step(NamedTuple):
    """One execution of a line by a work-group, or by one of its warps: what happens at once.

    Multiply-adds of a line that follow one another count as one step, because they touch registers
    only.

    Attributes:
        line: in the kernel's text; phase: how many barriers the work-items have passed.
        entries: of `Run.log`, with the lanes of this work-group alone; none in the step in which a
            kernel had to stop.
    """

    line: int
    phase: int
    entries: list[Entry]

    @property
    def counts(self) -> Counts:
        """What the step costs the work-group."""
        found = Counts()
        for e in self.entries:
            found.add(cost([e]))
        return found


def steps(run: Run, group: int = 0) -> list[Step]:
    """What a work-group does, step by step.

    Raises ValueError if the group has not run.
    """
    found: list[Step] = []
    for e in run.log:
        e = e._replace(mask=(e.wave.group_number == group) & e.active)
        if not e.mask.any():
            continue
        if not found or _begins(found[-1].entries, e):
            found.append(Step(e.site.line, int(e.of(e.phase)[0]), []))
        found[-1].entries.append(e)
    if run.stop:
        found.append(Step(run.stop.line, found[-1].phase if found else 0, []))
    if not found:
        raise ValueError(f"work-group {group} has done nothing in this run")
    return found


def _begins(before: list[Entry], e: Entry) -> bool:
    """Whether a step begins here: another line or warp, or the same site again."""
    again = e.site.kind != "multiply-add" and any(e.site is old.site for old in before)
    return again or e.site.line != before[-1].site.line or e.wave is not before[-1].wave


def places(
    entries: Iterable[Entry], array: str, item: int | None = None, store: bool | None = None
) -> list[int]:
    """The numbers of an array that entries touch, in order, each once."""
    found: set[int] = set()
    for e in entries:
        if e.memory is not None and e.memory.name == array and store in (None, e.site.stores):
            if item is not None:
                e = e._replace(mask=e.active & (e.wave.items == item))
            found.update((e.of(e.at)[:, None] + np.arange(e.site.width)).ravel().tolist())
    return sorted(found)


def select(run: Run, array: str, store: bool = False, **where: int) -> np.ndarray:
    """The loads or stores of one array, with these values of other fields (group, item ...)."""
    chosen = (run.table["array"] == array) & (run.table["store"] == store)
    for name, value in where.items():
        chosen &= run.table[name] == value
    return run.table[chosen]


def touches(run: Run, array: str, group: int = 0, warp: int = 0, store: bool = False) -> np.ndarray:
    """The first number that each lane of a warp touches, one row per instruction: shape
    (instructions, lanes).
    """
    events = select(run, array, store, group=group)
    events = events[events["item"] // WARP == warp]
    lanes = np.unique(events["item"])
    order = np.lexsort((events["item"], events["step"]))
    return events["index"][order].reshape(-1, max(1, len(lanes)))


def elements(events: np.ndarray) -> list[int]:
    """Every number that these events touch, each once, in order."""
    places = {i + j for i, n in events[["index", "width"]].tolist() for j in range(n)}
    return sorted(places)


def segments(indices: Iterable[int], size: int = 32, width: int = 1) -> int:
    """How many aligned segments of `size` bytes a warp touches: its memory transactions.

    `indices` are the first floats of loads of `width` floats each.
    """
    return len({4 * (int(i) + j) // size for i in indices for j in range(width)})
