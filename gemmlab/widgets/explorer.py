"""Sliders for a kernel's parameters and sizes: is it right, how fast, and is that a difference?"""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from html import escape
from typing import Any

import ipywidgets as w
import traitlets

from .. import background
from ..draw.picture import Picture
from ..ladder import KernelSpec, Key, find, sources
from ..ladder.spec import positive
from ..measurement.landscape import fingerprint_of
from ..opencl.devices import Device, NoDeviceError, devices, find_device
from ..sandbox import client
from ..sandbox.client import Outcome
from . import panel, tries, view
from .browser import NAME, WORDS, Browser
from .cells import SIZE_NAMES, Cell, Kept, running_cell
from .maps import Maps
from .settings import SIZES, Settings
from .shell import Shell, free, grid, line
from .state import (
    LONGER,
    Answered,
    DeviceChosen,
    DeviceReady,
    Effect,
    Held,
    Learn,
    Learned,
    Measure,
    Message,
    Moved,
    Placed,
    Prolonged,
    Save,
    Settled,
    State,
    Stepped,
    Topic,
    TryOpened,
    Wait,
    reduce,
)

#: Seconds after the last move of a slider in which another may follow, before it is measured.
SETTLE = 0.06
#: So many sliders are in view below a cell.
IN_CELLS = 2
#: Messages after which only the line that says what runs may differ.
QUIET = Held, Settled, Stepped

_numbers = itertools.count(1)


