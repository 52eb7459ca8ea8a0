"""Sliders for a kernel's parameters and sizes, with an immediate answer: is it still right, and how
fast is it?
"""

from __future__ import annotations

import itertools
import textwrap
import threading
import time
from typing import Any

import ipywidgets as w
from IPython import get_ipython
from pyopencl.characterize import has_src_build_cache

from ..catalog import Key, find
from ..catalog.spec import positive
from ..draw import plot
from ..draw.picture import INK, Picture
from ..draw.plot import Try
from ..measurement.records import Result
from ..opencl.devices import find_device
from ..worker import client
from ..worker.idle import Job
from . import panel
from .beside import Beside
from .recorded import Measured, Recorded
from .settings import MEANINGS, SIZES, Settings
from .shell import WORDS_FIRST, Newest, Shell, escape, free, on_any_thread

#: A job (check and timing) that is predicted to take longer than this many seconds is refused.
MOST_SECONDS = 2.0
#: Seconds after the last move of a slider in which another may follow, before the settings are
#: measured.
SETTLE = 0.06
#: Settings next to the present ones that are compiled while nobody waits; so many of them before
#: the peak of the device is measured, which is needed once: those that the slider moved last leads
#: to, and another one.
AHEAD, FIRST = 12, 4
#: Tries that are kept of each explorer.
KEPT = 200

STEPS = {
    "start": "waiting for the worker",
    "compile": "compiling",
    "predict": "first launch",
    "check": "checking the result",
    "time": "timing",
    "look": "running your text in the simulator",
}

#: What the status says while nothing runs.
AT_REST = '<div style="opacity:.75">Nothing runs now.</div>'

_numbers = itertools.count(1)
# the tries with texts of the reader's own, by device, kernel and cell
_memories: dict[tuple, list[Try]] = {}


