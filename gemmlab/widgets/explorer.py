"""Sliders for a kernel's parameters and sizes, with an immediate answer: is it still right, and how fast is it?"""

from __future__ import annotations

import itertools
import threading
from functools import partial
from typing import Any

import ipywidgets as w
from IPython import get_ipython
from pyopencl.characterize import has_src_build_cache

from ..catalog import catalog, find
from ..catalog.spec import Param
from ..draw import plot
from ..draw.picture import INK, Picture
from ..draw.plot import Try
from ..opencl.devices import find_device
from ..worker import client
from ..worker.idle import Job
from . import panel
from .shell import Control, Newest, Shell, escape, on_any_thread

#: Sizes to choose from; those that take a device too long are left out.
SIZES = (16, 32, 64, 100, 128, 200, 256, 384, 500, 512, 768, 1000, 1024, 1536, 2048, 3072, 4096, 5000, 8192)
#: A job (check and timing) that is predicted to take longer than this many seconds is refused.
MOST_SECONDS = 2.0
#: Seconds after the last move of a slider in which another may follow, before the settings are measured.
SETTLE = 0.12
#: The first four of these that a kernel has are always in view; the other parameters are shown when asked for.
MAIN = ("TS", "TSM", "TSN", "WPT", "WPTM", "WPTN", "WM", "WN", "RX", "RY", "WIDTH", "TSK", "PAD", "GX", "STAGES")
#: Settings next to the present ones that are compiled while nobody waits.
AHEAD = 12
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

_numbers = itertools.count(1)
# What is known in this process, by device: see `Explorer._plan`.
_best: dict[tuple[str, int], float] = {}  # best GFLOPS of each kernel
_peaks: dict[str, float | None] = {}  # measured GFLOPS of multiply-adds; None while they are measured
_originals: dict[tuple, float] = {}  # GFLOPS of a kernel's own text, by device, kernel and settings
_memories: dict[tuple, list[Try]] = {}  # the tries with texts of the reader's own, by cell