class Explorer(Shell):
    """Sliders for one kernel: verdict, rate, comparison, two maps, and what was tried.

    Args:
        kernel: its number.
        m, n, k: initial sizes; m defaults to 256 on a CPU and 1024 on a GPU, n and k default to m.
        params: initial parameters; by default those that suit the device.
        device: a Device, an index or part of a name, or "browser" for the GPU of the browser that
            shows it; the preferred device by default.
        source: OpenCL C text to use instead of the kernel's own, with the same parameters, or the
            cell of the notebook that holds it.

    Attributes, which can be observed and linked as those of any widget:
        params, size: the present parameters, and (M, N, K); assign to move the controls.
        device: where it measures; assign a Device or "browser".
        result: the newest `Result`, such as `explorer.result.gflops`; None before there is one.
        tries: a row for each try, the latest last; `pandas.DataFrame(explorer.tries)` is a table.
    """

    params: Any = traitlets.Dict()
    size: Any = traitlets.Tuple(
        traitlets.Int(), traitlets.Int(), traitlets.Int(), default_value=(1, 1, 1)
    )
    device: Any = traitlets.Any()
    result: Any = traitlets.Any()
    tries: Any = traitlets.List()

    def __init__(
        self,
        kernel: Key = 1,
        m: int | None = None,
        n: int | None = None,
        k: int | None = None,
        *,
        params: Mapping[str, int] | None = None,
        device: Device | int | str | None = None,
        source: str | Cell | None = None,
    ):
        super().__init__()
        cell, source = (source, source.source) if isinstance(source, Cell) else (None, source)
        if source is not None and not isinstance(source, str):
            raise TypeError(
                f"source must be OpenCL C text, not {type(source).__name__}: {source!r}"
            )
        spec: KernelSpec = find(kernel)
        self.spec: KernelSpec = spec
        self.cell: Cell | None = cell
        self._kept = cell.kept if cell else Kept()
        self._place = ""
        if source is not None:
            notebook = os.environ.get("JPY_SESSION_NAME", "")
            self._place = f", {notebook} {running_cell()} {cell.part if cell else ''}"
        self.name = f"explorer of kernel {spec.number} ({spec.name})"
        where = self._find(self._kept.device if device is None else device)
        m = _usual_size(where) if m is None else m
        sides = {"m": m, "n": m if n is None else n, "k": m if k is None else k}
        sizes = {name.upper(): positive(name, side) for name, side in sides.items()}
        start = {**(spec.complete(params) if params else spec.fit(where.limits)), **sizes}
        values = cell.restore(spec, start, where.limits) if cell else start
        self._maps = Maps(spec, where.limits, source)
        original = sources.read(spec.file)
        self.state: State = State(
            Topic(
                spec,
                source,
                original,
                source is not None and _edited(source, original),
                cell.code if cell else source or "",
                self._maps.recorded,
            ),
            where,
            start,
            values,
            values,
            tries=self._load(where, start),
        )
        self._client = f"explorer {next(_numbers)}"
        self._messages: deque[Message] = deque()
        self._handling = threading.Lock()  # held by the thread that handles messages
        self._complete = background.Event()  # set after an answer, and what it is compared with
        self.settings: Settings = Settings(spec, values, lambda *move: self.post(Moved(*move)))
        self._lay_out()
        self._keep()
        self._show()
        self.observe(self._assigned, ["params", "size", "device"])

    def _find(self, device: Device | int | str | None) -> Device | Browser:
        if device == NAME or (device is None and not devices()):
            return Browser(lambda: self.post(DeviceReady()))
        try:
            return find_device(device)
        except NoDeviceError as error:
            words = f'{error}; device="{NAME}" measures on the GPU of your browser'
            raise NoDeviceError(words) from None

    # Messages: one at a time, on the thread of whoever sends the first.

    def post(self, message: Message) -> None:
        """Handle a message; if another one is being handled, after that."""
        self._messages.append(message)
        while self._messages and self._handling.acquire(blocking=False):
            try:
                while self._messages:
                    self._handle(self._messages.popleft())
            finally:
                self._handling.release()

    def _handle(self, message: Message) -> None:
        before = self.state
        self.state, effects = reduce(before, message)
        moved = {n: v for n, v in self.state.values.items() if v != before.values[n]}
        own = message.name if isinstance(message, Moved) else ""  # it may be further by now
        self.settings.place({name: value for name, value in moved.items() if name != own})
        if moved or isinstance(message, DeviceChosen):
            self._keep()
        if isinstance(message, QUIET):
            self._show_status()
        else:
            self._show()
        for effect in effects:
            self._run(effect)
        if isinstance(message, Learned) or (
            isinstance(message, Answered) and not any(isinstance(e, Learn) for e in effects)
        ):
            self._complete.set()

    def _run(self, effect: Effect) -> None:
        match effect:
            case Wait(move):
                background.start_after(SETTLE, self.post, Settled(move))
            case Measure(request):
                step = partial(self._step, request)
                self._desk.submit(self._client, request, self._answer, step)
            case Learn(_, _, request):
                learn = partial(self._learn, effect)
                client.shared_sandbox().submit(
                    f"{self._client}, context", request, learn, job="context"
                )
            case Save():
                tries.save(self._memory(self.state.device), self.state.tries)

    def _step(self, request: dict[str, Any], step: str) -> None:
        self.post(Stepped(step, request))

    def _answer(self, outcome: Outcome) -> None:
        self.post(Answered(outcome))

    def _learn(self, question: Learn, outcome: Outcome) -> None:
        peak, ceilings = outcome.result or (None, [None])
        self.post(Learned(question, peak, [*ceilings] if question.request["texts"] else []))

    @property
    def _desk(self) -> client.Sandbox | client.Inline | Browser:
        """Who measures."""
        device = self.state.device
        return device if isinstance(device, Browser) else client.shared_sandbox()

    # What the widget consists of.

    def _lay_out(self) -> None:
        parts = [w.HTML() for _ in range(5)]
        self._recorded, self._note, self._details, self._code, self._pipes = parts
        self._status = w.HTML().add_class("gemmlab-status")
        back = _button("↺ Reset", "Return to the initial settings", self.reset)
        best = _button("★ Best", "Your fastest settings here", self._to_fastest)
        original = _button(
            "Original", "Put the kernel's own code back into the cell", self._write_original
        )
        self._stop = _button(
            "■ Stop", "Stop what runs for this explorer", lambda: self._desk.stop(self._client)
        )
        self._longer = _button(
            "Measure longer", f"Measure {LONGER} times as long", lambda: self.post(Prolonged())
        )
        put = _button("Put this back into the cell", "Then press Shift-Enter", self._write_try)
        close = _button("Close", "Keep the code of now", lambda: self.post(TryOpened(None)))
        self._other = w.VBox([self._code, line(*[put] * (self.cell is not None), close)])
        self._maps.on_msg(lambda widget, content, buffers: self._chosen(content))
        name = escape(self.spec.name)
        number = self.spec.number if isinstance(self.spec.number, int) else ""  # or the name again
        words = f"kernel {number} <span>{name}</span>"
        title = w.HTML(f'<div class="gemmlab-title">{words}</div>', layout=w.Layout(flex="1"))
        rewritten = self.cell is not None and self.cell.code != self.cell.first
        self.head: w.HBox = line(title, self._device_list(), *[original] * rewritten, back, best)
        self._gpu = w.Box()  # what opens the browser's GPU, if that is the device
        fold = self.toggle(
            self._kept.unfolded,
            description="More settings, details",
            tooltip="The other settings, and all that was measured",
        ).add_class("gemmlab-fold")
        first, others, below = self.settings.first, self.settings.others, []
        instrument = self.state.topic.source is None
        if not instrument:  # the verdict comes right below the cell, and then what a lesson moves
            below, others = [grid(first[:IN_CELLS])], [*first[IN_CELLS:], *others]
        self.add_class("gemmlab-instrument" if instrument else "gemmlab-verdict")
        folded = w.VBox([grid(others), self._details])

        def turn(change: Mapping[str, Any]) -> None:
            self._kept.unfolded = change["new"]
            folded.layout.display = "" if change["new"] else "none"
            fold.icon = "angle-down" if change["new"] else "angle-right"

        turn({"new": fold.value})
        fold.observe(turn, names="value")
        # what runs is said where the answer will be
        self._busy = w.HBox([self._status, self._stop]).add_class("gemmlab-busy")
        here = w.VBox([self.panel, self._busy]).add_class("gemmlab-running")
        answers = [here, self._recorded]
        if self.state.device.kind == "CPU" and self._maps.recorded:
            answers.reverse()  # the recorded GPU carries the lesson
        self.compose(
            self.head,
            self._gpu,
            w.HBox([*[w.VBox(first)] * instrument, w.VBox(answers)]).add_class("gemmlab-top"),
            *below,
            line(self._note, self._longer).add_class("gemmlab-noted"),
            self._pipes,
            self._maps,
            self._other,
            fold,
            folded,
        )
        self.bridge.held = False
        self.bridge.observe(lambda change: self.post(Held(change["new"])), "held")

    def toggle(self, value: bool, **options: Any) -> w.ToggleButton:
        """Return a button that stays pressed."""
        return w.ToggleButton(value, layout=w.Layout(width="auto"), **options)

    def _device_list(self) -> w.Dropdown:
        """Return the devices to measure on, the browser's GPU among them."""
        device = self.state.device
        here = NAME if isinstance(device, Browser) else device
        options = [*((panel.label(device), device) for device in devices()), (WORDS, NAME)]
        self._devices = w.Dropdown(options=options, value=here, tooltip="Where it runs")
        self._devices.layout.width = "190px"
        self._devices.observe(lambda change: self._use(change["new"]), "value")
        return self._devices

    def _show(self) -> None:
        """Show the state."""
        state, device = self.state, self.state.device
        parts = view.render(state, self.cell.lines if self.cell else None)
        self.panel.value, self._recorded.value = parts.answer, parts.recorded
        self._note.value, self._details.value = parts.note, parts.details
        self._code.value, self._pipes.value = parts.code, parts.pipes
        self._other.layout.display = "" if parts.code else "none"
        self._longer.layout.display = "" if parts.unclear else "none"  # the note takes its width
        self._gpu.children = (device,) if isinstance(device, Browser) else ()
        self._maps.limits, self._maps.machine = device.limits, view.machine(device)
        self._maps.show(state.values, state.tries, state.topic.code)
        self._maps.code = view.as_code(state, self.cell.part if self.cell else "")
        self.settings.mark(state.notes)
        self._show_status()
        self.params = state.topic.params(state.values)
        self.size = tuple(state.values[side] for side in SIZE_NAMES)
        self.device, self.result = device, state.outcome and state.outcome.result
        self.tries = [tried.record for tried in state.tries]

    def _show_status(self) -> None:
        self._status.value = view.status(self.state)
        self._busy.layout.display = "" if self.state.request else "none"
        (self.panel.add_class if self.state.stale else self.panel.remove_class)("gemmlab-stale")
        for button in (self._longer, self._stop):
            free(button)  # so that both work while a cell runs

    # What a person does, or a program.

    @property
    def values(self) -> dict[str, int]:
        """The present settings: parameters, M, N and K."""
        return dict(self.state.values)

    def reset(self) -> None:
        """Return to the initial settings."""
        self.set(self.state.start)

    def set(self, values: Mapping[str, int]) -> None:
        """Move several controls at the same time, and measure once."""
        self.post(Placed(values))

    def _assigned(self, change: Mapping[str, Any]) -> None:
        """A program has assigned to a trait; `_show` assigns what the state has."""
        state, new = self.state, change["new"]
        match change["name"]:
            case "device" if new != state.device:
                self._devices.value = NAME if new == NAME else find_device(new)
            case "params" if new != state.topic.params(state.values):
                self.set(self.spec.complete({**state.topic.params(state.values), **new}))
            case "size" if new != tuple(state.values[side] for side in SIZE_NAMES):
                self.set({n: positive(n, v) for n, v in zip(SIZE_NAMES, new, strict=True)})

    def _use(self, choice: Device | int | str) -> None:
        """Measure on another device from now on, with its limits, its map and its tries."""
        self._desk.stop(self._client)  # its answer would be about another device
        device = self._find(choice)
        self._kept.device = NAME if isinstance(device, Browser) else device.index
        side = _usual_size(device)
        start = {**self.spec.fit(device.limits), **dict.fromkeys(SIZE_NAMES, side)}
        self.post(DeviceChosen(device, start, self._load(device, start)))

    def _to_fastest(self) -> None:
        if fastest := tries.best(self.state.tries):
            self.set(fastest.settings)

    def _chosen(self, message: Mapping[str, Any]) -> None:
        """A click or a hand on the maps or the tries."""
        match message:
            case {"axis": side, "name": name}:
                self._maps.turn(side, name)
                self._maps.show(self.state.values, self.state.tries, self.state.topic.code)
            case {"again": number} if 0 <= number < len(self.state.tries):
                tried = self.state.tries[number]
                if tried.code == self.state.topic.code:
                    self.set(tried.settings)
                else:
                    self.post(TryOpened(tried))
            case {"csv": _}:
                name = f"kernel_{self.spec.number}.csv"
                self._maps.send({"file": name, "text": tries.csv(self.state.tries)})
            case {"choose": place}:
                self.set(self._maps.setting(self.values, place))
            case {"pass": place}:
                self.post(Placed(self._maps.setting(self.values, place), measure=False))

    def _write_try(self) -> None:
        if (tried := self.state.opened) is not None:
            self._write(tried.code)
            self._kept.moved = {n: v for n, v in tried.settings.items() if v != self.state.start[n]}

    def _write_original(self) -> None:
        if self.cell:
            self._write(self.cell.first)

    def _write(self, code: str) -> None:
        """Put code into the cell, below its first line."""
        if self.cell:
            self.bridge.send({"cell": self.cell.id, "code": code})

    def received(self, message: dict[str, Any]) -> None:
        name, text = message.get("typed"), message.get("text", "")
        if name in self.values and text.isdecimal() and 0 < int(text) <= SIZES[-1]:
            self.settings.place({name: int(text)})  # a slider may lack this position
            self.post(Moved(name, int(text)))
        elif name in self.values:
            words = f"{name} cannot be {text!r}: it is a whole number from 1 to {SIZES[-1]:,}."
            self.bridge.send({"refused": name, "words": words})

    def ready(self) -> None:
        """Run the initial settings, so that the cell ends with an answer."""
        if self.state.outcome is not None:
            return
        try:
            self.set(self.state.values)
            if isinstance(self.state.device, Browser):
                return  # no page answers while a cell runs
            self._complete.wait(sum(client.shared_sandbox().limits.values()) or None)
        except KeyboardInterrupt:  # the panel says it in a sentence
            client.shared_sandbox().stop(self._client)
            self._complete.wait(5)

    # What stays.

    def _keep(self) -> None:
        """Keep what differs from the settings at the start, for the next run of the cell."""
        start = self.state.start
        self._kept.moved = {n: v for n, v in self.state.values.items() if v != start[n]}

    def _memory(self, device: Device | Browser) -> str:
        """Return the name of the tries on a device; those of a text by its notebook and cell."""
        return f"kernel {self.spec.number} on {device}{self._place}"

    def _load(self, device: Device | Browser, start: Mapping[str, int]) -> tuple[tries.Try, ...]:
        """Return the tries of earlier days on a device."""
        stored = tries.load(self._memory(device))
        return tuple(tried for tried in stored if {*tried.settings} == {*start})

    def words(self) -> str:
        return view.ceiling(self.state)

    def still(self) -> Picture | str:
        return self._maps.still() or view.still(self.state, self.panel.value)


def _button(name: str, tooltip: str, action: Callable[[], None]) -> w.Button:
    button = w.Button(description=name, tooltip=tooltip, layout=w.Layout(width="auto"))
    button.on_click(lambda button: action())
    return button


def _edited(source: str, original: str) -> bool:
    """Return whether a text differs from the kernel's own in more than comments and parameters."""
    one, other = (fingerprint_of(sources.code(text)) for text in (source, original))
    return one != other


def _usual_size(device: Device | Browser) -> int:
    """Return M, N and K for a start; a browser's GPU may be one that a CPU plays."""
    return 1024 if isinstance(device, Device) and device.kind == "GPU" else 256
