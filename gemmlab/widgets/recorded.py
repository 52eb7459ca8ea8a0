"""A recorded GPU beside the reader's own device: its rate for the same settings, and a landscape to
walk in.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from itertools import combinations, product
from pathlib import Path
from statistics import pstdev
from typing import Any, NamedTuple

import anywidget
import ipywidgets as w
import traitlets

from ..catalog import KernelSpec, find
from ..draw.landscape import Cell, in_words, landscape, name_of
from ..draw.picture import BLUE, GREEN, Picture, short
from ..measurement import records
from ..measurement.explained import Allowed
from ..measurement.landscape import Landscape, Record, recorded
from ..model.ceilings import named
from .settings import in_view
from .shell import WORDS_FIRST, Newest, escape, on_any_thread

#: The name of the line for what the model allows.
CEILING = "the model's ceiling"


class Measured(NamedTuple):
    """What the reader's device reached.

    Attributes:
        gflops: the rate.
        peak: of the device in GFLOPS, None as long as it is not known.
        device: what to call it.
        allowed: what the model allows on it, None as long as that is not known.
    """

    gflops: float
    peak: float | None = None
    device: str = "your device"
    allowed: Allowed | None = None


class View(NamedTuple):
    """What a landscape shows: the arguments of `draw.landscape.landscape`."""

    across: str
    down: str
    cells: dict[tuple[int, int], Cell]
    here: tuple[int, int]
    best: float | None
    title: str

    def differs_from(self, other: View | None) -> bool:
        """Whether it takes another picture, and not only another place for the ring of the reader's
        setting.
        """
        inside = self.here in self.cells
        return (
            other is None
            or inside != (other.here in other.cells)
            or self._replace(here=other.here) != other
        )


class Grid(anywidget.AnyWidget):
    """The picture of a landscape, whose cells can be chosen: see ``landscape.js``.

    Attributes:
        svg: the picture. The page moves its ring to the cell that is "here".
        words: its description.
        cells: for each cell its "id" in the picture, "column" and "row", the values "x" and "y" of
            the two parameters, the "label" to say, and whether it is "legal" and "here".
    """

    _esm = Path(__file__).with_name("landscape.js")
    svg = traitlets.Unicode().tag(sync=True)
    words = traitlets.Unicode().tag(sync=True)
    cells: Any = traitlets.List().tag(sync=True)


class Recorded(w.VBox):
    """Two needles, the rate here and on a recorded device, and the recorded landscape over two
    parameters.

    Args:
        spec: the kernel.
        source: the reader's own text, of which there can be no record.
        allowed: says what the model allows on a recorded device with some parameters, as far as it
            is known.
    """

    def __init__(
        self,
        spec: KernelSpec,
        source: str | None = None,
        allowed: Callable[[Landscape, dict[str, int]], Allowed | None] = lambda found, params: None,
    ):
        self.spec = spec
        self._lock = threading.RLock()
        self._callbacks: list[Callable[[dict[str, int]], Any]] = []
        self._values: dict[str, int] = dict(spec.defaults)
        self._here: Measured | None = None
        self._allowed = allowed
        self._found = (
            [] if source is not None else [found for found in recorded() if found.rows(spec.number)]
        )
        self._needles = w.HTML(layout=w.Layout(max_width="860px"))
        self._note = w.HTML("", layout=w.Layout(max_width="860px"))
        if not self._found:
            self._needles.value = f"<i>{_absent(spec, source)}</i>"
            super().__init__([self._needles])
            return
        self._chip = _choose(
            "recorded on", [(found.title, found) for found in self._found], self._found[0]
        )
        names = list(spec.defaults)
        axes = _first_axes(spec, self._found[0])
        self._across = _choose("across", names, axes[0])
        self._down = _choose("up", names, axes[-1])
        self._grid = Grid()
        self._drawn: View | None = None
        self._grid.on_msg(self._heard)
        self._draw = Newest(self._show_picture)
        controls = [self._chip] * (len(self._found) > 1) + [self._across, self._down] * (
            len(names) > 1
        )
        for control in controls:
            on_any_thread(control, self._moved)
        line = w.HBox(controls, layout=w.Layout(flex_flow="row wrap"))
        super().__init__([self._needles, line, self._grid, self._note])
        self.add_class("gemmlab-recorded")

    @property
    def landscape(self) -> Landscape | None:
        """The landscape that is shown, None if the kernel was never recorded."""
        return self._chip.value if self._found else None

    @property
    def landscapes(self) -> list[Landscape]:
        """All landscapes with this kernel; none for a text of the reader's own."""
        return self._found

    def show(self, values: Mapping[str, int], here: Measured | None = None) -> None:
        """Show what was recorded for these settings, at once, and what was measured here.

        Args:
            values: the kernel's parameters; other names, such as M, N and K, are left aside.
            here: what the reader's device reached with them; None while that is not known.
        """
        if not self._found:
            return
        with self._lock:
            before, self._values = self._values, {name: values[name] for name in self.spec.defaults}
            self._here = here
            self._show_needles()
            if before != self._values or not self._grid.svg:
                self._say("")
                self._draw(self._axes())

    def on_choose(self, callback: Callable[[dict[str, int]], Any]) -> None:
        """Have `callback` called with all parameters of a legal setting that the reader has
        chosen.
        """
        self._callbacks.append(callback)

    def _axes(self) -> tuple[str, str]:
        return self._across.value, self._down.value if len(self.spec.defaults) > 1 else ""

    def _moved(self, control: w.Widget) -> None:
        """Another device or another axis; both axes cannot be the same."""
        with self._lock:
            if self._across.value == self._down.value and control in (self._across, self._down):
                other = self._down if control is self._across else self._across
                other.value = next(
                    (n for n in self.spec.defaults if n != control.value), control.value
                )
            self._show_needles()
            self._draw(self._axes())

    def _heard(self, widget: Any, content: Any, buffers: Any) -> None:
        """A cell was clicked, or Enter pressed in it."""
        across, down = self._axes()
        x, y = content["choose"]
        chosen = {**self._values, across: x, **({down: y} if down else {})}
        problems = self.spec.problems(chosen, self._chip.value.limits)
        self._say("; ".join(problems) and f"Not legal: {'; '.join(problems)}")
        if not problems:
            for callback in self._callbacks:
                callback(chosen)

    def _say(self, words: str) -> None:
        self._note.value = f'<div role="status">{escape(words)}</div>' if words else ""

    def _show_needles(self) -> None:
        shown = self._chip.value
        others = [found for found in self._found if found is not shown]
        bars = [_bar_here(self._here), self._bar_of(shown), *map(self._bar_of, others)]
        record = shown.rate(self.spec.number, self._values)
        data = f'data-share="{record.share if record else 0:.4f}"'
        self._needles.value = (
            f'<div {data} style="line-height:1.5">{"".join(bars)}{_facts(shown, record)}</div>'
        )

    def _bar_of(self, found: Landscape) -> str:
        """The needle of a recorded device, with the vendor's library and the model's ceiling as
        lines.
        """
        cell = _cell(found, self.spec, self._values)
        rates = records.yardsticks(found.title, found.size)
        lines = {
            name: rate / found.peak for name, rate in rates.items() if name.startswith("cuBLAS")
        }
        lines |= _ceiling(self._allowed(found, self._values), cell.share, found.peak)
        return _bar(f"{found.title}, recorded", cell.share, BLUE, escape(cell.words), lines)

    def _show_picture(self, axes: tuple[str, str]) -> None:
        """Show where the reader is; draw the landscape only if it is another one, as this takes a
        tenth of a second.
        """
        try:
            if self._view(*axes).differs_from(self._drawn):
                time.sleep(WORDS_FIRST)
            view = self._view(*axes)
            with self._grid.hold_sync():
                self._grid.cells = _described(view)
                self._grid.words = in_words(
                    view.across, view.down, view.cells, view.here, view.title
                )
                if view.differs_from(self._drawn):
                    self._grid.svg, self._drawn = landscape(*view).svg(), view
        except Exception as error:  # nobody reads the log console, so the panel says it
            self._say(f"{type(error).__name__}: {error}")

    def _view(self, across: str, down: str) -> View:
        with self._lock:
            found, values = self._chip.value, dict(self._values)
        cells = slice_of(found, self.spec, values, across, down)
        here = values[across], values[down] if down else 0
        kept = ", ".join(
            f"{name}={value}" for name, value in values.items() if name not in (across, down)
        )
        title = f"{found.title}, kernel {self.spec.number}" + (
            f", {kept}" if 0 < len(kept) < 60 else ""
        )
        best = found.best(self.spec.number)
        return View(across, down, cells, here, best.share if best else None, title)

    def still(self) -> Picture | None:
        """The landscape for readers without a running kernel, None if nothing was recorded."""
        return landscape(*self._view(*self._axes())) if self._found else None


