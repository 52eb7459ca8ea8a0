"""What the page shows of a `State`."""

from __future__ import annotations

import json
import shlex
from html import escape
from typing import Any

from ..draw.bars import Bar, bars
from ..draw.heatmap import heatmap
from ..draw.picture import Picture
from ..measurement.comparison import Comparison, Interval
from ..measurement.landscape import chip_of
from ..model.chip import H200
from ..opencl.devices import Device
from ..sandbox import client
from . import maps, panel, tries
from .browser import Browser
from .cells import SIZE_NAMES, Cell
from .controls import controls
from .shell import button
from .state import LONGER, State, Values, settings

STEPS = {
    "start": "waiting for the sandbox",
    "compile": "compiling",
    "predict": "first launch (may still compile)",
    "check": "checking the result",
    "time": "timing",
    "look": "running your code in the simulator",
    "page": "running in this browser",
}
STOP = button("stop", "■ Stop", "Stop what runs for this explorer")
LATER = button("longer", "Measure longer", f"Measure {LONGER} times as long")
OPENED = button("close", "Close", "Keep the code of now")
PUT = button("put", "Put this back into the cell", "Then press Shift-Enter")
ORIGINAL = button("original", "Original", "Put the kernel's own code back into the cell")
RESET = button("reset", "↺ Reset", "Return to the initial settings")
BEST = button("best", "★ Best", "Your fastest settings here")


def render(state: State, cell: Cell | None = None, stepping: bool = False) -> dict[str, Any]:
    """Return all traits of a `Panel` that follow from a state, but for its `status`; `stepping`:
    whether the stepper of the cell is open.
    """
    topic = state.topic
    in_cell = topic.source is not None
    rows = controls(topic.spec, state.options, state.values, state.notes, state.axes, in_cell)
    plane = maps.Plane(topic.spec, state.values, state.axes)
    shown = [] if in_cell else _maps(state, plane)
    return {
        "heard": state.heard,
        "controls": [row.data() for row in rows],
        "buttons": _buttons(state, cell, stepping),
        "parts": {**_parts(state, cell), "legend": maps.legend(shown)},
        "maps": shown,
        "here": [*plane.here],
        "tries": maps.strip(state.tries, topic.code),
        "code": as_code(state, cell.part if cell else ""),
    }


def status(state: State) -> dict[str, Any]:
    """Return what runs now, and whether the answer is about older settings."""
    stale, request, step = state.stale, state.request, state.step
    if state.moving or not request:
        return {"words": "", "stale": stale}
    limit = None if step == "page" else client.shared_sandbox().limit(step, request)
    job = str(id(request))
    return {"words": STEPS[step], "job": job, "step": step, "limit": limit, "stale": stale}


def _buttons(state: State, cell: Cell | None, stepping: bool) -> dict[str, Any]:
    head, outcome = [RESET, BEST], state.outcome
    if cell and cell.code != cell.first:
        head.insert(0, ORIGINAL)
    if cell:
        about = "Run the code in the simulator, line by line"
        head.append(button("step", "Step through it", about, pressed=stepping))
    compared = outcome.compared if outcome and outcome.ok and not state.stale else None
    unclear = compared and (compared.noisy or (compared.ratio is not None and not compared.shown))
    opened = [*[PUT] * (cell is not None), OPENED] if state.opened else []
    return {"head": head, "stop": [STOP], "rate": [LATER] if unclear else [], "other": opened}


def _parts(state: State, cell: Cell | None) -> dict[str, str]:
    topic, outcome = state.topic, state.outcome
    number = topic.spec.number if isinstance(topic.spec.number, int) else ""  # or the name again
    return {
        "title": f"kernel {number} <span>{escape(topic.spec.name)}</span>",
        "answer": _answer(state, cell),
        "recorded": _recorded(state),
        "note": panel.note(state.notes),
        "pipes": _pipes(state),
        "other": panel.difference(state.opened, topic.code) if state.opened else "",
        "details": panel.details(outcome, topic.spec, state.device.limits) if outcome else "",
    }


def _answer(state: State, cell: Cell | None) -> str:
    outcome = state.outcome
    if outcome is None:
        return panel.judged("") if state.judged else ""
    values = settings(outcome)
    rate = ""
    if outcome.ok and outcome.compared:
        other, changed = _other(state, values)
        here = _here(state, outcome.compared, values, machine(state.device))
        rate = panel.answer(here, outcome.compared, other, changed, _last(state))
    code, lines = state.topic.source or "", cell.lines if cell else None
    verdict = panel.verdict(outcome, code, in_cell=cell is not None, lines=lines)
    verdict = "" if state.judged else verdict
    key = " ".join(f"{name}={value}" for name, value in values.items())
    data = f'data-key="{key}" data-state="{outcome.state}" data-count="{state.count}"'
    html = f"<div {data}>{verdict}{rate}</div>"
    return panel.judged(html) if state.judged else html


