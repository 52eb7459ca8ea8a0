"""A picture to step through: every choice is a slider, and every move redraws the picture.

A simulated run is stepped through line by line: its kernel's text with the line that is carried
out, beside a picture of what the line touches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from dataclasses import replace
from html import escape
from numbers import Number
from typing import Any

from .. import background
from ..draw.picture import Picture
from ..draw.replay import Replay
from ..simulation import ProductRun
from .controls import Control
from .listing import listing, renumber
from .shell import Act, Shell


class Stepper(Shell):
    """Sliders above a picture, or above a kernel's text and a picture.

    Args:
        show: a simulated run; or a function that is called with one keyword argument per choice and
            returns a simulated run, a `Picture` or HTML.
        choices: the values of each slider by its name; it starts at the first one given. Numbers
            are put in order, and a `range` gets a button that plays through it.
        start: where sliders start; also those of a simulated run: "step" (from 1
            on), "item", "group".

    Examples:
        ``Stepper(gemmlab.simulate(2, 16, 16, 16))``
        ``Stepper(lambda rows, cols: diagram.layout(rows, cols), rows=(3, 4), cols=(4, 5))``
    """

    #: Lines of the kernel's text that a notebook's cell holds, if it holds only a part.
    lines: range | None = None
    #: What is above it: findings of the run that need not be repeated.
    above: str = ""

    def __init__(
        self,
        show: ProductRun | Callable[..., Any],
        /,
        start: dict[str, int] | None = None,
        **choices: Iterable[Any],
    ):
        super().__init__("stepper")
        self._what: Callable[..., Any] = show if callable(show) else lambda: show
        self._choices, self._replays = list(choices), dict[tuple[Any, ...], Replay]()
        start = start or {}
        self.controls: dict[str, Control] = {
            name: _in_order(name, values, start) for name, values in choices.items()
        }
        first = self._what(**self.values)
        self._film = isinstance(first, ProductRun)
        if not self._film and not isinstance(first, str | Picture):
            kind = type(first).__name__
            raise TypeError(f"show must be a simulated run, or return one or a picture, not {kind}")
        if self._film:
            self._add_film(first, start)
        if unknown := start.keys() - self.controls:
            raise ValueError(f"start: there is no slider {', '.join(unknown)}")
        self.name = "picture to step through, by " + ", ".join(self.controls)
        self.start: dict[str, Any] = self.values
        self._lock = threading.Lock()  # held while the two below are read or changed
        self._newest: dict[str, Any] | None = None  # the last move, until it is shown
        self._following = False  # whether a thread shows moves
        self.show(self.values)

    @property
    def values(self) -> dict[str, Any]:
        """The present positions of the controls."""
        return {name: control.value for name, control in self.controls.items()}

    def hear(self, act: Act) -> None:
        match act:
            case {"move": name, "to": label, "at": at} if name in self.controls:
                self.panel.heard = at
                self.move({**self.values, name: self.controls[name].option(label)})
            case {"type": name, "text": text} if name in self.controls:
                try:
                    self.move({**self.values, name: self.controls[name].option(text)})
                except ValueError as error:
                    self.refuse(name, str(error))

    def move(self, values: dict[str, Any]) -> None:
        """Move the controls, and show what belongs to these positions as soon as possible."""
        for name, value in values.items():
            self.controls[name] = replace(self.controls[name], value=value)
        with self._lock:
            self._newest = values
            if self._following:
                return
            self._following = True
        background.start(self._follow)

    def _follow(self) -> None:
        """Show the newest of the moves, until there is none."""
        while True:
            with self._lock:
                values, self._newest = self._newest, None
                self._following = values is not None
            if values is None:
                return
            self.show(values)

    def show(self, values: dict[str, Any]) -> None:
        """Show what belongs to these positions."""
        try:
            content = self._content(values)
        except Exception as error:  # nobody reads the log console, so the panel says it
            content = escape(f"{type(error).__name__}: {error}")
        key = escape(" ".join(f"{name}={value}" for name, value in values.items()))
        answer = f'<div data-key="{key}" style="line-height:1.5">{content}</div>'
        self.panel.show(
            controls=[control.data() for control in self.controls.values()],
            parts={"answer": answer},
        )

    def _add_film(self, run: ProductRun, start: dict[str, int]) -> None:
        """Add sliders for step, work-item and, optionally, work-group."""
        key = (start.get("group", 0), *self.values.values())
        replay = self._replays[key] = Replay(run, key[0])
        ranges = {"step": range(1, len(replay.steps) + 1), "item": range(replay.items)}
        if "group" in start:
            ranges["group"] = range(run.global_size[0] * run.global_size[1] // replay.items)
        for name, values in ranges.items():
            control = _in_order(name, values, start)
            self.controls[name] = replace(control, film=name == "step")

    def _replay(self, values: dict[str, Any]) -> Replay:
        """The run for these positions, with its pictures."""
        choices = {name: values[name] for name in self._choices}
        key = (values.get("group", 0), *choices.values())
        if key not in self._replays:
            self._replays[key] = Replay(self._what(**choices), key[0])
        return self._replays[key]

    def _fit(self, values: dict[str, Any], replay: Replay) -> None:
        """Move the sliders of step and work-item into a replay that has fewer or more of them."""
        for name, there in (
            ("step", range(1, len(replay.steps) + 1)),
            ("item", range(replay.items)),
        ):
            values[name] = min(values[name], there[-1])
            self.controls[name] = replace(self.controls[name], options=there, value=values[name])

    def _content(self, values: dict[str, Any]) -> str:
        """A picture and its words; or words, and below them the kernel's text beside a picture."""
        if not self._film:
            picture = self._what(**values)
            if isinstance(picture, str):
                return picture
            svg, alt = picture.svg(), escape(picture.alt)
            look = "gemmlab-said" + " gemmlab-spoken" * (svg.count(alt) > 1)  # its title says it
            return f"<div class='gemmlab-wide'>{svg}</div><p class='{look}'>{alt}</p>"
        replay = self._replay(values)
        self._fit(values, replay)
        step, item = values["step"], values["item"]
        run = replay.run
        numbers = {"M": run.m, "N": run.n, "K": run.k, **run.params}
        text = listing(run, replay.steps[step - 1].line, numbers, self.lines, self.above)
        side = '<div class="gemmlab-wide" style="flex:1 1 {}px;min-width:0">{}</div>'
        said = renumber(replay.words(step, item), self.lines)
        words = f'<p class="gemmlab-said" style="margin:2px 0;min-height:4.5em">{escape(said)}</p>'
        both = side.format(220, text) + side.format(320, replay.picture(step, item).svg())
        return f'{words}<div style="display:flex;flex-wrap:wrap;gap:12px">{both}</div>'

    def still(self) -> Picture | str:
        """The picture where the sliders started."""
        values = self.start
        if not self._film:
            return self._what(**values)
        return self._replay(values).picture(values["step"], values["item"])


def _in_order(name: str, values: Any, start: dict[str, Any]) -> Control:
    """A slider over these numbers, in order, or buttons for these words or pairs of numbers."""
    if isinstance(values, str) or not isinstance(values, Iterable) or not (options := [*values]):
        raise ValueError(f"{name} must be some values to choose from, not {values!r}")
    first = start.get(name, options[0])
    if first not in options:
        many = len(options) >= 20
        words = f"{options[0]} to {options[-1]}" if many else ", ".join(map(str, options))
        raise ValueError(f"{name} starts at {first!r}; it has the positions {words}")
    film, options = isinstance(values, range), [*dict.fromkeys(options)]
    if all(isinstance(option, Number | tuple) for option in options):
        options.sort()
    return Control(name, options, first, film=film)
