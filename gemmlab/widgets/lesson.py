"""Parts of a chapter: predictions, differences between kernels, verdicts. None blocks or raises."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from html import escape
from typing import Any

from IPython.display import display

from .. import files
from ..draw import plot, style
from ..draw.picture import Picture
from ..ladder import KernelSpec, Key, cuda, find, in_order, sources
from ..measurement import records, rungs
from .progress import Progress
from .shell import Act, Shell, button


class Prediction(Shell):
    """A multiple-choice question. Choosing opens the answer below it, once there is one; the choice
    is kept in `Progress`, and shown again the next day.

    Args:
        question: such as "What will happen?"
        choices: the answers to choose from.
        right, because, tempting: the answer, if it needs no run; see `reveal`.

    Attributes:
        answer: the one that was chosen, or None.
    """

    name = "prediction"

    def __init__(
        self,
        question: str,
        choices: list[str],
        right: str | None = None,
        because: str = "",
        tempting: Mapping[str, str] | None = None,
    ):
        if isinstance(choices, str) or not choices:
            raise ValueError(f"choices must be a list of answers, not {choices!r}")
        super().__init__("prediction")
        self.question: str = question
        self.choices: list[str] = list(choices)
        kept = Progress().entries.get(question, {}).get("choice")
        self.answer: str | None = kept if kept in self.choices else None
        self._outcome: tuple[str, str, Mapping[str, str]] | None = None
        if right is not None:
            self._outcome = right, because, tempting or {}
        self._show()

    def hear(self, act: Act) -> None:
        match act:
            case {"press": choice}:
                self.choose(choice)

    def choose(self, choice: str) -> None:
        """Choose an answer; the first choice counts."""
        if self.answer is None and choice in self.choices:
            self.answer = choice
            self._show()

    def reveal(
        self, right: str, because: str = "", tempting: Mapping[str, str] | None = None
    ) -> None:
        """Say the answer, where a choice was made; otherwise it opens when one is made.

        Args:
            right: the right answer.
            because: the reason for it.
            tempting: for wrong answers, a sentence on what speaks for them and where the thought
                goes wrong.
        """
        self._outcome = right, because, tempting or {}
        self._show()
        if self.answer is None:
            _say("Make your prediction above: the answer opens there.", None)
        else:
            _say(self._words(), self.answer == right)

    def _words(self) -> str:
        assert self._outcome
        right, because, tempting = self._outcome
        if self.answer == right:
            return f"You predicted: {right}. That is right. {because}".strip()
        words = f"You predicted: {self.answer}. {tempting.get(self.answer or '', '')}".strip()
        return f"{words} The answer is: {right}. {because}".strip()

    def _show(self) -> None:
        """Show the choice, once there is one, and the answer, once it is known."""
        right = self._outcome[0] if self._outcome else None
        said = ""
        if self.answer is not None and right is None:
            later = "Your prediction is noted. Run on: the answer comes after the measurement."
            said = f'<div class="gemmlab-note">{later}</div>'
            Progress().note(self.question, None, self.answer)
        elif self.answer is not None:
            words = _bar(self._words(), True if self.answer == right else None)
            said = f'<div data-key="{escape(self.answer)}" class="gemmlab-said">{words}</div>'
            Progress().note(self.question, self.answer == right, self.answer)
        self.panel.show(
            parts={"title": escape(self.question), "answer": said},
            buttons={"choices": [self._button(choice, right) for choice in self.choices]},
        )
        if self.stored:  # and a saved notebook keeps it
            plain = f"[static picture of {self.name}]"
            self.stored.update({"text/html": self.still(), "text/plain": plain}, raw=True)

    def _button(self, choice: str, right: str | None) -> dict[str, Any]:
        """Return the button of a choice: none is known to be right before one is chosen."""
        look, sign = "", ""
        if self.answer is not None and choice == right:
            look, sign = "gemmlab-right", "✔ "
        elif choice == self.answer:
            look, sign = ("gemmlab-not-right", "✕ ") if right else ("gemmlab-chosen", "")
        off = self.answer not in (None, choice)
        return button(choice, f"{sign}{choice}", look=look, off=off)

    def still(self) -> str:
        rows = "".join(
            f"<li>{escape(choice)}{' ← your choice' * (choice == self.answer)}</li>"
            for choice in self.choices
        )
        return f"<b>{escape(self.question)}</b><ul>{rows}</ul>{self.panel.answer}"


#: The file of the reader's own in which `prefer_cuda` keeps the choice.
LANGUAGE_FILE = "language.json"


def prefers_cuda() -> bool:
    """Whether the reader chose CUDA C++ for the differences between kernels, with `%gemm cuda`."""
    with suppress(OSError, ValueError):
        return bool(files.load_json(sources.own_folder() / LANGUAGE_FILE, dict).get("cuda"))
    return False


def prefer_cuda(cuda: bool) -> None:
    """Keep the reader's choice of a language; OSError if the file cannot be written."""
    path = sources.own_folder() / LANGUAGE_FILE
    files.change_json(path, dict, lambda stored: {**stored, "cuda": cuda})


