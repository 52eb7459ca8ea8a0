"""Random kernels, and edits of ours, for the simulator, clang and real runtimes.

As a program it tries as many as it is asked for, and prints every difference:

    PYTHONPATH=tests python -m simt.fuzz kernels 2000 --seed 1000
    PYTHONPATH=tests python -m simt.fuzz edits 5000
"""

from __future__ import annotations

import argparse
import multiprocessing
import random
import time
import traceback
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import numpy as np
from simt.cases import SMALL
from simt.generator import ITEMS, kernel

from gemmlab import catalog, simt
from gemmlab.catalog.sources import read
from gemmlab.simt.text import tokens_of

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


def on_device(queue, source: str) -> np.ndarray:
    """What a real runtime stores."""
    import pyopencl as cl

    found = np.zeros(2 * ITEMS * BLOCKS, np.int64)
    flags = cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(queue.context, flags, hostbuf=v) for v in (X, Y, found)]
    program = cl.Program(queue.context, source).build(options=["-cl-std=CL1.2", "-cl-opt-disable"])
    program.fuzz(queue, (2 * ITEMS,), (ITEMS,), *buffers)
    cl.enqueue_copy(queue, found, buffers[2])
    return found


def unlike(source: str, expected: np.ndarray) -> str:
    """What the simulator finds or stores otherwise than a runtime; "" if nothing."""
    for order in ("lockstep", "warps"):
        given = [X, Y, simt.Empty(len(expected), "int64")]
        run = simt.run(source, "fuzz", (2 * ITEMS,), None, given, order=order)
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
            run = simt.simulate(name, 16, 16, 16, SMALL[name], source, limit=200)
            lost = [f for f in run.findings if not f.line and f.kind != "never written"]
            return f"no line: {lost[0]}" if lost else ""
        simt.api.program_of(source, None, SETTINGS[name])
    except simt.TextError as error:
        if not (0 < error.line <= source.count("\n") + 1 and error.column > 0 and error.message):
            return f"no line: {error}"
    except MemoryError as error:
        return "" if "in the simulator" in str(error) else repr(error)
    return ""


# ---- as a program
def compared(number: int, which: int) -> tuple[list[str], int]:
    """What is not as clang and one of the runtimes have it, and how many types are compared."""
    from simt.judge import differences

    from gemmlab.opencl.devices import devices

    device = devices()[which]
    source = kernel(number, BLOCKS, widest(device))
    try:
        wrong, expressions = differences(source)
        problem = unlike(source, on_device(device.queue, source))
        return wrong[:3] + [f"{device.platform}: {problem}"] * bool(problem), expressions
    except Exception as error:
        return [f"{type(error).__name__}: {str(error)[:300]}"], 0


def try_kernels(count: int, seed: int) -> None:
    """In child processes: a compiler may crash, and does where two runtimes share a process."""
    from gemmlab.opencl.devices import devices

    same, types = 0, 0
    spawn = multiprocessing.get_context("spawn")
    pools = [ProcessPoolExecutor(1, spawn) for _ in devices()]
    for number in range(seed, seed + count):
        problems: list[str] = []
        for which, pool in enumerate(pools):
            try:
                found, expressions = pool.submit(compared, number, which).result()
            except BrokenProcessPool:
                found, expressions = ["a runtime crashed"], 0
                pools[which] = ProcessPoolExecutor(1, spawn)
            problems, types = problems + found, types + expressions
        same += not problems
        for problem in problems:
            print(f"kernel {number}: {problem}", flush=True)
        if (number - seed) % 100 == 99:
            print(f"{number - seed + 1} kernels, {same} the same, {types} types", flush=True)
    print(f"{count} kernels: {same} the same, {types} types compared")


def try_edits(count: int, seed: int) -> None:
    from simt.judge import judged, ours, stricter

    rng = random.Random(seed)
    found: Counter[str] = Counter()
    for number in range(count):
        name = list(SETTINGS)[number % len(SETTINGS)]
        text = edit(read(catalog[name].file), rng)
        try:
            problem = misread(name, text)
        except Exception:
            problem = "Python: " + traceback.format_exc().strip().splitlines()[-1]
        theirs, (line, message, _) = judged(text, SETTINGS[name]), ours(text, SETTINGS[name])
        if theirs is None:
            kind = "clang crashes"
        elif (line > 0) != (theirs.line > 0):
            kind = "stricter on purpose" if stricter(message) else "accepted by one only"
        elif line == theirs.line:
            kind = "same line" if line else "accepted by both"
        else:
            kind = "another line"
        found[kind] += 1
        if problem:
            found["misread"] += 1
        if problem or kind in ("another line", "accepted by one only"):
            print(f"{name} {number}: {kind} {problem}", flush=True)
            if theirs and kind != "same line" and kind != "accepted by both":
                lines = text.split("\n")
                for where, what in ((theirs.line, theirs.message), (line, message)):
                    shown = lines[where - 1].strip() if where else ""
                    print(f"    {where} {what} | {shown[:100]}", flush=True)
    print(dict(found))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["kernels", "edits"])
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    chosen = parser.parse_args()
    began = time.time()
    {"kernels": try_kernels, "edits": try_edits}[chosen.what](chosen.count, chosen.seed)
    print(f"{time.time() - began:.0f} s")
