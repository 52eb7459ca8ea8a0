"""A kernel's text as HTML: the line that is carried out is lit; each says what it has cost, and
what is wrong there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from html import escape

from ..draw.picture import RED
from ..simt import ProductRun, Run, views
from ..simt.count import Counts

#: What the bars beside the lines count, over the whole run: of each line the first that it takes.
COSTS: dict[str, Callable[[Counts], int]] = {
    "sectors of global memory": lambda c: c.transactions,
    "turns of local memory": lambda c: c.turns,
    "multiply-adds": lambda c: c.multiply_adds,
}


def listing(run: ProductRun, now: int) -> str:
    """The text of a run's kernel, and below it the macros on a line and the findings.

    Args:
        run: whose text, counts and findings. now: the line that is carried out.
    """
    rows = _rows(run)
    text = "".join(
        row.replace('class="', 'class="gemmlab-now ', 1) if line == now else row
        for line, row in rows
    )
    code = run.text.split("\n")[now - 1].partition("//")[0]
    sizes = {name: size for name, size in zip("MNK", (run.m, run.n, run.k), strict=True)
             if re.search(rf"\b{name}\b", code)}  # fmt: skip
    shown = "; ".join(
        f"{name} is {_brief(str(value))}"
        for name, value in (_macros(run).get(now, {}) | sizes).items()
    )
    values = f"Line {now}: {escape(shown)}" if shown else ""
    macros = f'<div style="font-size:12px;min-height:1.5em">{values}</div>'
    found = "".join(
        f'<div style="border-left:4px solid {RED};padding-left:6px;font-size:12px">'
        f"Wrong: {escape(f'line {f.line}: ' if f.line else '')}{escape(f.message)}</div>"
        for f in run.findings[:3]
    )
    return block(text) + macros + found


def block(rows: str) -> str:
    """The rows of a kernel's text."""
    about = 'class="gemmlab-code" tabindex="0" aria-label="the kernel" aria-live="off"'
    return f"<div {about}>{rows}</div>"


def _brief(text: str, most: int = 80) -> str:
    """The beginning of a macro that stands for several statements."""
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"


_macros = lru_cache(maxsize=16)(views.macros)


def _rows(run: Run) -> list[tuple[int, str]]:
    """Each line from the first that is no comment, with its number and what it has cost."""
    lines = run.text.split("\n")
    costs: dict[int, tuple[str, int]] = {}
    for number, counts in run.lines.items():
        of = {name: count(counts) for name, count in COSTS.items()}
        costs[number] = next(((name, cost) for name, cost in of.items() if cost), ("", 0))
    most = {name: max((c for n, c in costs.values() if n == name), default=1) for name in COSTS}
    wrong: dict[int, str] = {}
    for finding in run.findings:
        wrong.setdefault(finding.line, finding.kind)
    first = next(
        (i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("//")),
        0,
    )
    rows = []
    for number, line in enumerate(lines[first:], first + 1):
        name, cost = costs.get(number, ("", 0))
        share = f'style="--share:{cost / most[name]:.0%}" title="{name}"' if cost else ""
        bar = f"<b {share}>{cost:,}</b>" if cost else "<b></b>"
        kind, note = (
            ("gemmlab-wrong", f"<em>{escape(wrong[number])}</em>") if number in wrong else ("", "")
        )
        rows.append(
            (
                number,
                f'<div class="{kind}"><i>{number}</i>{bar}<span>{escape(line)}{note}</span></div>',
            )
        )
    return rows
