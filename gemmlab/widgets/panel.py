"""What an explorer's panel says, as HTML: verdict, rate, comparison, the recorded GPU, the pipes,
details.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from ..draw import pipes as drawing
from ..draw import style
from ..draw.bars import Bar
from ..draw.picture import brief
from ..ladder import KernelSpec, Key
from ..ladder.spec import Limits
from ..measurement.comparison import LEAST_RATIO, Comparison, Interval
from ..measurement.landscape import Landscape
from ..measurement.rungs import Allowed, rates, yardsticks
from ..model import percent
from ..model.ceilings import named
from ..model.chip import H200
from ..opencl.devices import Device
from ..sandbox.client import Outcome
from .cells import HOLE
from .listing import renumber
from .tries import Try, between, digits, sizes

#: Pixels: the width of a bar in the narrowest place where its marks still have names, of a
#: character of these names.
BAR, CHARACTER = 420, 6.6
BUSY = "The middle 80 % of the runs differ by this share of the median: the machine may be busy."
#: What a product is before it was timed.
RIGHT = "Right: every element exact"


def tflops(gflops: float) -> str:
    """A rate of a recorded GPU, always in one unit, so that rates compare at sight."""
    return digits(gflops / 1000)


def label(device: Device) -> str:
    """A device in few words: "AMD EPYC (PoCL 3.1)"."""
    if device.kind == "GPU":
        return device.name
    # PoCL puts the target of its compiler before the processor's name
    name = re.sub(r"^(?:pthread|cpu)-(?:\S+-)?", "", device.name)
    pocl = re.search(r"PoCL \d+\.\d+", device.version, re.IGNORECASE)
    return f"{name} ({pocl[0] if pocl else re.split(r'[ (]', device.platform)[0]})"


def title(outcome: Outcome) -> str:
    """Why nothing was measured, in a word or two."""
    words = {"hang": "Stopped", "stopped": "Stopped", "crash": "Crashed"}
    return words.get(outcome.kind, "Not run")


def verdict(
    outcome: Outcome, source: str = "", *, in_cell: bool = False, lines: range | None = None
) -> str:
    """A sign and a sentence, and the problem. A `source` with a `HOLE` cannot be right yet.

    Where the source is `in_cell`, its lines are links; if the cell holds a part of the kernel, that
    is these `lines` of it.
    """
    link = linked if in_cell else str
    words = renumber(outcome.verdict, lines)
    if in_cell:  # it is the reader's code, and not the kernel's file
        words = re.sub(r"^kernel \S+ \(\S+\) does", "this code does", words)
    if outcome.result is None:
        name = title(outcome)
        problem = sentence(words.removeprefix(f"{name.lower()}: ").removeprefix(f"{name.lower()} "))
        text = f'<div class="gemmlab-problem gemmlab-said">{link(escape(problem))}</div>'
        return _head("✘", escape(name), "wrong") + text
    if HOLE in source and not outcome.ok:
        return _head("✎", "A hole: write the lines, and run the cell", "model")
    first, _, more = sentence(words).replace(" by luck: ", " by luck; ", 1).partition("; ")
    why = link(escape(sentence(more)))
    why = f'<div class="gemmlab-why gemmlab-said">{why}</div>' if why else ""
    if outcome.ok:
        return _head("✔", escape(first), "right") + why
    note = '<div class="gemmlab-note">Only correct kernels are timed.</div>'
    colour = "b" if outcome.state == "luck" else "wrong"
    return _head("✘", link(escape(first)), colour) + why + note


def judge(right: bool, words: str) -> str:
    """Whether the code of a cell is right, and why not."""
    if right:
        return _head("✔", escape(words), "right")
    code = f'<div class="gemmlab-problem gemmlab-said">{linked(escape(words))}</div>'
    return _head("✎", "Not yet", "model") + code


def judged(older: str) -> str:
    """A verdict whose rate is still being measured, above an older rate."""
    return f'<div class="gemmlab-judged">{_head("✔", RIGHT, "right")}</div>{older}'


def linked(html: str) -> str:
    """HTML in which each line of the cell is a link that goes there."""
    line = r"\bline (\d+)\b(?! of the whole)"
    return re.sub(line, r'<a href="#" data-line="\1">\g<0></a>', html, flags=re.IGNORECASE)


def here(
    rate: Interval, device: str, peak: float | None, machine: str, before: Interval | None = None
) -> Bar:
    """The rate here or in this browser, with whiskers, and the one `before`; the bar ends at the
    peak.
    """
    low, middle, high = rate
    top = peak or max(high, before[1] if before else 0.0)
    facts = list[str]()
    if before:
        facts.append(f"before {digits(before[1])}")
    if peak:
        part = "above the measured" if middle > peak else f"{percent(middle / peak)} of the"
        facts.append(f"{part} peak, {digits(peak)} GFLOPS")
    return Bar(
        machine,
        device,
        style.HERE,
        digits(middle),
        f"GFLOPS ({between(low, high)})",
        middle / top,
        tuple(facts),
        (low / top, high / top),
        ghost=before[1] / top if before else 0.0,
    )


def beside(found: Comparison, other: str) -> str:
    """How a rate compares with that of `other`; a ratio only where the difference was shown."""
    if found.ratio is None:  # it is the same
        return f"This is {other}."
    if found.shown:
        low, middle, high = found.ratio
        word = "Slower" if high < 1 else "Faster"
        return f"{word}: {digits(middle)} × {other} ({between(low, high)})"
    if found.ratio[0] > 1 / LEAST_RATIO and found.ratio[2] < LEAST_RATIO:
        return f"As fast as {other}, within {100 * (LEAST_RATIO - 1):.0f} %"
    if found.noisy:
        return f"Too noisy to compare with {other}"
    return f"No measurable difference from {other}"


def since(now: Interval, before: Interval | None) -> str:
    """How a rate compares with the one before, if their runs do not overlap."""
    if before is None or before[0] <= now[2] and now[0] <= before[2]:
        return ""
    return f"{digits(now[1] / before[1])} × before"


def answer(
    bar: Bar, comparison: Comparison, other: str, moved: str, before: Interval | None = None
) -> str:
    """Return one line with a rate, whether its runs are noisy, and how it compares with that of
    `other`, or if it is the same with the one `before`; the bar, and below it what is less
    important, with what was `moved`.
    """
    ratio, facts = beside(comparison, other), [*[moved] * bool(moved)]
    if comparison.ratio is None:
        if change := since(comparison.rate, before):
            facts.append(ratio.removesuffix("."))
            ratio = change
        elif moved:  # the other has no rate
            ratio = ""
    if comparison.shown and comparison.reference:  # its rate is no longer the one of then
        facts.append(f"{other}, run beside it: {digits(comparison.reference[1])}")
    below = escape("; ".join([*facts, *bar.facts, bar.about]))
    noise = ""
    if comparison.noisy:
        words = f"runs differ by {100 * comparison.spread:.0f} %"
        noise = f' <span class="gemmlab-noise" title="{BUSY}">{words}</span>'
    return (
        f'<div class="gemmlab-figure" style="--colour:var(--gemmlab-{bar.colour.name})">'
        f'<div class="gemmlab-rate gemmlab-said"><span><b>{bar.figure}</b> {escape(bar.words)}'
        f'{noise}</span> <span class="gemmlab-compared">{escape(ratio)}</span></div>{_track(bar)}'
        f'<div class="gemmlab-facts-below" title="{below}">{below}</div></div>'
    )


def recorded(found: Landscape, cell: Mapping[str, Any], start: Mapping[str, Any]) -> Bar:
    """The rate of settings on the recorded GPU beside that of the settings at the start, its
    ceiling, and the vendor's library. Both are `maps.recorded_cell`s, the first with what is
    "allowed" there.
    """
    size = f"recorded at {sizes(dict.fromkeys('MNK', found.size))}"
    allowed = cell["allowed"]
    if cell["state"] == "missing" and allowed:
        return Bar(
            found.title,
            "not recorded",
            style.MODEL,
            *_at_most(allowed),
            allowed.gflops / found.peak,
        )
    if "share" not in cell:
        return Bar(found.title, size, style.RECORDED, "–", cell["label"])
    marks = _library(found.title, found.size, found.peak)
    if allowed and cell["gflops"] <= allowed.gflops < 0.995 * found.peak:
        marks[f"{named(allowed.resource)} allows"] = allowed.gflops / found.peak
    words = f"% of the peak, {tflops(cell['gflops'])} TFLOPS"
    if start.get("gflops", cell["gflops"]) != cell["gflops"]:
        words += f", {digits(cell['gflops'] / start['gflops'])} × your start"
    return Bar(
        found.title,
        size,
        style.RECORDED,
        cell["text"],
        words,
        cell["share"],
        marks=marks,
    )


#: Begins a sentence that `_at_most` ends.
REACH = "on an H200 this code could reach"


def _at_most(allowed: Allowed) -> tuple[str, str]:
    """The figure of a ceiling, and its unit with what sets it."""
    share = percent(allowed.gflops / H200.gflops)
    words = f"TFLOPS at most: {named(allowed.resource)} allows {share} of the peak"
    return tflops(allowed.gflops), words


def ceiling(allowed: Allowed) -> str:
    """What an H200 could reach with a source code, as a sentence."""
    return f"{sentence(REACH)} {' '.join(_at_most(allowed))}."


def reachable(allowed: Allowed, original: Allowed | None = None, kernel: Key | None = None) -> Bar:
    """What an H200 could reach with this source code, and with the `original`; and what it does
    reach, if this is a recorded `kernel` at its defaults.
    """
    measured = {f"kernel {k} measured": rates()[k] / H200.gflops for k in rates() if k == kernel}
    marks = measured | _library("H200", 4096, H200.gflops)
    if kernel != 1:
        marks["kernel 1:"] = rates()[1] / H200.gflops
    if original:
        marks["the original at most"] = original.gflops / H200.gflops
    share = allowed.gflops / H200.gflops
    return Bar(REACH, "", style.MODEL, *_at_most(allowed), share, marks=marks)


def details(outcome: Outcome, spec: KernelSpec, limits: Limits) -> str:
    """All that is not needed at first sight."""
    result, facts = outcome.result, dict[str, str]()
    if result is None:
        return ""
    if outcome.ok:
        facts["runs"] = f"{result.repeats}, median {brief(result.kernel_ms[0])}\u00a0ms"
        if passes := result.passes_ms:
            total = sum(passes.values())
            shares = ", ".join(f"{name} {ms / total:.0%}" for name, ms in passes.items())
            facts["whole call"] = f"{digits(result.pipeline_gflops)} GFLOPS ({shares})"
    if result.bound:
        facts["error"] = f"{result.error:.1e} (at most {result.bound:.1e} is allowed)"
    facts["compiled in"] = f"{result.build_seconds:.2f} s"
    if spec.switches:
        facts["path"] = result.path
    local, memory = spec.local_size(result.params), spec.local_memory(result.params)
    items = f"{local[0]} x {local[1]} = {local[0] * local[1]}"
    facts["work-group"] = f"{items} of {limits.work_group} work-items"
    facts["local memory"] = f"{memory:,} of {limits.local_memory:,} bytes"
    rows = (f"<div><span>{name}</span> {escape(text)}</div>" for name, text in facts.items())
    return f'<div class="gemmlab-facts">{"".join(rows)}</div>'


def sentence(words: str) -> str:
    """Words that begin with a capital letter."""
    return words[:1].upper() + words[1:]


def _head(sign: str, html: str, colour: str) -> str:
    return (
        f'<div class="gemmlab-head gemmlab-said" style="color:var(--gemmlab-{colour})">{sign} '
        f"<span>{html}</span></div>"
    )


def shown(bar: Bar, *, older: bool = False) -> str:
    """A bar as HTML, with names at its marks; its length is in per cent of the peak. What is about
    older settings is dim.
    """
    about = f' <span class="gemmlab-dim">{escape(bar.about)}</span>' if bar.about else ""
    html = (
        f'<div class="gemmlab-figure" style="--colour:var(--gemmlab-{bar.colour.name})">'
        f"<div>{escape(bar.name)}{about}</div>"
        f'<div class="gemmlab-said"><b>{bar.figure}</b> {escape(bar.words)}</div>{_track(bar)}'
        f'<div class="gemmlab-names">{_names(bar)}</div></div>'
    )
    return f'<div class="gemmlab-older">{html}</div>' if older else html


def _names(bar: Bar) -> str:
    """Return the names of marks, each beside its mark: to the right if there is room before the
    next, else to the left, below the others if there is no room there, either.
    """
    html, end = "", 0.0
    marks = bar.in_order()
    for (name, at), (_, after) in zip(marks, [*marks, ("", 1.0)][1:], strict=True):
        words = f"{name} {percent(at)}"
        width, x = CHARACTER * len(words), min(at, 1.0) * BAR
        right, below = x + width <= after * BAR, x - width < end
        if right or not below:
            end = x + width if right else x
        side, place = "after" if right else "before", f"{min(at, 1.0):.1%}"
        side += " gemmlab-below" * (below and not right)
        html += (
            f'<span class="gemmlab-{side}" style="--at:{place}" title="{escape(words)}">'
            f"{escape(words)}</span>"
        )
    return html


def _track(bar: Bar) -> str:
    """Return the bar alone, with its marks, its whisker and its ghost."""
    lines = "".join(f'<u style="left:{min(at, 1.0):.1%}"></u>' for _, at in bar.in_order())
    if bar.ghost:
        lines += f'<em style="width:{min(bar.ghost, 1.0):.2%}"></em>'
    if bar.whisker:
        low, high = (min(end, 1.0) for end in bar.whisker)
        lines += f'<s style="left:{low:.2%};width:{high - low:.2%}"></s>'
    kind = ' class="gemmlab-bound"' if bar.colour is style.MODEL else ""
    length = f"width:{min(bar.share, 1.0):.2%}"
    return f'<div class="gemmlab-bar"><i{kind} style="{length}"></i>{lines}</div>'


def _library(title: str, size: int, peak: float) -> dict[str, float]:
    libraries = yardsticks(title, size).items()
    best = max((rate for name, rate in libraries if name.startswith("cuBLAS")), default=0.0)
    return {"cuBLAS": best / peak} if best else {}


def note(moved: Sequence[str]) -> str:
    """What gave way, and why."""
    words = escape("; ".join(moved))
    look = 'style="--colour:var(--gemmlab-b)"'
    return f'<div class="gemmlab-note gemmlab-said" title="{words}" {look}>{words}</div>'


def pipes(allowed: Allowed, kernel: object, *, older: bool) -> str:
    """The pipes of an H200 when the scarce one is full, and in words which it is; of older settings
    they are dim.
    """
    share = percent(allowed.gflops / H200.gflops)
    flow = drawing.flow(allowed.ceilings, H200, allowed.gflops / H200.gflops, f"kernel {kernel}")
    levels = [" ".join(filter(None, box)).replace("- ", "-") for box in drawing.BOXES]
    html = f"<span>{levels[0]}</span>"
    for number, (pipe, level) in enumerate(zip(flow.pipes, levels[1:], strict=True)):
        tight = " gemmlab-tight" * (number == flow.tight and pipe.need > pipe.width)
        html += (
            f'<span class="gemmlab-pipe{tight}" style="--busy:{pipe.busy(flow.share):.1%}">'
            f"<b>{drawing.short(pipe.need)} {pipe.unit}</b> "
            f"room for {drawing.short(pipe.width)}</span><span>{level}</span>"
        )
    words = f"On an H200 {named(allowed.resource)} is scarce: it allows {share} of the peak."
    key = "In a pipe: need per multiply-add, room at the peak."
    more = f"{key} The scarce one is the first to be full."
    return (
        f'<div class="gemmlab-pipes{" gemmlab-older" * older}" title="{escape(more)}">'
        f'<div class="gemmlab-flow" role="img" aria-label="{escape(flow.demands)}">{html}</div>'
        f'<div class="gemmlab-scarce"><b>{escape(words)}</b> '
        f'<span class="gemmlab-dim">{escape(key)}</span></div></div>'
    )


def difference(tried: Try, now: str) -> str:
    """How the code of a try differs from the code of now."""
    changes = difflib.unified_diff(now.splitlines(), tried.code.splitlines(), lineterm="", n=1)
    rows = []
    for line in [*changes][2:]:
        kind = {"+": "gemmlab-added", "-": "gemmlab-removed"}.get(line[:1], "")
        text = "..." if line.startswith("@@") else line
        rows.append(f'<div class="{kind}">{escape(text) or " "}</div>')
    title = f"This try ({tried.outcome}) had other code: - now, + then."
    return (
        f"<p>{escape(title)}</p>"
        f'<div class="gemmlab-difference" tabindex="0" role="region" '
        f'aria-label="difference of the code">{"".join(rows)}</div>'
    )
