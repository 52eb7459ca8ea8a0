"""What an explorer knows, and how each message changes it: `reduce` holds its rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ..ladder import KernelSpec
from ..measurement.comparison import BUDGET
from ..measurement.landscape import Landscape
from ..measurement.rungs import Allowed
from ..opencl.devices import Device
from ..sandbox.client import Outcome
from . import panel
from .browser import Browser
from .cells import HOLE, SIZE_NAMES
from .tries import KEPT, Try

Values: TypeAlias = Mapping[str, int]
Request: TypeAlias = dict[str, Any]

#: A job (check and timing) that is predicted to take longer than this many seconds is refused.
MOST_SECONDS = 2.0
#: "Measure longer" takes so many times as long.
LONGER = 5


@dataclass(frozen=True)
class Topic:
    """What an explorer is about, which never changes.

    Attributes:
        spec: the kernel.
        source: a text in its place, or None.
        original: the kernel's own text.
        edited: whether they differ in more than comments, blanks and parameters.
        code: the text of the notebook's cell, if a cell holds the source.
        recorded: what was recorded of the kernel on another device, if anything was.
    """

    spec: KernelSpec
    source: str | None
    original: str
    edited: bool = False
    code: str = ""
    recorded: Landscape | None = None

    def params(self, values: Values) -> dict[str, int]:
        return {name: values[name] for name in self.spec.defaults}


@dataclass(frozen=True)
class State:
    """All that an explorer shows follows from this.

    Attributes:
        device: where it measures.
        start: the settings to return to; values: those of the controls; base: those of the newest
            request.
        touched: what a person has moved since that request, the latest last.
        notes: a sentence for each control that gave way, and why.
        moves: how many moves there have been; held: whether a slider is held.
        request, step: what runs now, and how far it has come.
        outcome: the newest answer; count: how many results there have been.
        tries: what was tried, the latest last; opened: the one whose code is compared.
        peak: GFLOPS of the device, once they are known.
        allowed: by parameters, what an H200 allows the text and, if edited, the original.
    """

    topic: Topic
    device: Device | Browser
    start: Values
    values: Values
    base: Values
    touched: Values = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    moves: int = 0
    held: bool = False
    request: Request | None = None
    step: str = ""
    outcome: Outcome | None = None
    count: int = 0
    tries: tuple[Try, ...] = ()
    opened: Try | None = None
    peak: float | None = None
    allowed: Mapping[tuple[int, ...], list[Allowed | None]] = field(default_factory=dict)

    @property
    def moving(self) -> bool:
        """Whether the controls differ from what was measured or is being measured."""
        return bool(self.touched) or self.values != self.base

    @property
    def stale(self) -> bool:
        return self.moving or self.request is not None

    def knows(self, values: Values) -> bool:
        """Whether `allows` has an answer."""
        return tuple(self.topic.params(values).values()) in self.allowed

    def with_ceilings(self, values: Values) -> Values:
        """Return these settings, or the newest that the model has answered for."""
        keys = [key for key, ceilings in self.allowed.items() if ceilings[0]]
        if self.knows(values) or not keys:
            return values
        return {**values, **dict(zip(self.topic.spec.defaults, keys[-1], strict=True))}

    def allows(self, values: Values) -> list[Allowed | None]:
        return self.allowed.get(tuple(self.topic.params(values).values()), [None])


# Messages.


@dataclass(frozen=True)
class Moved:
    """A person has moved a control."""

    name: str
    value: int


@dataclass(frozen=True)
class Placed:
    """Several controls move at the same time: by a map, a try, a button, a program."""

    values: Values
    measure: bool = True


@dataclass(frozen=True)
class Held:
    """A slider is held, or let go."""

    held: bool


@dataclass(frozen=True)
class Settled:
    """No other move has come in a moment."""

    move: int


@dataclass(frozen=True)
class Prolonged:
    """A person wants a longer measurement."""


@dataclass(frozen=True)
class Stepped:
    """A request has come so far."""

    step: str
    request: Request


@dataclass(frozen=True)
class Answered:
    """The answer to a request."""

    outcome: Outcome


@dataclass(frozen=True)
class Learned:
    """What rates are compared with: the device's peak, and what an H200 allows."""

    question: Learn
    peak: float | None
    ceilings: list[Allowed | None]


@dataclass(frozen=True)
class DeviceChosen:
    """Another device, with the settings to start from, and its tries."""

    device: Device | Browser
    start: Values
    tries: tuple[Try, ...]


@dataclass(frozen=True)
class DeviceReady:
    """A page has opened its GPU, and reports its limits."""


@dataclass(frozen=True)
class TryOpened:
    """The code of a try is to be compared, or no longer."""

    tried: Try | None


Message: TypeAlias = (
    Moved
    | Placed
    | Held
    | Settled
    | Prolonged
    | Stepped
    | Answered
    | Learned
    | DeviceChosen
    | DeviceReady
    | TryOpened
)

# Effects.


@dataclass(frozen=True)
class Wait:
    """Send `Settled` in a moment."""

    move: int


@dataclass(frozen=True)
class Measure:
    """Measure, and send `Stepped` and `Answered`."""

    request: Request


@dataclass(frozen=True)
class Learn:
    """Find out a peak and ceilings, and send `Learned`."""

    key: tuple[int, ...]
    device: Device | Browser
    request: Request


@dataclass(frozen=True)
class Save:
    """Keep the tries for another day."""


Effect: TypeAlias = Wait | Measure | Learn | Save
Change: TypeAlias = tuple[State, list[Effect]]


