"""The machine on which translated kernels run: a launch of all work-groups, in step or by warps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, get_args

import numpy as np

from . import background
from .budget import Budget, OutOfBudget
from .finding import Finding, Site, Stop, found_at
from .memory import Memory
from .translate import Program
from .tree import Variable
from .types import Array, Type
from .wave import EVENT_SHIFT, WARP, Launch, Wave

#: In which order work-items run.
Order = Literal["lockstep", "warps"]
MOST_LANES = 16_384


@dataclass(frozen=True)
class Local:
    """An argument that points to local memory: what each work-group has there."""

    type: Array


class Turn:
    """Runs a wave from barrier to barrier, while nobody else runs."""

    def __init__(self, machine: Machine, wave: Wave, args: list[Any]):
        self.machine, self.wave, self.args = machine, wave, args
        self._may_go, self._has_come = background.Event(), background.Event()
        self._is_closed = self._has_ended = False
        #: Where it waits, None at its end, or an error.
        self._came: Site | BaseException | None = None
        wave.pause = self.wait
        background.start(self.run)

    def run(self) -> None:
        """Run the wave; this is another thread."""
        try:
            self._pass()
            with np.errstate(all="ignore"):
                self.machine.program.code(self.wave, self.args)
            self._came = None
        except BaseException as error:
            self._came = error
        self._has_ended = True
        self._has_come.set()

    def wait(self, site: Site) -> None:
        """Wait at a barrier; this is the other thread."""
        self._came, self._may_go = site, background.Event()
        self._has_come.set()
        self._pass()

    def _pass(self) -> None:
        self._may_go.wait()
        if self._is_closed:
            raise SystemExit
        self.machine.wave = self.wave

    def go_on(self) -> Site | None:
        """To the next barrier."""
        self._has_come = background.Event()
        self._may_go.set()
        if not self._has_come.wait():
            raise RuntimeError(
                "warps cannot take turns here: Python in a browser suspends them, which Chrome and "
                "Edge allow from version 137"
            )
        if isinstance(self._came, BaseException):
            raise self._came
        return self._came

    def close(self) -> None:
        """End what has not ended."""
        if not self._has_ended:
            self._is_closed, self._has_come = True, background.Event()
            self._may_go.set()
            self._has_come.wait()


class Machine(Launch):
    """A launch of a program; `run` carries it out.

    Attributes (beside those of `Launch`):
        stop: the finding after which it could not go on; unfinished: the limit that ended it, and
            the loop that spent most.
        wave: the one that runs now.
    """

    def __init__(self, program: Program, global_size: Sequence[int], local_size: Sequence[int],
                 limit: int, budget: Budget | None = None):  # fmt: skip
        super().__init__(global_size, local_size, limit, budget or Budget())
        self.program = program
        self.stop: Finding | None = None
        self.unfinished: Finding | None = None
        self.wave: Wave | None = None
        self.begun = 0.0  # seconds that the budget had spent
        self.local_arguments: dict[int, Array] = {}  # by their positions

    def __getstate__(self) -> dict[str, Any]:
        """A run can be sent to another process, but the Python functions that it called cannot."""
        return {**vars(self), "program": None, "wave": None, "arrays": {}}

    def run(self, args: Sequence[object], order: Order = "lockstep", seed: int = 0,
            groups: Sequence[tuple[int, ...]] | None = None) -> None:  # fmt: skip
        """Run all groups, or some, on numbers and `Memory`; `order` is "lockstep" or "warps"."""
        if order not in get_args(Order):
            raise ValueError(f"order must be 'lockstep' or 'warps', not {order!r}")
        for memory in (a for a in args if isinstance(a, Memory)):
            memory.address = 0  # what it has is of another launch
            self.new(memory)
        given = [self.address(a) if isinstance(a, Memory) else a for a in args]
        self.local_arguments = {n: a.type for n, a in enumerate(args) if isinstance(a, Local)}
        chosen = np.arange(prod(self.num_groups))
        if groups is not None:
            at = np.array([(*group, 0, 0)[:3] for group in groups], int).reshape(-1, 3)
            try:
                chosen = np.ravel_multi_index(tuple(at.T), self.num_groups, order="F")
            except ValueError:
                there = self.num_groups[: self.dimensions]
                message = f"groups holds {list(groups)}, but there are only {there} groups"
                raise ValueError(message) from None
        everyone, together = np.arange(self.work_items), max(1, MOST_LANES // self.work_items)
        self.begun = self.budget.spent
        try:
            with np.errstate(all="ignore"):
                first = Wave(self, chosen[:1], everyone)
                for make in self.program.tables:
                    make(first)
                self.arrays = dict(first.held)
                if order == "lockstep":
                    for part in np.split(chosen, range(together, len(chosen), together)):
                        own = self.local(part, given)
                        self.wave = Wave(self, part, everyone)
                        self.program.code(self.wave, own)
                else:
                    rng = np.random.default_rng(seed)
                    for group in rng.permutation(chosen):
                        self.take_turns(np.array([group]), given, rng)
                if waiting := sorted(self.flying):
                    site = self.copies[(waiting[0] >> EVENT_SHIFT) - 1]
                    text = f"{site.text}: no wait_group_events waits for this copy"
                    self.findings.append(found_at(site, "never awaited", text, (), 0))
        except Stop as stop:
            self.findings.append(stop.finding)
            self.stop = stop.finding
        except OutOfBudget as error:
            self.unfinished = self._interrupted(str(error))

    def _interrupted(self, why: str) -> Finding:
        """What a limit has ended: the innermost loop that took half of the time."""
        spent, loops = self.budget.spent, self.wave.loops if self.wave else []
        long = [loop for loop in loops if 2 * (spent - loop.begun) >= spent - self.begun]
        if not loops:
            return Finding("unfinished", why)
        loop = (long or loops)[-1]
        text = f"{why}, in iteration {loop.rounds:,} of this loop"
        return found_at(loop.site, "unfinished", text, (), 0)

    def local(self, groups: np.ndarray, args: list[Any]) -> list[Any]:
        """Make local memory for some groups; return the arguments with pointers to it."""
        copies, args = len(groups), list(args)
        slot = np.repeat(np.arange(copies), self.work_items) if copies > 1 else 0
        params = {self.program.params[n]: of for n, of in self.local_arguments.items()}
        arrays: dict[Variable, Type] = {a: a.type for a in self.program.locals} | params
        self.room(sum(of.stride for of in arrays.values()) * copies)
        for a, of in arrays.items():
            self.arrays[a] = self.new(Memory(a.name, "local", of, copies, slot))
        for number in self.local_arguments:
            args[number] = self.address(self.arrays.pop(self.program.params[number]))
        return args

    def take_turns(self, group: np.ndarray, args: list[Any], rng: np.random.Generator) -> None:
        """Run the warps of a group from barrier to barrier, in random order."""
        args = self.local(group, args)
        warps = np.split(np.arange(self.work_items), range(WARP, self.work_items, WARP))
        turns = [Turn(self, Wave(self, group, items), args) for items in warps]
        try:
            sites: dict[Site | None, Wave] = {}
            while None not in sites:  # where they stop, None for the end, and one that does
                sites = {}
                for i in rng.permutation(len(turns)).tolist():
                    sites.setdefault(turns[i].go_on(), turns[i].wave)
                if len(sites) > 1:
                    stops = sorted(sites.items(), key=lambda stop: stop[0] is None)
                    (site, wave), (elsewhere, other) = stops[:2]
                    assert site is not None
                    who, whom = wave.item(0), other.item(0)
                    does = "waits at another barrier" if elsewhere else "has ended"
                    text = f"barrier: {who} waits here, and {whom} {does}"
                    raise Stop(found_at(site, "divergent barrier", text, (who, whom), 2))
        finally:
            for turn in turns:
                turn.close()
