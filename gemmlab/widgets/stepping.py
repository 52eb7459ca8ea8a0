"""A cell of OpenCL C, stepped through in the simulator, line by line."""

from __future__ import annotations

from html import escape

import ipywidgets as w

from clscope import views

from .. import background
from ..sandbox.client import simulate_small
from ..simulation import ProductRun
from .state import State
from .stepper import Stepper
from .tries import sizes


class PartStepper(Stepper):
    """A stepper below a verdict, which may name some findings; its lines have the numbers of a
    cell, which holds these `lines` of the kernel.
    """

    def __init__(
        self, run: ProductRun, start: dict[str, int], lines: range | None, above: str = ""
    ):
        self.lines, self.above = lines, above
        super().__init__(run, start)


class CellStepper(w.VBox):
    """A stepper of an explorer's source code, with its present parameters, for a small product.

    It opens at the first mistake. A cell that holds a part of the kernel holds these `lines`.
    """

    def __init__(self, state: State, lines: range | None = None):
        super().__init__()
        self.children: tuple[w.Widget, ...] = (w.HTML("simulating …"),)
        background.start(self._fill, state, lines)

    def _fill(self, state: State, lines: range | None) -> None:
        topic = state.topic
        try:
            run = simulate_small(topic.spec.number, topic.params(state.values), topic.source)
            steps = [step.line for step in views.steps(run)]
            wrong = next((steps.index(f.line) + 1 for f in run.findings if f.line in steps), 1)
            seen = state.outcome and state.outcome.seen
            above = seen.why if seen else ""
            stepper = PartStepper(run, {"step": wrong, "group": 0}, lines, above)
        except Exception as error:  # nobody reads the log console
            self.children = (w.HTML(f"<pre>{escape(str(error))}</pre>"),)
            return
        here = {**run.params, "M": run.m, "N": run.n, "K": run.k}
        params = "".join(f"{name} = {value}, " for name, value in run.params.items())
        which = "The product above" if here == state.values else "A smaller product than above"
        head = f"{which}, step by step: {params}{sizes(here)}."
        if not (above and run.findings):
            # findings are listed below the text
            verdict = run.verdict.partition(":")[0] if run.findings else run.verdict
            head += f" {verdict[0].upper()}{verdict[1:]}"
        self.children = (w.HTML(f"<p>{escape(head)}</p>"), stepper)
