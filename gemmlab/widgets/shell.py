"""What all widgets share: controls above one panel of HTML, a bridge to the page, and a static picture."""

from __future__ import annotations

import html
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import anywidget
import ipywidgets as w
from IPython.display import display

from ..draw.picture import Picture
from ..worker.mailbox import Mailbox


class Bridge(anywidget.AnyWidget):
    """The part of a widget that runs in the page: see ``bridge.js``."""

    _esm = Path(__file__).with_name("bridge.js")
    #: A slider's value is never cut, however wide the letters of the page are.
    _css = ".gemmlab .widget-readout { min-width: max-content; }"


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


def on_any_thread(control: w.Widget, action: Callable) -> None:
    """Call `action(control)` when the value of `control` changes, even while a cell is running (see `free`)."""
    control.observe(lambda change: action(change["owner"]), names="value")


def free(control: w.Widget) -> None:
    """Let events of `control` arrive while a cell is running.

    ipykernel sends the events of a control to the thread that last sent something to the page for it. After a
    cell made or changed it, that is the main thread, which is busy while a cell runs. Without this private
    attribute they go to the thread that the page names.
    """
    vars(control.comm).pop("_reply_subshell_id", None)


class Newest:
    """Runs `work(argument)` on a separate thread, always with the newest argument; older ones are dropped."""

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

    Subclasses fill `panel`, set `name`, and define `still()`, the picture for readers without a running kernel.
    """

    name = "widget"

    def __init__(self, *rows: list[w.Widget], buttons: Sequence[w.Widget] = (), height: int = 0):
        grid = w.Layout(grid_template_columns="repeat(auto-fill, minmax(260px, 1fr))", max_width="860px")
        self.panel = w.HTML(layout=w.Layout(min_height=f"{height}px", max_width="860px", margin="6px 0"))
        self.panel.add_class("gemmlab-result")
        self._all = [*sum(rows, []), *buttons]
        boxes = [w.GridBox(row, layout=grid) for row in rows if row]
        if buttons:
            line = w.Layout(flex_flow="row wrap", align_items="center", grid_gap="0 16px", max_width="860px")
            boxes.append(w.HBox(buttons, layout=line))
        self.box = w.VBox([*boxes, self.panel, Bridge()])
        self.box.add_class("gemmlab")

    def ready(self) -> None:
        """Called before the widget is shown; a subclass waits here for its first result, so the cell ends with it."""

    def still(self) -> Picture:
        """The static picture for readers without a running kernel."""
        raise NotImplementedError

    def _ipython_display_(self) -> None:
        self.ready()
        view = self.box._repr_mimebundle_()
        data = view[0] if isinstance(view, tuple) else view
        display({**data, "text/plain": f"[{self.name}: run the cell to move it]"}, raw=True)
        bundle, size = self.still()._repr_mimebundle_()
        display({**bundle, "text/plain": f"[static picture of {self.name}]"}, metadata=size, raw=True)
        for control in self._all:
            free(control)


def escape(text: str) -> str:
    return html.escape(text, quote=True)
