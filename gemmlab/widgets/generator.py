"""The generator at work: switches beside the text that it writes; what the last switch has changed
is lit.
"""

from __future__ import annotations

import difflib
from collections import Counter

from matplotlib.ticker import MaxNLocator

from ..catalog import ParameterError
from ..draw.picture import BLUE, INK, Picture
from ..generate import Schedule, origins, write
from ..generate.schedule import EDGES
from .shell import Newest, Shell, choice, escape, grid, on_any_thread
from .stepper import Follow

#: The switches: the values of each, and what it means.
SWITCHES: dict[str, tuple[tuple, str]] = {
    "precision": (("s", "d", "c", "z"), "float32, float64, complex64, complex128"),
    "a": (("N", "T", "C"), "A as it is, transposed, or conjugated and transposed"),
    "b": (("N", "T", "C"), "B as it is, transposed, or conjugated and transposed"),
    "beta": ((False, True), "whether beta C0 is added"),
    "tile": (
        ((32, 32), (64, 32), (64, 64), (128, 64), (128, 128)),
        "rows and columns of C for a work-group",
    ),
    "micro_tile": (
        ((2, 2), (4, 2), (4, 4), (8, 4), (8, 8)),
        "rows and columns of C for a work-item",
    ),
    "depth": ((4, 8, 16, 32), "steps of k in local memory; none where stages are 0"),
    "width": ((1, 2, 4), "elements in a load from global memory"),
    "stages": ((0, 1, 2), "buffers in local memory; 0: straight into registers"),
    "edges": (EDGES, "where C may end inside a tile"),
    "tail": ((False, True), "whether K may end inside a step of depth"),
}
START = {
    "precision": "s",
    "a": "N",
    "b": "N",
    "beta": False,
    "tile": (64, 64),
    "micro_tile": (4, 4),
    "depth": 16,
    "width": 1,
    "stages": 1,
    "edges": "none",
    "tail": False,
}

#: The panel: as wide as its cell, also where a line of the kernel is wider.
_NARROW = "display:grid;grid-template-columns:minmax(0,1fr)"


def schedule(  # noqa: PLR0913
    precision, a, b, beta, tile, micro_tile, depth, width, stages, edges, tail
) -> Schedule:
    """The schedule of the switches. Without stages there is neither depth nor tail, and B is not
    loaded in vectors.

    Raises:
        ParameterError: if they contradict each other.
    """
    common = {
        "beta": beta,
        "tile": tile,
        "micro_tile": micro_tile,
        "stages": stages,
        "edges": edges,
    }
    if stages == 0:
        return Schedule(precision, a, b, depth=1, unroll=1, load_widths=(width, 1), **common)
    return Schedule(precision, a, b, depth=depth, load_widths=(width, width), tail=tail, **common)


def changed(before: str, now: str) -> set[int]:
    """The numbers of the lines of a text that another text before it did not have, from 1 on."""
    first, second = (text.splitlines() for text in (before, now))
    blocks = difflib.SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
    return {
        line + 1
        for kind, _, _, start, end in blocks
        if kind != "equal"
        for line in range(start, end)
    }


class Generator(Shell):
    """Switches above the text that the family writes, each line with the function that wrote it.

    Args:
        start: where the switches start, by their names (see `SWITCHES`).

    Raises:
        ParameterError: if a switch or a value does not exist, or if they contradict each other.

    Example:
        ``Generator(precision="c", stages=2)``
    """

    name = "generator"

    def __init__(self, **start):
        for name, value in start.items():
            values = SWITCHES.get(name, ((), ""))[0]
            if not any(
                value is known or (value == known and type(value) is type(known))
                for known in values
            ):
                words = (
                    f"one of {', '.join(map(repr, values))}, not {value!r}"
                    if values
                    else "no switch"
                )
                raise ParameterError(f"{name}: {words}")
        super().__init__()
        self._start = START | start
        self._text, self._listing = write(schedule(**self._start)), ""
        self._sliders = {
            name: choice(name, values, self._start[name], meaning)
            for name, (values, meaning) in SWITCHES.items()
        }
        self.compose(grid([*self._sliders.values()]), self.panel, Follow())
        self._show(self.values)
        self._newest = Newest(self._show)
        for control in self._sliders.values():
            on_any_thread(control, lambda control: self._newest(self.values))

    @property
    def values(self) -> dict:
        """The present positions of the switches."""
        return {name: control.value for name, control in self._sliders.items()}

    @property
    def text(self) -> str:
        """The text that the panel shows."""
        return self._text

    def _show(self, values: dict) -> None:
        """Write the text for these switches; where there is none, say why above the last one."""
        key = escape(" ".join(f"{name}={value}" for name, value in values.items()))
        try:
            c = schedule(**values)
        except ParameterError as error:
            words = str(error)
        else:
            text = write(c)
            lit = changed(self._text, text)
            self._text, self._listing = text, listing(c, text, lit)
            moved = f"; the last switch has changed {len(lit)} of them" if self.panel.value else ""
            words = f"{c.name}: {len(text.splitlines())} lines{moved}."
        said = f'<p class="gemmlab-said" style="overflow-wrap:anywhere">{escape(words)}</p>'
        self.panel.value = f'<div data-key="{key}" style="{_NARROW}">{said}{self._listing}</div>'

    def still(self) -> Picture:
        """How many lines each function has written where the switches started."""
        return authors(schedule(**self._start))


def listing(c: Schedule, text: str, lit: set[int]) -> str:
    """A text as HTML: of each line its number, the function that wrote it, and whether it is
    lit.
    """
    rows = (
        f'<div class="{"gemmlab-now" * (number in lit)}"><i>{number}</i><b '
        f'style="flex-basis:150px;background:none;text-align:left;opacity:.7">{escape(writer)}</b>'
        f"<span>{escape(line)}</span></div>"
        for number, (line, writer) in enumerate(zip(text.splitlines(), origins(c), strict=True), 1)
    )
    about = 'class="gemmlab-code" tabindex="0" aria-label="the kernel" aria-live="off"'
    return f"<div {about}>{''.join(rows)}</div>"


def authors(c: Schedule) -> Picture:
    """How many lines of a text each function has written."""
    found = Counter(origins(c))
    said = ", ".join(f"{writer} {lines}" for writer, lines in found.items())
    picture = Picture(
        7, 0.24 * len(found) + 0.8, f"Lines of {c.name} by the function that wrote them: {said}"
    )
    ax = picture.axes_plain()
    ax.barh(list(found), list(found.values()), color=BLUE)
    ax.invert_yaxis()
    ax.xaxis.set_major_locator(MaxNLocator(integer=True))
    ax.set_title(f"lines of {c.name}", color=INK, fontsize=9)
    return picture
