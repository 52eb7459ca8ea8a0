"""Parts of a chapter: questions before a run, how a kernel differs from another, verdicts. None
blocks or raises.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass

import ipywidgets as w
from IPython.display import display

from ..catalog import Key, find, in_order, sources
from ..draw import ceilings
from ..draw.picture import Picture
from ..measurement import explained, records
from .progress import Progress
from .shell import escape


class Prediction:
    """A multiple-choice question that is answered before a run and resolved after it, and noted in
    `Progress`.

    Args:
        question: such as "What will happen?"
        choices: the answers to choose from.
    """

    def __init__(self, question: str, choices: list[str]):
        if isinstance(choices, str) or not choices:
            raise ValueError(f"choices must be a list of answers, not {choices!r}")
        self.question, self.choices = question, list(choices)
        self._buttons = w.RadioButtons(
            options=self.choices, value=None, layout=w.Layout(width="auto")
        )

    @property
    def answer(self) -> str | None:
        """The answer that was chosen, or None."""
        return self._buttons.value

    def reveal(
        self, right: str, because: str = "", tempting: Mapping[str, str] | None = None
    ) -> None:
        """Show the prediction beside the right answer.

        Args:
            right: the right answer.
            because: the reason for it.
            tempting: for wrong answers, a sentence on what speaks for them and where the thought
                goes wrong.
        """
        if self.answer is None:
            head = "You made no prediction."
        elif self.answer == right:
            head = f"You predicted: {right}. That is right."
        else:
            head = (
                f"You predicted: {self.answer}. That is wrong. "
                f"{(tempting or {}).get(self.answer, '')}"
            ).strip()
        if self.answer is not None:
            Progress().note(self.question, self.answer == right)
        _say(
            f"{head} The answer is: {right}. {because}".strip(),
            None if self.answer is None else self.answer == right,
        )

    def _ipython_display_(self) -> None:
        plain = "\n".join([f"{self.question}", *(f"  ( ) {choice}" for choice in self.choices)])
        box = w.VBox([w.HTML(f"<b>{escape(self.question)}</b>"), self._buttons])
        view = box._repr_mimebundle_()
        display({**(view[0] if isinstance(view, tuple) else view), "text/plain": plain}, raw=True)


class Difference:
    """How a kernel's file differs from the file it starts from, without their headers and rules.

    Removed lines are marked with -, added ones with +. Of each parameter only the line with its
    default is compared.

    Args:
        kernel: its number.
        before: the number of the kernel to compare with; by default the one that the header names.
    """

    def __init__(self, kernel: Key, before: Key | None = None):
        self.new = find(kernel)
        if before is None and not self.new.before:
            raise ValueError(
                f"kernel {self.new.number} starts from no other; name one to compare with as "
                "before="
            )
        self.old = find(self.new.before if before is None else before)
        old, new = (sources.without_rules(sources.read(spec.file)) for spec in (self.old, self.new))
        self.text = sources.diff(old, new)

    def __str__(self) -> str:
        return self.text

    def _ipython_display_(self) -> None:
        colours = {"+": "#3fa26a2e", "-": "#cf75192e"}
        parts = []
        for sign, lines in itertools.groupby(self.text.splitlines(), lambda line: line[:1]):
            text = "\n".join(escape("..." if sign == "@" else line) for line in lines)
            style = (
                f"display:block;background:{colours[sign]}" if sign in colours else "display:block"
            )
            parts.append(f'<span style="{style}">{text}</span>')
        title = f"{self.old.file} → {self.new.file}"
        style = "white-space:pre;font:12px/1.25 monospace;overflow-x:auto;max-width:860px;margin:0"
        html = f'<pre style="{style}"><b>{title}</b>{"".join(parts)}</pre>'
        display({"text/plain": f"{title}\n{self.text}", "text/html": html}, raw=True)


def goal(kernel: Key | None = None) -> Picture:
    """The whole ladder as recorded on an H200, in per cent of its peak, with the vendor's library
    as a line.

    Args:
        kernel: the one that stands out; by default none. Kernels on tensor cores, for which that
            peak is none, are shown for one of them only.
    """
    library = {name: rate for name, rate in records.yardsticks("H200").items() if "cuBLAS" in name}
    rates = explained.rates("H200")
    if kernel is not None and find(kernel).tensor:
        rates |= _tensor_core_rates()
    return ceilings.strip({key: rates[key] for key in in_order(rates)}, kernel, library)


def _tensor_core_rates() -> dict[Key, float]:
    """GFLOPS of the kernels on tensor cores as recorded on an H200, with default parameters."""
    path = sources.folder("results") / "nvidia_h200_waterfall.json"
    rates: dict[Key, float] = {}
    for row in json.loads(path.read_text(encoding="utf-8"))["ways"].values():
        kernel = row.get("kernel")
        if kernel is not None and find(kernel).tensor and "gflops" in row:
            rates.setdefault(kernel, row["gflops"])  # the first has the kernel as it is
    return rates


@dataclass(frozen=True)
class Verdict:
    """Whether an exercise is solved, and in words why; a notebook shows it as the value of its
    cell.
    """

    ok: bool
    words: str

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return ("Solved: " if self.ok else "Not yet: ") + self.words

    def _repr_html_(self) -> str:
        return _bar(repr(self), self.ok)


def verdict(ok: bool, right: str, wrong: str) -> Verdict:
    """Whether an exercise is solved, with the text `right` or `wrong`; true or false, and shown by
    its cell.
    """
    return Verdict(bool(ok), right if ok else wrong)


def _say(text: str, ok: bool | None) -> None:
    display({"text/plain": text, "text/html": _bar(text, ok)}, raw=True)


def _bar(text: str, ok: bool | None) -> str:
    """The text beside a bar, whose colour says right, wrong, or neither."""
    colour = {True: "#3fa26a", False: "#d9534f", None: "#808080"}[ok]
    return (
        f'<div style="border-left:4px solid {colour};padding:2px '
        f'10px;max-width:860px">{escape(text)}</div>'
    )
