"""A picture to step through: every choice is a slider, and every move redraws the picture."""

from __future__ import annotations

from collections.abc import Callable

from ..draw.picture import Picture
from .shell import Newest, Shell, escape, on_any_thread, slider


class Stepper(Shell):
    """Sliders above a picture.

    Args:
        draw: called with one keyword argument per slider; returns a Picture.
        choices: the values of each slider by its name; the first value is the initial one.

    Example:
        ``Stepper(lambda rows, cols: diagram.layout(rows, cols), rows=(3, 4), cols=(4, 5))``
    """

    def __init__(self, draw: Callable[..., Picture], **choices):
        self._draw = draw
        self._sliders = {name: slider(name, values, values[0]) for name, values in choices.items()}
        self.name = "picture to step through, by " + ", ".join(choices)
        super().__init__(list(self._sliders.values()))
        self._first = draw(**self.values)
        self._show((self.values, self._first))
        self._newest = Newest(lambda values: self._show((values, None)))
        for control in self._sliders.values():
            on_any_thread(control, lambda owner: self._newest(self.values))

    @property
    def values(self) -> dict:
        """The present positions of the sliders."""
        return {name: control.value for name, control in self._sliders.items()}

    def _show(self, shown) -> None:
        values, picture = shown
        key = escape(" ".join(f"{k}={v}" for k, v in values.items()))
        try:
            picture = picture or self._draw(**values)
            words, drawing = escape(picture.alt), picture.svg()
        except Exception as error:  # nobody reads the log console, so the panel says it
            words, drawing = escape(f"{type(error).__name__}: {error}"), ""
        words = f'<p style="margin:2px 0">{words}</p>'
        self.panel.value = f'<div data-key="{key}" style="line-height:1.5">{drawing}{words}</div>'

    def still(self) -> Picture:
        return self._first