def slice_of(
    found: Landscape, spec: KernelSpec, values: Mapping[str, int], across: str, down: str = ""
) -> dict[tuple[int, int], Cell]:
    """The settings that differ from `values` in two parameters only, by the values of these.

    Args:
        found: where they were recorded; its limits decide what is legal.
        spec: the kernel.
        values: all its parameters.
        across, down: the two parameters; an empty `down` for a kernel with a single one (its value
            counts as 0).
    """
    choices = {p.name: p.choices for p in spec.params}
    cells = {}
    for x in choices[across]:
        for y in choices[down] if down else (0,):
            setting = {**values, across: x, **({down: y} if down else {})}
            cells[x, y] = _cell(found, spec, setting)
    return cells


def _cell(found: Landscape, spec: KernelSpec, setting: dict[str, int]) -> Cell:
    problems = spec.problems(setting, found.limits)
    if problems:
        return Cell("illegal", words="not legal: " + "; ".join(problems))
    record = found.rate(spec.number, setting)
    if record is None:
        return Cell("missing", words=f"not recorded on {found.title}")
    if record.problem:
        return Cell("failed", words=record.problem)
    return Cell("recorded", record.share, _rate(record.gflops, record.share))


def _described(view: View) -> list[dict[str, Any]]:
    """What the page must know of each cell."""
    across, down, cells = view[:3]
    columns, rows = (sorted({key[axis] for key in cells}) for axis in (0, 1))
    found = []
    for (x, y), cell in cells.items():
        column, row = columns.index(x), rows.index(y)
        place = f"{across}={x}" + (f", {down}={y}" if down else "")
        mine = "your setting: " if (x, y) == view.here else ""
        found.append(
            {
                "id": name_of(column, row),
                "column": column,
                "row": row,
                "x": x,
                "y": y,
                "label": f"{mine}{place}: {cell.words}",
                "legal": cell.state != "illegal",
                "here": bool(mine),
            }
        )
    return found


