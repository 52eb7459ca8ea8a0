"""Sliders for a kernel's parameters and sizes: is it right, how fast, and is that a difference?"""

from __future__ import annotations

import itertools
import os
import threading
from collections import deque
from collections.abc import Mapping
from functools import partial
from typing import Any

import traitlets

from .. import background
from ..draw.picture import Picture
from ..ladder import KernelSpec, Key, find, sources
from ..ladder.spec import positive
from ..measurement.landscape import fingerprint_of, landscapes
from ..opencl.devices import Device, NoDeviceError, devices, find_device
from ..sandbox import client
from ..sandbox.client import Outcome
from . import maps, panel, tries, view
from .browser import NAME, WORDS, Browser
from .cells import SIZE_NAMES, Cell, Kept, running_cell
from .controls import SIZES
from .shell import Act, Shell
from .state import (
    Answered,
    AxisChosen,
    DeviceChosen,
    DeviceReady,
    Effect,
    Learn,
    Learned,
    Measure,
    Message,
    Moved,
    Neared,
    Placed,
    Prolonged,
    Released,
    Save,
    Settled,
    State,
    Stepped,
    Topic,
    TryOpened,
    Wait,
    reduce,
)
from .stepping import CellStepper

#: Seconds after the last move of a slider in which another may follow, before it is measured.
SETTLE = 0.06
#: Messages after which only the line that says what runs may differ.
QUIET = Released, Neared, Settled, Stepped
#: What the page writes on the buttons of a switch.
SWITCH = {"off": "0", "on": "1"}

_numbers = itertools.count(1)


