"""What all widgets share: controls above one panel of HTML, a bridge to the page, and a static
picture.
"""

from __future__ import annotations

import html
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as w
import traitlets
from IPython.display import display

from ..draw.picture import Picture
from ..worker.mailbox import Mailbox

#: Seconds that a thread waits before it draws a picture. Meanwhile, what is said in words is sent
#: to the page: drawing would delay that, as only one thread of Python runs at a time.
WORDS_FIRST = 0.03


class Bridge(anywidget.AnyWidget):
    """The part of a widget that runs in the page: see ``bridge.js``.

    Attributes:
        held: whether a slider is being dragged, or a key on it is down; None for widgets that do
            not ask for it.
    """

    _esm = Path(__file__).with_name("bridge.js")
    _css = Path(__file__).with_name("bridge.css")
    held = traitlets.Bool(None, allow_none=True).tag(sync=True)


def slider(name: str, options, value, tooltip: str = "") -> w.SelectionSlider:
    """A labelled slider with a few positions; arrow keys move it."""
    return w.SelectionSlider(
        options=[(str(option), option) for option in options],
        value=value,
        description=name,
        tooltip=tooltip or None,
        continuous_update=True,
        layout=w.Layout(width="auto"),
        style={"description_width": f"{max(64, 9 * len(name))}px"},
    )


class Control:
    """A parameter or a size: a slider, or a box where it is only switched on and off, with its
    meaning below.

    Args:
        name: its label.
        values: those to choose from; (0, 1) makes a box.
        value: the initial one.
        meaning: what it is, in words and units.
    """

    def __init__(self, name: str, values: Sequence[int], value: int, meaning: str):
        self.name, self._meaning = name, meaning
        self.widget: w.SelectionSlider | w.Checkbox
        if list(values) == [0, 1]:
            self.widget = w.Checkbox(
                bool(value), description=name, indent=False, layout=w.Layout(width="auto")
            )
            self._meaning = meaning.replace("1: ", "on: ", 1).replace("; 0: ", "; off: ", 1)
        else:
            self.widget = slider(name, values, value)
        self._words = w.HTML(self._said(""))
        self.box = w.VBox([self.widget, self._words])
        self.box.add_class("gemmlab-control")

    @property
    def value(self) -> int:
        """The present value; a box that is ticked is 1."""
        return int(self.widget.value)

    @value.setter
    def value(self, value: int) -> None:
        if value != self.value:
            self.widget.value = bool(value) if isinstance(self.widget, w.Checkbox) else value

    @property
    def values(self) -> list[int]:
        """The values to choose from."""
        return (
            [0, 1]
            if isinstance(self.widget, w.Checkbox)
            else [value for _, value in self.widget.options]
        )

    def offer(self, values: Iterable[int]) -> None:
        """Change the positions of a slider; it keeps its value, which must be one of them."""
        value = self.widget.value
        # this moves the slider to the first
        self.widget.options = [(str(v), v) for v in sorted(values)]
        self.widget.value = value

    def learn(self, value: int) -> None:
        """Add a position to a slider, if it does not have it."""
        if value not in self.values:
            self.offer([*self.values, value])

    def gave_way(self, why: str = "") -> None:
        """Mark the control as one that another has moved, with the reason; without a reason the
        mark goes.
        """
        words = self._said(why)
        if words != self._words.value:
            self._words.value = words
            (self.box.add_class if why else self.box.remove_class)("gemmlab-gave-way")

    def _said(self, why: str) -> str:
        return f'<div class="gemmlab-meaning">{escape(why or self._meaning)}</div>'


def on_any_thread(control: w.Widget, action: Callable) -> None:
    """Call `action(control)` when the value of `control` changes, even while a cell is running (see
    `free`).
    """
    control.observe(lambda change: action(change["owner"]), names="value")


def free(control: w.Widget) -> None:
    """Let events of `control` arrive while a cell is running.

    ipykernel sends the events of a control to the thread that last sent something to the page for
    it. After a cell made or changed it, that is the main thread, which is busy while a cell runs.
    Without this private attribute they go to the thread that the page names.
    """
    if control.comm is not None:
        vars(control.comm).pop("_reply_subshell_id", None)


