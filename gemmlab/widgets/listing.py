"""A kernel's text as HTML: the present line is lit; each has its cost, and what is wrong there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from html import escape

from clscope import Run
from clscope.count import Counts

from ..draw.picture import RED

#: Characters of what a kernel prints that are shown.
PRINTED = 2000
#: What the bars beside the lines count, over the whole run: of each line the first that it takes.
COSTS: dict[str, Callable[[Counts], int]] = {
    "sectors of global memory": lambda c: c.transactions,
    "turns of local memory": lambda c: c.turns,
    "multiply-adds": lambda c: c.multiply_adds,
}


def listing(
    run: Run, now: int, values: Mapping[str, int], inside: range | None = None, above: str = ""
) -> str:
    """The text with the line `now` lit; below it those of the `values` that the line names, the
    findings that are not `above` it, and what the kernel has printed.

    Where a cell holds only the lines `inside`, these have the numbers of the cell.
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
        label = number_in_cell(number, inside)
        rows.append(f'<div class="{looks}"><i>{label}</i>{bar}<span>{words}</span></div>')
    found = "".join(
        f'<div style="border-left:4px solid {RED};padding-left:6px;font-size:12px">'
        f"Wrong: {escape(renumber(f'line {f.line}: ' * (f.line > 0) + f.message, inside))}</div>"
        for f in [f for f in run.findings if f.message not in above][:3]
    )
    text = "".join(run.printed)[:PRINTED]
    printed = f'<pre class="gemmlab-problem">Printed: {escape(text)}</pre>' if text else ""
    here = _values(values, number_in_cell(now, inside) or now, lines[now - 1].partition("//")[0])
    return block("".join(rows)) + here + found + printed


def number_in_cell(number: int, inside: range | None) -> int | str:
    """Return a line's number in a cell, whose second line is the first of `inside`; the number
    itself where a cell holds the whole kernel, nothing outside.
    """
    if not inside:
        return number
    return number - inside[0] + 2 if number in inside else ""


def renumber(words: str, inside: range | None) -> str:
    """Return words with the line numbers of a cell, as `number_in_cell`."""

    def of_cell(found: re.Match[str]) -> str:
        number = int(found[0].split()[-1])
        in_cell = str(number_in_cell(number, inside))
        if found[0].startswith("line"):
            return f"line {in_cell or f'{number} of the whole kernel'}"
        return in_cell.rjust(len(found[0]))

    return re.sub(r"\bline \d+|  +\d+(?= \|)", of_cell, words) if inside else words


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


def _values(values: Mapping[str, int], now: int | str, code: str) -> str:
    """The values on a line."""
    named = [name for name in values if re.search(rf"\b{name}\b", code)]
    shown = ", ".join(f"{name} = {values[name]}" for name in named)
    words = f"Line {now}: {shown}" if shown else ""
    return f'<div style="font-size:12px;min-height:1.5em">{words}</div>'


def block(rows: str) -> str:
    """The rows of a kernel's text."""
    about = 'class="gemmlab-code" tabindex="0" aria-label="the kernel" aria-live="off"'
    return f"<div {about}>{rows}</div>"
