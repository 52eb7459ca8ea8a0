"""Run OpenCL C in Python, one work-item at a time as far as anybody can tell, and see what it does.

    import clscope, numpy as np

    run = clscope.run(text, None, global_size=(64,), local_size=(16,), args=[x, clscope.Empty(4)])
    run.findings              # races, missing barriers, reads before stores, accesses out of bounds
    run.arrays["sums"]        # every buffer after the run
    run.counts, run.lines     # instructions, transactions, bank conflicts: in all, and by line

    clscope.parse(text)       # the functions of a text: trees in which every expression has a type
    clscope.to_wgsl(text)     # the same kernel for WebGPU, with a map to the kernel's lines

`clscope` reads OpenCL C 1.2 except images, inline assembly, bit-fields, function pointers, and
jumps into inner blocks (by `goto` or `case`) or out of an expression. It names what it cannot read,
with the line, and claims nothing about that text (`UnknownError`).

A text passes through `text` (tokens, macros), `parser` and `meaning` with the tables of `builtins`
and `types` (a `tree`); up to here, and for `wgsl`, no package is needed. `translate` with
`expressions` and `calls` makes a Python function of the tree; `machine` with `memory`, `values` and
`printing` runs it; `watch` finds mistakes, `count` adds up costs, and `api` shows the result.
`lint` reads the tree alone; `views` selects from a run. Running a kernel needs NumPy.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .parser import parse
from .text import TextError, UnknownError
from .version import __version__
from .wgsl.memory import RefusedError, Style
from .wgsl.shader import Shader
from .wgsl.shader import translate as to_wgsl

if TYPE_CHECKING:
    from .api import EVENT, Empty, Run, run
    from .count import Counts
    from .finding import Finding, WorkItem
    from .wave import Entry

__all__ = [
    "EVENT", "Counts", "Empty", "Entry", "Finding", "RefusedError", "Run", "Shader",
    "Style", "TextError", "UnknownError", "WorkItem", "__version__", "parse", "run", "to_wgsl",
]  # fmt: skip

#: The modules of the names that need NumPy: they are loaded when they are first used.
_HOME = {"EVENT": "api", "Empty": "api", "Run": "api", "run": "api", "Counts": "count",
         "Entry": "wave", "Finding": "finding", "WorkItem": "finding"}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'clscope' has no attribute {name!r}")
    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
