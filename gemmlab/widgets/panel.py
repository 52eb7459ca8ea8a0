"""What an explorer's panel says, as HTML: the settings it is about, the verdict, one large number,
and the details.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..catalog import KernelSpec, Key, sources
from ..catalog.spec import Limits
from ..draw import plot
from ..draw.picture import GREEN, GREY, ORANGE, RED, brief, short
from ..draw.plot import Try
from ..measurement.records import Result, distinct
from ..model import gflops, percent
from ..worker.client import Outcome
from .shell import escape

#: Said where two rates cannot be told apart (see `records.distinct`).
WITHIN_SPREAD = "within the spread of the runs"


@dataclass(frozen=True)
class Yardsticks:
    """What a rate is compared with; None where it is not known.

    Attributes:
        start: the first right result of the explorer.
        original: that of the kernel's own text with the same settings, where the reader changed it.
        peak: the measured peak of the device, in GFLOPS.
    """

    start: Result | None = None
    original: Result | None = None
    peak: float | None = None


def settings(values: Mapping[str, int]) -> str:
    """Parameters and sizes in words: "TS = 32, WPT = 8, 256 x 256 x 256"."""
    params = [f"{name} = {value}" for name, value in values.items() if name not in "MNK"]
    return ", ".join([*params, " x ".join(str(values[size]) for size in "MNK")])


def free_facts(spec: KernelSpec, params: Mapping[str, int], limits: Limits) -> str:
    """What is known of settings without running anything: the problems, or work-group and local
    memory.
    """
    problems = spec.problems(params, limits)
    return (
        "; ".join(problems)
        if problems
        else ", ".join(f"{k} {v}" for k, v in _sizes(spec, params, limits).items())
    )


def outcome(
    outcome: Outcome,
    spec: KernelSpec,
    limits: Limits,
    values: Mapping[str, int],
    notes: Sequence[str] = (),
    beside: Yardsticks = Yardsticks(),
) -> str:
    """The whole answer to a request.

    Args:
        outcome: the answer.
        spec: the kernel.
        limits: of the device.
        values: the parameters and sizes that it is about.
        notes: what had to move, and why.
        beside: what to compare the rate with.
    """
    title = f'<div style="opacity:.85">{escape(settings(values))}</div>'
    moved = "".join(f'<div class="gemmlab-said">{escape(note)}</div>' for note in notes)
    result = outcome.result
    if result is None:
        words = {"hang": "Stopped", "stopped": "Stopped", "crash": "Crashed"}.get(
            outcome.kind, "Not run"
        )
        problem = f'<div class="gemmlab-problem gemmlab-said">{escape(outcome.verdict)}</div>'
        # the notes would say the same once more
        said = "" if outcome.kind == "ParameterError" else moved
        return f"{title}{_head(words, RED)}{problem}{said}"
    colour = GREEN if outcome.ok else ORANGE if outcome.by_luck else RED
    head = _head(outcome.verdict[:1].upper() + outcome.verdict[1:], colour)
    facts = "".join(
        f"<div><span>{name}</span> {escape(text)}</div>"
        for name, text in _facts(result, spec, limits).items()
    )
    grid = f'<div class="gemmlab-facts">{facts}</div>'
    return f"{title}{head}{_rate(outcome, beside)}{moved}{grid}{_passes(result)}"


def chart(
    history: Sequence[Try], best: Mapping[Key, float], kernel: Key, original: float | None
) -> str:
    """The chart of tries (see `plot.tries`); each says its settings when the pointer is on it."""
    svg = plot.tries(history, best, kernel, original).svg()
    for place, attempt in enumerate(history):
        svg = svg.replace(
            f'<g id="try-{place}">', f'<g id="try-{place}"><title>{escape(str(attempt))}</title>'
        )
    return f'<div class="gemmlab-wide">{svg}</div>'


def changes(spec: KernelSpec, source: str) -> str:
    """How a learner's text differs from the kernel's: removed lines are marked with -, added ones
    with +.
    """
    lines = sources.diff(sources.read(spec.file), source, context=0).splitlines()
    shown = [line for line in lines if line[:1] in "+-"][:30]
    colours = {"+": GREEN, "-": ORANGE}
    style = "border-left:3px solid {};padding-left:6px"
    rows = "".join(f'<div style="{style.format(colours[x[0]])}">{escape(x)}</div>' for x in shown)
    title = "changes to the original:" if shown else "the same as the original"
    return f'<div style="opacity:.75">{title}</div><div class="gemmlab-problem">{rows}</div>'


def _head(text: str, colour: str) -> str:
    return (
        '<div class="gemmlab-head gemmlab-said" '
        f'style="color:{colour}"><span>{escape(text)}</span></div>'
    )


def _rate(outcome: Outcome, beside: Yardsticks) -> str:
    """The rate in large figures, and what it is compared with; where the result is wrong, that it
    does not count.
    """
    rate, others = outcome.result.gflops, []
    if not outcome.ok:
        why = "right by luck only" if outcome.by_luck else "not right"
        return (
            f'<div class="gemmlab-said">Its rate does not count, because the result is {why}.</div>'
        )
    if beside.original:
        others.append(
            _times(
                outcome.result, beside.original, f"the original ({short(beside.original.gflops)})"
            )
        )
    elif beside.start and beside.start.gflops != rate:
        others.append(_times(outcome.result, beside.start, "your start"))
    if beside.peak:
        share, roof = rate / beside.peak, f"this device's measured peak ({short(beside.peak)})"
        others.append(
            f"{percent(share)} of {roof}"
            if share <= 1
            else f"above {roof}, which was measured too low"
        )
    said = f", {'; '.join(others)}" if others else ""
    return f'<div class="gemmlab-rate gemmlab-said"><b>{short(rate)}</b> GFLOPS{escape(said)}</div>'


def _times(result: Result, other: Result, name: str) -> str:
    """How many times as fast a result is as another, and whether that says anything."""
    words = f"{brief(result.gflops / other.gflops)} x {name}"
    return words if distinct(result, other) else f"{words}, {WITHIN_SPREAD}"


def _sizes(spec: KernelSpec, params: Mapping[str, int], limits: Limits) -> dict[str, str]:
    local, memory = spec.local_size(params), spec.local_memory(params)
    return {
        "work-group": (
            f"{local[0]} x {local[1]} = {local[0] * local[1]} of {limits.work_group} work-items"
        ),
        "local memory": f"{memory:,} of {limits.local_memory:,} bytes",
    }


def _facts(result: Result, spec: KernelSpec, limits: Limits) -> dict[str, str]:
    low, high = (
        gflops(result.m, result.n, result.k, ms * 1e-3)
        for ms in (result.kernel_ms[2], result.kernel_ms[1])
    )
    spread = f"{short(low)} to {short(high)} in {result.repeats} runs"
    return {
        "kernel": (
            f"{short(result.gflops)} GFLOPS, median ({spread}), "
            f"{brief(result.kernel_ms[0])}\u00a0ms"
        ),
        "error": f"{result.error:.1e} (at most {result.bound:.1e} is allowed)",
        "compiled in": f"{result.build_seconds:.2f} s"
        + (f"; path: {result.path}" if spec.switches else ""),
        **_sizes(spec, result.params, limits),
    }


def _passes(result: Result) -> str:
    """The whole call as a bar: how its time is divided among the passes."""
    total = sum(result.passes_ms.values())
    whole = f"whole call {short(result.pipeline_gflops)} GFLOPS:"
    if len(result.passes_ms) == 1:
        return (
            f'<div class="gemmlab-passes">{whole} the kernel alone, nothing to pad or to '
            "transpose</div>"
        )
    bars, names = "", ""
    for name, ms in sorted(result.passes_ms.items(), key=lambda item: -item[1]):
        colour = plot.PASSES.get(name.split()[0], GREY)
        bars += f'<div style="width:{ms / total:.1%};background:{colour}"></div>'
        names += (
            f'<span><i style="background:{colour}"></i>{escape(name)} {brief(ms)} ms '
            f"({ms / total:.0%})</span>"
        )
    return (
        f'<div class="gemmlab-passes"><span>{whole}</span>{names}</div><div '
        f'class="gemmlab-bar">{bars}</div>'
    )
