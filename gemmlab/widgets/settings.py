"""The controls of an explorer."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

import ipywidgets as w

from ..ladder import KernelSpec, find
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

    Args:
        moved: called with the name and the value when a person moves a control.

    Attributes:
        controls, boxes: by name; a box has the control and its meaning.
        first, others: the boxes of the controls that are in view, and of the others.
    """

    def __init__(
        self, spec: KernelSpec, start: Mapping[str, int], moved: Callable[[str, int], None]
    ):
        self._start = start
        self._report = moved
        self._placing = False  # whether it is us who move the controls
        self.controls: dict[str, Choice] = {}
        self.boxes: dict[str, w.VBox] = {}
        for param in spec.params:
            self._add(param.name, param.choices, param.meaning)
        for size, meaning in MEANINGS.items():
            self._add(size, SIZES, meaning)
        shown = {*ranked(spec)[:IN_VIEW], "M"}
        self.first: list[w.VBox] = [box for name, box in self.boxes.items() if name in shown]
        self.others: list[w.VBox] = [box for name, box in self.boxes.items() if name not in shown]

    def _add(self, name: str, choices: Iterable[int], meaning: str) -> None:
        """Add a control with its meaning below; a parameter that is 0 or 1 has buttons."""
        values = sorted({*choices, self._start[name]})
        switch = {0: "off", 1: "on"} if values == [0, 1] else None
        if switch:
            meaning = meaning.replace("1: ", "on: ", 1).replace("; 0: ", "; off: ", 1)
        text = escape(meaning)
        below = w.HTML(f'<div class="gemmlab-meaning" title="{text}">{text}</div>')
        control = self.controls[name] = choice(name, values, self._start[name], switch, meaning)
        control.observe(lambda change: self._moved(name, change["new"]), "value")
        self.boxes[name] = w.VBox([control, below]).add_class("gemmlab-control")

    def _moved(self, name: str, value: int) -> None:
        if not self._placing:
            self._report(name, value)

    def place(self, values: Mapping[str, int]) -> None:
        """Move controls, without a call of `moved`; a slider gets a position that it lacks."""
        self._placing = True
        try:
            for name, value in values.items():
                control = self.controls[name]
                options = [value for _, value in control.options]
                if value not in options:
                    # A separate message, which leaves the handle where it is: a page that got the
                    # options together with the value would move it on the old, shorter track.
                    position = control.index
                    with control.hold_sync():
                        control.options = [(str(v), v) for v in sorted([*options, value])]
                        control.index = position
                control.value = value
        finally:
            self._placing = False

    def mark(self, notes: Sequence[str]) -> None:
        """Mark the controls that gave way, which the `notes` begin with."""
        for name, box in self.boxes.items():
            gave_way = any(note.startswith(f"{name} moved ") for note in notes)
            (box.add_class if gave_way else box.remove_class)("gemmlab-gave-way")
