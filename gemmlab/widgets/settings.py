"""The controls of an explorer: a kernel's parameters and sizes, and what moves when one of them
moves.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import ipywidgets as w

from ..catalog import KernelSpec, find
from ..catalog.spec import Limits, Param
from .shell import Control

#: Sizes to choose from; any other can be typed.
SIZES = sorted({*(2**e for e in range(4, 14)), 100, 200, 500, 1000, 5000})
#: So many parameters are always in view; these are among the last.
IN_VIEW, FOLDED = 4, ("TSK", "RK", "PAD", "UNROLL")
MEANINGS = {
    "M": "rows of A and C; N and K follow while M = N = K",
    "N": "columns of B and C",
    "K": "columns of A, rows of B",
}


def in_view(spec: KernelSpec) -> list[str]:
    """The four parameters that are always in view: first those that the kernel before does not
    have, if they are one or two.
    """
    ranked = sorted(spec.defaults, key=lambda name: name in FOLDED)
    new = [name for name in ranked if spec.before and name not in find(spec.before).defaults]
    first = new if len(new) <= 2 else []
    shown = [*first, *(name for name in ranked if name not in first)][:IN_VIEW]
    return [name for name in spec.defaults if name in shown]


class Settings:
    """Controls for the parameters of a kernel and for M, N and K.

    A person moves one or several of them; where a rule asks for it others give way, and are marked
    with the reason until the next move. What has been moved is compared with the settings of the
    last `commit`.

    Attributes:
        first, others: the boxes of the controls that are in view, and of the others.
        base: the settings of the last commit.
        notes: a sentence for each control that gave way, and why.
        touched: what a person has moved since the last commit, the latest last.
        lock: held while controls are moved.
    """

    def __init__(
        self, spec: KernelSpec, limits: Limits, start: Mapping[str, int], moved: Callable[[], None]
    ):
        self.spec, self._limits, self._start, self._tell = spec, limits, dict(start), moved
        self.base, self.touched, self.notes = dict(start), dict[str, int](), list[str]()
        self.lock = threading.RLock()
        self._ours = False  # whether it is us who move the controls
        self.controls = {
            param.name: Control(param.name, *self._offered(param), start[param.name])
            for param in spec.params
        }
        sizes = sorted({*SIZES, *(start[size] for size in "MNK")})
        self.controls |= {
            name: Control(name, sizes, what, start[name]) for name, what in MEANINGS.items()
        }
        shown = [*in_view(spec), "M"]
        self.first = [self.controls[name].box for name in shown]
        self.others = [control.box for name, control in self.controls.items() if name not in shown]
        self.square = w.Checkbox(self._is_square(start), description="M = N = K", indent=False)
        self.square.layout.width = "auto"
        for name, control in self.controls.items():
            control.widget.observe(lambda change, name=name: self._moved(name), "value")
        self.square.observe(lambda change: self._moved("M") if change["new"] else None, "value")

    @property
    def values(self) -> dict[str, int]:
        return {name: control.value for name, control in self.controls.items()}

    def params(self, values: Mapping[str, int]) -> dict[str, int]:
        return {name: values[name] for name in self.spec.defaults}

    def commit(self) -> dict[str, int]:
        """The present settings are those that count from now on."""
        self.base, self.touched = self.values, {}
        return self.base

    @contextmanager
    def _by_us(self) -> Iterator[None]:
        """What is moved meanwhile, nobody has moved."""
        with self.lock:
            self._ours = True
            try:
                yield
            finally:
                self._ours = False

    def place(self, values: Mapping[str, int], square: bool | None = None) -> None:
        """Move controls, without others giving way and without a call of `moved`. Sliders learn
        values they lack. The box stays as it is where it may.
        """
        with self._by_us():
            ticked = self.square.value if square is None else square
            self.square.value = ticked and self._is_square(values)
            for name, value in values.items():
                self.controls[name].learn(value)
                self.controls[name].value = value

    def mark(self, notes: list[str]) -> None:
        """Mark the controls that gave way, each with its reason, instead of those marked before."""
        self.notes = notes
        for name, control in self.controls.items():
            why = next((note for note in notes if note.startswith(f"{name} moved ")), "")
            control.gave_way(why)

    def learn_size(self, name: str, text: str) -> None:
        """Add a size that was typed to its slider, if it is one."""
        if name in MEANINGS and text.isdigit() and 1 <= int(text) <= SIZES[-1]:
            with self._by_us():
                self.controls[name].learn(int(text))

    def _moved(self, name: str) -> None:
        """A person has moved a control: move those that depend on it. Never raises."""
        with self.lock:
            if self._ours:
                return
            self.touched.pop(name, None)
            self.touched[name] = self.controls[name].value
            if name in MEANINGS and self.square.value:
                self.touched |= dict.fromkeys(MEANINGS, self.touched[name])
            values, notes = self.base | self.touched, list[str]()
            latest = [name for name in self.touched if name in self.spec.defaults][-1:]
            if latest:
                near, notes = self.spec.nearest_legal(self.params(values), latest[0], self._limits)
                values |= near
            self.place(values)
            self.mark(notes)
            self._tell()

    def allow(self, limits: Limits, start: Mapping[str, int]) -> None:
        """From now on the device has these limits: offer what it can take."""
        with self._by_us():
            self._limits, self._start = limits, dict(start)
            for param in self.spec.params:
                self.controls[param.name].offer(*self._offered(param))

    def _offered(self, param: Param) -> tuple[list[int], str]:
        """The values that this device can take, and the meaning, which says what it cannot."""
        start = self.params(self._start)
        offered, refused = {start[param.name]}, []
        for value in param.choices:
            near, _ = self.spec.nearest_legal(
                {**start, param.name: value}, param.name, self._limits
            )
            if self.spec.problems(near, self._limits):
                refused.append(str(value))
            else:
                offered.add(value)
        if len(offered) == 1:  # a control needs two
            offered |= set(param.choices)
        words = f" (not on this device: {', '.join(refused)})" if refused else ""
        return sorted(offered), param.meaning + words

    @staticmethod
    def _is_square(values: Mapping[str, int]) -> bool:
        return len({values[size] for size in "MNK"}) == 1
