"""Sliders for a kernel's parameters and sizes: is it right, how fast, and is that a difference?"""

from __future__ import annotations

import itertools
import os
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any

import ipywidgets as w
from IPython import get_ipython

from ..draw.bars import Bar, bars
from ..draw.picture import Picture
from ..ladder import Key, find, sources
from ..ladder.spec import positive
from ..measurement.comparison import BUDGET, Comparison, Interval
from ..measurement.landscape import fingerprint_of
from ..measurement.rungs import Allowed
from ..opencl.devices import Device, NoDeviceError, devices, find_device
from ..worker import client
from . import panel, tries
from .browser import NAME, WORDS, Browser
from .maps import Maps, recorded_cell
from .settings import SIZES, Settings
from .shell import Shell, free, grid, line
from .tries import KEPT, Try, best

#: A job (check and timing) that is predicted to take longer than this many seconds is refused.
MOST_SECONDS = 2.0
#: Seconds after the last move of a slider in which another may follow, before it is measured.
SETTLE = 0.06
#: "Measure longer" takes so many times as long.
LONGER = 5

STEPS = {
    "start": "waiting for the worker",
    "compile": "compiling",
    "predict": "first launch",
    "check": "checking the result",
    "time": "timing",
    "look": "running your text in the simulator",
    "page": "running in this browser",
}

_numbers = itertools.count(1)


