"""What an explorer knows, and how each message changes it: `reduce` holds its rules."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from ..ladder import KernelSpec
from ..measurement.comparison import BUDGET
from ..measurement.landscape import Landscape
from ..measurement.rungs import Allowed
from ..opencl.devices import Device
from ..sandbox.client import Outcome
from ..sandbox.look import Seen
from . import maps, panel
from .browser import Browser
from .cells import HOLE, SIZE_NAMES
from .controls import positions
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
        heard: the newest move of the page; moves: how many there have been; held: whether a slider
            is held; near: the control that a hand is at.
        options: the positions of each control.
        axes: the parameters across and down in the maps.
        request, step, seen: what runs now, how far it has come, and what the simulator saw of it.
        outcome: the newest answer; count: how many results there have been.
        tries: what was tried, the latest last; opened: the one whose code is compared.
        peak: GFLOPS of the device, once they are known; 0 if they cannot be.
        allowed: by parameters, what an H200 allows the text and, if edited, the original; question:
            what the model works on.
    """

    topic: Topic
    device: Device | Browser
    start: Values
    values: Values
    base: Values
    touched: Values = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    heard: int = 0
    moves: int = 0
    held: bool = False
    near: str = ""
    options: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    axes: tuple[str, str] = ("", "")
    request: Request | None = None
    step: str = ""
    seen: Seen | None = None
    outcome: Outcome | None = None
    count: int = 0
    tries: tuple[Try, ...] = ()
    opened: Try | None = None
    peak: float | None = None
    allowed: Mapping[tuple[int, ...], list[Allowed | None]] = field(default_factory=dict)
    question: Learn | None = None

    @classmethod
    def begin(
        cls,
        topic: Topic,
        device: Device | Browser,
        start: Values,
        values: Values,
        tries: tuple[Try, ...] = (),
    ) -> State:
        """Return the state before the first measurement."""
        options = positions(topic.spec, start, values)
        axes = maps.first_axes(topic.spec, topic.recorded)
        return cls(topic, device, start, values, values, tries=tries, options=options, axes=axes)

    @property
    def judged(self) -> bool:
        """Whether what runs has passed the check, and only its rate is missing."""
        return (
            self.request is not None and self.step == "time" and not (self.seen and self.seen.why)
        )

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
    """A person has moved a control, and may still hold it; `at` is the page's name for it."""

    name: str
    value: int
    held: bool = False
    at: int = 0


@dataclass(frozen=True)
class Placed:
    """Several controls move at the same time: by a map, a try, a button, a program."""

    values: Values
    measure: bool = True


@dataclass(frozen=True)
class Released:
    """A slider is no longer held."""


@dataclass(frozen=True)
class Neared:
    """A hand is at a control."""

    name: str


@dataclass(frozen=True)
class AxisChosen:
    """Another parameter on the axis "across" or "down" of the maps."""

    side: str
    name: str


@dataclass(frozen=True)
class Settled:
    """No other move has come in a moment."""

    move: int


@dataclass(frozen=True)
class Prolonged:
    """A person wants a longer measurement."""


@dataclass(frozen=True)
class Stepped:
    """A request has come so far, or the simulator has seen its source code."""

    step: str | Seen
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
    | Released
    | Neared
    | AxisChosen
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


def reduce(state: State, message: Message) -> Change:  # noqa: C901 (a case for each message)
    """Return the state after a message, and what is to be done outside of it."""
    match message:
        case Moved():
            return _move(state, message)
        case Placed(values, measure):
            state = _offer(replace(state, values={**state.values, **values}, notes=(), opened=None))
            return _measure(state) if measure else _learn(state)
        case Released():
            return replace(state, held=False), [Wait(state.moves)]
        case Neared(name):
            return _learn(replace(state, near=name))
        case AxisChosen(side, name):
            return replace(state, axes=maps.turn(state.axes, side, name)), []
        case Settled(move):
            ready = move == state.moves and state.touched and not state.held
            return _measure(state) if ready else (state, [])
        case Prolonged():
            return _measure(state, LONGER * BUDGET)
        case Stepped(_, request) if request is not state.request:
            return state, []
        case Stepped(step):
            if isinstance(step, Seen):
                return replace(state, seen=step), []
            return replace(state, step=step), []
        case Answered(outcome):
            return _answer(state, outcome)
        case Learned():
            return _note(state, message)
        case DeviceChosen(device, start, tries):
            state = _offer(replace(state, device=device, start=start, values=start, tries=tries))
            return _measure(replace(state, notes=(), outcome=None, peak=None, opened=None))
        case DeviceReady():
            return state, []
        case TryOpened(tried):
            return replace(state, opened=tried), []