def _first_axes(spec: KernelSpec, found: Landscape) -> tuple[str, ...]:
    """The two parameters in view over which the recorded rate varies most, around the defaults."""
    names = [name for name in spec.defaults if name in in_view(spec)]
    pairs: list[tuple[str, ...]] = [*combinations(names, 2)] or [tuple(names)]
    start, choices = spec.fit(found.limits), {p.name: p.choices for p in spec.params}

    def variation(names: tuple[str, ...]) -> float:
        settings = product(*(choices[name] for name in names))
        near = [
            found.rate(spec.number, {**start, **dict(zip(names, values, strict=True))})
            for values in settings
        ]
        shares = [record.share for record in near if record and not record.problem]
        return len(shares) * pstdev(shares) if shares else 0.0

    return max(pairs, key=variation)


def _choose(name: str, options: list, value: Any) -> w.Dropdown:
    return w.Dropdown(
        options=options, value=value, description=name, layout=w.Layout(width="260px")
    )


def _absent(spec: KernelSpec, source: str | None) -> str:
    if source is not None:
        return "There is no record of a text of your own: only what runs here is known of it."
    how = (
        f"in a checkout <code>python tools/record.py landscape --kernels {spec.number}</code> "
        "records this one"
    )
    return f"No device was recorded with every setting of kernel {spec.number}; {how}."


