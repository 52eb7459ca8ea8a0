"""What an explorer shows of its `State`."""

from __future__ import annotations

import difflib
import json
import shlex
from dataclasses import dataclass
from html import escape

from ..draw import pipes
from ..draw.bars import Bar, bars
from ..draw.picture import Picture
from ..measurement.comparison import Comparison
from ..model import percent
from ..model.ceilings import named
from ..model.chip import H200
from ..opencl.devices import Device
from ..sandbox import client
from . import panel
from .browser import Browser
from .cells import SIZE_NAMES
from .maps import recorded_cell
from .state import State, Values, settings
from .tries import Try, before

STEPS = {
    "start": "waiting for the sandbox",
    "compile": "compiling",
    "predict": "first launch",
    "check": "checking the result",
    "time": "timing",
    "look": "running your text in the simulator",
    "page": "running in this browser",
}


@dataclass(frozen=True)
class View:
    """The parts of an explorer as HTML, and which of its buttons are there.

    Attributes:
        answer: verdict, rate and comparison; recorded: the recorded GPU, or what one could reach.
        note: why a control gave way; details: what is not needed at first sight.
        pipes: what the product demands of an H200, and what is scarce.
        code: how the code of the opened try differs.
        stale: whether the answer is about older settings.
        unclear: whether a longer measurement may help.
    """

    answer: str
    recorded: str
    note: str
    details: str
    pipes: str
    code: str
    stale: bool
    unclear: bool


def render(state: State, lines: range | None = None) -> View:
    """Return all that an explorer shows but `status`; `lines` of the kernel are those of a cell."""
    outcome = state.outcome
    compared = outcome.compared if outcome and outcome.ok and not state.stale else None
    unclear = compared and (compared.noisy or (compared.ratio is not None and not compared.shown))
    limits = state.device.limits
    return View(
        answer=_answer(state, lines),
        recorded=_beside(state),
        note=panel.note(state.notes, compared),
        details=panel.details(outcome, state.topic.spec, limits) if outcome else "",
        pipes=_pipes(state),
        code=code_difference(state.opened, state.topic.code) if state.opened else "",
        stale=state.stale,
        unclear=bool(unclear),
    )


def status(state: State) -> str:
    """Return what runs now, as HTML."""
    if state.moving or not state.request:
        return ""
    step, request = state.step, state.request
    limit = None if step == "page" else client.shared_sandbox().limit(step, request)
    clock = f'data-job="{id(request)}" data-step="{step}" data-limit="{limit or ""}"'
    return (
        f'<span class="gemmlab-spinner"></span>{STEPS[step]} … '
        f'<span class="gemmlab-clock" aria-hidden="true" {clock}></span>'
    )


def _answer(state: State, lines: range | None) -> str:
    outcome = state.outcome
    if outcome is None:
        return ""
    values, words = settings(outcome), panel.verdict(outcome, state.topic.source or "")
    if lines:
        words = panel.renumbered(words, lines)
    if outcome.ok and outcome.compared:
        other, moved = _other(state, values)
        words += panel.answer(
            _here(state, outcome.compared, values), outcome.compared, other, moved
        )
    key = " ".join(f"{name}={value}" for name, value in values.items())
    data = f'data-key="{key}" data-state="{outcome.state}" data-count="{state.count}"'
    return f"<div {data}>{words}</div>"


def machine(device: Device | Browser) -> str:
    return "this browser" if isinstance(device, Browser) else "this machine"


def _here(state: State, compared: Comparison, values: Values) -> Bar:
    """Return the rate that was measured."""
    device = state.device
    name = device.name if isinstance(device, Browser) else panel.label(device)
    last = before(state.tries) if state.tries else None
    return panel.here(
        compared.rate,
        f"{name}, {panel.sizes(values)}",
        state.peak,
        machine(device),
        last.rate if last else None,
    )


def _other(state: State, values: Values) -> tuple[str, str]:
    """Return what settings are compared with, and what of them was moved since."""
    if state.topic.edited:
        return "the original", ""
    moved = panel.moved(state.start, values)
    ladder = f"kernel {state.topic.spec.number} as in the ladder"
    return "your start" if state.topic.source is None or moved else ladder, moved


def _recorded(state: State, values: Values) -> Bar | None:
    """Return the recorded GPU with these settings; of an edited text, what it could reach there."""
    topic, landscape = state.topic, state.topic.recorded
    allowed, *original = state.allows(values)
    if landscape is None:
        wrong = state.outcome is not None and not state.outcome.ok
        hidden = topic.spec.tensor or (topic.source is not None and wrong)
        return None if hidden else panel.reachable(allowed, *original)
    here, start = (
        recorded_cell(landscape, topic.spec, topic.params(values))
        | {"allowed": state.allows(values)[0]}
        for values in (values, state.start)
    )
    return panel.recorded(landscape, here, start)


