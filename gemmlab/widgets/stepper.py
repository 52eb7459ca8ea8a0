"""A picture to step through: every choice is a slider, and every move redraws the picture.

A simulated run is stepped through line by line: its kernel's text with the line that is carried
out, beside a picture of what the line touches.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from html import escape
from numbers import Number
from typing import Any

import ipywidgets as w

from .. import background
from ..draw.picture import Picture
from ..draw.replay import Replay
from ..simulation import ProductRun
from .listing import listing
from .shell import Choice, Shell, choice, grid, line

#: Milliseconds between two steps of a film at first; drawing one takes 60 to 200.
INTERVAL = 400


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

    def __init__(
        self,
        show: ProductRun | Callable[..., Any],
        /,
        start: dict[str, int] | None = None,
        **choices: Iterable[Any],
    ):
        super().__init__()
        self._what: Callable[..., Any] = show if callable(show) else lambda: show
        self._choices, self._replays = list(choices), dict[tuple[Any, ...], Replay]()
        start = start or {}
        controls = {name: _in_order(name, values, start) for name, values in choices.items()}
        first = self._what(**{name: control.value for name, control in controls.items()})
        self._film = isinstance(first, ProductRun)
        if not self._film and not isinstance(first, str | Picture):
            kind = type(first).__name__
            raise TypeError(f"show must be a simulated run, or return one or a picture, not {kind}")
        if self._film:
            controls |= self._add_film(first, controls, start)
        if unknown := start.keys() - controls:
            raise ValueError(f"start: there is no slider {', '.join(unknown)}")
        films = [name for name, values in choices.items() if isinstance(values, range)]
        films += ["step"] * self._film
        pause = w.BoundedIntText(
            INTERVAL,
            min=100,
            max=2000,
            step=100,
            description="ms a step",
            tooltip="Milliseconds between the steps of a film",
        )
        pause.layout.width = "160px"
        self._plays = {name: _film_buttons(controls[name], pause) for name in films}
        played = [part for name in films for part in (w.Label(name), *self._plays[name])]
        self.name = "picture to step through, by " + ", ".join(controls)
        self.controls: dict[str, Choice] = controls
        self.compose(grid([*controls.values()]), line(*played, *[pause][: len(films)]), self.panel)
        self.start: dict[str, Any] = self.values
        self.show(self.values)
        self._settling = False  # whether controls are being moved by the widget itself
        self._lock = threading.Lock()  # held while the two below are read or changed
        self._newest: dict[str, Any] | None = None  # the last move, until it is shown
        self._following = False  # whether a thread shows moves
        for control in controls.values():
            control.observe(self._moved, "value")

    @property
    def values(self) -> dict[str, Any]:
        """The present positions of the controls."""
        return {name: control.value for name, control in self.controls.items()}

    def _moved(self, change: dict[str, Any]) -> None:
        if self._settling:
            return
        with self._lock:
            self._newest = self.values
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
        self.panel.value = f'<div data-key="{key}" style="line-height:1.5">{content}</div>'

    def _add_film(
        self, run: ProductRun, controls: dict[str, w.Widget], start: dict[str, int]
    ) -> dict[str, w.Widget]:
        """Sliders for step, work-item and, optionally, work-group."""
        key = (start.get("group", 0), *(control.value for control in controls.values()))
        replay = self._replays[key] = Replay(run, key[0])
        ranges = {"step": range(1, len(replay.steps) + 1), "item": range(replay.items)}
        if "group" in start:
            ranges["group"] = range(run.global_size[0] * run.global_size[1] // replay.items)
        added = {name: _in_order(name, values, start) for name, values in ranges.items()}
        added["step"].add_class("gemmlab-scrubber")  # it has hundreds of positions
        return added

    def _replay(self, values: dict[str, Any]) -> Replay:
        """The run for these positions, with its pictures."""
        choices = {name: values[name] for name in self._choices}
        key = (values.get("group", 0), *choices.values())
        if key not in self._replays:
            self._replays[key] = Replay(self._what(**choices), key[0])
        return self._replays[key]

    def _fit(self, values: dict[str, Any], replay: Replay) -> None:
        """Move the sliders of step and work-item into a replay that has fewer or more of them."""
        self._settling = True
        try:
            for name, there in (
                ("step", range(1, len(replay.steps) + 1)),
                ("item", range(replay.items)),
            ):
                values[name] = min(values[name], there[-1])
                control = self.controls[name]
                if len(control.options) != len(there):
                    # this moves the slider to the first; in one message it would show no number
                    control.options = [(str(i), i) for i in there]
                    control.value = values[name]
            self._plays["step"][1].max = len(replay.steps) - 1
        finally:
            self._settling = False

    def _content(self, values: dict[str, Any]) -> str:
        """A picture and its words; or words, and below them the kernel's text beside a picture."""
        if not self._film:
            picture = self._what(**values)
            if isinstance(picture, str):
                return picture
            words = f"<p class='gemmlab-said' style='margin:2px 0'>{escape(picture.alt)}</p>"
            return f"<div class='gemmlab-wide'>{picture.svg()}</div>{words}"
        replay = self._replay(values)
        self._fit(values, replay)
        step, item = values["step"], values["item"]
        text = listing(replay.run, replay.steps[step - 1].line)
        side = '<div class="gemmlab-wide" style="flex:1 1 {}px;min-width:0">{}</div>'
        words = (
            '<p class="gemmlab-said" style="margin:2px '
            f'0;min-height:4.5em">{escape(replay.words(step, item))}</p>'
        )
        both = side.format(220, text) + side.format(320, replay.picture(step, item).svg())
        return f'{words}<div style="display:flex;flex-wrap:wrap;gap:12px">{both}</div>'

    def still(self) -> Picture | str:
        """The picture where the sliders started."""
        values = self.start
        if not self._film:
            return self._what(**values)
        return self._replay(values).picture(values["step"], values["item"])


def _film_buttons(
    control: w.SelectionSlider, pause: w.BoundedIntText
) -> tuple[w.Button, w.Play, w.Button]:
    """Buttons that move a slider: back, play, forward; only the page takes part in playing."""
    name, last = control.description, len(control.options) - 1
    play = w.Play(
        min=0,
        max=last,
        value=control.index,
        interval=INTERVAL,
        show_repeat=False,
        tooltip=f"Play through {name}",
    )
    w.jslink((play, "value"), (control, "index"))
    w.jslink((pause, "value"), (play, "interval"))
    back, forward = (
        w.Button(icon=f"step-{way}", tooltip=f"{name}: one {way}", layout=w.Layout(width="40px"))
        for way in ("backward", "forward")
    )
    back.on_click(lambda button: _step(control, -1))
    forward.on_click(lambda button: _step(control, 1))
    return back, play, forward


def _step(control: w.SelectionSlider, by: int) -> None:
    control.index = min(max(control.index + by, 0), len(control.options) - 1)


def _in_order(name: str, values: Any, start: dict[str, Any]) -> Choice:
    """A slider over these numbers, in order, or buttons for these words or pairs of numbers."""
    if isinstance(values, str) or not isinstance(values, Iterable) or not (given := list(values)):
        raise ValueError(f"{name} must be some values to choose from, not {values!r}")
    first = start.get(name, given[0])
    if first not in given:
        words = ", ".join(map(str, given)) if len(given) < 20 else f"{given[0]} to {given[-1]}"
        raise ValueError(f"{name} starts at {first!r}; it has the positions {words}")
    values = list(dict.fromkeys(given))
    ordered = sorted(values) if all(isinstance(one, (Number, tuple)) for one in values) else values
    return choice(name, ordered, first)