def inside(widget: w.Widget) -> Iterator[w.Widget]:
    """A widget and all widgets in it."""
    yield widget
    for child in getattr(widget, "children", ()):
        yield from inside(child)


class Newest:
    """Runs `work(argument)` on a separate thread, always with the newest argument; older ones are
    dropped.
    """

    def __init__(self, work: Callable[[Any], None]):
        self._work = work
        self._mailbox: Mailbox[Any] = Mailbox()
        threading.Thread(target=self._loop, daemon=True).start()

    def __call__(self, argument: Any) -> None:
        self._mailbox.put("newest", argument)

    def _loop(self) -> None:
        while True:
            self._work(self._mailbox.take())


class Shell:
    """Controls above a panel, and how they are shown.

    Subclasses fill `panel`, set `name`, and define `still()`, the picture for readers without a
    running kernel.

    Args:
        rows: groups of controls; each is laid out as a separate grid.
        buttons: what stands in a line below them.
        above, below: what stands above and below the panel.
        pictures: what belongs to the panel's answer, but may come a moment later.
        height: the least height of the answer, in CSS pixels.

    Attributes:
        answer: the panel, and its pictures.
    """

    name = "widget"

    def __init__(
        self,
        *rows: Sequence[w.Widget],
        buttons: Sequence[w.Widget] = (),
        above: Sequence[w.Widget] = (),
        below: Sequence[w.Widget] = (),
        pictures: Sequence[w.Widget] = (),
        height: int = 0,
    ):
        grid = w.Layout(
            grid_template_columns="repeat(auto-fill, minmax(min(300px, 100%), 1fr))",
            max_width="860px",
        )
        self.panel = w.HTML()
        self.answer: w.DOMWidget = w.VBox([self.panel, *pictures]) if pictures else self.panel
        self.answer.layout = w.Layout(min_height=f"{height}px", max_width="860px", margin="6px 0")
        self.answer.add_class("gemmlab-result")
        self.bridge = Bridge()
        self.bridge.on_msg(lambda bridge, message, buffers: self.said(message))
        boxes: list[w.Widget] = [w.GridBox(row, layout=grid) for row in rows if row]
        if buttons:
            line = w.Layout(
                flex_flow="row wrap", align_items="center", grid_gap="0 16px", max_width="860px"
            )
            boxes.append(w.HBox(buttons, layout=line))
        self.box = w.VBox([*boxes, *above, self.answer, *below, self.bridge])
        self.box.add_class("gemmlab")

    def said(self, message: dict[str, Any]) -> None:
        """The page says something, such as a value that was typed beside a slider. It is taken, or
        refused in words.
        """
        if "typed" not in message:
            return
        name, text = message["typed"], message["text"]
        found = (
            c
            for c in inside(self.box)
            if isinstance(c, w.SelectionSlider) and c.description == name
        )
        for control in found:
            values = {label: value for label, value in control.options}
            if text in values:
                control.value = values[text]
            else:
                words = f"{name} cannot be {text!r}: choose {self.choices(control)}."
                self.bridge.send({"refused": name, "words": words})

    def choices(self, control: w.SelectionSlider) -> str:
        """What can be typed beside a slider, in words."""
        return f"one of {', '.join(label for label, _ in control.options)}"

    def ready(self) -> None:
        """Called when the widget is shown; a subclass waits here for its first result, so the cell
        ends with it.
        """

    def still(self) -> Picture:
        """The static picture for readers without a running kernel."""
        raise NotImplementedError

    def _ipython_display_(self) -> None:
        view = self.box._repr_mimebundle_()
        data = view[0] if isinstance(view, tuple) else view
        plain = f"[{self.name}: run the cell to move it, and the cells above it first]"
        display({**data, "text/plain": plain}, raw=True)
        self._free()
        self.ready()
        bundle, size = self.still()._repr_mimebundle_()
        display(
            {**bundle, "text/plain": f"[static picture of {self.name}]"}, metadata=size, raw=True
        )
        self._free()

    def _free(self) -> None:
        for widget in inside(self.box):
            free(widget)


def escape(text: str) -> str:
    return html.escape(text, quote=True)
