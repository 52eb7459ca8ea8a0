"""A kernel's text as HTML: the present line is lit; each has its cost, and what is wrong there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape

from clscope import Run
from clscope.count import Counts

from ..draw.picture import RED

#: What the bars beside the lines count, over the whole run: of each line the first that it takes.
COSTS: dict[str, Callable[[Counts], int]] = {
    "sectors of global memory": lambda c: c.transactions,
    "turns of local memory": lambda c: c.turns,
    "multiply-adds": lambda c: c.multiply_adds,
}


def listing(run: Run, now: int, values: Mapping[str, int]) -> str:
    """The text with the line `now` lit; below it those of the `values` that the line names, and the
    findings.
    """
    lines, rows = run.text.split("\n"), []
    costs, wrong = _costs(run), dict[int, str]()
    for finding in run.findings:
        wrong.setdefault(finding.line, finding.kind)
    code = (i for i, line in enumerate(lines) if line.strip() and line.lstrip()[:2] != "//")
    first = next(code, 0)
    for number, line in enumerate(lines[first:], first + 1):
        looks = "gemmlab-now " * (number == now) + "gemmlab-wrong" * (number in wrong)
        note = f"<em>{escape(wrong[number])}</em>" if number in wrong else ""
        bar = costs.get(number, "<b></b>")
        words = escape(line.replace("    ", "  ")) + note  # half the margin: the lines are narrow
        rows.append(f'<div class="{looks}"><i>{number}</i>{bar}<span>{words}</span></div>')
    found = "".join(
        f'<div style="border-left:4px solid {RED};padding-left:6px;font-size:12px">'
        f"Wrong: {escape(f'line {f.line}: ' if f.line else '')}{escape(f.message)}</div>"
        for f in run.findings[:3]
    )
    return block("".join(rows)) + _values(values, now, lines[now - 1].partition("//")[0]) + found


def _costs(run: Run) -> dict[int, str]:
    """What each line has cost, as a bar."""
    costs: dict[int, tuple[str, int]] = {}
    for number, counts in run.lines.items():
        of = {name: count(counts) for name, count in COSTS.items()}
        costs[number] = next(((name, cost) for name, cost in of.items() if cost), ("", 0))
    most = {name: max((c for n, c in costs.values() if n == name), default=1) for name in COSTS}
    return {
        number: f'<b style="--share:{cost / most[name]:.0%}" title="{name}">{cost:,}</b>'
        for number, (name, cost) in costs.items()
        if cost
    }


def _values(values: Mapping[str, int], now: int, code: str) -> str:
    """The values on a line."""
    named = [name for name in values if re.search(rf"\b{name}\b", code)]
    shown = ", ".join(f"{name} = {values[name]}" for name in named)
    words = f"Line {now}: {shown}" if shown else ""
    return f'<div style="font-size:12px;min-height:1.5em">{words}</div>'


def block(rows: str) -> str:
    """The rows of a kernel's text."""
    about = 'class="gemmlab-code" tabindex="0" aria-label="the kernel" aria-live="off"'
    return f"<div {about}>{rows}</div>"