def machine(device: Device | Browser) -> str:
    return "this browser" if isinstance(device, Browser) else "this machine"


def _last(state: State) -> Interval | None:
    """Return the rate of the try before."""
    last = tries.before(state.tries) if state.tries else None
    return last.rate if last else None


def _here(state: State, compared: Comparison, values: Values, title: str) -> Bar:
    """Return the rate that was measured."""
    device = state.device
    name = device.name if isinstance(device, Browser) else panel.label(device)
    about = f"{name}, {tries.sizes(values)}"
    return panel.here(compared.rate, about, state.peak, title, _last(state))


def _other(state: State, values: Values) -> tuple[str, str]:
    """Return what settings are compared with, and what of them was moved since."""
    if state.topic.edited:
        return "the original", ""
    changed = tries.moved(state.start, values)
    topic = state.topic
    same = topic.params(state.start) == topic.spec.defaults
    whose = " as in the ladder" if same else "'s own code"
    ladder = f"kernel {topic.spec.number}{whose}"
    return "your start" if state.topic.source is None or changed else ladder, changed


def _recorded_bar(state: State, values: Values) -> Bar | None:
    """Return the recorded GPU with these settings; of an edited text, what it could reach there."""
    topic, landscape = state.topic, state.topic.recorded
    allowed, *original = state.allows(values)
    if landscape is None:
        wrong = state.outcome is not None and not state.outcome.ok
        hidden = topic.spec.tensor or (topic.source is not None and wrong)
        if allowed is None or hidden:
            return None
        is_own = not topic.edited and topic.params(values) == topic.spec.defaults
        recorded = topic.spec.number if is_own else None
        return panel.reachable(allowed, next(iter(original), None), recorded)
    models = chip_of(landscape.title) is H200  # the ceilings are those of an H200
    here, start = (
        maps.recorded_cell(landscape, topic.spec, topic.params(setting))
        for setting in (values, state.start)
    )
    return panel.recorded(landscape, here | {"allowed": allowed if models else None}, start)


def _recorded(state: State) -> str:
    """Return the recorded GPU as HTML; a ceiling is that of older settings until the model has
    answered.
    """
    older = state.topic.recorded is None and not state.knows(state.values)
    bar = _recorded_bar(state, state.with_ceilings(state.values) if older else state.values)
    return panel.shown(bar, older=older) if bar else ""


def _pipes(state: State) -> str:
    """Return the pipes of an H200 at the present settings, or of older ones."""
    topic, values = state.topic, state.with_ceilings(state.values)
    allowed = state.allows(values)[0]
    if allowed is None or not allowed.ceilings:
        return ""
    return panel.pipes(allowed, topic.spec.number, older=not state.knows(state.values))


def _maps(state: State, plane: maps.Plane) -> list[dict[str, Any]]:
    """Return the recorded map, if there is one, and that of this machine."""
    found, limits = state.topic.recorded, state.device.limits
    cells = plane.cells([limits, *([found.limits] if found else [])])
    there = [plane.recorded(found, cells)] if found else []
    return [*there, plane.own(machine(state.device), limits, state.tries, state.peak, cells)]


def ceiling(state: State) -> str:
    """Return what an H200 could reach with the settings at the start, in a sentence."""
    allowed = state.allows(state.start)[0]
    return panel.ceiling(allowed) if allowed and state.outcome and state.outcome.ok else ""


def still(state: State, cell: Cell | None = None) -> Picture | str:
    """Return the recorded map or else the answer: a picture, or HTML if words say all of it."""
    outcome, found = state.outcome, state.topic.recorded
    if found:
        plane = maps.Plane(state.topic.spec, state.values, state.axes)
        title = f"{found.title}, kernel {state.topic.spec.number}: % of the peak"
        return heatmap(_maps(state, plane)[0], plane.here, title)
    bar = _recorded_bar(state, settings(outcome)) if outcome else None
    if outcome is None or not outcome.ok or outcome.compared is None:
        html = panel.shown(bar) if bar else ""
        return f'<div style="max-width:860px">{_answer(state, cell)}{html}</div>'
    values = settings(outcome)
    other, _ = _other(state, values)
    return bars(
        f"✔ {panel.sentence(outcome.verdict)}",
        [_here(state, outcome.compared, values, "measured on"), *([bar] if bar else [])],
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
