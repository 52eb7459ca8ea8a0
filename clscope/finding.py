"""What a kernel does wrong, and where: places in the source code, work-items, findings."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from .text import Spot
from .types import Scalar


@dataclass(eq=False)
class Site:
    """A place in the text where something happens that the simulator records or checks.

    Attributes:
        number: it counts the sites of a kernel.
        kind: "load", "store", "atomic", "branch", "loop", "barrier", "fence", "multiply-add",
            "overflow", "wraps", "division", "ratio", "unset".
        spot: line and column, and the macro that it came through.
        text: the expression as the reader wrote it.
        scalar, width: the type of the numbers that an access moves, and how many a work-item moves
            at once; of a multiply-add its width.
        struct: whether a whole structure is moved, whose parts may have no value.
        shape: of an array that is named directly: each of its sizes, how far one more of that
            index leads, and how many elements there are up to the end of the array.
        wide: how many numbers a vector has that must begin at a multiple of them, 0 if it may begin
            anywhere; lead: the first of its numbers that is accessed.
        fence: of a barrier or a fence, which memory it orders: 1 local, 2 global, 3 both.
        exchange: whether an atomic function compares before it stores.
        copy: whether an asynchronous copy makes the access, beside all work-items.
    """

    number: int
    kind: str
    spot: Spot
    text: str
    scalar: Scalar
    width: int
    struct: bool
    shape: tuple[tuple[int, int, int], ...] = ()
    wide: int = 0
    lead: int = 0
    fence: int = 3
    exchange: bool = False
    copy: bool = False

    @property
    def line(self) -> int:
        return self.spot.line

    @property
    def column(self) -> int:
        return self.spot.column

    @property
    def stores(self) -> bool:
        return self.kind in ("store", "atomic")

    @property
    def does(self) -> str:
        return "stores to" if self.stores else "reads"


class WorkItem(NamedTuple):
    """A work-item: the number of its group in each dimension, and its own inside the group."""

    group: tuple[int, ...]
    local: tuple[int, ...]

    def __str__(self) -> str:
        return f"work-item {self.local} of group {self.group}"


@dataclass(frozen=True)
class Finding:
    """Something that a kernel must not do.

    Attributes:
        kind: "out of bounds", "uninitialised", "race", "divergent barrier", "divergent copy" (an
            asynchronous one whose arguments differ), "never awaited" (copy), "endless loop",
            "overflow", "misaligned", "two writers", "never written", "redefined" (a parameter),
            "slip" (of the pen), "division by zero", "wrong product" or "inaccurate"; of notes
            "ratio" (a float divided by zero), "cut" (a fraction that a conversion discards),
            "unset" (a value that is read where there is none, and does not matter), "row" (an index
            beyond its row, inside the array), "wraps" (a product of a hash), "handed over" (from
            one work-group to another, by a fence and atomic functions), "slip" or "whole division"
            (an integer one that becomes a float); of what was not looked at "unfinished".
        message: a sentence or two, with the work-items; line and column are not repeated in it.
        line, column: where in the kernel's text, from 1; 0 where it is about no line.
        items: work-items that do it, the first few.
        count: how many do it.
        macro: the macro that the place in the text came through, or "".
        array, element: of a race, which number of which array (in local memory of the group's own).
    """

    kind: str
    message: str
    line: int = 0
    column: int = 0
    items: tuple[WorkItem, ...] = ()
    count: int = 0
    macro: str = ""
    array: str = ""
    element: int = -1

    def __str__(self) -> str:
        where = f"{self.line}:{self.column} " if self.line else ""
        return where + self.message + (f" (in the macro {self.macro})" if self.macro else "")


def found_at(
    site: Site, kind: str, message: str, items: tuple[WorkItem, ...], count: int = 2, **more: Any
) -> Finding:
    """A finding at a place in the text; `more` is the array and the element of a race."""
    return Finding(kind, message, site.line, site.column, items, count, site.spot.macro, **more)


class Stop(Exception):
    """The kernel cannot go on after this finding."""

    def __init__(self, finding: Finding):
        super().__init__(str(finding))
        self.finding = finding


def distinct(findings: Iterable[Finding]) -> list[Finding]:
    found: dict[tuple[Any, ...], Finding] = {}
    for f in findings:
        found.setdefault((f.kind, f.line, f.column), f)
    return list(found.values())
