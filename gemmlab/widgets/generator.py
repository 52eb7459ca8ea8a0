"""The generator at work: switches beside the text, in which the last change is lit."""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import Any

from ..generate import Schedule, write
from ..generate.schedule import EDGE_SIDES
from ..generate.text import Text
from ..ladder import ParameterError
from .listing import block
from .stepper import Stepper

#: The values of each switch, which starts at the first one, and what it means.
SWITCHES: dict[str, tuple[tuple[Any, ...], str]] = {
    "precision": (("s", "d", "c", "z"), "float32, float64, complex64, complex128"),
    "a": (("N", "T", "C"), "A as it is, transposed, or conjugated and transposed"),
    "b": (("N", "T", "C"), "B as it is, transposed, or conjugated and transposed"),
    "beta": ((False, True), "whether beta C0 is added"),
    "tile": (
        ((64, 64), (32, 32), (64, 32), (128, 64), (128, 128)),
        "rows and columns of C for a work-group",
    ),
    "micro_tile": (((4, 4), (2, 2), (4, 2), (8, 4), (8, 8)), "rows and columns for a work-item"),
    "depth": ((16, 4, 8, 32), "steps of k in local memory; none where stages are 0"),
    "width": ((1, 2, 4), "elements in a load from global memory"),
    "stages": ((1, 0, 2), "buffers in local memory; 0: straight into registers"),
    "edges": (EDGE_SIDES, "where C may end inside a tile"),
    "tail": ((False, True), "whether K may end inside a step of depth"),
}


def schedule(values: dict[str, Any]) -> Schedule:
    """The schedule of the switches. Without stages there is neither depth nor tail, and B is not
    loaded in vectors.

    Raises:
        ParameterError: if they contradict each other.
    """
    which = values["precision"], values["a"], values["b"]
    common = {name: values[name] for name in ("beta", "tile", "micro_tile", "stages", "edges")}
    width, depth, tail = values["width"], values["depth"], values["tail"]
    if values["stages"] == 0:
        return Schedule(*which, depth=1, unroll=1, load_widths=(width, 1), **common)
    return Schedule(*which, depth=depth, load_widths=(width, width), tail=tail, **common)


class Generator(Stepper):
    """Switches above the text that the generator writes, each line with the function that wrote it.

    Args:
        start: where the switches start, by their names (see `SWITCHES`).

    Attributes:
        text: the text that the panel shows.

    Raises:
        ValueError: if a switch or a value does not exist, or if they contradict each other.

    Example:
        ``Generator(precision="c", stages=2)``
    """

    def __init__(self, **start: Any):
        self.text: str = ""
        self._listing = ""
        choices = {name: values for name, (values, _) in SWITCHES.items()}
        super().__init__(lambda **values: self._written(values), start, **choices)
        self.name = "generator"
        for name, (_, meaning) in SWITCHES.items():
            self.controls[name] = replace(self.controls[name], meaning=meaning)
        self.show(self.values)

    def _written(self, values: dict[str, Any]) -> str:
        """The text for these switches; where there is none, why, above the last one."""
        try:
            text = write(made := schedule(values))
        except ParameterError as error:
            if not self.text:
                raise
            words = str(error)
        else:
            before = (self.text or text).splitlines()
            lit = {n for n, row in enumerate(text.splitlines(), 1) if row not in before}
            moved = f"; the last switch has changed {len(lit)} of them" if lit else ""
            self.text, self._listing = text, listing(text, lit)
            words = f"{made.name}: {len(text.splitlines())} lines{moved}."
        said = f'<p class="gemmlab-said" style="overflow-wrap:anywhere">{escape(words)}</p>'
        # as wide as the cell, also where a line of the kernel is wider
        narrow = "display:grid;grid-template-columns:minmax(0,1fr)"
        return f'<div style="{narrow}">{said}{self._listing}</div>'

    def still(self) -> str:
        """The text where the switches started."""
        return f"<pre>{escape(write(schedule(self.start)))}</pre>"


def listing(text: Text, lit: set[int]) -> str:
    """A text as HTML: each line with its number and the function that wrote it."""
    authored = zip(text.splitlines(), text.writers, strict=True)
    rows = (
        f'<div class="{"gemmlab-now" * (number in lit)}"><i>{number}</i><b '
        f'style="flex-basis:150px;background:none;text-align:left;opacity:.7">{escape(writer)}</b>'
        f"<span>{escape(line)}</span></div>"
        for number, (line, writer) in enumerate(authored, 1)
    )
    return block("".join(rows))
