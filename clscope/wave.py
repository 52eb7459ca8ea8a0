"""Work-items that run in step: their masks, accesses, barriers and checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from . import values
from .budget import RUNNING, Budget, OutOfBudget
from .finding import Finding, Site, Stop, WorkItem, found_at
from .memory import Memory
from .printing import printed
from .tree import Variable
from .types import INT, Scalar, Type
from .values import Lanes, Mask, array, blend, cut, extremes, some, union

#: A pointer is a number: which array, times 2**SHIFT, and how many bytes from its first, plus
#: MIDDLE, so that a pointer which has walked a little in front of its array still belongs to it.
SHIFT, MIDDLE = 40, 1 << 39
WARP = 32
#: The arrays and variables that hold other values where they have none: of which sign.
Spoil = Mapping[str, int]
MOST_BYTES = 1 << 28  # of arrays in local and private memory
#: Iterations after which a loop is watched for states that repeat.
WATCHED = 8
#: An event is the number of an asynchronous copy, times 2**EVENT_SHIFT, plus that of its group.
EVENT_SHIFT = 16
ORDINAL = ("first", "second", "third", "fourth", "fifth", "sixth")


class Running:
    """A loop that is running in a wave.

    Attributes:
        site: the loop's; variables: those on which its end depends, None if that is unknown.
        rounds: iterations so far; begun: seconds that the machine had spent when it began.
        mask, state: the lanes and the values of the variables at an earlier iteration.
    """

    __slots__ = ("begun", "mask", "rounds", "site", "state", "variables")

    def __init__(self, site: Site, variables: tuple[Variable, ...] | None, begun: float):
        self.site, self.variables, self.begun = site, variables, begun
        self.rounds = 0
        self.mask: Mask = None
        self.state: list[Lanes] | None = None

    def repeats(self, mask: Mask, values: list[Lanes]) -> bool:
        """Whether the same lanes have had the same values at an earlier iteration (Brent's
        algorithm: the state is saved at each power of two).
        """
        if self.state is not None and np.array_equal(self.mask, mask):
            pairs = zip(self.state, values, strict=True)
            if all(_equal(x, y, mask) for x, y in pairs):
                return True
        if self.rounds & (self.rounds - 1) == 0:
            self.mask, self.state = mask, values
        return False


def _equal(x: Lanes, y: Lanes, mask: Mask) -> bool:
    """Whether two values are the same for all lanes of a mask; 0.0 and -0.0 are not."""
    if x.__class__ is int and y.__class__ is int:
        return bool(x == y)
    if mask is not None and np.ndim(x) and np.shape(x)[-1] == len(mask):
        x = x[..., mask]
    if mask is not None and np.ndim(y) and np.shape(y)[-1] == len(mask):
        y = y[..., mask]
    same = np.all(x == y)
    if same and np.result_type(x, y).kind == "f":
        same = np.all(np.signbit(x) == np.signbit(y))
    return bool(same)


class Held(dict[Any, Any]):
    """The values of a wave's variables; one whose declaration a jump has skipped has none."""

    def __init__(self, wave: Wave):
        super().__init__(wave.machine.arrays)
        self.wave = wave

    def __missing__(self, variable: Variable) -> Any:
        if variable.in_memory:
            self[variable] = self.wave.private(variable)
        else:
            self[variable] = self.wave.blank(variable.name, variable.type)
            self.wave.given[variable] = False
        return self[variable]


