"""What all widgets share: controls, a panel of HTML, a bridge to the page, a static picture."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from numbers import Number
from pathlib import Path
from typing import Any, TypeAlias

import anywidget
import ipywidgets as w
import traitlets
from IPython.display import DisplayHandle, display

from ..draw import style
from ..draw.picture import Picture

#: Between a widget and its still picture: what is seen where no kernel runs. In JupyterLab its
#: style hides the error that a reopened notebook shows instead of the widget.
AGAIN = """<style>.gemmlab-again input {{ display: none; }}
.jp-Notebook .gemmlab-again input {{ display: inline-block; margin-right: 10px; }}
.jp-OutputArea-child:has(+ .jp-OutputArea-child .gemmlab-again):not(:has(.gemmlab)) {{
  display: none; }}
</style><div class="gemmlab-again"><input type="button" value="Start again" onclick="{action}">
<span>{words}</span></div>"""
GONE = "To use this, run the notebook's cells from the first one."
# JupyterLab shows its commands to the page only if an option says so, as `make lab` does
ACTION = (
    "const app = window.jupyterapp;"
    "if (!app) { this.nextElementSibling.textContent += ' (Run, Run All Cells)'; }"
    "else { this.disabled = true; this.value = 'starting …'; const book = "
    "app.shell.currentWidget.content, cells = [...book.node.querySelectorAll('.jp-Cell')]; "
    "book.activeCellIndex = cells.indexOf(this.closest('.jp-Cell')); "
    "app.commands.execute('notebook:run-all-above').then(() => "
    "app.commands.execute('notebook:run-cell')); }"
)


Choice: TypeAlias = w.SelectionSlider | w.ToggleButtons


class Bridge(anywidget.AnyWidget):
    """The part of a widget in the page, see ``bridge.js``. `held`: a slider is dragged, or a key on
    it is down; None for widgets that do not need it.
    """

    _esm = Path(__file__).with_name("bridge.js")
    _css = style.css() + Path(__file__).with_name("bridge.css").read_text(encoding="utf-8")
    held: Any = traitlets.Bool(None, allow_none=True).tag(sync=True)


def choice(
    name: str,
    options: Sequence[Any],
    value: Any,
    words: Mapping[Any, str] | None = None,
    meaning: str = "",
) -> Choice:
    """A labelled control: a slider over numbers, buttons for words and switches."""
    style = {"description_width": f"{max(64, 9 * len(name))}px"}  # most tracks begin at one x
    # without a tooltip, ipywidgets shows "null"
    given = {"value": value, "description": name, "style": style, "tooltip": meaning}
    if words is None and all(isinstance(o, Number) and not isinstance(o, bool) for o in options):
        labels = [(str(option), option) for option in options]
        return w.SelectionSlider(options=labels, layout=w.Layout(width="auto"), **given)
    words = words or {o: "yes" if o else "no" for o in options if isinstance(o, bool)}
    style["button_width"] = "auto"
    labels = [(words.get(option, str(option)), option) for option in options]
    return w.ToggleButtons(options=labels, **given).add_class("gemmlab-words")


def free(widget: w.Widget) -> None:
    """Let events of a widget, and of all in it, arrive while a cell is running.

    ipykernel sends the events of a control to the thread that last sent something to the page for
    it. After a cell made or changed it, that is the main thread, which is busy while a cell runs.
    Without this private attribute they go to the thread that the page names.
    """
    for control in inside(widget):
        if control.comm is not None:
            vars(control.comm).pop("_reply_subshell_id", None)


def grid(controls: Sequence[w.Widget]) -> w.GridBox:
    """Controls side by side, as many as fit."""
    columns = "repeat(auto-fill, minmax(min(300px, 100%), 1fr))"
    return w.GridBox(controls, layout=w.Layout(grid_template_columns=columns, max_width="860px"))


def line(*widgets: w.Widget) -> w.HBox:
    """Widgets in a line, which wraps."""
    layout = w.Layout(flex_flow="row wrap", align_items="center", grid_gap="0 12px")
    return w.HBox(widgets, layout=layout)


def inside(widget: w.Widget) -> Iterator[w.Widget]:
    """A widget and all widgets in it."""
    yield widget
    for child in getattr(widget, "children", ()):
        yield from inside(child)


class Shell(w.VBox):
    """Controls and a panel, and how they are shown.

    Subclasses fill `panel`, set `name`, call `compose`, and define `still()`.

    Attributes:
        panel: the answer in HTML.
        bridge: the part in the page.
        stored: what a saved notebook shows instead, once there is something.
    """

    name: str = "widget"

    def __init__(self) -> None:
        super().__init__()
        self.add_class("gemmlab")
        self.stored: DisplayHandle | None = None
        self.panel: w.HTML = w.HTML().add_class("gemmlab-result")
        self.bridge: Bridge = Bridge()
        self.bridge.on_msg(lambda bridge, message, buffers: self.received(message))

    def compose(self, *children: w.Widget) -> None:
        """Say what the widget consists of, from top to bottom."""
        self.children = (*children, self.bridge)

    def received(self, message: dict[str, Any]) -> None:
        """A message of the page: a typed value is taken, or refused in words."""
        name, text = message.get("typed"), message.get("text")
        for control in inside(self):
            if isinstance(control, w.SelectionSlider) and control.description == name:
                if text in (values := dict(control.options)):
                    control.value = values[text]
                else:
                    words = f"{name} cannot be {text!r}: choose one of {', '.join(values)}."
                    self.bridge.send({"refused": name, "words": words})

    def ready(self) -> None:
        """Called when the widget is shown; a subclass may wait here for its first result."""

    def words(self) -> str:
        """What the picture should say to readers who see no pictures."""
        return ""

    def still(self) -> Picture | str:
        """What readers without a running kernel see: a picture, or HTML."""
        raise NotImplementedError

    def _ipython_display_(self) -> None:
        view = self._repr_mimebundle_()
        # where no widget can live, the picture below says all; without any text nbconvert warns
        display({**view, "text/plain": ""}, raw=True)
        free(self)
        self.ready()
        again = AGAIN.format(action=escape(ACTION), words=escape(GONE))
        display({"text/html": again, "text/plain": GONE}, raw=True)
        still, size = self.still(), dict[str, Any]()
        if isinstance(still, str):
            bundle = {"text/html": still}
        else:
            bundle, size = still._repr_mimebundle_()
        plain = f"[static picture of {self.name}]\n{self.words()}".strip()
        bundle["text/plain"] = plain
        self.stored = display(bundle, metadata=size, raw=True, display_id=True)
        free(self)
