"""`%%puzzle`: a cell with the kernel of a puzzle, run in the simulator."""

from __future__ import annotations

from functools import partial
from html import escape
from typing import Any

import gemmlab
from clscope import Run, views
from gemmlab.draw.picture import Picture
from gemmlab.widgets import panel
from gemmlab.widgets.cells import running_cell
from gemmlab.widgets.listing import listing
from gemmlab.widgets.shell import Act, Shell, button
from lessons import puzzles


class PuzzleCell(Shell):
    """Whether a puzzle is solved, or what is wrong, with the line; and its steps.

    Args:
        number: of the puzzle.
        text: the cell below its first line.
    """

    def __init__(self, number: int, text: str):
        super().__init__("verdict")
        self.name = f"puzzle {number}"
        # an empty line makes line 2 of the cell line 2 for the simulator
        self.verdict, self.run = puzzles.run(number, f"\n{text}")
        self._stepping = False
        self.panel.cell = running_cell()
        self.panel.parts = {
            "title": self.name,
            "answer": self._answer(),
        }
        self._show()

    def _answer(self) -> str:
        right = self.verdict == "solved"
        key = f'data-key="{self.name}" data-state="{"ok" if right else "wrong"}"'
        return f"<div {key}>{panel.judge(right, 'Solved' if right else self.verdict)}</div>"

    def hear(self, act: Act) -> None:
        match act:
            case {"press": "step"}:
                self._stepping = not self._stepping
                self._show()

    def _show(self) -> None:
        about = "Run the code in the simulator, line by line"
        there = self.run is not None and bool(self.run.log)
        step = button("step", "Step through it", about, pressed=self._stepping)
        self.panel.buttons = {"head": [step] * there}
        steps = [walk(self.run)] if self.run and self._stepping else []
        self.children = (self.panel, *steps)

    def still(self) -> Picture | str:
        return self._answer()


def walk(run: Run) -> gemmlab.Stepper:
    """A stepper of the first work-group; it starts at the first mistake."""
    steps = views.steps(run)
    wrong = next(
        (i for i, s in enumerate(steps, 1) if run.findings and s.line == run.findings[0].line), 1
    )
    return gemmlab.Stepper(
        partial(_step, run, steps), {"step": wrong}, step=range(1, len(steps) + 1)
    )


def _step(run: Run, steps: list[views.Step], step: int) -> str:
    """A step in words, and the kernel with its line."""
    now = steps[step - 1]
    names = dict.fromkeys(e.memory.name for e in now.entries if e.memory is not None)
    phrases = []
    for store, verb in ((False, "loads"), (True, "stores")):
        for name in names:
            if places := views.places(now.entries, name, store=store):
                listed = ", ".join(map(str, places[:4])) + " and more" * (len(places) > 4)
                phrases.append(f"{verb} {len(places)} of {name}: {listed}")
    did = "; ".join(phrases) or "computes"
    words = f"Step {step} of {len(steps)}, line {now.line}. Work-group 0 {did}."
    return f'<p class="gemmlab-said">{escape(words)}</p>{listing(run, now.line, {})}'


def puzzle(line: str, cell: str) -> PuzzleCell | None:
    """Check the kernel of a puzzle: %%puzzle NUMBER"""
    count = len(puzzles.PUZZLES)
    if not line.strip().isdecimal() or not 1 <= int(line) <= count:
        print(f"%%puzzle: begin with a number from 1 to {count}, as in `%%puzzle 1`")
        return None
    return PuzzleCell(int(line), cell)


def load_ipython_extension(shell: Any) -> None:
    """Bring `%%puzzle`."""
    shell.register_magic_function(puzzle, "cell", "puzzle")
