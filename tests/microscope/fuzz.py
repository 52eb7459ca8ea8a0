"""Random kernels, and edits of ours, for the simulator, clang and real runtimes."""

from __future__ import annotations

import random

import numpy as np
from microscope.cases import SMALL, on_device
from microscope.generator import ITEMS

import clscope
import gemmlab
from clscope.text import tokens_of
from clscope.translate import compile_kernel
from gemmlab import catalog

BLOCKS = 8  # of statements in a kernel: each is a little kernel of its own
X = np.arange(2 * ITEMS, dtype=np.float32) % 7 - 3
Y = np.arange(2 * ITEMS, dtype=np.int32) * 37 % 41 - 15
#: Settings under which each kernel is read.
SETTINGS = {
    name: catalog[name].complete(SMALL.get(name) or catalog[name].defaults) for name in catalog
}


def widest(device) -> int:
    """Elements of vectors that the device's compiler takes, whatever their type."""
    return 16 if device.limits.vector_bytes >= 64 else device.limits.vector_bytes // 8


def stored(device, source: str) -> np.ndarray:
    """What a real runtime stores."""
    args = [X, Y, np.zeros(2 * ITEMS * BLOCKS, np.int64)]
    return on_device(device, source, "fuzz", (2 * ITEMS,), (ITEMS,), args, "-cl-opt-disable")[2]


def unlike(source: str, expected: np.ndarray) -> str:
    """What the simulator finds or stores otherwise than a runtime; "" if nothing."""
    for order in ("lockstep", "warps"):
        given = [X, Y, clscope.Empty(len(expected), "int64")]
        run = clscope.run(source, "fuzz", (2 * ITEMS,), None, given, order=order)
        # where a float is too large for an int, runtimes may differ, and the microscope says so
        if not run.ok and {finding.kind for finding in run.findings} != {"overflow"}:
            return f"{order}: {run.verdict}"
        wrong = np.flatnonzero(run.arrays["out"] != expected)
        if run.ok and len(wrong):
            at = int(wrong[0])
            return (
                f"{order}: work-item {at // BLOCKS}, block {at % BLOCKS}: "
                f"{run.arrays['out'][at]} instead of {expected[at]}"
            )
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


def misread(name, source: str) -> str:
    """What is wrong with what the simulator makes of a text, other than its verdict: it must be a
    product, findings with lines, or a message with a line.
    """
    try:
        if name in SMALL:
            run = gemmlab.simulate(name, 16, 16, 16, SMALL[name], source, limit=200)
            lost = [f for f in run.findings if not f.line and f.kind != "never written"]
            return f"no line: {lost[0]}" if lost else ""
        compile_kernel(source, None, SETTINGS[name])
    except clscope.TextError as error:
        if not (0 < error.line <= source.count("\n") + 1 and error.column > 0 and error.message):
            return f"no line: {error}"
    except MemoryError as error:
        return "" if "in the simulator" in str(error) else repr(error)
    return ""