class Explorer(Shell):
    """Sliders for one kernel, and a panel with the verdict, the rate, the costs and a chart.

    Args:
        kernel: its number.
        m, n, k: initial sizes; m defaults to 256 on a CPU and 1024 on a GPU, n and k default to m.
        params: initial parameters; by default those that suit the device.
        device: a Device, an index or part of a name; the preferred device by default.
        source: OpenCL C text to use instead of the kernel's own, with the same parameters.
        hole: whether the text has a hole to fill; what the kernel has there is not shown before the
            text is right.
    """

    def __init__(  # noqa: PLR0913
        self,
        kernel: Key = 1,
        m=None,
        n=None,
        k=None,
        *,
        params=None,
        device=None,
        source=None,
        hole=False,
    ):
        self.spec, self.device, self.source, self._hole = (
            find(kernel),
            find_device(device),
            source,
            hole,
        )
        client.worker().warm()
        _leave_cells_alone()
        self.name = f"explorer of kernel {self.spec.number} ({self.spec.name})"
        if source is not None and not isinstance(source, str):
            raise TypeError(
                f"source must be OpenCL C text, not {type(source).__name__}: {source!r}"
            )
        m = (256 if self.device.kind == "CPU" else 1024) if m is None else m
        given = {"m": m, "n": m if n is None else n, "k": m if k is None else k}
        sizes = {name.upper(): positive(name, size) for name, size in given.items()}
        chosen = self.spec.complete(params) if params else self.spec.fit(self.device.limits)
        self._start = {**chosen, **sizes}
        self.settings = Settings(self.spec, self.device.limits, self._start, self._moved)
        self._lock = self.settings.lock
        self._client = f"explorer {next(_numbers)}"
        self._asked: dict[str, Any] = {}  # the arguments of the newest request
        self._timer: threading.Timer | None = None
        self._beside = Beside(self.device, self._redraw)
        self._history: list[Try] = [] if source is None else _memories.setdefault(self._cell(), [])
        self._count = 0  # measured results of this explorer
        self._first: client.Outcome | None = None
        self._begin: Result | None = None  # the first right one
        self._shown: tuple[client.Outcome, list[str]] | None = None
        self._arrived = threading.Event()
        self._recorded = Recorded(
            self.spec,
            source,
            lambda found, params: self._beside.allowed_on(found, self.spec.number, params),
        )
        self._recorded.on_choose(lambda params: self.set({**self.values, **params}))
        self._chart, self._changes = w.HTML(), w.HTML()
        self._make_buttons()
        controls = self.settings.controls
        super().__init__(
            [controls[name].box for name in chosen],
            [controls[name].box for name in sizes],
            buttons=[*self.settings.boxes, self._reset, self._to_best],
            above=[
                w.HBox(
                    [self._stop, self._status],
                    layout=w.Layout(align_items="center", max_width="860px"),
                )
            ],
            pictures=[self._chart, *[self._changes] * (source is not None)],
            below=[self._again, self._recorded],
            height=390,
        )
        self.bridge.held = False
        self.bridge.observe(lambda change: self._wait(), "held")
        self._draw = Newest(self._show_chart)
        # what the chart shows
        self._drawn: tuple[list[Try], dict[Key, float], float | None] | None = None

    def _make_buttons(self) -> None:
        self._reset = w.Button(description="Reset", tooltip="Return to the initial settings")
        self._to_best = w.Button(
            description="Best so far", tooltip="The fastest settings tried here with a right result"
        )
        self._stop = w.Button(
            description="Stop", tooltip="Stop what runs for this explorer", disabled=True
        )
        self._again = w.Dropdown(description="tries", options=[("choose one to return to", -1)])
        self._again.layout = w.Layout(width="auto", max_width="860px")
        for button in (self._reset, self._to_best, self._stop):
            button.layout = w.Layout(width="auto", flex="none")
        # beside the button that stops what it tells of
        self._status = w.HTML("", layout=w.Layout(flex="1"))
        self._status.add_class("gemmlab-status")
        self._reset.on_click(lambda button: self.reset())
        self._to_best.on_click(lambda button: self._to_fastest())
        self._stop.on_click(lambda button: client.worker().stop(self._client))
        on_any_thread(self._again, lambda owner: self._return(owner.value))

    @property
    def values(self) -> dict[str, int]:
        """The present positions of the controls: parameters, M, N and K."""
        return self.settings.values

    def set(self, values: dict[str, int]) -> None:
        """Move several controls at the same time, and measure once."""
        with self._lock:
            self.settings.place(values)
            self.settings.mark([])
            self._submit()

    def reset(self) -> None:
        """Return to the initial settings, of the boxes too."""
        with self._lock:
            self.settings.reset()
            self._submit()

    def _to_fastest(self) -> None:
        right = [t for t in self._history if t.right and t.gflops is not None]
        if right:
            self.set(max(right, key=lambda t: t.gflops or 0).settings)

    def _return(self, place: int) -> None:
        """Return to the settings of a try, by its place in the history; -1 is none."""
        if 0 <= place < len(self._history):
            self.set(self._history[place].settings)

    def said(self, message: dict[str, Any]) -> None:
        if "typed" in message:
            self.settings.learn_size(message["typed"], message["text"])
        if "again" in message:
            self._return(message["again"])
        super().said(message)

    def choices(self, control: w.SelectionSlider) -> str:
        is_size = control.description in MEANINGS
        return f"a whole number from 1 to {SIZES[-1]:,}" if is_size else super().choices(control)

    # A move: what needs no measuring is shown at once; what has settled is measured.

    def _moved(self) -> None:
        self._recorded.show(self.values)
        self.answer.add_class("gemmlab-stale")
        client.worker().idle.hold("request")  # one follows in a moment
        self._say("")
        self._wait()

    def _wait(self) -> None:
        """Measure in a moment, unless another move comes, or the slider is still held."""
        with self._lock:
            if self._timer:
                self._timer.cancel()
            self._timer = threading.Timer(SETTLE, self._settled)
            self._timer.daemon = True
            self._timer.start()

    def _settled(self) -> None:
        with self._lock:
            if self.settings.touched and not self.bridge.held:
                self._submit()

    # A request, and its answer.

    def _arguments(self, values: dict[str, int]) -> dict[str, Any]:
        return {
            "kernel": self.spec.number,
            "params": self.settings.params(values),
            "device": self.device.index,
            "source": self.source,
            **{size.lower(): values[size] for size in "MNK"},
        }

    def _submit(self) -> None:
        self._asked = asked = {
            **self._arguments(self.settings.commit()),
            "most_seconds": MOST_SECONDS,
        }
        notes = self.settings.notes
        self._recorded.show(self.values)
        self.answer.add_class("gemmlab-stale")
        self._offer_stop(True)
        self._say("start")
        client.worker().submit(
            self._client,
            asked,
            lambda outcome: self._done(outcome, notes),
            lambda step: self._entered(step, asked),
        )

    def _offer_stop(self, offered: bool) -> None:
        self._stop.disabled = not offered
        free(self._stop)  # so that it works while a cell runs

    def _entered(self, step: str, asked: dict[str, Any]) -> None:
        with self._lock:
            if asked is self._asked and not self.settings.touched:
                self._say(step)

    def _say(self, step: str) -> None:
        """Say in the status what is known of the settings without running them, and what is being
        done.
        """
        values = self.values
        known = panel.free_facts(self.spec, self.settings.params(values), self.device.limits)
        words = escape(panel.settings(values))
        if step:
            limit = client.worker().limit(step, self._asked)
            clock = (
                f'data-job="{id(self._asked)}" data-step="{step}" data-limit="{limit:g}" '
                'aria-hidden="true"'
            )
            words += (
                f': <span class="gemmlab-spinner"></span>{STEPS[step]} … <span '
                f'class="gemmlab-clock" {clock}></span>'
            )
        self._status.value = f"<div>{words}</div><div>{escape(known)}</div>"

    def _done(self, outcome: client.Outcome, notes: list[str]) -> None:
        with self._lock:
            result = outcome.result
            self._history.append(Try(_values(outcome), result and result.gflops, outcome.ok))
            del self._history[:-KEPT]
            self._count += result is not None
            if outcome.ok:
                self._begin = self._begin or result
                if self.source is None:
                    self._beside.note(self.spec.number, result.gflops)
            self._first = self._first or outcome
            self._shown = outcome, notes
            self._redraw()
            if outcome.kind in ("hang", "crash", "stopped"):
                client.worker().warm()
            self._plan()

    def _redraw(self) -> None:
        """Show the newest outcome again, with what has arrived to compare it with; draw the chart
        if it is another.
        """
        with self._lock:
            if self._shown:
                self._show(*self._shown)
                original = self._original()
                chart = (
                    list(self._history),
                    self._beside.best(),
                    original.gflops if original else None,
                )
                if chart != self._drawn:
                    self._drawn = chart
                    self._draw(chart)

    def _show(self, outcome: client.Outcome, notes: list[str]) -> None:
        """Say what came out."""
        values, result = _values(outcome), outcome.result
        yardsticks = panel.Yardsticks(self._begin, self._original(), self._beside.peak)
        try:
            content = panel.outcome(
                outcome, self.spec, self.device.limits, values, notes, yardsticks
            )
        except Exception as error:
            content = _in_words(error)
        key = " ".join(f"{name}={value}" for name, value in values.items())
        state = (
            "ok"
            if outcome.ok
            else "luck"
            if outcome.by_luck
            else "wrong"
            if result
            else outcome.kind or "error"
        )
        data = f'data-key="{key}" data-state="{state}" data-count="{self._count}"'
        self.panel.value = f'<div {data} style="line-height:1.5">{content}</div>'
        if self.source is not None and (outcome.ok or not self._hole):
            self._changes.value = panel.changes(self.spec, self.source)
        self._list_tries()
        if outcome.arguments is self._asked:
            self._offer_stop(False)
            if not self.settings.touched:
                self.answer.remove_class("gemmlab-stale")
                self._status.value = AT_REST
                self._recorded.show(
                    values, self._here(values, result.gflops) if outcome.ok else None
                )
        self._arrived.set()

    def _show_chart(self, chart: tuple[list[Try], dict[Key, float], float | None]) -> None:
        """Draw the tries; this takes longer than all that is said, so it runs on a thread of its
        own.
        """
        time.sleep(WORDS_FIRST)
        history, best, original = chart
        try:
            content = panel.chart(history, best, self.spec.number, original)
        except Exception as error:
            content = _in_words(error)
        self._chart.value = content

    def _list_tries(self) -> None:
        """Offer the tries to return to, the latest first."""
        places = range(len(self._history))[: -plot.SHOWN - 1 : -1]
        tries = (
            ("choose one to return to", -1),
            *((f"{place + 1}: {self._history[place]}", place) for place in places),
        )
        if tries != tuple(self._again.options):
            self._again.options = tries  # this chooses the first

    def _original(self) -> Result | None:
        """The result of the kernel's own text where a text of the reader's own was measured
        last.
        """
        if self.source is None or self._shown is None:
            return None
        return self._beside.original(self.spec.number, _values(self._shown[0]))

    def _here(self, values: dict[str, int], gflops: float) -> Measured:
        """The rate on the reader's device, with what is known to compare it with."""
        return Measured(
            gflops,
            self._beside.peak,
            self.device.name,
            self._beside.allowed(self.spec.number, values),
        )

    def ready(self) -> None:
        """Run the initial settings."""
        if self._first is None:
            self.set(self._start)
            try:
                self._arrived.wait(sum(client.worker().limits.values()))
            except KeyboardInterrupt:  # the panel says it in a sentence
                client.worker().stop(self._client)
                self._arrived.wait(5)
        if self._first and self._first.result:
            # sizes whose square product this device finishes in time at this rate: 6 runs of 2
            # size^3 operations
            self.settings.offer_sizes(
                (MOST_SECONDS * self._first.result.gflops * 1e9 / 12) ** (1 / 3)
            )

    def _cell(self) -> tuple:
        """What the tries of a text of the reader's own are remembered by: its cell, so that an edit
        keeps them.
        """
        shell = get_ipython()
        parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
        return (str(self.device), self.spec.number, parent.get("metadata", {}).get("cellId", ""))

    def _plan(self) -> None:
        """What to do while nobody waits: the original of an edited text, ceilings, next moves, the
        peak, the chart.
        """
        jobs, here, near = list[Job](), list[Job](), list[Job]()
        base, kernel = self.settings.base, self.spec.number
        if self.source is not None and self._beside.original(kernel, base) is None:
            jobs.append(self._beside.measure_original(self._arguments(base), base))
        for found in self._recorded.landscapes:
            jobs += self._beside.work_out_on(found, kernel, self.settings.params(base))
        if self._shown and self._shown[0].ok and self._recorded.landscapes:
            answer = self._shown[0]
            here = self._beside.work_out(answer.arguments, _values(answer), answer.result.gflops)
        if self._shown and self._shown[0].result and has_src_build_cache(self.device.cl):
            tried = [t.settings for t in self._history]
            moves = [values for values in self.settings.neighbours() if values not in tried]
            near = [Job("compile", self._arguments(values)) for values in moves[:AHEAD]]
        idle, sizes = client.worker().idle, {size.lower(): self._start[size] for size in "MNK"}
        others = self._beside.measure_others(sizes, MOST_SECONDS / 2)
        idle.plan("chart", [*here, *others])  # the latest plan comes first
        idle.plan(f"{self._client}, later", near[FIRST:])
        idle.plan("peaks", self._beside.measure_peaks())
        idle.plan(self._client, [*jobs, *near[:FIRST]])

    def still(self) -> Picture:
        first = self._first.result if self._first else None
        history = [Try(self._start, first.gflops, self._first.ok)] if first and self._first else []
        picture = plot.tries(history, self._beside.best(), self.spec.number)
        settings = " ".join(
            f"{name}={value}" for name, value in self._start.items() if name not in "MNK"
        )
        sizes = " x ".join(str(self._start[name]) for name in "MNK")
        where = f"kernel {self.spec.number} on {self.device.name[:30]}, {sizes}, {settings}"
        where = textwrap.shorten(where, 108, placeholder=" …")  # more could not be read
        picture.suptitle(where, color=INK, fontsize=min(9, 760 / len(where)), y=0.99)
        return picture


def _values(outcome: client.Outcome) -> dict[str, int]:
    """The parameters and sizes that an outcome is about."""
    return {
        **outcome.arguments["params"],
        **{size: outcome.arguments[size.lower()] for size in "MNK"},
    }


def _in_words(error: Exception) -> str:
    """What the panel says of an error of ours: nobody reads the log console."""
    return f"<p>{escape(f'{type(error).__name__}: {error}')}</p>"


def _leave_cells_alone() -> None:
    """What is done while nobody waits is not done while a cell runs: the cell may measure something
    itself.
    """
    shell, idle = get_ipython(), client.worker().idle
    if shell is None or getattr(shell, "_gemmlab_idle", None) is idle:
        return
    shell._gemmlab_idle = idle
    idle.hold("cell")
    shell.events.register("pre_run_cell", lambda *info: idle.hold("cell"))
    shell.events.register("post_run_cell", lambda *info: idle.release("cell"))