def _note(state: State, learned: Learned) -> Change:
    """Note what was learned, and ask the next question."""
    question, allowed = learned.question, state.allowed
    if learned.ceilings:
        allowed = {**allowed, question.key: learned.ceilings}
    state = replace(state, allowed=allowed, question=None)
    if question.device is state.device and question.request["device"] is not None:
        state = replace(state, peak=learned.peak or 0.0)
    return _learn(state)


def _offer(state: State) -> State:
    """Give controls the positions that they lack."""
    options = {
        name: offered
        if state.values[name] in offered
        else tuple(sorted((*offered, state.values[name])))
        for name, offered in state.options.items()
    }
    return replace(state, options=options)


def _move(state: State, moved: Moved) -> Change:
    """Move a control, and those that must follow it."""
    spec, before, name = state.topic.spec, {**state.base, **state.touched}, moved.name
    follow = name == "M" and len({before[size] for size in SIZE_NAMES}) == 1
    touched = {other: v for other, v in state.touched.items() if other != name}
    touched |= dict.fromkeys(SIZE_NAMES if follow else [name], moved.value)
    values, notes = {**state.base, **touched}, list[str]()
    latest = [other for other in touched if other in spec.defaults][-1:]
    if latest:
        params = state.topic.params(values)
        near, notes = spec.nearest_legal(params, latest[0], state.device.limits)
        values |= near
        notes = [] if near == params else notes  # where nothing is legal, the answer says why
    state = replace(
        state,
        values=values,
        touched=touched,
        notes=tuple(notes),
        moves=state.moves + 1,
        held=moved.held,
        heard=max(state.heard, moved.at),
        near=name,
    )
    state, questions = _learn(_offer(state)) if moved.held else (_offer(state), [])
    return state, [Wait(state.moves), *questions]


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
    state = replace(state, base=state.values, touched={}, request=request, step="start", seen=None)
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
    state, questions = _learn(state) if outcome.ok else (state, [])
    return state, [Save(), *questions]


def _learn(state: State) -> Change:
    """Ask for the device's peak and for what an H200 allows, one question at a time.

    The first is about the present settings, then come those that the slider at hand would set.
    While something is measured the model waits, unless a slider is held.
    """
    topic, right = state.topic, state.outcome is not None and state.outcome.ok
    if state.question or ((state.request or state.moving) and not state.held):
        return state, []
    about = next(_unknown(state), None)
    asks_peak = right and state.peak is None and not state.held
    device = state.device.index if asks_peak else None
    if about is None and device is None:
        return state, []
    texts = list[Request]()
    if about is not None:
        params = topic.params(about)
        texts = [{"kernel": topic.spec.number, "params": params, "source": topic.source}]
        record = topic.recorded.rate(topic.spec.number, params) if topic.recorded else None
        if record and record.metric == "GFLOPS":
            texts[0] |= {"gflops": record.gflops, "registers": record.registers}
        if topic.edited:
            texts.append({**texts[0], "source": topic.original})
    key = tuple(topic.params(about or state.values).values())
    question = Learn(key, state.device, {"device": device, "texts": texts})
    return replace(state, question=question), [question]


def _unknown(state: State) -> Iterator[Values]:
    """Yield settings of which the model has not said what they allow, the most wanted first."""
    topic, right = state.topic, state.outcome is not None and state.outcome.ok
    if topic.spec.tensor or not (right or topic.source is None):
        return  # a kernel that is wrong may reach anything
    if not state.knows(state.values) and not topic.spec.problems(topic.params(state.values)):
        yield state.values
    if state.near not in topic.spec.defaults:
        return
    offered, at = state.options[state.near], state.values[state.near]
    for value in sorted(offered, key=lambda value: abs(offered.index(value) - offered.index(at))):
        params = topic.params({**state.values, state.near: value})
        near, _ = topic.spec.nearest_legal(params, state.near, state.device.limits)
        if not state.knows(near) and not topic.spec.problems(near):
            yield {**state.values, **near}
