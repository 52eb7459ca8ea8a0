"""Random kernels beside a real runtime, and random edits of a text."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
from microscope.generator import ITEMS
from microscope.harness import Runtime

import clscope
from clscope.text import tokens_of

BLOCKS = 8  # of statements in a kernel: each is a little kernel of its own
X = np.arange(2 * ITEMS, dtype=np.float32) % 7 - 3
Y = np.arange(2 * ITEMS, dtype=np.int32) * 37 % 41 - 15


def stored(runtime: Runtime, source: str) -> np.ndarray:
    """What a real runtime stores."""
    args = [X, Y, np.zeros(2 * ITEMS * BLOCKS, np.int64)]
    return runtime.launch(source, "fuzz", (2 * ITEMS,), (ITEMS,), args, "-cl-opt-disable")[2]


def unlike(source: str, expected: np.ndarray) -> str:
    """What the simulator finds or stores otherwise than a runtime; "" if nothing."""
    for order in ("lockstep", "warps"):
        args = [X, Y, clscope.Empty(len(expected), "int64")]
        run = clscope.run(source, "fuzz", (2 * ITEMS,), None, args, order=order)
        # where a float is too large for an int, runtimes may differ, and the microscope says so
        if not run.ok and {finding.kind for finding in run.findings} != {"overflow"}:
            return f"{order}: {run.verdict}"
        wrong = np.flatnonzero(run.arrays["out"] != expected)
        if run.ok and len(wrong):
            at = int(wrong[0])
            got = f"{run.arrays['out'][at]} instead of {expected[at]}"
            return f"{order}: work-item {at // BLOCKS}, block {at % BLOCKS}: {got}"
    return ""


def edit(source: str, rng: random.Random) -> str:
    """Delete, double, replace or insert one token."""
    tokens = tokens_of(source)
    one, other = rng.choice(tokens), rng.choice(tokens)
    new = rng.choice(["", f"{one.text} {one.text}", other.text, f"{other.text} {one.text}"])
    lines = source.split("\n")
    line, at = lines[one.spot.line - 1], one.spot.column - 1
    lines[one.spot.line - 1] = line[:at] + new + line[at + len(one.text) :]
    return "\n".join(lines)


def misread(source: str, simulate: Callable[[str], clscope.Run | None]) -> str:
    """What is wrong with what the simulator makes of a text: it must run, with findings that have
    lines, or be refused with a line and a message.
    """
    try:
        run = simulate(source)
    except clscope.TextError as error:
        if not (0 < error.line <= source.count("\n") + 1 and error.column > 0 and error.message):
            return f"no line: {error}"
    except MemoryError as error:
        return "" if "in the simulator" in str(error) else repr(error)
    else:
        findings = run.findings if run else []
        return next((str(f) for f in findings if not f.line and f.kind != "never written"), "")
    return ""