class Launch:
    """What all waves of a launch share.

    Attributes:
        global_size, local_size, num_groups: in work-items, the last two in three dimensions;
            dimensions: how many the launch has; work_items: of a work-group.
        limit: how often a loop may iterate, 0 for as often as it wants; budget: what the run may
            spend.
        findings: what was wrong, as far as it is seen while the kernel runs.
        log: every step; printed: what printf said.
        pointed: the arrays that have an address; arrays: those in constant and local memory.
        copies: where each asynchronous copy stands; flying: the events that nobody has waited for.
        spoil: see `Spoil`.
    """

    def __init__(
        self, global_size: Sequence[int], local_size: Sequence[int], limit: int, budget: Budget
    ):
        self.limit, self.budget = limit, budget
        self.spoil: Spoil = {}
        self.dimensions = len(global_size)
        self.global_size = tuple(global_size)
        self.local_size = (*local_size, 1, 1)[:3]
        sizes = zip((*global_size, 1, 1)[:3], self.local_size, strict=True)
        self.num_groups = tuple(whole // part for whole, part in sizes)
        self.work_items = int(np.prod(self.local_size))
        self.findings: list[Finding] = []
        self.seen: set[tuple[str, int]] = set()
        self.log: list[Entry] = []
        self.printed: list[str] = []
        self.pointed: list[Memory] = []
        self.arrays: dict[Variable, Memory] = {}
        self.copies: list[Site] = []
        self.flying: set[int] = set()
        self.used = 0  # bytes

    def room(self, size: int) -> None:
        """Refuse what needs more memory than a simulation may take."""
        self.used += size
        if self.used > MOST_BYTES:
            most = f"{MOST_BYTES >> 20} MB of memory in the simulator"
            raise MemoryError(f"this kernel needs more than {most}")

    def new(self, memory: Memory) -> Memory:
        """Spoil an array that has been made, if it is to be."""
        if memory.name in self.spoil:
            memory.spoil(self.spoil[memory.name])
        return memory

    def address(self, memory: Memory) -> int:
        """Return where an array begins, as a pointer."""
        if not memory.address:
            self.pointed.append(memory)
            memory.address = (len(self.pointed) << SHIFT) + MIDDLE
        return memory.address

    def item(self, number: int) -> WorkItem:
        """Return a work-item by its number in the launch."""
        group, item = divmod(number, self.work_items)
        used = max(self.dimensions, 2)
        where = np.unravel_index(group, self.num_groups, order="F")
        own = np.unravel_index(item, self.local_size, order="F")
        return WorkItem(tuple(map(int, where[:used])), tuple(map(int, own[:used])))


class Wave:
    """Work-items that go in step: those of some work-groups, or one warp.

    Attributes:
        lanes: how many; per: how many of each group.
        items: each lane's number in its group; group_number: its group's number in the launch;
            number: its own.
        slot: the number of its group in this wave; every: its own number in this wave.
        phase: how many barriers the lanes have passed; ordered: of these, how many order each
            memory.
        log: what they have done (of all waves).
        ids: by the names of OpenCL C's functions (without get_), in three dimensions.
        mask: who takes part now: None for all, False for none, else an array of bool.
        held: the values of variables, and the arrays; of a function, what it returns.
        since: the mask where each was declared; given: for variables that are declared without a
            value, the lanes that have given them one.
        waiting: the lanes that have jumped, by their target (a loop's end, a label ...).
        loops: those that are running, the innermost last.
    """

    def __init__(self, machine: Launch, groups: np.ndarray, items: np.ndarray):
        self.machine, self.log = machine, machine.log
        self.lanes, self.per = len(groups) * len(items), len(items)
        self.items, self.group_number = np.tile(items, len(groups)), np.repeat(groups, self.per)
        self.number = self.group_number * machine.work_items + self.items
        self.every, self.slot = np.arange(self.lanes), np.repeat(np.arange(len(groups)), self.per)
        size, count = machine.local_size, machine.num_groups
        # an index of the platform has 32 bits in a browser, too few for what becomes a pointer
        places = ((self.items, size), (self.group_number, count))
        local, group = (
            np.array(np.unravel_index(x, sides, order="F"), np.int64) for x, sides in places
        )
        both = [g * s + x for g, s, x in zip(group, size, local, strict=True)]
        self.ids: dict[str, Sequence[Lanes]] = {
            "local_id": [one_for_all(x) for x in local],
            "group_id": [one_for_all(x) for x in group],
            "global_id": [one_for_all(x) for x in both],
            "local_size": size,
            "num_groups": count,
            "global_size": [a * b for a, b in zip(size, count, strict=True)],
            "global_offset": (0, 0, 0),
        }
        self.phase: Lanes = 0
        self.ordered: dict[str, Lanes] = {"local": 0, "global": 0, "constant": 0}
        self.held = Held(self)
        self.since: dict[Any, Mask] = {}
        self.given: dict[Variable, Mask] = {}
        self.mask: Any = None
        self.waiting: dict[tuple[Any, int], Mask] = {}
        self.loops: list[Running] = []
        #: Called at each barrier by a wave that is one of several.
        self.pause: Callable[[Site], None] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """In another process nothing goes on."""
        return {**vars(self), "held": None, "since": None, "given": None, "pause": None}

    # ---- who
    def item(self, lane: int) -> WorkItem:
        return self.machine.item(int(self.number[lane]))

    @property
    def active(self) -> np.ndarray:
        return np.ones(self.lanes, bool) if self.mask is None else self.mask

    def find(
        self, kind: str, site: Site, message: str, bad: Lanes = True, stop: bool = False,
        array: str = ""
    ) -> None:  # fmt: skip
        """Report a mistake of the lanes `bad`, if any is active; {} becomes the first of them."""
        if np.ndim(bad) == 2:
            bad = np.any(bad, 0)
        lanes = np.flatnonzero(np.broadcast_to(bad, self.lanes) & self.active)
        if not len(lanes) or (not stop and (kind, site.number) in self.machine.seen):
            return
        items = tuple(self.item(i) for i in lanes[:16])
        others = len(lanes) - 1
        more = f" (and {others:,} more work-item{'s' * (others > 1)})" if others > 0 else ""
        message = message.replace("{}", str(items[0])) + more
        finding = found_at(site, kind, message, items, len(lanes), array=array)
        if stop:
            raise Stop(finding)
        self.machine.seen.add((kind, site.number))
        self.machine.findings.append(finding)

    def record(
        self, site: Site, memory: Memory | None = None, at: Lanes = None, value: Lanes = None
    ) -> None:
        ordered = self.ordered[memory.space] if memory else 0
        size = at.nbytes if at.__class__ is array else 0
        self.machine.budget.take(64 + size + (value.nbytes if value.__class__ is array else 0))
        self.log.append(Entry(site, memory, at, self.mask, self.phase, self, value, ordered))

    # ---- accesses: `cells` are arrays, each with the element that lanes reach of it
    def load(self, site: Site, cells: Iterable[tuple[Memory, Lanes]]) -> Lanes:
        result = None
        for memory, at in cells:
            value = self.read(site, memory, at)
            result = value if result is None else blend(self.mask, value, result)
        return result

    def store(self, site: Site, cells: Iterable[tuple[Memory, Lanes]], value: Lanes) -> None:
        for memory, at in cells:
            self.write(site, memory, at, value)

    def read(self, site: Site, memory: Memory, index: Lanes) -> Lanes:
        """The elements of an array from `index` on, of the site's type."""
        places = memory.places(site, index, self.mask is None)
        if memory.stored is not None and not site.struct:
            self.uninitialised(site, memory, index, memory.known(site.scalar.size)[places])
        if memory.incoming is not None:
            self.check_copies(site, memory, memory.incoming, places)
        if memory.space != "private":  # private arrays are registers, for the most part
            self.record(site, memory, index)
        return memory.values(site.scalar, places)

    def write(self, site: Site, memory: Memory, index: Lanes, value: Lanes) -> None:
        mask = self.mask
        if memory.space != "private":
            self.record(site, memory, index, value)
        places = memory.places(site, index, mask is None)
        for events in (memory.incoming, memory.outgoing):
            if events is not None:
                self.check_copies(site, memory, events, places)
        if places.__class__ is not slice:
            places = np.atleast_1d(places)
            lanes: Any = slice(None) if mask is None else mask
            if places.shape[-1] == 1:  # all to one place: the last lane wins
                lanes = [-1] if mask is None else np.flatnonzero(mask)[-1:]
            else:
                places = places[..., lanes]
            if value.__class__ is array and value.shape[-1] > 1:
                value = value[..., lanes]
        memory.put(site.scalar, places, value)

    def reach(self, site: Site, base: Lanes, *indices: Lanes) -> Iterator[tuple[Memory, Lanes]]:
        """The arrays into which a pointer points, each with the index of its element. While one is
        handled, the mask is that of its lanes.

        Each index of an array that the text names is checked, because an index beyond the end of a
        row would reach the next row.
        """
        which, size, outer = base >> SHIFT, site.scalar.size, self.mask
        numbers = [which]
        if which.__class__ is not int:
            numbers = np.unique(which if outer is None else which[outer]).tolist()
        for number in numbers:
            if len(numbers) > 1:
                self.mask = (which == number) & (True if outer is None else outer)
            if not 0 < number <= len(self.machine.pointed):
                text = f"{site.text}: {{}} dereferences an invalid pointer"
                self.find("out of bounds", site, text, stop=True)
            offset = base - ((number << SHIFT) + MIDDLE)
            if some(odd := offset % size):
                text = f"the pointer of {{}} points between two numbers of type {site.scalar}"
                self.find("misaligned", site, f"{site.text}: {text}", odd != 0, stop=True)
            memory, total = self.machine.pointed[number - 1], offset // size + site.lead
            if memory.ended:
                text = f"{site.text}: {{}} {site.does} {memory.name} after the end of its block"
                self.find("out of bounds", site, text)
            for nth, ((count, step, most), index) in enumerate(
                zip(site.shape, indices, strict=True)
            ):
                if count:
                    index = self.in_row(site, memory, nth, index, count, most)
                total = total + (index * step if step != 1 else index)
            named = site.shape and site.shape[0][0]  # then each index is in its row
            yield memory, total if named else self.inside(site, memory, total)
        self.mask = outer

    def in_row(
        self, site: Site, memory: Memory, nth: int, index: Lanes, count: int, most: int
    ) -> Lanes:
        """Return an index, which must be less than `most`, and should be less than `count`."""
        index, bad = self.between(index, most - 1)
        if bad is None and most > count:
            text = f"{site.text}: {{}} {site.does} {memory.name} beyond the end of a row of {count}"
            text += "; C does not allow it, and devices reach the next row"
            self.find("row", site, text, index >= count)
        if bad is not None:
            count = most
            which = f"its {ORDINAL[nth]} index" if len(site.shape) > 1 else "its index"
            value = self.at_first(index, bad)
            text = f"{site.text}: {{}} {site.does} {memory.name} with {value} as {which}, which"
            self.find("out of bounds", site, f"{text} must be 0 to {count - 1}", bad, stop=True)
        return index

    def inside(self, site: Site, memory: Memory, index: Lanes) -> Lanes:
        """The index, which must be in the array; for lanes outside the mask it becomes 0."""
        last = memory.size_bytes // site.scalar.size - site.width
        index, bad = self.between(index, last)
        wide = site.wide
        if bad is not None:
            value = self.at_first(index, bad)
            kind = f"{site.scalar}{site.width}" if site.width > 1 else site.scalar
            if wide > 1:
                value, last = value // wide, (last + site.width) // wide - 1
            note = "; a 32-bit int cannot hold that index" if abs(value) >= 2**31 else ""
            has = f"elements 0 to {last} of type {kind}" if last >= 0 else f"no room for one {kind}"
            text = f"{{}} {site.does} element {value} of {memory.name}, which has {has}{note}"
            self.find("out of bounds", site, f"{site.text}: {text}", bad, stop=True)
        if wide > 1 and (memory.space != "private" or wide * site.scalar.size > 8):
            first = index - site.lead
            bad = first % wide != 0
            if some(bad):
                value = self.at_first(first, bad)
                text = f"{{}} uses {memory.name} as {site.scalar}{wide} from number {value} on"
                text = f"{site.text}: {text}, which is no multiple of {wide}"
                self.find("misaligned", site, text, bad)
        return index

    def between(self, index: Lanes, last: int) -> tuple[Lanes, Lanes]:
        """The index (0 outside the mask), and the lanes in which it is not from 0 to `last`."""
        if index.__class__ is int:
            return index, None if 0 <= index <= last else True
        if self.mask is not None:
            index = np.where(self.mask, index, 0)
        least, most = extremes(index)
        return index, None if least >= 0 and most <= last else (index < 0) | (index > last)

    def at_first(self, x: Lanes, bad: Lanes) -> Any:
        lane = np.argmax(np.broadcast_to(bad, self.lanes) & self.active)
        return np.broadcast_to(x, self.lanes)[lane].item()

    def atomic(self, site: Site, base: Lanes, op: str, args: list[Lanes]) -> np.ndarray:
        """A load, an operation and a store as one step: lane after lane."""
        result: np.ndarray = np.zeros(self.lanes, site.scalar.held)
        args = [np.broadcast_to(a, self.lanes).tolist() for a in args]
        for memory, at in self.reach(site, base):
            index = np.broadcast_to(at, self.lanes)
            self.record(site, memory, index, np.array(args))
            places, known = memory.places(site, index), memory.known(site.scalar.size)
            for lane in np.flatnonzero(self.active).tolist():
                if op != "xchg":
                    given = known[places] | (self.every != lane)
                    self.uninitialised(site, memory, index, given)
                result[lane] = memory.view(site.scalar)[places[lane]]
                new = values.ATOMICS[op](result[lane].item(), *(a[lane] for a in args))
                memory.put(site.scalar, places[lane], new)
        return result

    def private(self, variable: Variable, zeroes: bool = False) -> Memory:
        """An array that each lane has to itself, or a constant one, which there is once."""
        constant = variable.space == "constant"
        copies, slot = (1, 0) if constant else (self.lanes, self.every)
        if variable not in self.held:
            self.machine.room(variable.type.stride * copies)
        space = "constant" if constant else "private"
        data = np.zeros(0) if zeroes else None
        memory = Memory(variable.name, space, variable.type, copies, slot, data)
        return self.machine.new(memory)

    def end(self, variable: Variable) -> None:
        """The block of a variable ends, and its memory with it."""
        memory = self.held.pop(variable, None)
        if memory:
            memory.ended = True
            self.machine.used -= variable.type.stride * memory.copies

    def blank(self, name: str, of: Type) -> Lanes:
        """Return what a variable holds that has no value."""
        blank, spoil = values.nothing(of), self.machine.spoil
        return blank + values.spoiled(of.scalar, spoil[name]) if name in spoil else blank

    def unset(self, variable: Variable) -> None:
        """Declare a variable without a value."""
        blank = self.blank(variable.name, variable.type)
        if self.machine.spoil:  # also what an earlier iteration has left
            old = self.held.get(variable, blank)
            self.held[variable] = blank if self.mask is None else np.where(self.mask, blank, old)
        self.held.setdefault(variable, blank)
        self.given[variable] = values.without(self.given.get(variable, False), self.mask)

    # ---- asynchronous copies
    def copy_together(
        self, sites: tuple[Site, Site], source: Lanes, target: Lanes, count: Lanes,
        far: tuple[Lanes, Lanes], event: Lanes
    ) -> Lanes:  # fmt: skip
        """Copy `count` elements by a group; `far` are the bytes from one to the next.

        Return the event of the copy: `event`, or a new one where that is 0.
        """
        (load, store), outer = sites, self.mask
        self.gather(store, "asynchronous copy")
        arguments = {"target": target, "source": source, "number of elements": count}
        arguments |= {"stride": far[0] * far[1], "event": event}
        for name, value in arguments.items():
            self.check_alike(store, name, value)
        self.machine.copies.append(store)
        new = (len(self.machine.copies) << EVENT_SHIFT) + self.slot
        event = np.where(np.equal(event, 0), new, event)
        self.machine.flying.update(np.unique(event[self.active]).tolist())
        for first in range(0, int(np.max(count)), self.machine.work_items):
            number = first + self.items
            self.mask = (number < count) & (True if outer is None else outer)
            if self.mask.any():
                begin, end = source + number * far[0], target + number * far[1]
                value = self.load(load, self.reach(load, begin))
                for memory, at in self.reach(load, begin):
                    memory.outgoing = self.marked(memory.outgoing, load, memory, at, event)
                for memory, at in self.reach(store, end):
                    self.write(store, memory, at, value)
                    memory.incoming = self.marked(memory.incoming, store, memory, at, event)
        self.mask = outer
        return event

    def marked(
        self, events: np.ndarray | None, site: Site, memory: Memory, index: Lanes, event: np.ndarray
    ) -> np.ndarray:
        """Return the events of all bytes, with those of a copy of the active lanes' elements."""
        events = np.zeros(len(memory.bytes), np.int64) if events is None else events
        places = np.broadcast_to(memory.places(site, index), (site.width, self.lanes))
        active = self.active
        events.reshape(-1, site.scalar.size)[places[:, active]] = event[active][None, :, None]
        return events

    def check_copies(self, site: Site, memory: Memory, events: np.ndarray, places: Lanes) -> None:
        """Report an access to what an asynchronous copy may still be filling or reading."""
        event = events.reshape(-1, site.scalar.size)[:, 0][places]
        if not np.any(event):
            return
        lanes = np.broadcast_to(event, (*np.shape(event)[:-1], self.lanes)).reshape(-1, self.lanes)
        first = lanes[:, self.active].max(initial=0)
        if first:
            does = "filling" if events is memory.incoming else "reading"
            line = self.machine.copies[(int(first) >> EVENT_SHIFT) - 1].line
            text = f"{site.text}: {{}} {site.does} {memory.name} before wait_group_events, while"
            text += f" the asynchronous copy in line {line} may still be {does} it"
            self.find("race", site, text, lanes.max(0) != 0)

    def check_alike(self, site: Site, name: str, x: Lanes) -> None:
        """Report an argument of an asynchronous copy that is not the same for a whole group."""
        if x.__class__ is array and x.shape[-1] > 1:
            bad = x != np.repeat(x[:: self.per], self.per)
            text = f"{site.text}: the {name} differs between work-items of a group, such as {{}}"
            self.find("divergent copy", site, text, bad)

    def wait_for(self, event: Lanes) -> None:
        """End the asynchronous copies of an event."""
        events = np.unique(np.broadcast_to(event, self.lanes)[self.active])
        self.machine.flying.difference_update(events.tolist())
        for memory in self.machine.pointed:
            for marks in (memory.incoming, memory.outgoing):
                if marks is not None:
                    marks[np.isin(marks, events)] = 0

    # ---- checks
    def uninitialised(self, site: Site, memory: Memory, index: Lanes, known: Lanes) -> None:
        """Some of the numbers that are read here may have no value; `known` says which have."""
        if known.all():
            return
        rows = np.broadcast_to(known, (*known.shape[:-1], self.lanes)).reshape(-1, self.lanes)
        bad = ~rows & self.active
        if bad.any():
            row = int(np.argmax(bad.any(1)))  # the first number of a vector without a value
            at = self.at_first(index, bad[row]) + row
            element = memory.element(at * site.scalar.size)
            text = f"{site.text}: {{}} reads {element} before anything was stored there"
            if memory.space == "private":
                text = f"{element} is read by {{}} before it has a value"
            self.find("uninitialised", site, text, bad[row], array=memory.name)

    def assign(self, variable: Any, x: Lanes) -> None:
        """Give a variable a value."""
        # with the same lanes as at its declaration, a number that is the same for all may stay one
        if self.mask is not None and self.mask is not self.since.get(variable, ()):
            x = blend(self.mask, x, self.held[variable])
        self.held[variable] = x
        if variable in self.given:
            self.given[variable] = union(None, self.given[variable], self.mask)

    def check(self, site: Site, given: Mask) -> None:
        """What is read must have a value; `given` are the lanes that have given it one."""
        bad = values.without(self.mask, given)
        if bad is not False:
            text = f"{site.text} is read by {{}} before it has a value"
            self.find("uninitialised", site, text, True if bad is None else bad, array=site.text)

    def fits(self, x: Lanes, site: Site) -> Lanes:
        """The result of an operation of ints, which must fit 32 bits."""
        least, most = extremes(x) if x.__class__ is array else (x, x)
        if least >= -(2**31) and most < 2**31:
            return x
        exact, bad = self.first_bad(x, (x < INT.least) | (x > INT.most))
        text = f"{site.text} is {self.at_first(exact, bad):,} for {{}}: too large for an int, which"
        self.find(site.kind, site, f"{text} holds up to {INT.most:,}", bad)
        return cut(x, INT)

    @staticmethod
    def first_bad(x: Lanes, bad: Lanes) -> tuple[Lanes, Lanes]:
        """Of each vector the first bad number; anything else as it is."""
        if np.ndim(bad) < 2:
            return x, bad
        return np.take_along_axis(x, bad.argmax(0)[None], 0)[0], bad.any(0)

    def rounded(self, x: Lanes, of: Scalar, to: Scalar, site: Site) -> Lanes:
        """A float, rounded towards zero; OpenCL C defines it only if the type can hold it."""
        exact = np.asarray(x, float)
        if (cut := (exact != np.trunc(exact)) & np.isfinite(exact)).any():
            number, cut = self.first_bad(exact, cut)
            text = f"{site.text} is {self.at_first(number, cut):g} for {{}}: the conversion to"
            self.find("cut", site, f"{text} {to} discards the fraction", cut)
        bad = ~(((exact > to.least - 1) | (exact == to.least)) & (exact < to.most + 1))
        if bad.any():
            exact, bad = self.first_bad(exact, bad)
            text = f"{site.text} is {self.at_first(exact, bad):g} for {{}}: {to} has no such"
            text += " number, and devices differ in what they make of it"
            self.find("overflow", site, text, bad)
        return values.converted(x, of, to)

    def ratio(self, a: Lanes, b: Lanes, site: Site) -> Lanes:
        if some(zero := b == 0):
            text = f"{site.text}: a division by zero, which gives no finite number"
            self.find("ratio", site, text, zero)
        return np.true_divide(a, b)

    def divisor(self, b: Lanes, site: Site) -> Lanes:
        """A divisor, which must not be 0; 0 becomes 1 in lanes outside the mask."""
        if not some(zero := b == 0):
            return b
        self.find("division by zero", site, f"{site.text}: {{}} divides by zero", zero, stop=True)
        return np.where(zero, np.ones_like(b), b)

    # ---- control flow
    def enter(self, site: Site, variables: tuple[Variable, ...] | None) -> Running:
        """A loop begins, whose end depends on these variables."""
        self.loops.append(Running(site, variables, self.machine.budget.spent))
        return self.loops[-1]

    def iterate(self, loop: Running, mask: Mask) -> None:
        """An iteration of a loop begins for some lanes."""
        machine, loop.rounds = self.machine, loop.rounds + 1
        machine.budget(RUNNING)
        if machine.limit and loop.rounds > machine.limit:
            raise OutOfBudget(f"it stopped at its limit of {machine.limit:,} iterations")
        if loop.rounds < WATCHED or loop.variables is None:
            return
        state = [self.held.get(variable) for variable in loop.variables]
        if any(isinstance(x, Memory) for x in state):
            loop.variables = None
        elif loop.repeats(mask, state):
            names = " and ".join(sorted({v.name for v in loop.variables if v.assigned}))
            why = f"{loop.site.text} always holds" if loop.site.text else "nothing can end it"
            if names:
                why = f"{names} only repeat{'s' * (' ' not in names)} earlier values"
            text = f"{why}, so this loop never ends for {{}}"
            self.mask = mask
            self.find("endless loop", loop.site, text, stop=True)

    def branch(self, condition: Lanes, site: Site | None) -> tuple[Mask, Mask]:
        """The lanes for which a condition holds, and those for which it does not.

        With a site, the log records that work-items reach the condition.
        """
        mask = self.mask
        if condition.__class__ is not array:
            return (mask, False) if condition else (False, mask)
        yes = condition if mask is None else mask & condition
        if site:
            self.record(site, value=yes)
        no = ~condition if mask is None else mask & ~condition
        if not yes.any():
            return False, mask
        return (yes, no) if no.any() else (mask, False)

    def both_sides(self, condition: Lanes, sides: Sequence[Any], site: Site | None) -> list[Any]:
        """The results of both sides of a branch, each carried out by the lanes that take it.

        A side is None if there is nothing to do.
        """
        before, ends, results = self.mask, list[Any](), []
        for mask, side in zip(self.branch(condition, site), sides, strict=True):
            self.mask = mask
            results.append(side(self) if side and mask is not False else None)
            ends.append(self.mask)
        self.mask = union(before, *ends)
        return results

    def leave(self, target: tuple[Any, int]) -> None:
        """All active lanes jump, and wait at the target."""
        if self.mask is not False:
            self.waiting[target] = union(None, self.waiting.get(target, False), self.mask)
        self.mask = False

    def arrive(self, target: tuple[Any, int], whole: Mask) -> None:
        """The lanes that have jumped here join the others; `whole` is the mask of all that can."""
        self.mask = union(whole, self.mask, self.waiting.pop(target, False))

    def barrier(self, site: Site, events: Lanes = 0) -> None:
        """All work-items of a group come here, or none; a warp then waits for the others."""
        self.record(site, value=events)
        self.gather(site, "barrier")
        mask = self.mask
        lanes = 1 if mask is None else mask.astype(np.int64)
        self.phase = self.phase + lanes
        for bit, space in ((1, "local"), (2, "global")):
            if site.fence & bit:
                self.ordered[space] = self.ordered[space] + lanes
        if self.pause:
            self.pause(site)

    def gather(self, site: Site, name: str) -> None:
        """Stop unless all work-items of a group come here, or none."""
        mask = self.mask
        if mask is None:
            return
        come = np.bincount(self.slot, mask)
        partly = (come > 0) & (come < self.per)
        if partly.any():
            count = int(come[np.argmax(partly)])
            mine = self.slot == np.argmax(partly)
            missing = int(np.argmax(mine & ~mask))
            others = self.per - count - 1
            if any(word == "return" and m[missing] for (word, _), m in self.waiting.items()):
                does = f"{f'and {others} more have' if others else 'has'} returned before"
            else:
                does = f"{f'and {others} more do' if others else 'does'} not"
            who, away = self.item(int(np.argmax(mine & mask))), self.item(missing)
            text = f"{name}: {count} of the {self.per} work-items come here, such as {who}; "
            text += f"{away} {does}. {'It' if count == 1 else 'They'} would wait for ever"
            raise Stop(found_at(site, "divergent barrier", text, (away,), others + 1))

    def printf(self, form: str, args: Sequence[Lanes], kinds: list[str]) -> None:
        """Each lane's numbers, or its list of the numbers of a vector, in a text."""
        every = [
            a if isinstance(a, str) else np.broadcast_to(a, (*np.shape(a)[:-1], self.lanes))
            for a in args
        ]
        for lane in np.flatnonzero(self.active).tolist():
            given = [a if isinstance(a, str) else a[..., lane].tolist() for a in every]
            text = printed(form, given, kinds)
            self.machine.budget.take(len(text))
            self.machine.printed.append(text)


class Entry(NamedTuple):
    """One step of the log: a place in the text, executed by all lanes of a mask at once.

    Attributes:
        site: the place; `site.kind` says what happens: "load", "store", "atomic", "multiply-add",
            "branch", "loop", "barrier" or "fence".
        memory: the array, for an access.
        at: the first number that each lane touches, counted from the beginning of the array (of its
            group's own, if it is local); an int if it is the same for all. Entries of lanes outside
            the mask mean nothing.
        mask: which lanes, None for all.
        phase: how many barriers a lane has passed: an int, or an array per lane.
        wave: whose lanes.
        value: what is stored (an array or a number); for a branch the lanes that go the way of
            "yes".
        ordered: how many barriers a lane has passed that order this memory, as their flags say.
    """

    site: Site
    memory: Memory | None
    at: Lanes
    mask: Mask
    phase: Lanes
    wave: Wave
    value: Lanes = None
    ordered: Lanes = 0

    @property
    def active(self) -> np.ndarray:
        return np.ones(self.wave.lanes, bool) if self.mask is None else self.mask

    def of(self, x: Lanes) -> np.ndarray:
        """What the active lanes have of x, which is one for all lanes or one for each."""
        every = np.broadcast_to(x, (*np.shape(x)[:-1], self.wave.lanes))
        return every if self.mask is None else every[..., self.mask]

    def numbers(self, parts: int = 1) -> np.ndarray:
        """The numbers that each active lane touches, in a row, counted from the beginning of all
        copies of the array; with `parts`, each as so many smaller ones.
        """
        assert self.memory is not None
        first = self.of((self.at + self.memory.begin(self.site.scalar.size)) * parts)
        return first[:, None] + np.arange(self.site.width * parts)


def one_for_all(x: np.ndarray) -> int | np.ndarray:
    """A plain number if all entries are alike."""
    x = np.asarray(x, np.int64)
    return int(x[0]) if (x == x[0]).all() else x
