"""The microscope: it runs a kernel's own text in Python, all work-items in lockstep, and records
everything that they do.

    run = gemmlab.simulate(kernel=6, m=16, n=16, k=16)    # or with source=... an edited text
    run.verdict, run.findings                             # is it right, and what is wrong, in words
    run.counts, run.lines[112]                            # what it costs, in all and by line
    run.table                                             # every access, as a table

The simulator reads OpenCL C 1.2 except images, inline assembly, bit-fields, function pointers,
jumps into inner blocks (by `goto` or `case`), and packed fields that are not aligned. What it
cannot read it names, with the line, and claims nothing about the text (`UnknownError`).

A text passes through `text` (tokens, macros), `parse` and `meaning` with the tables of `builtins`
and `types` (a `tree` in which every expression has its type; up to here without NumPy), `translate`
with `expressions` and `calls` (a Python function), `machine` with `memory`, `values` and `printing`
(it runs), `watch` (findings), `count` (costs), and `api`. `views` has what pictures and chapters
ask of a run. NumPy is the only dependency.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .text import TextError, UnknownError

if TYPE_CHECKING:
    from .api import EVENT, Empty, ProductRun, Run, run, shrunk, simulate
    from .watch import Entry, Finding, WorkItem

__all__ = ["EVENT", "Empty", "ProductRun", "Run", "run", "shrunk", "simulate",
           "Entry", "Finding", "WorkItem", "TextError", "UnknownError"]  # fmt: skip


def __getattr__(name: str) -> Any:
    """The names that need NumPy are loaded when they are used: the front end does without it."""
    if name not in __all__:
        raise AttributeError(f"module 'gemmlab.simt' has no attribute {name!r}")
    home = "watch" if name in ("Entry", "Finding", "WorkItem") else "api"
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value