class Explorer(Shell):
    """Sliders for one kernel, and a panel with the verdict, the rate, the costs and a chart.

    Args:
        kernel: its number.
        m, n, k: initial sizes; m defaults to 256 on a CPU and 1024 on a GPU, n and k default to m.
        params: initial parameters; by default those that suit the device.
        device: a Device, an index or part of a name; the preferred device by default.
        source: OpenCL C text to use instead of the kernel's own, with the same parameters.
    """

    def __init__(self, kernel: int = 1, m=None, n=None, k=None, *, params=None, device=None, source=None):
        self.spec, self.device, self.source = find(kernel), find_device(device), source
        client.worker().warm()
        _leave_cells_alone()
        self.name = f"explorer of kernel {self.spec.number} ({self.spec.name})"
        start = m or (256 if self.device.kind == "CPU" else 1024)
        self._start = {"M": start, "N": n or start, "K": k or start}
        self._start |= self.spec.complete(params) if params else self.spec.fit(self.device.limits)
        self._client = f"explorer {next(_numbers)}"
        self._lock = threading.RLock()
        self._settling = False  # whether the controls are being moved by us
        self._base = dict(self._start)  # the settings that were last measured, or are to be
        self._touched: dict[str, int] = {}  # what a person has moved since
        self._notes: list[str] = []
        self._asked: dict[str, Any] = {}  # the arguments of the newest request
        self._timer: threading.Timer | None = None
        self._history: list[Try] = [] if source is None else _memories.setdefault(self._cell(), [])
        self._count = 0  # measured results of this explorer
        self._first: client.Outcome | None = None
        self._begin: float | None = None  # the rate of the first right result
        self._shown: tuple[client.Outcome, list[str]] | None = None
        self._arrived = threading.Event()
        self._make_controls()
        super().__init__(
            [self._controls[p.name].box for p in self.spec.params],
            [self._controls[size].box for size in "MNK"],
            buttons=[self._square, self._illegal, self._more, self._reset, self._to_best, self._stop],
            # the recorded GPU (`Recorded`) goes here, in front of the tries
            below=[self._again],
            above=[self._status],
            height=390,
        )
        self.bridge.observe(self._released, "held")
        self._draw = Newest(self._show)

    # The controls.

    def _make_controls(self) -> None:
        self._controls = {p.name: self._control(p) for p in self.spec.params}
        sizes = sorted({*SIZES, *(self._start[s] for s in "MNK")})
        for name, what in (("M", "rows of A and C"), ("N", "columns of B and C"), ("K", "columns of A, rows of B")):
            self._controls[name] = Control(name, sizes, self._start[name], what)
        main = self._main()
        self._others = [self._controls[name] for name in self.spec.defaults if name not in main]
        self._square = w.Checkbox(len({self._start[s] for s in "MNK"}) == 1, description="M = N = K", indent=False)
        self._illegal = w.Checkbox(False, description="allow illegal settings", indent=False)
        self._more = w.Checkbox(False, description=f"{len(self._others)} more parameters", indent=False)
        self._reset = w.Button(description="Reset", tooltip="Return to the initial settings")
        self._to_best = w.Button(
            description="Best so far", tooltip="The fastest settings tried here with a right result"
        )
        self._stop = w.Button(description="Stop", tooltip="Stop what runs for this explorer", disabled=True)
        self._again = w.Dropdown(description="tries", options=[("choose one to return to", -1)])
        self._status = w.HTML("")
        self._status.add_class("gemmlab-status")
        for box in (self._square, self._illegal, self._more):
            box.layout.width = "auto"
        self._again.layout = w.Layout(width="auto", max_width="860px")
        self._show_others(False)
        self._more.layout.display = "" if self._others else "none"
        for name, control in self._controls.items():
            on_any_thread(control.widget, lambda owner, name=name: self._moved(name))
        on_any_thread(self._square, lambda owner: self._moved("M") if owner.value else None)
        on_any_thread(self._more, lambda owner: self._show_others(owner.value))
        on_any_thread(self._again, lambda owner: self._return(owner.value))
        self._reset.on_click(lambda button: self.reset())
        self._to_best.on_click(lambda button: self._to_fastest())
        self._stop.on_click(lambda button: client.worker().stop(self._client))

    def _control(self, param: Param) -> Control:
        """A control that offers what this device can take; what it cannot is said in the meaning."""
        start = {name: value for name, value in self._start.items() if name not in "MNK"}
        offered, refused = [], ""
        for value in sorted({*param.choices, start[param.name]}):
            near, _ = self.spec.nearest_legal({**start, param.name: value}, param.name, self.device.limits)
            problems = self.spec.problems(near, self.device.limits)
            if problems and value != start[param.name]:
                refused = f" (not offered: {problems[0]})"
            else:
                offered.append(value)
        if len(offered) < 2:
            offered = sorted({*param.choices, start[param.name]})
        return Control(param.name, offered, start[param.name], param.meaning + refused)

    def _main(self) -> set[str]:
        """The parameters that are always in view: four, and one or two that the kernel before does not have."""
        names = list(self.spec.defaults)
        ranked = sorted(names, key=lambda name: MAIN.index(name) if name in MAIN else len(MAIN))
        new = set(names) - set(find(self.spec.before).defaults) if self.spec.before else set()
        return {*ranked[:4], *(new if len(new) <= 2 else ())}

    def _show_others(self, shown: bool) -> None:
        for control in self._others:
            control.box.layout.display = "" if shown else "none"

    @property
    def values(self) -> dict[str, int]:
        """The present positions of the controls: parameters, M, N and K."""
        return {name: control.value for name, control in self._controls.items()}

    def set(self, values: dict[str, int]) -> None:
        """Move several controls at the same time, and measure once."""
        with self._lock:
            self._place(values)
            self._mark([])
            self._submit()

    def reset(self) -> None:
        """Return to the initial settings, of the boxes too."""
        with self._lock:
            self._settling = True
            self._illegal.value = False
            self._square.value = len({self._start[s] for s in "MNK"}) == 1
            self._settling = False
            self.set(self._start)

    def _to_fastest(self) -> None:
        right = [t for t in self._history if t.right and t.gflops is not None]
        if right:
            self.set(max(right, key=lambda t: t.gflops or 0).settings)

    def _return(self, place: int) -> None:
        """Return to the settings of a try, by its place in the history; -1 is none."""
        if not self._settling and 0 <= place < len(self._history):
            self.set(self._history[place].settings)

    def said(self, message: dict[str, Any]) -> None:
        name, text = message.get("typed"), message.get("text", "")
        if name in ("M", "N", "K") and text.isdigit() and 1 <= int(text) <= SIZES[-1]:
            control = self._controls[name]
            values = [value for _, value in control.widget.options]
            if int(text) not in values:
                with self._lock:
                    self._settling = True
                    control.offer(sorted([*values, int(text)]))
                    self._settling = False
        if "again" in message:
            self._return(message["again"])
        super().said(message)

    def _place(self, values) -> None:
        """Move controls without measuring; sizes that a slider does not have yet are added to it."""
        self._settling = True
        try:
            self._square.value = self._square.value and len({values.get(s, 0) for s in "MNK"}) == 1
            for name, value in values.items():
                control = self._controls[name]
                if isinstance(control.widget, w.SelectionSlider):
                    known = [known for _, known in control.widget.options]
                    if value not in known:
                        control.offer(sorted([*known, value]))
                control.value = value
        finally:
            self._settling = False

    # A move: what needs no measuring is shown at once; what has settled is measured.

    def _moved(self, name: str) -> None:
        """A control has moved: move those that depend on it, and measure when it is let go. Never raises."""
        with self._lock:
            if self._settling:
                return
            self._touched.pop(name, None)
            self._touched[name] = self._controls[name].value  # the latest comes last
            if name in "MNK" and self._square.value:
                self._touched |= dict.fromkeys("MNK", self._touched[name])
            values = self._base | self._touched
            notes: list[str] = []
            moved = [name for name in self._touched if name in self.spec.defaults]
            if moved and not self._illegal.value:
                params = {p: values[p] for p in self.spec.defaults}
                params, notes = self.spec.nearest_legal(params, moved[-1], self.device.limits)
                values |= params
            self._place(values)
            self._mark(notes)
            self.panel.add_class("gemmlab-stale")
            self._say("")
            self._wait()

    def _mark(self, notes: list[str]) -> None:
        """Mark the controls that gave way, each with its reason, until the next move."""
        self._notes = notes
        for name, control in self._controls.items():
            control.gave_way(next((note for note in notes if note.startswith(f"{name} moved ")), ""))
            if control in self._others and any(note.startswith(f"{name} moved ") for note in notes):
                self._more.value = True

    def _released(self, change) -> None:
        with self._lock:
            if self._touched:
                self._wait()

    def _wait(self) -> None:
        """Measure in a moment, unless another move comes, or the slider is still held."""
        if self._timer:
            self._timer.cancel()
        self._timer = threading.Timer(SETTLE, self._settled)
        self._timer.daemon = True
        self._timer.start()

    def _settled(self) -> None:
        with self._lock:
            if self._touched and not self.bridge.held:
                self._submit()

    # A request, and its answer.

    def _arguments(self, values: dict[str, int], source: str | None) -> dict[str, Any]:
        return {
            "kernel": self.spec.number,
            "params": {name: values[name] for name in self.spec.defaults},
            "device": self.device.index,
            "source": source,
            **{size.lower(): values[size] for size in "MNK"},
        }

    def _submit(self) -> None:
        values, notes = self.values, list(self._notes)
        self._base, self._touched = values, {}
        self._asked = {**self._arguments(values, self.source), "most_seconds": MOST_SECONDS}
        self.panel.add_class("gemmlab-stale")
        self._stop.disabled = False
        self._say("start")
        client.worker().submit(self._client, self._asked, lambda outcome: self._done(outcome, notes), self._say)

    def _say(self, step: str) -> None:
        """Say in the status what is known of the settings without running them, and what is being done."""
        values = self.values
        params = {name: values[name] for name in self.spec.defaults}
        known = panel.free_facts(self.spec, params, self.device.limits)
        words = f"<div>{escape(panel.settings(values))}: {escape(known)}</div>"
        if step:
            limit = client.worker().limits[step]
            clock = f'data-job="{id(self._asked)}" data-step="{step}" data-limit="{limit:g}" aria-hidden="true"'
            words += f'<span class="gemmlab-spinner"></span>{STEPS[step]} … <span class="gemmlab-clock" {clock}></span>'
        self._status.value = words

    def _done(self, outcome: client.Outcome, notes: list[str]) -> None:
        with self._lock:
            result, values = outcome.result, self._values_of(outcome)
            self._history.append(Try(values, result and result.gflops, outcome.ok))
            del self._history[:-KEPT]
            self._count += result is not None
            if outcome.ok:
                self._begin = self._begin or result.gflops
                if self.source is None:
                    key = (str(self.device), self.spec.number)
                    _best[key] = max(_best.get(key, 0.0), result.gflops)
            self._first = self._first or outcome
            self._shown = outcome, notes
            self._redraw()
            if outcome.kind in ("hang", "crash", "stopped"):
                client.worker().warm()
            self._plan()

    def _values_of(self, outcome: client.Outcome) -> dict[str, int]:
        return {**outcome.arguments["params"], **{size: outcome.arguments[size.lower()] for size in "MNK"}}

    def _redraw(self) -> None:
        """Draw the newest outcome again, with what has arrived to compare it with."""
        if self._shown:
            self._draw((*self._shown, list(self._history), self._here(), self._beside(self._shown[0])))

    def _here(self) -> dict[int, float]:
        return {number: _best[key] for number in catalog if (key := (str(self.device), number)) in _best}

    def _beside(self, outcome: client.Outcome) -> panel.Yardsticks:
        original = _originals.get(self._key(self._values_of(outcome))) if self.source is not None else None
        return panel.Yardsticks(self._begin, original, _peaks.get(str(self.device)))

    def _show(self, shown) -> None:
        """Draw an answer; runs on a thread of its own."""
        outcome, notes, history, here, beside = shown
        values = self._values_of(outcome)
        try:
            content = panel.outcome(outcome, self.spec, self.device.limits, values, notes, beside)
            content += _chart(history, here, self.spec.number, beside.original)
            content += panel.changes(self.spec, self.source) if self.source is not None else ""
        except Exception as error:  # nobody reads the log console, so the panel says it
            content = f"<p>{escape(f'{type(error).__name__}: {error}')}</p>"
        key = " ".join(f"{name}={value}" for name, value in values.items())
        result = outcome.result
        state = "ok" if outcome.ok else "luck" if outcome.by_luck else "wrong" if result else outcome.kind or "error"
        data = f'data-key="{key}" data-state="{state}" data-count="{self._count}"'
        with self._lock:
            self.panel.value = f'<div {data} style="line-height:1.5">{content}</div>'
            if outcome.arguments is self._asked:
                self._stop.disabled = True
                if not self._touched:
                    self.panel.remove_class("gemmlab-stale")
                    self._status.value = ""
            self._offer_tries(history)
        self._arrived.set()

    def _offer_tries(self, history: list[Try]) -> None:
        places = range(len(history))[: -plot.SHOWN - 1 : -1]
        options = [("choose one to return to", -1), *((f"{place + 1}: {history[place]}", place) for place in places)]
        if options != list(self._again.options):
            self._settling = True
            self._again.options = options
            self._settling = False

    def ready(self) -> None:
        """Run the initial settings."""
        if self._first is None:
            self.set(self._start)
            try:
                self._arrived.wait(sum(client.worker().limits.values()))
            except KeyboardInterrupt:  # the panel says it in a sentence
                client.worker().stop(self._client)
                self._arrived.wait(5)
            self._offer_sizes()

    def _offer_sizes(self) -> None:
        """Offer only sizes whose square product this device finishes in time at the rate of the first run."""
        if self._first is None or self._first.result is None:
            return
        most = (MOST_SECONDS * self._first.result.gflops * 1e9 / 12) ** (1 / 3)  # 6 runs of 2 size^3 operations
        with self._lock:
            self._settling = True
            for name in "MNK":
                control = self._controls[name]
                control.offer(sorted({s for s in SIZES if s <= most} | {control.value, self._start[name]}))
            self._settling = False

    # While nobody waits.

    def _key(self, values: dict[str, int]) -> tuple:
        return (str(self.device), self.spec.number, *values.items())

    def _cell(self) -> tuple:
        """What the tries of a text of the reader's own are remembered by: its cell, so that an edit keeps them."""
        shell = get_ipython()
        parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
        return (str(self.device), self.spec.number, parent.get("metadata", {}).get("cellId", ""))

    def _plan(self) -> None:
        """What to do while nobody waits: the original beside a text of the reader's own, the next moves, the chart."""
        jobs: list[Job] = []
        if self.source is not None and self._key(self._base) not in _originals:
            key, arguments = self._key(self._base), self._arguments(self._base, None)
            jobs.append(Job("measure", arguments, partial(self._heard, known=_originals, key=key)))
        elif self._shown and self._shown[0].result and has_src_build_cache(self.device.cl):
            jobs += [Job("compile", self._arguments(values, self.source)) for values in self._neighbours()]
        client.worker().idle.plan("chart", self._chart_jobs())
        client.worker().idle.plan(self._client, jobs)  # the latest plan comes first

    def _chart_jobs(self) -> list[Job]:
        """The peak of the device, and the other kernels, as far as they are not known."""
        device = str(self.device)
        jobs = [Job("peaks", {"device": self.device.index}, self._heard_peaks)] if device not in _peaks else []
        for number in catalog:
            if (device, number) not in _best:
                sizes = {size.lower(): self._start[size] for size in "MNK"}
                arguments = {"kernel": number, "device": self.device.index, "most_seconds": MOST_SECONDS / 2, **sizes}
                jobs.append(Job("measure", arguments, partial(self._heard, known=_best, key=(device, number))))
        return jobs

    def _heard(self, outcome: client.Outcome, known: dict, key: tuple) -> None:
        """What was measured while nobody waited."""
        if outcome.ok:
            known.setdefault(key, outcome.result.gflops)
            with self._lock:
                self._redraw()

    def _heard_peaks(self, outcome: client.Outcome) -> None:
        _peaks[str(self.device)] = outcome.result["gflops"] if outcome.result else None
        with self._lock:
            self._redraw()

    def _neighbours(self) -> list[dict[str, int]]:
        """The settings that one move of a slider leads to, those of the parameters in view first."""
        base, tried = self._base, [t.settings for t in self._history]
        found: list[dict[str, int]] = []
        controls = [c for name, c in self._controls.items() if name in self.spec.defaults]
        for control in sorted(controls, key=lambda c: c in self._others):
            options = [value for _, value in control.widget.options] if hasattr(control.widget, "options") else [0, 1]
            place = options.index(base[control.name])
            for value in options[max(0, place - 1) : place + 2]:
                params = {name: base[name] for name in self.spec.defaults} | {control.name: value}
                near, _ = self.spec.nearest_legal(params, control.name, self.device.limits)
                values = base | near
                if values not in (*found, *tried) and not self.spec.problems(near, self.device.limits):
                    found.append(values)
        return found[:AHEAD]

    def still(self) -> Picture:
        first = self._first.result if self._first else None
        history = [Try(self._start, first.gflops, self._first.ok)] if first and self._first else []
        picture = plot.tries(history, self._here(), self.spec.number)
        settings = " ".join(f"{name}={value}" for name, value in self._start.items() if name not in "MNK")
        sizes = " x ".join(str(self._start[name]) for name in "MNK")
        where = f"kernel {self.spec.number} on {self.device.name[:30]}, {sizes}, {settings}"
        picture.suptitle(where, color=INK, fontsize=min(9, 760 / len(where)), y=0.99)
        return picture


def _chart(history: list[Try], here: dict[int, float], kernel: int, original: float | None) -> str:
    """The chart of tries; each says its settings when the pointer is on it."""
    svg = plot.tries(history, here, kernel, original).svg()
    for place, attempt in enumerate(history):
        svg = svg.replace(f'<g id="try-{place}">', f'<g id="try-{place}"><title>{escape(str(attempt))}</title>')
    return svg


def _leave_cells_alone() -> None:
    """What is done while nobody waits is not done while a cell runs: the cell may measure something itself."""
    shell, idle = get_ipython(), client.worker().idle
    if shell is None or getattr(shell, "_gemmlab_idle", None) is idle:
        return
    shell._gemmlab_idle = idle
    idle.hold("cell")
    shell.events.register("pre_run_cell", lambda *info: idle.hold("cell"))
    shell.events.register("post_run_cell", lambda *info: idle.release("cell"))
