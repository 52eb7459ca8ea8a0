"""A picture to step through: every choice is a slider, and every move redraws the picture.

A simulated run is stepped through line by line: its kernel's text with the line that is carried
out, beside a picture of what the line touches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from html import escape
from numbers import Number
from typing import Any

import ipywidgets as w

from ..draw.picture import Picture
from ..draw.replay import Replay
from ..simt import ProductRun
from .listing import listing
from .shell import Sliders, choice, line, slider

#: Milliseconds between two steps of a film; drawing one takes 60 to 200.
INTERVAL = 400


class Stepper(Sliders):
    """Sliders above a picture, or above a kernel's text and a picture.

    Args:
        show: a simulated run; or a function that is called with one keyword argument per choice and
            returns a simulated run or a `Picture`.
        choices: the values of each slider by its name; it starts at the first one given. Numbers
            are put in order, and a `range` gets a button that plays through it.
        start: where the sliders start that a simulated run has of its own: "step" (from 1 on),
            "item", "group".

    Examples:
        ``Stepper(gemmlab.simulate(2, 16, 16, 16))``
        ``Stepper(lambda rows, cols: diagram.layout(rows, cols), rows=(3, 4), cols=(4, 5))``
    """

    def __init__(
        self,
        show: ProductRun | Callable[..., Any],
        /,
        start: dict[str, int] | None = None,
        **choices,
    ):
        super().__init__()
        self._what: Callable[..., Any] = show if callable(show) else lambda: show
        controls = {name: _in_order(name, values) for name, values in choices.items()}
        self._choices = list(choices)
        self._replays: dict[tuple, Replay] = {}
        first = self._what(**{name: control.value for name, control in controls.items()})
        self._film = isinstance(first, ProductRun)
        if not self._film and not hasattr(first, "svg"):
            kind = type(first).__name__
            raise TypeError(f"show must be a simulated run, or return one or a picture, not {kind}")
        played = [name for name, values in choices.items() if isinstance(values, range)]
        buttons: list[w.Widget] = [_film_buttons(controls[name])[0] for name in played]
        if len(played) > 1:  # which buttons play what
            buttons = [
                w.HBox([w.Label(name), play]) for name, play in zip(played, buttons, strict=True)
            ]
        if self._film:
            start = {"step": 1, "item": 0, **(start or {})}
            buttons.append(self._add_film(first, controls, start))
        elif start:
            raise ValueError(f"start is for simulated runs only: {start}")
        self.name = "picture to step through, by " + ", ".join(controls)
        self.follow(controls, line(*buttons))

    def _add_film(
        self, run: ProductRun, controls: dict[str, w.Widget], start: dict[str, int]
    ) -> w.HBox:
        """Add sliders for step, work-item and, optionally, work-group; the buttons to play."""
        key = (start.get("group", 0), *(control.value for control in controls.values()))
        replay = self._replays[key] = Replay(run, key[0])
        ranges = {"step": range(1, len(replay.steps) + 1), "item": range(replay.items)}
        if "group" in start:
            ranges["group"] = range(run.global_size[0] * run.global_size[1] // replay.items)
        for name, value in start.items():
            values = ranges.get(name, range(0))
            if value not in values:
                sliders = ", ".join(f"{n} {r[0]} to {r[-1]}" for n, r in ranges.items())
                raise ValueError(f"start has {name}={value}; the sliders are {sliders}")
            controls[name] = slider(name, values, value)
        controls["step"].add_class("gemmlab-scrubber")  # it has hundreds of positions
        buttons, self._play = _film_buttons(controls["step"])
        return buttons

    def _replay(self, values: dict) -> Replay:
        """The run for these positions, with its pictures."""
        choices = {name: values[name] for name in self._choices}
        key = (values.get("group", 0), *choices.values())
        if key not in self._replays:
            self._replays[key] = Replay(self._what(**choices), key[0])
        return self._replays[key]

    def _fit(self, values: dict, replay: Replay) -> None:
        """Move the sliders of step and work-item into a replay that has fewer or more of them."""
        self.settling = True
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
        self._play.max = len(replay.steps) - 1
        self.settling = False

    def content(self, values: dict) -> str:
        """A picture and its words; or words, and below them the kernel's text beside a picture."""
        if not self._film:
            picture = self._what(**values)
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

    def still(self) -> Picture:
        """The picture where the sliders started."""
        values = self.start
        if not self._film:
            return self._what(**values)
        return self._replay(values).picture(values["step"], values["item"])


def _film_buttons(control: w.SelectionSlider) -> tuple[w.HBox, w.Play]:
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
    back, forward = (
        w.Button(icon=f"step-{way}", tooltip=f"{name}: one {way}", layout=w.Layout(width="40px"))
        for way in ("backward", "forward")
    )
    back.on_click(lambda button: _step(control, -1))
    forward.on_click(lambda button: _step(control, 1))
    return w.HBox([back, play, forward]), play


def _step(control: w.SelectionSlider, by: int) -> None:
    control.index = min(max(control.index + by, 0), len(control.options) - 1)


def _in_order(name: str, values) -> w.SelectionSlider | w.ToggleButtons:
    """A slider over these numbers, in order, or buttons for these words; it starts at the first."""
    if isinstance(values, str) or not isinstance(values, Iterable) or not (given := list(values)):
        raise ValueError(f"{name} must be some values to choose from, not {values!r}")
    values = list(dict.fromkeys(given))
    ordered = sorted(values) if all(isinstance(value, Number) for value in values) else values
    return choice(name, ordered, values[0])