class Explorer(Shell):
    """Sliders for one kernel: verdict, rate, comparison, two maps, and what was tried.

    Args:
        kernel: its number.
        m, n, k: initial sizes; m defaults to 256 on a CPU (in a browser's tab to 128) and to
            1024 on a GPU, n and k to m.
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
        cell, source = (source, source.source) if isinstance(source, Cell) else (None, source)
        if source is not None and not isinstance(source, str):
            raise TypeError(
                f"source must be OpenCL C text, not {type(source).__name__}: {source!r}"
            )
        super().__init__("instrument" if source is None else "verdict")
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
        original = sources.read(spec.file)
        found = [one for one in landscapes() if one.rows(spec.number)] if source is None else []
        topic = Topic(
            spec,
            source,
            original,
            source is not None and _edited(source, original),
            cell.code if cell else source or "",
            found[0] if found else None,
        )
        self.state: State = State.begin(topic, where, start, values, self._load(where, start))
        self._client = f"explorer {next(_numbers)}"
        self._messages: deque[Message] = deque()
        self._handling = threading.Lock()  # held by the thread that handles messages
        self._complete = background.Event()  # set after an answer, and what it is compared with
        usable = devices()
        is_in_tab = any(device.platform == "WebGPU" for device in usable)  # it is that GPU
        self._choices: list[Device | str] = [*usable, *[NAME] * (not is_in_tab)]
        self._stepper: CellStepper | None = None
        self.panel.cell = cell.id if cell else ""
        self.panel.recorded_first = where.kind == "CPU" and bool(found)
        self.panel.unfolded = self._kept.unfolded
        self._keep()
        self._show()
        if self._kept.stepping:
            self._step_through()
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
        if before.values != self.state.values or isinstance(message, DeviceChosen):
            self._keep()
        if isinstance(message, QUIET) and not self.state.judged:
            self.panel.status = view.status(self.state)
        else:
            self._show()
        for effect in effects:
            self._run(effect)
        if isinstance(message, Learned | Answered) and not self.state.question:
            self._complete.set()

    def _run(self, effect: Effect) -> None:
        match effect:
            case Wait(move):
                background.start_after(SETTLE, self.post, Settled(move))
            case Measure(request):
                self._desk.submit(
                    self._client,
                    request,
                    lambda outcome: self.post(Answered(outcome)),
                    lambda step: self.post(Stepped(step, request)),
                )
            case Learn(_, _, request):
                learn = partial(self._learn, effect)
                client.shared_sandbox().submit(
                    f"{self._client}, context", request, learn, job="context"
                )
            case Save():
                tries.save(self._memory(self.state.device), self.state.tries)

    def _learn(self, question: Learn, outcome: Outcome) -> None:
        peak, ceilings = outcome.result or (None, [None])
        self.post(Learned(question, peak, [*ceilings] if question.request["texts"] else []))

    @property
    def _desk(self) -> client.Sandbox | client.Inline | Browser:
        """Who measures."""
        device = self.state.device
        return device if isinstance(device, Browser) else client.shared_sandbox()

    def _show(self) -> None:
        """Show the state."""
        state, device = self.state, self.state.device
        chosen = _choice(device)
        self.panel.show(
            **view.render(state, self.cell, self._stepper is not None),
            status=view.status(state),
            devices={
                "names": [
                    panel.label(d) if isinstance(d, Device) else WORDS for d in self._choices
                ],
                "at": self._choices.index(chosen) if chosen in self._choices else -1,
            },
        )
        page = device if isinstance(device, Browser) else None
        self.children = (self.panel, *[page] * bool(page), *[self._stepper] * bool(self._stepper))
        self.params = state.topic.params(state.values)
        self.size = tuple(state.values[side] for side in SIZE_NAMES)
        self.device, self.result = device, state.outcome and state.outcome.result
        self.tries = [tried.record for tried in state.tries]

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
            case "device" if new is not state.device:
                choice = NAME if new == NAME else find_device(new)
                if choice != _choice(state.device):
                    self._use(choice)
            case "params" if new != state.topic.params(state.values):
                self.set(self.spec.complete({**state.topic.params(state.values), **new}))
            case "size" if new != tuple(state.values[side] for side in SIZE_NAMES):
                self.set({n: positive(n, v) for n, v in zip(SIZE_NAMES, new, strict=True)})

    def _use(self, choice: Device | int | str) -> None:
        """Measure on another device from now on, with its limits, its map and its tries."""
        self._desk.stop(self._client)  # its answer would be about another device
        device = self._find(choice)
        self._kept.device = device.index if isinstance(device, Device) else NAME
        side = _usual_size(device)
        start = {**self.spec.fit(device.limits), **dict.fromkeys(SIZE_NAMES, side)}
        self.post(DeviceChosen(device, start, self._load(device, start)))

    def hear(self, act: Act) -> None:  # noqa: C901 (a case for each act)
        state = self.state
        match act:
            case {"move": name, "to": label, "held": held, "at": at} if name in state.values:
                self.post(Moved(name, int(SWITCH.get(label) or label), held, at))
            case {"released": _}:
                self.post(Released())
            case {"near": name}:
                self.post(Neared(name))
            case {"type": name, "text": text} if name in state.values:
                self._take(name, text)
            case {"press": id}:
                self._press(id)
            case {"device": number}:
                self._use(self._choices[number])
            case {"unfolded": unfolded}:
                self.panel.unfolded = self._kept.unfolded = unfolded
            case {"axis": side, "name": name} if name in self.spec.defaults:
                self.post(AxisChosen(side, name))
            case {"again": number} if 0 <= number < len(state.tries):
                tried = state.tries[number]
                if tried.code == state.topic.code:
                    self.set(tried.settings)
                else:
                    self.post(TryOpened(tried))
            case {"csv": _}:
                text = tries.csv(state.tries)
                self.panel.send({"file": f"kernel_{self.spec.number}.csv", "text": text})
            case {"choose": place}:
                self.set(maps.Plane(self.spec, state.values, state.axes).setting(place))
            case {"pass": place}:
                values = maps.Plane(self.spec, state.values, state.axes).setting(place)
                self.post(Placed(values, measure=False))

    def _press(self, id: str) -> None:
        """A button was pressed."""
        match id:
            case "reset":
                self.reset()
            case "best":
                if fastest := tries.best(self.state.tries):
                    self.set(fastest.settings)
            case "stop":
                self._desk.stop(self._client)
            case "longer":
                self.post(Prolonged())
            case "put":
                self._write_try()
            case "close":
                self.post(TryOpened(None))
            case "original" if self.cell:
                self._write(self.cell.first)
            case "step":
                self._step_through()

    def _take(self, name: str, text: str) -> None:
        """A value was typed beside a slider."""
        if text.isdecimal() and 0 < int(text) <= SIZES[-1]:
            self.post(Moved(name, int(text)))
        else:
            most = f"{SIZES[-1]:,}"
            self.refuse(name, f"{name} cannot be {text!r}: it is a whole number from 1 to {most}.")

    def _step_through(self) -> None:
        """Open or close the stepper of the source code."""
        self._stepper = (
            None
            if self._stepper
            else CellStepper(self.state, self.cell.lines if self.cell else None)
        )
        self._kept.stepping = self._stepper is not None
        self._show()

    def _write_try(self) -> None:
        if (tried := self.state.opened) is not None:
            self._write(tried.code)
            self._kept.moved = {n: v for n, v in tried.settings.items() if v != self.state.start[n]}

    def _write(self, code: str) -> None:
        """Put code into the cell, below its first line."""
        if self.cell:
            self.panel.send({"code": code})

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
        return view.still(self.state, self.cell)


def _choice(device: Device | Browser) -> Device | str:
    """Return what a list of devices has for it."""
    return device if isinstance(device, Device) else NAME


def _edited(source: str, original: str) -> bool:
    """Return whether a text differs from the kernel's own in more than comments and parameters."""
    one, other = (fingerprint_of(sources.code(text)) for text in (source, original))
    return one != other


def _usual_size(device: Device | Browser) -> int:
    """Return M, N and K for a start; a browser's GPU may be one that a CPU plays."""
    if isinstance(device, Device) and device.kind == "GPU":
        return 1024
    # a tab without a GPU, whose kernels nothing can stop
    is_played = isinstance(device, Device) and device.platform == "WebGPU"
    return 128 if is_played else 256