class Explorer(Shell):
    """Sliders for one kernel: verdict, rate, comparison, two maps, and what was tried.

    Args:
        kernel: its number.
        m, n, k: initial sizes; m defaults to 256 on a CPU and 1024 on a GPU, n and k default to m.
        params: initial parameters; by default those that suit the device.
        device: a Device, an index or part of a name, or "browser" for the GPU of the browser that
            shows it; the preferred device by default.
        source: OpenCL C text to use instead of the kernel's own, with the same parameters.
    """

    def __init__(
        self,
        kernel: Key = 1,
        m: int | None = None,
        n: int | None = None,
        k: int | None = None,
        *,
        params: Mapping[str, int] | None = None,
        device: Device | int | str | None = None,
        source: str | None = None,
    ):
        super().__init__()
        if source is not None and not isinstance(source, str):
            raise TypeError(
                f"source must be OpenCL C text, not {type(source).__name__}: {source!r}"
            )
        self.spec, self.device, self.source = find(kernel), self._find(device), source
        self._original = sources.read(self.spec.file)
        self._edited = source is not None and _edited(source, self._original)
        self.name = f"explorer of kernel {self.spec.number} ({self.spec.name})"
        m = _usual_size(self.device) if m is None else m
        given = {"m": m, "n": m if n is None else n, "k": m if k is None else k}
        sizes = {name.upper(): positive(name, size) for name, size in given.items()}
        chosen = self.spec.complete(params) if params else self.spec.fit(self.device.limits)
        self._start = {**chosen, **sizes}
        self.settings = Settings(self.spec, self.device.limits, self._start, self._moved)
        self._lock = self.settings.lock
        self._client = f"explorer {next(_numbers)}"
        self._request: dict[str, Any] | None = None  # the arguments of the request that runs
        self._step = ""  # of it
        self._timer: threading.Timer | None = None
        self._remember()
        self.in_cell: range | None = None  # if a cell is a part of the source: the lines of that
        self._count = 0  # measured results of this explorer
        self._begun = False  # whether the start was right
        self._shown: client.Outcome | None = None
        self._peak: float | None = None  # GFLOPS of the device; None before it is known
        #: by parameters: what an H200 allows the text and, if that is edited, the original
        self._allowed: dict[tuple[int, ...], list[Allowed | None]] = {}
        self._arrived = threading.Event()
        self._lay_out()

    def _find(self, device: Device | int | str | None) -> Device | Browser:
        if device == NAME or (device is None and not devices()):
            return Browser(self._follow_device)
        try:
            return find_device(device)
        except NoDeviceError as error:
            words = f'{error}; device="{NAME}" measures on the GPU of your browser'
            raise NoDeviceError(words) from None

    @property
    def _desk(self) -> client.Worker | Browser:
        """Who measures."""
        return self.device if isinstance(self.device, Browser) else client.worker()

    # What the widget consists of.

    def _lay_out(self) -> None:
        self._recorded, self._note, self._details = (w.HTML() for _ in range(3))
        self._status = w.HTML(layout=w.Layout(flex="1")).add_class("gemmlab-status")
        self._reset = self._button("↺ Reset", "Return to the initial settings", self.reset)
        self._to_best = self._button("★ Best", "Your fastest settings here", self._to_fastest)
        self._stop = self._button(
            "■ Stop", "Stop what runs for this explorer", lambda: self._desk.stop(self._client)
        )
        self._longer = self._button(
            "Measure longer",
            f"Measure {LONGER} times as long",
            lambda: self._submit(LONGER * BUDGET),
        )
        self._maps = Maps(self.spec, self.device.limits, self.source)
        self._maps.on_msg(lambda widget, content, buffers: self._chosen(content))
        self._devices = self._device_list()
        name = escape(self.spec.name)
        words = f"kernel {escape(str(self.spec.number))} <span>{name}</span>"
        title = w.HTML(f'<div class="gemmlab-title">{words}</div>', layout=w.Layout(flex="1"))
        self.head = line(title, self._devices, self._reset, self._to_best)
        self._gpu = w.Box()  # what opens the browser's GPU, if that is the device
        fold = w.ToggleButton(
            False,
            description="More settings, details",
            icon="angle-right",
            tooltip="The other settings, and all that was measured",
        )
        fold.add_class("gemmlab-fold")
        shown, hidden = [w.VBox(self.settings.first)], self.settings.others
        if self.source is not None:  # the verdict comes right below the cell
            shown, hidden = [], [*self.settings.first, *hidden]
        self.box.add_class("gemmlab-instrument" if shown else "gemmlab-verdict")
        folded = w.VBox([grid(hidden), self._details])
        folded.layout.display = "none"

        def turn(change: dict[str, Any]) -> None:
            folded.layout.display = "" if change["new"] else "none"
            fold.icon = "angle-down" if change["new"] else "angle-right"

        fold.observe(turn, names="value")
        answers = [self.panel, self._recorded]
        if self.device.kind == "CPU" and self._maps.recorded:
            answers.reverse()  # the recorded GPU carries the lesson
        self.compose(
            self.head,
            self._gpu,
            w.HBox([*shown, w.VBox(answers)]).add_class("gemmlab-top"),
            line(self._note, self._longer).add_class("gemmlab-noted"),
            self._maps,
            line(fold, self._status, self._stop),
            folded,
        )
        self.bridge.held = False
        self.bridge.observe(lambda change: self._wait(), "held")
        self._follow_device()

    def _button(self, name: str, tooltip: str, action: Callable[[], None]) -> w.Button:
        made = w.Button(description=name, tooltip=tooltip, layout=w.Layout(width="auto"))
        made.on_click(lambda button: action())
        return made

    def _device_list(self) -> w.Dropdown:
        """The devices to measure on, the browser's GPU among them."""
        found = [(panel.label(one), one) for one in devices()]
        here = NAME if isinstance(self.device, Browser) else self.device
        made = w.Dropdown(options=[*found, (WORDS, NAME)], value=here)
        made.layout.width = "190px"
        made.tooltip = "Where it runs"
        made.observe(lambda change: self._use(self._find(change["new"])), "value")
        return made

    def _use(self, device: Device | Browser) -> None:
        """Measure on another device from now on, with its limits, its map and its tries."""
        with self._lock:
            before, self.device = self._desk, device
            before.stop(self._client)  # its answer would be about another device
            self._begun, self._shown, self._peak = False, None, None
            self._remember()
            size = _usual_size(device)
            self._start = {**self.spec.fit(device.limits), "M": size, "N": size, "K": size}
            self._follow_device()
            self.set(self._start)

    def _follow_device(self) -> None:
        """Show what the device is and allows; a page reports the limits of its GPU later."""
        with self._lock:
            in_page = isinstance(self.device, Browser)
            self._gpu.children = (self.device,) if isinstance(self.device, Browser) else ()
            self.settings.limits = self._maps.limits = self.device.limits
            self._maps.machine = "this browser" if in_page else "this machine"
            self._draw()

    # What a person does.

    @property
    def values(self) -> dict[str, int]:
        """The present positions of the controls: parameters, M, N and K."""
        return self.settings.values

    def reset(self) -> None:
        """Return to the initial settings."""
        self.set(self._start)

    def set(self, values: dict[str, int]) -> None:
        """Move several controls at the same time, and measure once."""
        with self._lock:
            self.settings.place(values)
            self._submit()

    def _to_fastest(self) -> None:
        if fastest := best(self._history):
            self.set(fastest.settings)

    def _chosen(self, message: dict[str, Any]) -> None:
        """Something in the maps or among the tries."""
        if "axis" in message:
            self._maps.turn(message["axis"], message["name"])
            self._draw()
        elif "again" in message and 0 <= message["again"] < len(self._history):
            self.set(self._history[message["again"]].settings)
        elif "choose" in message:
            self.set(self._maps.setting(self.values, message["choose"]))
        elif "pass" in message:
            self.settings.place(self._maps.setting(self.values, message["pass"]))
            self._draw()

    def received(self, message: dict[str, Any]) -> None:
        name, text = message.get("typed"), message.get("text", "")
        if name in self.values and text.isdecimal() and 0 < int(text) <= SIZES[-1]:
            self.settings.type(name, int(text))
        else:
            super().received(message)

    # A move: what needs no measurement is shown at once; the last of several moves is measured.

    def _moved(self) -> None:
        self._draw()
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

    def _arguments(self, values: dict[str, int], source: str | None) -> dict[str, Any]:
        return {
            "kernel": self.spec.number,
            "params": self.settings.params(values),
            "source": source,
            **{size.lower(): values[size] for size in "MNK"},
        }

    def _reference(self, values: dict[str, int]) -> dict[str, Any] | None:
        """What a measurement is compared with, which is never itself."""
        if self._edited:
            return self._arguments(values, None)
        if values == self._start or not self._begun:
            return None
        return self._arguments(self._start, self.source)

    def _submit(self, budget: float = BUDGET) -> None:
        with self._lock:
            values = self.settings.commit()
            self._request = request = {
                **self._arguments(values, self.source),
                "device": self.device.index,
                "reference": self._reference(values),
                "budget": budget,
                "most_seconds": MOST_SECONDS,
            }
            self._begin("start", request)
            on_step = partial(self._begin, request=request)
            self._desk.submit(self._client, request, self._done, on_step)

    def _begin(self, step: str, request: dict[str, Any]) -> None:
        with self._lock:
            if request is self._request:
                self._step = step
                self._draw()

    def _done(self, outcome: client.Outcome) -> None:
        with self._lock:
            if outcome.arguments["device"] != self.device.index:
                return  # another one was chosen meanwhile
            values, found = _values(outcome), outcome.compared
            problem = "" if found else panel.title(outcome).lower()
            if found and found.reference and not self._edited:
                self._measured_again(found.reference)
            self._history.append(Try(values, found.rate if found else None, outcome.ok, problem))
            del self._history[:-KEPT]
            tries.save(self._memory, self._history)
            self._count += outcome.result is not None
            self._begun = self._begun or (outcome.ok and values == self._start)
            self._shown = outcome
            if outcome.arguments is self._request:
                self._request = None
            self._draw()
            if outcome.ok:
                self._request_context()
            else:
                self._arrived.set()

    def _measured_again(self, rate: Interval) -> None:
        """The start has run beside a try: with its old rate, from a busier or quieter moment, map
        and verdict would contradict each other.
        """
        for number, one in reversed([*enumerate(self._history)]):
            if one.settings == self._start and one.right:
                self._history[number] = replace(one, rate=rate)
                return

    def _draw(self) -> None:
        """Show all that is known now."""
        with self._lock:
            values, found = self.values, None
            moving = bool(self.settings.touched) or values != self.settings.base
            stale = moving or self._request is not None
            recorded = self._on_recorded(self.settings.params(values))
            self._recorded.value = panel.shown(recorded) if recorded else ""
            if self._shown:
                self.panel.value = self._answer(self._shown)
                self._details.value = panel.details(self._shown, self.spec, self.device.limits)
                found = self._shown.compared if self._shown.ok and not stale else None
            self._note.value = panel.note(self.settings.notes, found)
            unclear = found and (found.noisy or (found.ratio is not None and not found.shown))
            self._longer.layout.display = "" if unclear else "none"  # the note takes its width
            self._stop.layout.visibility = "visible" if self._request else "hidden"
            free(self._longer)  # so that both work while a cell runs
            free(self._stop)
            self._maps.show(values, self._history)
            self._status.value = "" if moving or not self._request else self._running(self._request)
            (self.panel.add_class if stale else self.panel.remove_class)("gemmlab-stale")

    def _running(self, request: dict[str, Any]) -> str:
        step = self._step
        limit = "" if step == "page" else f"{client.worker().limit(step, request):g}"
        clock = f'data-job="{id(request)}" data-step="{step}" data-limit="{limit}"'
        return (
            f'<span class="gemmlab-spinner"></span>{STEPS[step]} … '
            f'<span class="gemmlab-clock" aria-hidden="true" {clock}></span>'
        )

    def _answer(self, outcome: client.Outcome) -> str:
        values, words = _values(outcome), panel.verdict(outcome, self.source or "")
        if self.in_cell:
            words = panel.renumbered(words, self.in_cell)
        if outcome.ok and outcome.compared:
            words += panel.shown(self._here(outcome.compared, values))
            words += panel.compared(outcome.compared, *self._other(values))
        key = " ".join(f"{name}={value}" for name, value in values.items())
        data = f'data-key="{key}" data-state="{outcome.state}" data-count="{self._count}"'
        return f"<div {data}>{words}</div>"

    def _here(self, found: Comparison, values: dict[str, int]) -> Bar:
        """The rate that was measured."""
        name = panel.label(self.device) if isinstance(self.device, Device) else self.device.name
        where = f"{name}, {panel.sizes(values)}"
        return panel.here(found.rate, where, self._peak, self._maps.machine)

    def _other(self, values: dict[str, int]) -> tuple[str, str]:
        """What settings are compared with, and what of them was moved since."""
        if self._edited:
            return "the original", ""
        moved = panel.moved(self._start, values)
        return "your start" if self.source is None or moved else "the original text", moved

    def _on_recorded(self, params: dict[str, int]) -> Bar | None:
        """The recorded GPU with these settings; of an edited text, what it could reach there."""
        found = self._maps.recorded
        allowed, *original = self._allowed.get(tuple(params.values()), [None])
        if found is None:
            wrong = self._shown is not None and not self._shown.ok
            hidden = self.spec.tensor or (self.source is not None and wrong)
            return None if hidden else panel.reachable(allowed, *original)
        here, start = (
            recorded_cell(found, self.spec, one)
            | {"allowed": self._allowed.get(tuple(one.values()), [None])[0]}
            for one in (params, self.settings.params(self._start))
        )
        return panel.recorded(found, here, start)

    def ready(self) -> None:
        """Run the initial settings, so that the cell ends with an answer."""
        if self._shown is not None:
            return
        self.set(self._start)
        if isinstance(self.device, Browser):
            return  # no page answers while a cell runs
        try:
            self._arrived.wait(sum(client.worker().limits.values()))
        except KeyboardInterrupt:  # the panel says it in a sentence
            client.worker().stop(self._client)
            self._arrived.wait(5)

    # What a rate is compared with: the device's peak, and ceilings on an H200.

    def _request_context(self) -> None:
        params, found = self.settings.params(self.settings.base), self._maps.recorded
        key, texts = tuple(params.values()), list[dict[str, Any]]()
        if key not in self._allowed and not self.spec.tensor:
            texts = [{"kernel": self.spec.number, "params": params, "source": self.source}]
            record = found.rate(self.spec.number, params) if found else None
            if record and record.metric == "GFLOPS":
                texts[0] |= {"gflops": record.gflops, "registers": record.registers}
            if self._edited:
                texts.append({**texts[0], "source": self._original})
        request = {"device": None if self._peak else self.device.index, "texts": texts}
        name, device = f"{self._client}, context", self.device

        def learn(outcome: client.Outcome) -> None:
            peak, ceilings = outcome.result or (None, [None])
            with self._lock:
                if texts:
                    self._allowed[key] = [*ceilings]
                if device is self.device:
                    self._peak = peak or self._peak
                self._draw()
            self._arrived.set()

        client.worker().submit(name, request, learn, job="context")

    # What stays.

    def _remember(self) -> None:
        """The tries of earlier days on this device; those of a text by its notebook and cell."""
        name = f"kernel {self.spec.number} on {self.device}"
        if self.source is not None:
            shell = get_ipython()
            parent = shell.get_parent() if hasattr(shell, "get_parent") else {}
            cell = parent.get("metadata", {}).get("cellId", "")
            name += f", {os.environ.get('JPY_SESSION_NAME', '')} {cell}"
        self._memory = name
        self._history = [one for one in tries.load(name) if {*one.settings} == {*self._start}]

    def words(self) -> str:
        start = tuple(self.settings.params(self._start).values())
        allowed = self._allowed.get(start, [None])[0]
        right = self._shown is not None and self._shown.ok
        return panel.ceiling(allowed) if allowed and right else ""

    def still(self) -> Picture | str:
        picture = self._maps.still()
        if picture is not None:
            return picture
        outcome = self._shown
        if outcome is None or not outcome.ok or outcome.compared is None:  # words say all of it
            return f'<div style="max-width:860px">{self.panel.value}{self._recorded.value}</div>'
        values = _values(outcome)
        recorded = self._on_recorded(self.settings.params(values))
        other, _ = self._other(values)
        return bars(
            f"✔ {panel.sentence(outcome.verdict)}",
            [self._here(outcome.compared, values), *([recorded] if recorded else [])],
            panel.beside(outcome.compared, other),
        )


def _edited(source: str, original: str) -> bool:
    """Whether a text differs from the kernel's own in more than comments, blanks and parameters."""
    one, other = (fingerprint_of(sources.code(text)) for text in (source, original))
    return one != other


def _usual_size(device: Device | Browser) -> int:
    """M, N and K for a start; a browser's GPU may be one that a CPU plays."""
    return 1024 if isinstance(device, Device) and device.kind == "GPU" else 256


def _values(outcome: client.Outcome) -> dict[str, int]:
    """The parameters and sizes that an outcome is about."""
    return {
        **outcome.arguments["params"],
        **{size: outcome.arguments[size.lower()] for size in "MNK"},
    }
