"""The controls of an explorer, and what moves when one of them moves."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from html import escape

import ipywidgets as w

from ..ladder import KernelSpec, find
from ..ladder.spec import Limits
from .shell import Choice, choice

#: Sizes to choose from; any other can be typed.
SIZES = sorted({*(2**e for e in range(4, 14)), 100, 200, 500, 1000, 5000})
#: So many parameters are always in view; these are among the last.
IN_VIEW, FOLDED = 4, ("TSK", "RK", "PAD", "UNROLL")
MEANINGS = {
    "M": "rows of A and C; N and K follow while M = N = K",
    "N": "columns of B and C",
    "K": "columns of A, rows of B",
}


def ranked(spec: KernelSpec) -> list[str]:
    """The parameters; if one or two are new in this kernel, these first."""
    names = sorted(spec.defaults, key=lambda name: name in FOLDED)
    new = [name for name in names if spec.before and name not in find(spec.before).defaults]
    first = new if len(new) <= 2 else []
    return [*first, *(name for name in names if name not in first)]


class Settings:
    """Controls for the parameters of a kernel and for M, N and K.

    A person moves one or several of them; where a rule asks for it others give way, and are marked
    until the next move. What has been moved is compared with the settings of the last `commit`.

    Attributes:
        limits: those of the device.
        first, others: the boxes of the controls that are in view, and of the others.
        base: the settings of the last commit.
        notes: a sentence for each control that gave way, and why.
        touched: what a person has moved since the last commit, the latest last.
        lock: held while controls are moved.
    """

    def __init__(
        self, spec: KernelSpec, limits: Limits, start: Mapping[str, int], moved: Callable[[], None]
    ):
        self.spec: KernelSpec = spec
        self.limits: Limits = limits
        self._tell = moved
        self.base: dict[str, int] = dict(start)
        self.touched: dict[str, int] = {}
        self.notes: Sequence[str] = ()
        self.lock: threading.RLock = threading.RLock()
        self._placing = False  # whether it is us who move the controls
        self.controls: dict[str, Choice] = {}
        self.boxes: dict[str, w.VBox] = {}
        for param in spec.params:
            self._add(param.name, sorted({*param.choices, start[param.name]}), param.meaning)
        for size, meaning in MEANINGS.items():
            self._add(size, sorted({*SIZES, start[size]}), meaning)
        shown = {*ranked(spec)[:IN_VIEW], "M"}
        self.first: list[w.VBox] = [box for name, box in self.boxes.items() if name in shown]
        self.others: list[w.VBox] = [box for name, box in self.boxes.items() if name not in shown]

    def _add(self, name: str, values: Sequence[int], meaning: str) -> None:
        """A control with its meaning below; a parameter that is 0 or 1 has buttons."""
        switch = {0: "off", 1: "on"} if values == [0, 1] else None
        if switch:
            meaning = meaning.replace("1: ", "on: ", 1).replace("; 0: ", "; off: ", 1)
        words = escape(meaning)
        said = w.HTML(f'<div class="gemmlab-meaning" title="{words}">{words}</div>')
        control = self.controls[name] = choice(name, values, self.base[name], switch, meaning)
        control.observe(lambda change: self._moved(name), "value")
        self.boxes[name] = w.VBox([control, said]).add_class("gemmlab-control")

    @property
    def values(self) -> dict[str, int]:
        return {name: control.value for name, control in self.controls.items()}

    def params(self, values: Mapping[str, int]) -> dict[str, int]:
        return {name: values[name] for name in self.spec.defaults}

    def commit(self) -> dict[str, int]:
        """The present settings are those that count from now on."""
        self.base, self.touched = self.values, {}
        return self.base

    def place(self, values: Mapping[str, int], notes: Sequence[str] = ()) -> None:
        """Move controls, without a call of `moved`; `notes` say which of them gave way, and why."""
        with self.lock:
            self._put(values)
            self.notes = notes
            for name, box in self.boxes.items():
                gave_way = any(note.startswith(f"{name} moved ") for note in notes)
                (box.add_class if gave_way else box.remove_class)("gemmlab-gave-way")

    def type(self, name: str, value: int) -> None:
        """Move a control, as a person does, to a value that may not be on it."""
        with self.lock:
            self._put({name: value})
            self._moved(name)

    def _put(self, values: Mapping[str, int]) -> None:
        """Move controls; a slider gets the position that it lacks."""
        self._placing = True
        try:
            for name, value in values.items():
                control = self.controls[name]
                there = [value for _, value in control.options]
                if value not in there:
                    # A separate message, which leaves the handle where it is: a page that got the
                    # options together with the value would move it on the old, shorter track.
                    position = control.index
                    with control.hold_sync():
                        control.options = [(str(v), v) for v in sorted([*there, value])]
                        control.index = position
                control.value = value
        finally:
            self._placing = False

    def _moved(self, name: str) -> None:
        """A person has moved a control: move those that depend on it. Never raises."""
        with self.lock:
            if self._placing:
                return
            before = self.base | self.touched
            follow = name == "M" and len({before[size] for size in MEANINGS}) == 1
            self.touched.pop(name, None)
            value = self.controls[name].value
            self.touched |= dict.fromkeys(MEANINGS if follow else [name], value)
            values, notes = self.base | self.touched, list[str]()
            latest = [name for name in self.touched if name in self.spec.defaults][-1:]
            if latest:
                params = self.params(values)
                near, notes = self.spec.nearest_legal(params, latest[0], self.limits)
                values |= near
                notes = [] if near == params else notes  # of what nothing helps, the answer says it
            self.place(values, notes)
            self._tell()