def _beside(state: State) -> str:
    """Return the recorded GPU as HTML; a ceiling of older settings is dim until the new one is
    known.
    """
    old = state.topic.recorded is None and not state.knows(state.values)
    bar = _recorded(state, state.with_ceilings(state.values) if old else state.values)
    html = panel.shown(bar) if bar else ""
    return f'<div class="gemmlab-older">{html}</div>' if old else html


def _pipes(state: State) -> str:
    """Return the pipes of an H200 at the present settings, those of older ones dim, and what is
    scarce in words.
    """
    topic, known = state.topic, state.knows(state.values)
    values = state.with_ceilings(state.values)
    allowed = state.allows(values)[0]
    if allowed is None or not allowed.ceilings:
        return ""
    record = (
        topic.recorded.rate(topic.spec.number, topic.params(values)) if topic.recorded else None
    )
    measured = record is not None and record.metric == "GFLOPS"
    gflops = record.gflops if record and measured else allowed.gflops
    flow = pipes.flow(allowed.ceilings, H200, gflops / H200.gflops, f"kernel {topic.spec.number}")
    words = (
        f"On an H200 {named(allowed.resource)} is scarce: it allows "
        f"{percent(allowed.gflops / H200.gflops)} of the peak. A pipe: the need of a "
        "multiply-add, the room at the peak rate."
    )
    old = "" if known else " gemmlab-older"
    return (
        f'<div class="gemmlab-pipes{old}">{pipes.strip(flow)}'
        f'<div class="gemmlab-scarce" title="{escape(words)}">{escape(words)}</div></div>'
    )


def ceiling(state: State) -> str:
    """Return what an H200 could reach with the settings at the start, in a sentence."""
    allowed = state.allows(state.start)[0]
    return panel.ceiling(allowed) if allowed and state.outcome and state.outcome.ok else ""


def still(state: State, answer: str) -> Picture | str:
    """Return the answer as a picture, or as HTML if words say all of it."""
    outcome = state.outcome
    recorded = _recorded(state, settings(outcome)) if outcome else None
    if outcome is None or not outcome.ok or outcome.compared is None:
        bar = panel.shown(recorded) if recorded else ""
        return f'<div style="max-width:860px">{answer}{bar}</div>'
    values = settings(outcome)
    other, _ = _other(state, values)
    return bars(
        f"✔ {panel.sentence(outcome.verdict)}",
        [_here(state, outcome.compared, values), *([recorded] if recorded else [])],
        panel.beside(outcome.compared, other),
    )


def as_code(state: State, part: str = "") -> dict[str, str]:
    """Return code that measures the present settings, by the name of its button: a call, and the
    first line of a cell, which may hold a `part` of the kernel.
    """
    number, values = state.topic.spec.number, state.values
    first, *others = [values[size] for size in SIZE_NAMES]
    sizes = [f"m={first}"]
    if {*others} != {first}:
        sizes += [f"n={others[0]}", f"k={others[1]}"]
    params = json.dumps(state.topic.params(values))
    source = ["source=gemm_source"] if state.topic.source is not None else []
    arguments = [f"kernel={number!r}".replace("'", '"'), *sizes, f"params={params}", *source]
    words = [f"part={shlex.quote(part)}"] if part else []
    pairs = (f"{name}={value}" for name, value in values.items())
    return {
        "Copy as Python": f"gemmlab.measure({', '.join(arguments)})",
        "Copy as %%gemm": " ".join(["%%gemm", str(number), *words, *pairs]),
    }


def code_difference(tried: Try, now: str) -> str:
    """Return how the code of a try differs from the code of now, as HTML."""
    changes = difflib.unified_diff(now.splitlines(), tried.code.splitlines(), lineterm="", n=1)
    rows = []
    for line in list(changes)[2:]:
        kind = {"+": "gemmlab-added", "-": "gemmlab-removed"}.get(line[:1], "")
        text = "..." if line.startswith("@@") else line
        rows.append(f'<div class="{kind}">{escape(text) or " "}</div>')
    title = f"This try ({tried.outcome}) had other code: - now, + then."
    return (
        f'<div class="gemmlab-other"><p>{escape(title)}</p>'
        f'<div class="gemmlab-difference" tabindex="0" role="region" '
        f'aria-label="difference of the code">{"".join(rows)}</div></div>'
    )
