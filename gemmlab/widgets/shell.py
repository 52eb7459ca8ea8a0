"""What all widgets share: a panel that a page draws, what a person does there, a static picture."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from html import escape
from pathlib import Path
from typing import Any
from weakref import WeakValueDictionary

import anywidget
import comm
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
</style><div class="gemmlab-again"><input type="button" value="Run up to here" onclick="{action}">
<span>{words}</span></div>"""
GONE = "To use this, run its cell, and before it those above."
# JupyterLab shows its commands to the page only if an option says so, as `make lab` does
ACTION = (
    "const app = window.jupyterapp;"
    "if (!app) { this.nextElementSibling.textContent += ' (Run, Run All Cells)'; }"
    "else { this.disabled = true; this.value = 'running the cells up to here …'; const book = "
    "app.shell.currentWidget.content, cells = [...book.node.querySelectorAll('.jp-Cell')]; "
    "book.activeCellIndex = cells.indexOf(this.closest('.jp-Cell')); "
    "app.commands.execute('notebook:run-all-above').then(() => "
    "app.commands.execute('notebook:run-cell')); }"
)
#: What a page sends.
Act = Mapping[str, Any]


def script(*names: str) -> str:
    """Return files of this folder as one module for a page."""
    return "\n".join(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in names)


class Listener(anywidget.AnyWidget):
    """A widget that hears what a person does, also while a cell runs: see ``talk.js``.

    Attributes:
        channel: the name of the one that a page opens.
        hear: called with what a page sends.
    """

    channel: Any = traitlets.Unicode().tag(sync=True)

    def __init__(self, hear: Callable[[Act], None]):
        super().__init__()
        self.channel = self.model_id
        self.hear: Callable[[Act], None] = hear
        _listeners[self.channel] = self
        self.on_msg(lambda widget, act, buffers: self.hear(act))


_listeners: WeakValueDictionary[str, Listener] = WeakValueDictionary()


def _open_channel(channel: Any, message: Mapping[str, Any]) -> None:
    """Let a page talk to its widget."""
    name = message["content"]["data"]["widget"]

    def hear(message: Mapping[str, Any]) -> None:
        if listener := _listeners.get(name):
            listener.hear(message["content"]["data"])

    channel.on_msg(hear)


comm.get_comm_manager().register_target("gemmlab", _open_channel)


def button(id: str, text: str, title: str = "", **more: Any) -> dict[str, Any]:
    """Return a button for a page; what it sends is {"press": id}."""
    return {"id": id, "text": text, "title": title, **more}


class Panel(Listener):
    """What a page draws of a widget: see ``panel.js``.

    Attributes:
        kind: "instrument", "verdict", "stepper" or "prediction".
        cell: the id of the notebook's cell whose code it is about, or "".
        recorded_first: whether the recorded GPU is above the answer.
        controls: see `Control.data`.
        heard: the page's newest move that the controls show.
        buttons: lists of `button` by place: "head", "stop", "rate", "other", "choices".
        parts: HTML by place: "title", "answer", "recorded", "note", "pipes", "legend", "other",
            "details".
        status: the "words" of what runs, with its "job", "step" and "limit" in seconds; and whether
            the answer is "stale".
        devices: their "names", and "at" which of them it measures.
        maps, here, tries: see `maps`.
        code: what measures the present settings, by the name of the button that copies it.
        unfolded: whether all that is folded away is seen.
    """

    _esm = script("talk.js", "panel.js")
    _css = style.css() + script("panel.css")
    kind: Any = traitlets.Unicode().tag(sync=True)
    cell: Any = traitlets.Unicode().tag(sync=True)
    recorded_first: Any = traitlets.Bool(False).tag(sync=True)
    controls: Any = traitlets.List().tag(sync=True)
    heard: Any = traitlets.Int(0).tag(sync=True)
    buttons: Any = traitlets.Dict().tag(sync=True)
    parts: Any = traitlets.Dict().tag(sync=True)
    status: Any = traitlets.Dict({"words": "", "stale": False}).tag(sync=True)
    devices: Any = traitlets.Dict({"names": [], "at": -1}).tag(sync=True)
    maps: Any = traitlets.List().tag(sync=True)
    here: Any = traitlets.List([0, 0]).tag(sync=True)
    tries: Any = traitlets.Dict({"title": "", "scale": [], "marks": []}).tag(sync=True)
    code: Any = traitlets.Dict().tag(sync=True)
    unfolded: Any = traitlets.Bool(False).tag(sync=True)

    @property
    def answer(self) -> str:
        return self.parts.get("answer", "")

    def show(self, **traits: Any) -> None:
        """Change what is shown, in one message."""
        with self.hold_sync():
            for name, value in traits.items():
                setattr(self, name, value)


class Shell(w.VBox):
    """A widget with a panel, and how it is shown.

    Subclasses set `name`, and define `hear` and `still`.

    Attributes:
        panel: what the page draws.
        stored: what a saved notebook shows instead, once there is something.
    """

    name: str = "widget"

    def __init__(self, kind: str = "stepper"):
        super().__init__()
        self.add_class("gemmlab")
        self.stored: DisplayHandle | None = None
        self.panel: Panel = Panel(self.hear)
        self.panel.kind = kind
        self.children: tuple[w.Widget, ...] = (self.panel,)

    def hear(self, act: Act) -> None:
        """Handle what a person does in the panel."""
        raise NotImplementedError

    def refuse(self, name: str, words: str) -> None:
        """Say below a control why it does not take what was typed."""
        self.panel.send({"refused": name, "words": words})

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
