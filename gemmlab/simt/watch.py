"""What a kernel does wrong, in words: findings, and the races, which are found in the log when all is over."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .values import Lanes, Mask, over
from .writer import Site

if TYPE_CHECKING:
    from .machine import Wave
    from .memory import Memory


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
        kind: "out of bounds", "uninitialised", "race", "divergent barrier", "endless loop", "overflow", "misaligned",
            "two writers", "never written" or "division by zero".
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


class Stop(Exception):
    """The kernel cannot go on after this finding."""

    def __init__(self, finding: Finding):
        super().__init__(str(finding))
        self.finding = finding


class Entry(NamedTuple):
    """One step of the log: a place in the text, executed by all lanes of a mask at once.

    Attributes:
        site: the place; `site.kind` says what happens: "load", "store", "atomic", "multiply-add", "branch", "loop" or
            "barrier".
        memory: the array, for an access.
        at: the first number that each lane touches, counted from the begin of the array (of its group's own, if it
            is local); an int if it is the same for all. Entries of lanes outside the mask mean nothing.
        mask: which lanes, None for all.
        phase: how many barriers a lane has passed: an int, or an array per lane.
        wave: whose lanes.
        value: what is stored (an array or a number); for a branch the lanes that go the way of "yes".
    """

    site: Site
    memory: Memory | None
    at: Lanes
    mask: Mask
    phase: Lanes
    wave: Wave
    value: Lanes = None


class Touches(NamedTuple):
    """Accesses to one memory, one row per grain of memory and work-item."""

    place: np.ndarray
    lane: np.ndarray  # the work-item's number in the launch
    entry: np.ndarray  # number of the log's entry in the list they came from
    store: np.ndarray
    value: np.ndarray


def touches(entries: Sequence[Entry], grain: int) -> Touches:
    """Every grain of so many bytes that these entries touch."""
    parts: list[tuple] = []
    for number, e in enumerate(entries):
        assert e.memory is not None
        lanes = np.arange(e.wave.lanes) if e.mask is None else np.flatnonzero(e.mask)
        size = e.site.scalar.size
        start = over(e.wave.lanes, e.at + e.memory.begin(e.wave, size))[lanes] * (size // grain)
        wide = e.site.width * (size // grain)
        place = (start[:, None] + np.arange(wide)).ravel() if wide > 1 else start
        store, value = e.site.kind == "store", np.zeros(len(place))
        if store:
            shown = np.broadcast_to(np.asarray(e.value, np.float64), (e.site.width, e.wave.lanes))[:, lanes].T
            value = np.repeat(shown, size // grain, axis=1).ravel()
        number_of = np.repeat(e.wave.number[lanes], wide)
        parts.append((place, number_of, np.full(len(place), number), np.full(len(place), store), value))
    return Touches(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def by_phase(entries: Iterable[Entry]) -> dict[int, list[Entry]]:
    """Entries by how many barriers their work-items had passed; one whose work-items differ in that is split."""
    found: dict[int, list[Entry]] = {}
    for e in entries:
        if isinstance(e.phase, int):
            found.setdefault(e.phase, []).append(e)
            continue
        active = e.wave.active(e.mask)
        for phase in np.unique(e.phase[active]).tolist():
            found.setdefault(phase, []).append(e._replace(mask=active & (e.phase == phase)))
    return dict(sorted(found.items()))


def stores(entries: Iterable[Entry]) -> bool:
    return any(e.site.kind == "store" for e in entries)


def conflict(t: Touches, actor: np.ndarray, size: int, same_value: bool = False) -> tuple[int, int] | None:
    """Two rows of which one stores what the other one, another actor's, touches; None if there are none.

    Among all accesses to a place remember the last that stored. If somebody else has touched it, too, that is a
    conflict; and if two have stored, at least one of them is not the last. So nothing is missed, in any order.
    Two who store the same value do each other no harm, unless `same_value` is asked for.
    """
    storing = np.flatnonzero(t.store)
    last = np.full(size, -1)
    last[t.place[storing]] = storing
    other = last[t.place]
    bad = (other >= 0) & (actor[other] != actor)
    if not same_value:
        bad &= ~t.store | (t.value != t.value[other])
    if not bad.any():
        return None
    # of several show the earliest in the log
    first = int(np.flatnonzero(bad)[np.argmin(t.entry[bad])])
    return first, int(other[first])


def races(log: Iterable[Entry]) -> list[Finding]:
    """Every pair of places in the text at which one work-item stores what another touches, with nothing to order them.

    Barriers order the work-items of a group: two accesses of a group race if both passed as many barriers. Work-items
    of different groups are ordered by nothing at all.
    """
    shared: dict[int, list[Entry]] = {}
    for e in log:
        if e.memory is not None and e.memory.space != "private":
            shared.setdefault(id(e.memory), []).append(e)
    found: list[Finding] = []
    for entries in shared.values():
        memory = entries[0].memory
        assert memory is not None
        if not stores(entries):
            continue
        grain = min(e.site.scalar.size for e in entries)
        size = memory.size_bytes * memory.copies // grain
        if memory.space == "global":
            every = touches(entries, grain)
            if conflict(every, every.lane, size) is None:
                continue
            pair = conflict(every, every.lane // entries[0].wave.machine.work_items, size)
            if pair:
                found.append(_race(entries, every, pair, grain, "and nothing orders work-groups"))
        for some in by_phase(entries).values():
            if stores(some):
                now = touches(some, grain)
                pair = conflict(now, now.lane, size)
                if pair:
                    found.append(_race(some, now, pair, grain, "no barrier between"))
    return found


def _race(entries: list[Entry], t: Touches, pair: tuple[int, int], grain: int, why: str) -> Finding:
    one, other = entries[t.entry[pair[0]]], entries[t.entry[pair[1]]]
    who, whom = (e.wave.item(int(t.lane[i])) for e, i in ((one, pair[0]), (other, pair[1])))
    memory = one.memory
    assert memory is not None
    at = int(t.place[pair[0]]) * grain % memory.size_bytes
    place = memory.element(at)
    if one.site.kind == "store":
        text = f"two work-items store to {place}: {whom} in line {other.site.line}, {who} in line {one.site.line}"
    else:
        text = f"{whom} stores {place} in line {other.site.line}, {who} reads it in line {one.site.line}"
    spot = one.site.spot
    return Finding("race", f"{text}, {why}", spot.line, spot.column, (whom, who), 2, spot.macro, memory.name,
                   at // memory.scalar.size)  # fmt: skip


def two_writers(log: Iterable[Entry], memory: Memory) -> list[Finding]:
    """An element of a result that two work-items store, at whatever time and with whatever value."""
    entries = [e for e in log if e.memory is memory and e.site.kind == "store"]
    if not entries:
        return []
    grain = min(e.site.scalar.size for e in entries)
    t = touches(entries, grain)
    pair = conflict(t, t.lane, memory.size_bytes * memory.copies // grain, same_value=True)
    if pair is None:
        return []
    (i, j), (one, other) = pair, (entries[t.entry[p]] for p in pair)
    who, whom = one.wave.item(int(t.lane[i])), other.wave.item(int(t.lane[j]))
    spot = one.site.spot
    place = memory.element(int(t.place[i]) * grain)
    lines = f"line {spot.line}" if spot.line == other.site.line else f"lines {spot.line} and {other.site.line}"
    message = f"{place} is stored by two work-items in {lines}: {who}, and {whom}"
    return [Finding("two writers", message, spot.line, spot.column, (who, whom), 2, spot.macro)]


def distinct(findings: Iterable[Finding]) -> list[Finding]:
    """The same thing at the same place once."""
    found: dict[tuple, Finding] = {}
    for f in findings:
        found.setdefault((f.kind, f.line, f.column), f)
    return list(found.values())
