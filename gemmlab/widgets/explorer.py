"""Sliders for a kernel's parameters and sizes, with an immediate answer: is it still right, and how fast is it?"""

from __future__ import annotations

import itertools
import threading

import ipywidgets as w

from ..bench import records
from ..catalog import catalog, find, sources
from ..draw import plot
from ..draw.picture import GREEN, INK, ORANGE, RED, Picture
from ..opencl.devices import find_device
from ..worker import client
from .shell import Newest, Shell, escape, on_any_thread, slider

#: Sizes to choose from; those that take a device too long are left out.
SIZES = (16, 32, 64, 100, 128, 200, 256, 384, 500, 512, 768, 1000, 1024, 1536, 2048, 3072, 4096, 5000, 8192)
#: A job (check and timing) that is predicted to take longer than this many seconds is refused.
MOST_SECONDS = 2.0

_numbers = itertools.count(1)
_best: dict[tuple[str, int], float] = {}  # best GFLOPS by device and kernel, from all explorers of this process


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
        self.name = f"explorer of kernel {self.spec.number} ({self.spec.name})"
        start = m or (256 if self.device.kind == "CPU" else 1024)
        self._start = {"M": start, "N": n or start, "K": k or start}
        self._start |= self.spec.complete(params) if params else self.spec.fit(self.device.limits)
        self._client = f"explorer {next(_numbers)}"
        self._lock = threading.RLock()
        self._settling = False
        self._notes: list[str] = []
        self._history: list[tuple[float, bool]] = []
        self._best: tuple[float, dict] | None = None
        self._first: client.Outcome | None = None
        self._shown: tuple | None = None
        self._arrived = threading.Event()
        sizes = sorted({*SIZES, *(self._start[s] for s in "MNK")})
        self._controls = {
            p.name: slider(p.name, sorted({*p.choices, self._start[p.name]}), self._start[p.name], p.meaning)
            for p in self.spec.params
        }
        for name, what in (("M", "rows of A and C"), ("N", "columns of B and C"), ("K", "columns of A, rows of B")):
            self._controls[name] = slider(name, sizes, self._start[name], what)
        self._square = w.Checkbox(len({self._start[s] for s in "MNK"}) == 1, description="M = N = K", indent=False)
        self._illegal = w.Checkbox(False, description="allow illegal settings", indent=False)
        self._reset = w.Button(description="Reset", tooltip="Return to the initial settings")
        self._to_best = w.Button(
            description="Best so far", tooltip="The fastest settings tried here with a right result"
        )
        self._status = w.HTML("")
        for box in (self._square, self._illegal):
            box.layout.width = "auto"
        super().__init__(
            [self._controls[p.name] for p in self.spec.params],
            [self._controls[size] for size in "MNK"],
            buttons=[self._square, self._illegal, self._reset, self._to_best, self._status],
            height=340,
        )
        for name, control in self._controls.items():
            on_any_thread(control, lambda owner, name=name: self._moved(name))
        on_any_thread(self._square, lambda owner: self._moved("M") if owner.value else None)
        self._reset.on_click(lambda button: self.set(self._start))
        self._to_best.on_click(lambda button: self._best and self.set(self._best[1]))
        self._draw = Newest(self._show)

    @property
    def values(self) -> dict[str, int]:
        """The present positions of the sliders: parameters, M, N and K."""
        return {name: control.value for name, control in self._controls.items()}

    def set(self, values: dict[str, int]) -> None:
        """Move several sliders at the same time, and measure once."""
        with self._lock:
            self._place(values)
            self._notes = []
            self._submit()

    def _place(self, values) -> None:
        self._settling = True
        try:
            self._square.value = self._square.value and len({values.get(s, 0) for s in "MNK"}) == 1
            for name, value in values.items():
                if self._controls[name].value != value:
                    self._controls[name].value = value
        finally:
            self._settling = False

    def _moved(self, name: str) -> None:
        """A slider has moved: move those that depend on it, and request a measurement. Never raises."""
        with self._lock:
            if self._settling:
                return
            values, self._notes = self.values, []
            if name in "MNK" and self._square.value:
                values |= dict.fromkeys("MNK", values[name])
            if name in self.spec.defaults and not self._illegal.value:
                params = {p: values[p] for p in self.spec.defaults}
                params, self._notes = self.spec.nearest_legal(params, name, self.device.limits)
                values |= params
            self._place(values)
            self._submit()

    def _submit(self) -> None:
        values = self.values
        arguments = {
            "kernel": self.spec.number,
            "params": {name: values[name] for name in self.spec.defaults},
            "device": self.device.index,
            "source": self.source,
            "most_seconds": MOST_SECONDS,
            **{size.lower(): values[size] for size in "MNK"},
        }
        notes = list(self._notes)
        client.worker().submit(self._client, arguments, lambda outcome: self._done(outcome, notes), self._say_step)

    def _say_step(self, step: str) -> None:
        words = {"start": "starting the worker", "compile": "compiling"}.get(step, "running")
        if step != "start" or not self._history:
            self._status.value = f"<i>{words} …</i>"

    def _done(self, outcome: client.Outcome, notes: list[str]) -> None:
        with self._lock:
            self._status.value = ""
            result = outcome.result
            if result:
                self._history.append((result.gflops, outcome.ok))
                key = (str(self.device), self.spec.number)
                if outcome.ok and self.source is None:
                    _best[key] = max(_best.get(key, 0.0), result.gflops)
                if outcome.ok and (self._best is None or result.gflops > self._best[0]):
                    sizes = {"M": result.m, "N": result.n, "K": result.k}
                    self._best = (result.gflops, {**result.params, **sizes})
            self._first = self._first or outcome
            self._shown = outcome, notes
            self._redraw()

    def _redraw(self) -> None:
        """Draw the newest outcome again, with the results that have arrived for the chart since."""
        if self._shown:
            self._draw((*self._shown, list(self._history), self._here()))

    def _here(self) -> dict[int, float]:
        return {number: _best[key] for number in catalog if (key := (str(self.device), number)) in _best}

    def _show(self, shown) -> None:
        outcome, notes, history, here = shown
        try:
            drawing = plot.tries(history, here, records.ladders(), self.spec.number)
            content = self._words(outcome, notes) + drawing.svg()
        except Exception as error:  # nobody reads the log console, so the panel says it
            content = f"<p>{escape(f'{type(error).__name__}: {error}')}</p>"
        a, result = outcome.arguments, outcome.result
        key = " ".join([*(f"{k}={v}" for k, v in a["params"].items()), *(f"{s.upper()}={a[s]}" for s in "mnk")])
        state = "ok" if outcome.ok else "luck" if outcome.by_luck else "wrong" if result else outcome.kind or "error"
        data = f'data-key="{key}" data-state="{state}" data-count="{len(history)}"'
        self.panel.value = f'<div {data} style="line-height:1.5">{content}</div>'
        self._arrived.set()

    def _words(self, outcome: client.Outcome, notes: list[str]) -> str:
        moved = "".join(f"<div>{escape(note)}</div>" for note in notes)
        result = outcome.result
        if result is None:
            text = escape(outcome.verdict).replace("\n", "<br>")
            text = text.replace("  ", "&nbsp; ")
            head = _head({"hang": "Stopped", "crash": "Crashed"}.get(outcome.kind, "Not run"), RED)
            return f'{head}<div style="font-family:monospace">{text}</div>{moved}{self._changes()}'
        local, memory = self.spec.local_size(result.params), self.spec.local_memory(result.params)
        limits = self.device.limits
        facts = {
            "kernel": f"{result.gflops:,.1f} GFLOPS, {result.kernel_ms[0]:.3g} ms, median of {result.repeats} runs",
            "whole pipeline": f"{result.pipeline_gflops:,.1f} GFLOPS ({', '.join(result.passes_ms)})",
            "error": f"{result.error:.1e} (at most {result.bound:.1e} is allowed)",
            "compiled in": f"{result.build_seconds:.2f} s" + (f"; path: {result.path}" if self.spec.switches else ""),
            "work-group": f"{local[0]} x {local[1]} = {local[0] * local[1]} of {limits.work_group} work-items",
            "local memory": f"{memory:,} of {limits.local_memory:,} bytes",
        }
        cells = "".join(
            f'<div><span style="opacity:.75">{name}</span> {escape(text)}</div>' for name, text in facts.items()
        )
        colour = GREEN if outcome.ok else ORANGE if outcome.by_luck else RED
        head = _head(outcome.verdict[0].upper() + outcome.verdict[1:], colour)
        columns = "display:grid;grid-template-columns:repeat(auto-fit,minmax(min(320px,100%),1fr));margin:4px 0"
        return f'{head}<div style="{columns}">{cells}</div>{moved}{self._changes()}'

    def _changes(self) -> str:
        """How a learner's text differs from the kernel's: removed lines are marked with -, added ones with +."""
        if self.source is None:
            return ""
        lines = sources.diff(sources.read(self.spec.file), self.source, context=0).splitlines()
        shown = [line for line in lines if line[:1] in "+-"][:30]
        colours = {"+": GREEN, "-": RED}
        style = "border-left:3px solid {};padding-left:6px"
        rows = "".join(f'<div style="{style.format(colours[x[0]])}">{escape(x)}</div>' for x in shown)
        title = "changes to the original:" if shown else "the same as the original"
        mono = "font-family:monospace;white-space:pre-wrap"
        return f'<div style="opacity:.75">{title}</div><div style="{mono}">{rows}</div>'

    def ready(self) -> None:
        """Run the initial settings, and then the other kernels for the chart."""
        if self._first is None:
            self.set(self._start)
            self._arrived.wait(sum(client.LIMITS.values()))
            self._offer_sizes()
            self._run_others()

    def _offer_sizes(self) -> None:
        """Offer only sizes whose square product this device finishes in time at the rate of the first run."""
        if self._first is None or self._first.result is None:
            return
        most = (MOST_SECONDS * self._first.result.gflops * 1e9 / 12) ** (1 / 3)  # 6 runs of 2 size^3 operations
        with self._lock:
            self._settling = True
            for name in "MNK":
                control = self._controls[name]
                value = control.value
                kept = {s for s in SIZES if s <= most} | {value, self._start[name]}
                control.options = [(str(s), s) for s in sorted(kept)]  # this moves the slider to the first option
                control.value = value
            self._settling = False

    def _run_others(self) -> None:
        for number in catalog:
            key = (str(self.device), number)
            if key in _best:
                continue
            arguments = {"kernel": number, "device": self.device.index, "most_seconds": MOST_SECONDS / 2}
            arguments |= {size.lower(): self._start[size] for size in "MNK"}

            def done(outcome: client.Outcome, key=key) -> None:
                if outcome.ok:
                    _best.setdefault(key, outcome.result.gflops)
                    self._redraw()

            client.worker().submit(f"{self._client} kernel {number}", arguments, done, background=True)

    def still(self) -> Picture:
        history = [(self._first.result.gflops, self._first.ok)] if self._first and self._first.result else []
        picture = plot.tries(history, self._here(), records.ladders(), self.spec.number)
        settings = " ".join(f"{name}={value}" for name, value in self._start.items() if name not in "MNK")
        sizes = " x ".join(str(self._start[name]) for name in "MNK")
        where = f"kernel {self.spec.number} on {self.device.name[:30]}, {sizes}, {settings}"
        picture.suptitle(where, color=INK, fontsize=min(9, 760 / len(where)), y=0.99)
        return picture


def _head(text: str, colour: str) -> str:
    return f'<div style="font-weight:bold;border-left:5px solid {colour};padding-left:8px">{escape(text)}</div>'
