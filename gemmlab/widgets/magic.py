"""`%%gemm`: a cell of OpenCL C, compiled, checked and timed in a separate process."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from html import escape
from typing import Any

import ipywidgets as w
from IPython.core.magic import Magics, line_cell_magic, magics_class

from clscope import views

from .. import background
from ..ladder import Key, find, key, sources
from ..sandbox.client import simulate_small
from .cells import Cell, Kept, running_cell
from .explorer import Explorer
from .shell import free
from .stepper import Stepper


@magics_class
class GemmMagics(Magics):
    """`%gemm 3` writes kernel 3 into a new cell; `%%gemm 3 TS=32` runs a cell as kernel 3."""

    @line_cell_magic
    def gemm(self, line: str, cell: str | None = None) -> Explorer | None:
        """Show an explorer for the kernel in this cell.

        %%gemm NUMBER [NAME=VALUE ...]   NAME: a parameter of the kernel, M, N, K, or device, which
                                         is "browser" for the GPU of the reader's browser
        %%gemm NUMBER part=WORD ...      the cell is only the part of the kernel below the comment
                                         that begins with WORD (or part="load: the next")
        %%gemm NUMBER part=ONE-TWO ...   the same, from the part ONE to the part TWO
        %gemm NUMBER                     writes such a cell with the kernel's own text
        """
        shell: Any = self.shell
        try:
            number, settings, words = _parse(line)
            if cell is None:
                text = sources.read(find(number).file)
                shell.set_next_input(f"%%gemm {line.strip()}\n{text}")
                return None
            named = frozenset(settings)
            sizes = {name.lower(): settings.pop(name) for name in "MNK" if name in settings}
            text, code, part = sources.read(find(number).file), cell.rstrip("\n"), ""
            source, original, lines = cell, text.rstrip("\n"), None
            if "part" in words:
                part = words["part"]
                original = sources.part(text, part)
                source = text.replace(original, code)
                first = text[: text.index(original)].count("\n") + 1
                lines = range(first, first + code.count("\n") + 1)
            shell.user_ns["gemm_source"] = source
            if not lines:
                source = f"\n{source}"  # makes line 2 of a cell line 2 for the compiler
            edited = Cell(running_cell(), code, source, original, part, lines, named)
            params, device = settings or None, words.get("device")
            explorer = Explorer(number, **sizes, params=params, device=device, source=edited)
            _add_stepper(explorer)
            return explorer
        except (ValueError, TypeError, RuntimeError) as error:
            # a typing error in the first line deserves a sentence and not a traceback
            print(f"%gemm: {error}")
            return None


def _add_stepper(explorer: Explorer) -> None:
    """A button beside the verdict that simulates the text and shows what it does, line by line."""
    button = explorer.toggle(
        False,
        description="Step through it",
        icon="step-forward",
        tooltip="Run the text in the simulator, line by line",
    )
    inside = w.VBox()
    kept = explorer.cell.kept if explorer.cell else Kept()

    def fill() -> None:
        params = {p.name: explorer.values[p.name] for p in explorer.spec.params}
        try:
            run = simulate_small(explorer.spec.number, params, explorer.state.topic.source)
            lines = [step.line for step in views.steps(run)]
            wrong = next((lines.index(f.line) + 1 for f in run.findings if f.line in lines), 1)
            stepper = Stepper(run, start={"step": wrong, "group": 0})
        except Exception as error:  # nobody reads the log console
            inside.children = (w.HTML(f"<pre>{escape(str(error))}</pre>"),)
            return
        settings = " ".join(f"{name}={value}" for name, value in run.params.items())
        # findings are listed below the text
        verdict = run.verdict.partition(":")[0] if run.findings else run.verdict
        where = f"Simulated with {settings} on {run.m} x {run.n} x {run.k}"
        head = f"{where}. {verdict[0].upper()}{verdict[1:]}"
        inside.children = (w.HTML(f"<p>{escape(head)}</p>"), stepper)
        free(stepper)

    def pressed(change: Mapping[str, Any]) -> None:
        kept.stepping = change["new"]
        inside.children = (w.HTML("simulating …"),) if change["new"] else ()
        if change["new"]:
            background.start(fill)

    button.observe(pressed, names="value")
    explorer.head.children += (button,)
    explorer.children += (inside,)
    button.value = kept.stepping


def _parse(line: str) -> tuple[Key, dict[str, int], dict[str, str]]:
    """The kernel, numbers by name, and the words of part and device; a comment ends the line."""
    words = shlex.split(line, comments=True)
    if not words or "=" in words[0]:
        raise ValueError("begin with the number of a kernel, as in `%%gemm 3 TS=32 WPT=8`")
    settings, named = {}, {}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        if name in settings or name in named:
            raise ValueError(f"{name} is given twice")
        if name in ("device", "part") and equals:
            named[name] = value
        elif equals and value.isdigit():
            settings[name] = int(value)
        else:
            raise ValueError(f"{word!r} is not of the form NAME=NUMBER")
    return key(words[0]), settings, named