class Difference:
    """How a kernel's file differs from the file it starts from, without their headers and rules.

    Removed lines are marked with -, added ones with +. Of each parameter only the line with its
    default is compared. After `%gemm cuda`, kernels are compared as CUDA C++ if both have a
    translation.

    Args:
        kernel: its number.

    Raises:
        ValueError: if its header names no kernel that it starts from.
    """

    def __init__(self, kernel: Key):
        self.new: KernelSpec = find(kernel)
        if not self.new.before:
            raise ValueError(f"kernel {self.new.number} starts from no other")
        self.old: KernelSpec = find(self.new.before)
        specs = self.old, self.new
        self.cuda: bool = prefers_cuda() and all(spec.number in cuda.TRANSLATED for spec in specs)
        old, new = map(self._source, specs)
        self.text: str = sources.diff(old, new)

    def _source(self, spec: KernelSpec) -> str:
        if self.cuda:
            return cuda.translate(spec, spec.complete({}))
        return sources.with_values(sources.read(spec.file))

    def __str__(self) -> str:
        return self.text

    def _ipython_display_(self) -> None:
        colours = {"+": f"{style.RIGHT.any}2e", "-": f"{style.B.any}2e"}
        parts = []
        for sign, lines in itertools.groupby(self.text.splitlines(), lambda line: line[:1]):
            text = "\n".join(escape("..." if sign == "@" else line) for line in lines)
            ground = f";background:{colours[sign]}" if sign in colours else ""
            parts.append(f'<span style="display:block{ground}">{text}</span>')
        title = f"{self.old.file} → {self.new.file}{', as CUDA C++' * self.cuda}"
        look = "white-space:pre;font:12px/1.25 monospace;overflow-x:auto;max-width:860px;margin:0"
        html = f'<pre style="{look}"><b>{title}</b>{"".join(parts)}</pre>'
        if self.new.number in cuda.TRANSLATED:
            whole = escape(sources.body(cuda.translate(self.new, self.new.complete({}))))
            whole = f'<pre style="{look}">{whole}</pre>'
            words = "the whole kernel as CUDA C++"
            if not self.cuda:
                words += " (<code>%gemm cuda</code> compares kernels as CUDA, here and later)"
            html += f"<details><summary>{words}</summary>{whole}</details>"
        display({"text/plain": f"{title}\n{self.text}", "text/html": html}, raw=True)


def goal(kernel: Key | None = None) -> Picture:
    """The whole ladder as recorded on an H200, in per cent of its peak, with the vendor's library
    as a line.

    Args:
        kernel: the one that stands out; by default none. Kernels on tensor cores can pass 100 %,
            because the peak is that of the ordinary multiply-adders.
    """
    library = {name: rate for name, rate in rungs.yardsticks("H200").items() if "cuBLAS" in name}
    rates = rungs.rates("H200") | _tensor_core_rates()
    numbers = [key for key in in_order(rates) if not isinstance(key, str)]
    return plot.strip({key: rates[key] for key in numbers}, kernel, library)


def _tensor_core_rates() -> dict[Key, float]:
    """GFLOPS of the kernels on tensor cores as recorded on an H200, with default parameters."""
    rows = records.rows(record="nvidia_h200_waterfall", series="ladder")
    return {row.kernel: row.gflops for row in rows if find(row.kernel).tensor}


@dataclass(frozen=True)
class Verdict:
    """Whether an exercise is solved, and why; a notebook shows it as the value of its cell."""

    ok: bool
    words: str

    def __bool__(self) -> bool:
        return self.ok

    def __repr__(self) -> str:
        return ("Solved: " if self.ok else "Not yet: ") + self.words

    def _repr_html_(self) -> str:
        # no alarm in red: an unsolved exercise is an invitation
        return _bar(repr(self), True) if self.ok else _bar(f"✎ {self}", None)


def verdict(ok: bool, right: str, wrong: str) -> Verdict:
    """Whether an exercise is solved, with the text `right` or `wrong`; true or false."""
    return Verdict(bool(ok), right if ok else wrong)


def _say(text: str, ok: bool | None) -> None:
    display({"text/plain": text, "text/html": _bar(text, ok)}, raw=True)


def _bar(text: str, ok: bool | None) -> str:
    """The text beside a bar, whose colour says right, wrong, or neither."""
    meaning = {True: style.RIGHT, False: style.WRONG, None: style.MODEL}[ok]
    colour, sign = meaning.any, {True: "✔ ", False: "✘ ", None: ""}[ok]
    return (
        f'<div style="border-left:4px solid {colour};padding:2px '
        f'10px;max-width:860px">{sign}{escape(text)}</div>'
    )