def _facts(found: Landscape, record: Record | None) -> str:
    """What the recorded device's compiler made of the settings, in small print."""
    said = [f"recorded at {found.size:,} x {found.size:,} x {found.size:,}"]
    if record and record.registers is not None:
        spilled = f"{record.spilled:,} bytes spilled" if record.spilled else "nothing spilled"
        said.append(
            f"{record.registers} registers per work-item, {spilled}, occupancy {record.occupancy} %"
        )
    if record and record.local_memory:
        said.append(f"{record.local_memory:,} bytes of local memory per work-group")
    if record and find(record.kernel).tensor:
        said.append("the peak is that of ordinary arithmetic, which tensor cores may pass")
    sizes = found.over_sizes(record.kernel) if record else {}
    if record and sizes and record.params == find(record.kernel).fit(found.limits):
        rates = [
            f"{short(rate)} at {size:,}"
            for size, rate in sorted(sizes.items())
            if rate and size != found.size
        ]
        said += [f"GFLOPS at other sizes: {', '.join(rates)}"] * bool(rates)
    if record and not record.current:
        said.append("<b>of an older text of this kernel</b>")
    return f'<div style="opacity:.75;font-size:90%">{"; ".join(said)}</div>'


def _bar_here(here: Measured | None) -> str:
    if here is None:
        return _bar("your device", 0.0, GREEN, "not measured yet with these settings")
    if not here.peak:
        return _bar(
            here.device, 0.0, GREEN, f"{short(here.gflops)} GFLOPS; its peak is not measured yet"
        )
    share = here.gflops / here.peak
    return _bar(
        here.device,
        share,
        GREEN,
        _rate(here.gflops, share),
        _ceiling(here.allowed, share, here.peak),
    )


def _ceiling(allowed: Allowed | None, share: float, peak: float) -> dict[str, float]:
    """What the model allows, as a line; none if that is the whole peak, or if the rate shows that
    it is not true.
    """
    limit = allowed.gflops / peak if allowed else 1.0
    return (
        {f"{CEILING}, set by {named(allowed.resource)}": limit}
        if allowed and share <= limit < 0.995
        else {}
    )


def _rate(gflops: float, share: float) -> str:
    return f"{short(gflops)} GFLOPS, {100 * share:.3g} % of the peak"


def _bar(
    name: str, share: float, colour: str, words: str, lines: Mapping[str, float] | None = None
) -> str:
    """A bar on a linear scale from 0 to the whole peak, with lines across it, and what they
    mean.
    """
    width = 100 * min(max(share, 0.0), 1.0)
    marks = meaning = ""
    for label, at in (lines or {}).items():
        style = "dashed" if label.startswith(CEILING) else "solid"
        place = f"position:absolute;left:{100 * min(at, 1.0):.1f}%;top:-3px;bottom:-3px"
        marks += f'<div style="{place};border-left:2px {style} currentColor"></div>'
        meaning += f"; {style} line: {escape(label)}, {100 * at:.0f} %"
    track = (
        f'<div role="img" aria-label="{100 * share:.3g} % of the peak" '
        'style="position:relative;height:14px;margin:4px '
        '0;background:var(--jp-layout-color2,#8884);border-radius:2px"><div '
        f'style="width:{width:.1f}%;height:100%;background:{colour};border-radius:2px"></div>{marks}</div>'
    )
    return f'<div><span style="opacity:.75">{escape(name)}:</span> {words}{meaning}{track}</div>'
