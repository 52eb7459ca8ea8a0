"""A kernel's text as HTML: the line that is carried out is lit; each says what it has cost, and
what is wrong there.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from ..draw.picture import RED
from ..simt import ProductRun, Run, views
from ..simt.count import Counts
from .shell import escape

#: What the bars beside the lines may count, over the whole run: sectors of global memory, turns of
#: local memory ...
HEAT: dict[str, Callable[[Counts], int]] = {
    "global sectors": lambda c: c.transactions,
    "local turns": lambda c: c.turns,
    "multiply-adds": lambda c: c.multiply_adds,
}


def listing(run: ProductRun, now: int, heat: str) -> str:
    """The text of a run's kernel, and below it what the macros on a line stand for, and what was
    found.

    Args:
        run: whose text, counts and findings. now: the line that is carried out. heat: one of
            `HEAT`.
    """
    rows = _rows(run, heat)
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
    """The beginning of a macro that stands for several statements; the listing above has all of
    it.
    """
    return text if len(text) <= most else text[:most].rsplit(" ", 1)[0] + " …"


_macros = lru_cache(maxsize=16)(views.macros)


@lru_cache(maxsize=16)
def _rows(run: Run, heat: str) -> list[tuple[int, str]]:
    """Each line with its number and what it has cost; the comment that opens the text is left
    out.
    """
    lines = run.text.split("\n")
    counts = {line: HEAT[heat](c) for line, c in run.lines.items()}
    most = max([1, *counts.values()])
    wrong: dict[int, str] = {}
    for finding in run.findings:
        wrong.setdefault(finding.line, finding.kind)
    first = next(
        (i for i, line in enumerate(lines) if line.strip() and not line.lstrip().startswith("//")),
        0,
    )
    rows = []
    for number, line in enumerate(lines[first:], first + 1):
        cost = counts.get(number, 0)
        bar = f'<b style="--share:{cost / most:.0%}">{cost:,}</b>' if cost else "<b></b>"
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
