"""Races, found in the log when all is over."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from typing import NamedTuple

import numpy as np

from .budget import Budget, OutOfBudget
from .finding import Finding, Site, WorkItem, found_at
from .memory import Memory
from .wave import Entry

#: Accesses to an array that are compared at a time: two million take half a second.
MOST_ACCESSES = 1 << 21
#: Entries of the log that are compared at a time.
MOST_ENTRIES = 1 << 14
#: Fences and atomic functions that may hand something over; rows that are compared with others, and
#: pairs of these that are looked up.
MOST_MOMENTS, MOST_COMPARED, MOST_PAIRS = 1 << 16, 1 << 24, 1 << 13


class Conflict(NamedTuple):
    """At `one` the work-item `who` touches an element that `whom` stores at `other`."""

    one: Site
    who: WorkItem
    other: Site
    whom: WorkItem
    memory: Memory
    at: int  # the byte in a group's own array
    in_phase: bool  # whether both have passed as many barriers
    later: bool  # whether `whom` comes after `who` where all work-items go in step

    @property
    def place(self) -> str:
        return self.memory.element(self.at)


class Moment(NamedTuple):
    """When a work-item does something: `time` counts steps of the log and lanes of a step, `phase`
    the barriers that it has passed.
    """

    group: int
    item: int
    phase: int
    time: int

    def before(self, other: Moment) -> bool:
        """Whether the other comes later in this work-item, or behind a barrier of its group."""
        return self.time < other.time and (self.item == other.item or self.phase < other.phase)


def moments(e: Entry, number: int) -> list[Moment]:
    """The moments of an entry's active lanes; `number` is the entry's in the log."""
    groups, items, phases = (
        e.of(x).tolist() for x in (e.wave.group_number, e.wave.number, e.phase)
    )
    lanes = enumerate(zip(groups, items, phases, strict=True))
    return [Moment(*lane, (number << 20) + n) for n, lane in lanes]


class Handovers:
    """What work-groups hand over to others: one stores, has a fence of global memory, and calls an
    atomic function; the other calls one on the same element later, and then reads.

    OpenCL C 1.2 does not promise that this works, and devices do it.
    """

    def __init__(self, log: Sequence[Entry]):
        self.fences: dict[int, list[Moment]] = {}  # by group
        self.atomics: dict[tuple[int, int], list[Moment]] = {}  # by array and element
        calls = [(n, e) for n, e in enumerate(log) if e.site.kind == "atomic"]
        calls = [(n, e) for n, e in calls if e.memory and e.memory.space == "global"]
        fences = [(n, e) for n, e in enumerate(log) if e.site.kind in ("fence", "barrier")]
        fences = [(n, e) for n, e in fences if e.site.fence & 2]
        if not calls or sum(np.count_nonzero(e.active) for _, e in fences + calls) > MOST_MOMENTS:
            return
        for n, e in fences:
            for moment in moments(e, n):
                self.fences.setdefault(moment.group, []).append(moment)
        for n, e in calls:
            for moment, at in zip(moments(e, n), e.of(e.at).tolist(), strict=True):
                self.atomics.setdefault((id(e.memory), at), []).append(moment)

    def order(self, one: Moment, other: Moment) -> bool:
        """Whether the group of `other` gets what `one` has stored."""
        # the first fence of each work-item comes before whatever its others come before
        later = {f.item: f for f in reversed(self.fences.get(one.group, [])) if one.before(f)}
        fences = later.values()
        for calls in self.atomics.values() if fences else ():
            own = (c for c in calls if c.group == one.group)
            gives = next((c.time for c in own if any(f.before(c) for f in fences)), None)
            its = (c for c in reversed(calls) if c.group == other.group)
            gets = next((c.time for c in its if c.before(other)), 0)
            if gives is not None and gets > gives:
                return True
        return False


class Touches:
    """What entries of one memory touch: a row for each grain of it (the smallest number accessed)
    and work-item.

    Columns: which `place` (a grain), `item` (the work-item's number in the launch), `entry` (its
    number among these entries), and whether it is a `store`. Rows with the same `key`, of which
    there are `size`, touch the same.
    """

    def __init__(self, entries: Sequence[Entry], memory: Memory):
        self.entries, self.memory = entries, memory
        self.grain = min(e.site.scalar.size for e in entries)
        places = [e.numbers(e.site.scalar.size // self.grain) for e in entries]
        items = [
            np.repeat(e.of(e.wave.number), place.shape[1])
            for e, place in zip(entries, places, strict=True)
        ]
        self.place = self.key = np.concatenate([place.ravel() for place in places])
        self.size = memory.size_bytes * memory.copies // self.grain
        self.item = np.concatenate(items)
        copies = np.repeat([e.site.copy for e in entries], [place.size for place in places])
        #: Who touches it: an asynchronous copy acts beside all work-items of its group.
        self.actor = np.where(copies, -1 - self.group, self.item)
        self.entry = np.repeat(np.arange(len(entries)), [place.size for place in places])
        self.store = np.array([e.site.kind == "store" for e in entries])[self.entry]
        self.atomic = np.array([e.site.kind == "atomic" for e in entries])[self.entry]

    @cached_property
    def value(self) -> np.ndarray:
        """What is stored in each row, 0 where nothing is."""
        rows = np.bincount(self.entry, minlength=len(self.entries)).tolist()
        parts = []
        for e, count in zip(self.entries, rows, strict=True):
            part = np.zeros(count)
            if e.site.kind == "store":
                with np.errstate(invalid="ignore"):  # NaN in half precision
                    stored = np.asarray(e.value, np.float64)
                values = e.of(stored).T.reshape(-1, e.site.width)
                part = np.repeat(values, e.site.scalar.size // self.grain, axis=1).ravel()
            parts.append(part)
        return np.concatenate(parts)

    @cached_property
    def compared(self) -> np.ndarray:
        """For each row whether its work-item also compares and exchanges there: a plain read that
        comes first is a guess, which the function checks.
        """
        exchange = np.array([e.site.exchange for e in self.entries])[self.entry]
        key = self.place * (self.item.max(initial=0) + 1) + self.item
        return np.isin(key, key[exchange])

    def unordered(self, handovers: Handovers, numbers: Sequence[int], budget: Budget) -> Touches:
        """The rows that another work-group conflicts with, and does not hand over; `numbers` are
        those of the entries in the log.
        """
        changing = np.flatnonzero(self.store | self.atomic).tolist()
        if len(changing) * len(self.place) > MOST_COMPARED:
            return self
        when: list[Moment] = []
        for e, number in zip(self.entries, numbers, strict=True):
            grains = e.site.width * e.site.scalar.size // self.grain
            when += [moment for moment in moments(e, number) for _ in range(grains)]
        keep, pairs = np.zeros(len(when), bool), 0
        for row in changing:
            others = (self.place == self.place[row]) & (self.group != self.group[row])
            others &= ~(self.atomic & self.atomic[row])
            for other in np.flatnonzero(others & ~(keep & keep[row])).tolist():
                one, two = sorted((when[row], when[other]), key=lambda moment: moment.time)
                budget()
                pairs += 1
                if pairs > MOST_PAIRS:
                    return self
                if not handovers.order(one, two):
                    keep[[row, other]] = True
        part = copy(self)
        names = "place key item group actor entry store atomic value compared"
        for name in names.split():
            setattr(part, name, getattr(self, name)[keep])
        return part

    @cached_property
    def group(self) -> np.ndarray:
        """The number of each row's work-group."""
        return self.item // self.entries[0].wave.machine.work_items

    def within_groups(self) -> Touches:
        """The same, as if each work-group had an array of its own."""
        part = copy(self)
        keys = self.place + self.group * (self.memory.size_bytes // self.grain)
        numbers, part.key = np.unique(keys, return_inverse=True)
        part.size = len(numbers)
        return part

    def conflicts(self, actor: np.ndarray) -> list[Conflict]:
        """One of stores, and one of atomic functions with plain reads, if there are any."""
        both = (self.conflict(actor, atomic) for atomic in (False, True))
        return [c for c in both if c]

    def conflict(
        self, actor: np.ndarray, atomic: bool = False, same_value: bool = False
    ) -> Conflict | None:
        """Two rows of different actors at one place, of which one changes it, or None.

        With `atomic` it is changed by an atomic function, and the other row is a plain read.
        Otherwise it is stored; two stores of the same value are no conflict unless `same_value`.
        Of all who change a place, the least and the greatest actor suffice: if both are one actor,
        whoever else touches the place differs from it; if they are two and no row conflicts with
        either, all of them have stored the same value.
        """
        rows = np.flatnonzero(self.atomic if atomic else self.store)
        rows = rows[np.argsort(actor[rows], kind="stable")]
        place, size = self.key, self.size
        found, who = np.zeros(len(place), bool), np.zeros(len(place), int)
        for order in (rows[::-1], rows):
            last = np.full(size, -1)
            last[place[order]] = order
            other = last[place]
            bad = (other >= 0) & (actor[other] != actor)
            if atomic:
                bad &= ~self.store & ~self.atomic & ~self.compared
            elif not same_value:
                bad &= ~self.store | (self.value != self.value[other])
            found, who = found | bad, np.where(bad, other, who)
        return self._shown(found, who) if found.any() else None

    def _shown(self, bad: np.ndarray, other: np.ndarray) -> Conflict:
        """Of several conflicts the earliest in the log."""
        first = int(np.flatnonzero(bad)[np.argmin(self.entry[bad])])
        rows = first, int(other[first])
        both = [(self.entries[self.entry[row]], self.item[row]) for row in rows]
        who, whom = (e.wave.machine.item(int(item)) for e, item in both)
        one, two = (e._replace(mask=e.wave.number == item) for e, item in both)
        in_phase = one.of(one.phase)[0] == two.of(two.phase)[0]
        at = int(self.place[first]) * self.grain % self.memory.size_bytes
        later = bool(self.entry[rows[1]] > self.entry[first])
        return Conflict(one.site, who, two.site, whom, self.memory, at, in_phase, later)


def by_phase(entries: Iterable[Entry]) -> dict[int, list[Entry]]:
    """Entries by the number of barriers that ordered them, split where lanes differ."""
    found: dict[int, list[Entry]] = {}
    for e in entries:
        if isinstance(e.ordered, int):
            found.setdefault(e.ordered, []).append(e)
            continue
        active = e.active
        for phase in np.unique(e.ordered[active]).tolist():
            found.setdefault(phase, []).append(e._replace(mask=active & (e.ordered == phase)))
    return dict(sorted(found.items()))


def stores(entries: Iterable[Entry]) -> bool:
    return any(e.site.stores for e in entries)


def races(log: Sequence[Entry], budget: Budget) -> Iterator[Finding]:
    """Every pair of places in the text at which one work-item stores what another touches, with
    nothing to order them.

    Barriers order the work-items of a group: two accesses of a group race if both passed as many
    barriers. Work-items of different groups are ordered by nothing at all, or hand something over
    (see `Handovers`), which is a note. Raises OutOfBudget at the end of the budget, and if it could
    compare only the first `MOST_ACCESSES`.
    """
    shared: dict[int, list[Entry]] = {}
    handovers: Handovers | None = None
    for e in log:
        if e.memory is not None:
            shared.setdefault(id(e.memory), []).append(e)
    too_many = False
    for entries in filter(stores, shared.values()):
        memory = entries[0].memory
        assert memory is not None
        budget()
        between: list[Conflict] = []
        if memory.space == "global":
            some = _first(entries)
            too_many |= len(some) < len(entries)
            every = Touches(some, memory)
            if len(some) == len(entries) and not every.conflicts(every.actor):
                continue
            between = conflicts = every.conflicts(every.group)
            handovers = handovers or (Handovers(log) if between else None)
            if handovers and handovers.atomics:
                numbers = {id(e): n for n, e in enumerate(log)}
                left = every.unordered(handovers, [numbers[id(e)] for e in some], budget)
                if not len(left.place):
                    yield from map(_handed_over, between)
                conflicts = left.conflicts(left.group)
            for c in conflicts:
                yield _race(c, "and nothing orders work-groups")
        for phase in filter(stores, by_phase(entries).values()):
            budget()
            some = _first(phase)
            too_many |= len(some) < len(phase)
            now = Touches(some, memory)
            now = now.within_groups() if between else now
            for c in now.conflicts(now.actor):
                yield _race(c, _unordered(c, memory.space))
    if too_many:
        raise OutOfBudget("it compared only the first accesses to an array")


def _first(entries: Sequence[Entry]) -> Sequence[Entry]:
    """The first entries, as many as are compared at a time; at least one."""
    some = entries[:MOST_ENTRIES]
    total = np.cumsum([e.wave.lanes * e.site.width for e in some])
    return some[: max(1, int(np.searchsorted(total, MOST_ACCESSES, "right")))]


def _unordered(c: Conflict, space: str) -> str:
    """Why nothing orders two accesses of a group: no barrier, or one for another memory."""
    if c.in_phase:
        return "no barrier between"
    fence = f"CLK_{space.upper()}_MEM_FENCE"
    return f"and the barrier between them has no {fence}: it does not order {space} memory"


def _race(c: Conflict, why: str) -> Finding:
    who, whom = (
        "an asynchronous copy" if site.copy else str(item)
        for site, item in ((c.one, c.who), (c.other, c.whom))
    )
    place = c.place
    here, there = f"in line {c.one.line}", f"in line {c.other.line}"
    if c.one.kind == "store":
        text = f"two work-items store to {place}: {whom} {there}, {who} {here}"
    elif c.other.kind == "atomic":
        text = f"{whom} changes {place} {there}, {who} reads it without an atomic function {here}"
    elif c.later:
        text = f"{who} reads {place} {here}, and later {whom} overwrites it {there}"
    else:
        text = f"{whom} stores {place} {there}, {who} reads it {here}"
    number = c.at // c.memory.scalar.size
    return found_at(
        c.one, "race", f"{text}, {why}", (c.whom, c.who), array=c.memory.name, element=number
    )


def _handed_over(c: Conflict) -> Finding:
    text = f"{c.who} uses {c.place} in line {c.one.line}, which {c.whom} changes in line "
    text += f"{c.other.line}: a fence and atomic functions order them on devices, and OpenCL C 1.2 "
    text += "does not promise it"
    return found_at(c.one, "handed over", text, (c.whom, c.who))


def first_difference(log: Sequence[Entry], other: Sequence[Entry]) -> Site | None:
    """Return the first place at which two runs of a kernel do not do the same: another access,
    another store to global memory, another branch.
    """
    for one, two in zip(log, other, strict=False):
        if not _alike(one, two):
            return one.site
    longer = max(log, other, key=len)
    return longer[min(len(log), len(other))].site if len(log) != len(other) else None


def _alike(one: Entry, two: Entry) -> bool:
    if one.site is not two.site or not np.array_equal(one.active, two.active):
        return False
    memory, pairs = one.memory, [(one.at, two.at)]
    if memory is None or one.site.kind == "atomic" or memory.space == "global":
        pairs.append((one.value, two.value))
    if memory and two.memory and memory.name != two.memory.name:
        return False
    for x, y in pairs:
        if x is not None and y is not None:
            a, b = one.of(x), two.of(y)
            if not np.array_equal(a, b, equal_nan=a.dtype.kind == b.dtype.kind == "f"):
                return False
    return True


def two_writers(log: Iterable[Entry], memory: Memory) -> list[Finding]:
    """Two work-items that store the same element of a result, at any time."""
    entries = [e for e in log if e.memory is memory and e.site.kind == "store"]
    every = Touches(entries, memory) if entries else None
    c = every.conflict(every.actor, same_value=True) if every else None
    if c is None:
        return []
    lines = f"line {c.one.line}"
    if c.one.line != c.other.line:
        lines = f"lines {c.one.line} and {c.other.line}"
    text = f"{c.place} is stored by two work-items in {lines}: {c.who}, and {c.whom}"
    return [found_at(c.one, "two writers", text, (c.who, c.whom))]