def reduce(state: State, message: Message) -> Change:
    """Return the state after a message, and what is to be done outside of it."""
    match message:
        case Moved(name, value):
            return _move(state, name, value)
        case Placed(values, measure):
            state = replace(state, values={**state.values, **values}, notes=(), opened=None)
            return _measure(state) if measure else (state, _questions(state, values, peak=False))
        case Held(held):
            return replace(state, held=held), [Wait(state.moves)]
        case Settled(move):
            ready = move == state.moves and state.touched and not state.held
            return _measure(state) if ready else (state, [])
        case Prolonged():
            return _measure(state, LONGER * BUDGET)
        case Stepped(step, request):
            return (replace(state, step=step) if request is state.request else state), []
        case Answered(outcome):
            return _answer(state, outcome)
        case Learned():
            return _learn(state, message), []
        case DeviceChosen(device, start, tries):
            state = replace(state, device=device, start=start, values=start, tries=tries)
            return _measure(replace(state, notes=(), outcome=None, peak=None, opened=None))
        case DeviceReady():
            return state, []
        case TryOpened(tried):
            return replace(state, opened=tried), []


def _learn(state: State, learned: Learned) -> State:
    question, peak = learned.question, state.peak
    if learned.ceilings:
        state = replace(state, allowed={**state.allowed, question.key: learned.ceilings})
    if question.device is state.device:
        peak = learned.peak or peak
    return replace(state, peak=peak)


def _move(state: State, name: str, value: int) -> Change:
    """Move a control, and those that must follow it."""
    spec, before = state.topic.spec, {**state.base, **state.touched}
    follow = name == "M" and len({before[size] for size in SIZE_NAMES}) == 1
    touched = {other: v for other, v in state.touched.items() if other != name}
    touched |= dict.fromkeys(SIZE_NAMES if follow else [name], value)
    values, notes = {**state.base, **touched}, list[str]()
    latest = [other for other in touched if other in spec.defaults][-1:]
    if latest:
        params = state.topic.params(values)
        near, notes = spec.nearest_legal(params, latest[0], state.device.limits)
        values |= near
        notes = [] if near == params else notes  # where nothing is legal, the answer says why
    state = replace(
        state, values=values, touched=touched, notes=tuple(notes), moves=state.moves + 1
    )
    # while a slider is held nothing is measured, and the model can follow it
    ceilings = _questions(state, values, peak=False) if state.held else []
    return state, [Wait(state.moves), *ceilings]


def _arguments(state: State, values: Values, source: str | None) -> Request:
    return {
        "kernel": state.topic.spec.number,
        "params": state.topic.params(values),
        "source": source,
        **{size.lower(): values[size] for size in SIZE_NAMES},
    }


def _reference(state: State) -> Request | None:
    """Return what a measurement is compared with, which is never itself."""
    topic = state.topic
    if topic.edited:
        return _arguments(state, state.values, None)
    begun = any(t.right and t.settings == state.start and t.code == topic.code for t in state.tries)
    if state.values == state.start or not begun:
        return None
    return _arguments(state, state.start, topic.source)


def _measure(state: State, budget: float = BUDGET) -> Change:
    request = {
        **_arguments(state, state.values, state.topic.source),
        "device": state.device.index,
        "reference": _reference(state),
        "budget": budget,
        "most_seconds": MOST_SECONDS,
    }
    state = replace(state, base=state.values, touched={}, request=request, step="start")
    return state, [Measure(request)]


def settings(outcome: Outcome) -> dict[str, int]:
    """Return the parameters and sizes that an outcome is about."""
    sizes = {size: outcome.arguments[size.lower()] for size in SIZE_NAMES}
    return {**outcome.arguments["params"], **sizes}


def _answer(state: State, outcome: Outcome) -> Change:
    if outcome.arguments["device"] != state.device.index:
        return state, []  # another one was chosen meanwhile
    request = None if outcome.arguments is state.request else state.request
    count = state.count + (outcome.result is not None)
    state = replace(state, request=request, outcome=outcome, count=count)
    if not outcome.ok and HOLE in (state.topic.source or ""):
        return state, []  # nothing was tried yet
    compared, tries = outcome.compared, list(state.tries)
    if compared and compared.reference and not state.topic.edited:
        # The start has run beside the new try: with its old rate, from a busier or quieter moment,
        # map and verdict would contradict each other.
        for number, tried in reversed([*enumerate(tries)]):
            if tried.settings == state.start and tried.right:
                tries[number] = replace(tried, rate=compared.reference)
                break
    problem = "" if compared else panel.title(outcome).lower()
    rate = compared.rate if compared else None
    tries.append(Try(settings(outcome), rate, outcome.ok, problem, state.topic.code))
    state = replace(state, tries=tuple(tries[-KEPT:]))
    return state, [Save(), *(_questions(state, settings(outcome)) if outcome.ok else ())]


def _questions(state: State, values: Values, peak: bool = True) -> list[Effect]:
    """Return what is not known yet of what an H200 allows, and of the device's `peak`."""
    topic = state.topic
    params, texts = topic.params({**state.values, **values}), list[Request]()
    key = tuple(params.values())
    if key not in state.allowed and not topic.spec.tensor:
        texts = [{"kernel": topic.spec.number, "params": params, "source": topic.source}]
        record = topic.recorded.rate(topic.spec.number, params) if topic.recorded else None
        if record and record.metric == "GFLOPS":
            texts[0] |= {"gflops": record.gflops, "registers": record.registers}
        if topic.edited:
            texts.append({**texts[0], "source": topic.original})
    device = state.device.index if peak and not state.peak else None
    if not texts and device is None:
        return []
    return [Learn(key, state.device, {"device": device, "texts": texts})]
