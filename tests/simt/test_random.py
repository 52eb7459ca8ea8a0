"""Random kernels beside a real OpenCL runtime, and random edits of the ladder's texts."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from conftest import DEVICES, in_part
from simt.cases import SMALL, text
from simt.generator import ITEMS, kernel

from gemmlab import simt
from gemmlab.simt.text import tokens_of

pytestmark = pytest.mark.optimised(False)

FULL = os.environ.get("GEMMLAB_FULL") == "1"
BLOCKS = 8  # of statements in a kernel: each is a little kernel of its own


@pytest.fixture
def queue(any_device):
    """PoCL's if it is there: it takes programs whose statements are compiled as they are
    written.
    """
    first = next(
        (device for device in DEVICES.values() if "Portable" in device.platform), any_device
    )
    return first.queue


@pytest.mark.sampled(2)
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("seed", range(400) if FULL else in_part(range(25), 3))
def test_random_kernels_do_what_a_real_runtime_does(queue, seed):
    """Whole numbers of all types, floats, vectors, loops, break, continue, switch, functions,
    private arrays.
    """
    import pyopencl as cl

    source = kernel(seed, BLOCKS)
    x = np.arange(2 * ITEMS, dtype=np.float32) % 7 - 3
    y = np.arange(2 * ITEMS, dtype=np.int32) * 37 % 41 - 15
    theirs = np.zeros(2 * ITEMS * BLOCKS, np.int64)
    flags = cl.mem_flags.COPY_HOST_PTR
    buffers = [cl.Buffer(queue.context, flags, hostbuf=v) for v in (x, y, theirs)]
    program = cl.Program(queue.context, source).build(options=["-cl-std=CL1.2", "-cl-opt-disable"])
    program.fuzz(queue, (2 * ITEMS,), (ITEMS,), *buffers)
    cl.enqueue_copy(queue, theirs, buffers[2])
    for order in ("lockstep", "warps"):
        run = simt.run(
            source,
            "fuzz",
            (2 * ITEMS,),
            None,
            [x, y, simt.Empty(len(theirs), "int64")],
            order=order,
        )
        # where a float is too large for an int, runtimes may differ, and the microscope says so
        assert run.ok or {finding.kind for finding in run.findings} == {"overflow"}, run.verdict
        assert np.array_equal(run.arrays["out"], theirs) or not run.ok


def edit(source: str, rng: random.Random) -> str:
    """Delete, double, replace or insert one token."""
    tokens = tokens_of(source)
    one, other = rng.choice(tokens), rng.choice(tokens)
    new = rng.choice(["", f"{one.text} {one.text}", other.text, f"{other.text} {one.text}"])
    lines = source.split("\n")
    line, at = lines[one.spot.line - 1], one.spot.column - 1
    lines[one.spot.line - 1] = line[:at] + new + line[at + len(one.text) :]
    return "\n".join(lines)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("number", SMALL)
def test_an_edited_token_is_never_an_internal_error(number):
    """Whatever becomes of a text: a product, findings with lines, or a message with a line."""
    rng = random.Random(number)
    source = text(number)
    for _ in range(400 if FULL else 40):
        changed = edit(source, rng)
        try:
            run = simt.simulate(number, 16, 16, 16, SMALL[number], changed, limit=200)
        except simt.TextError as error:
            assert 0 < error.line <= changed.count("\n") + 1 and error.column > 0 and error.message
        else:
            assert run.ok == run.verdict.startswith("right: ")
            assert all(f.line > 0 and f.items for f in run.findings if f.kind != "never written")


ALONE = """
import sys

class Only:
    def find_spec(self, name, path=None, target=None):
        root = name.split(".")[0]
        if root not in sys.stdlib_module_names and root not in ("numpy", "gemmlab"):
            raise ImportError(f"{name} is blocked")

sys.meta_path.insert(0, Only())
import gemmlab
run = gemmlab.simulate(kernel=6)
print(run.verdict, run.counts.multiply_adds)
"""


def test_numpy_is_enough():
    """As in a browser: every import but NumPy and the standard library is blocked."""
    here = Path(simt.__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", ALONE], cwd=here, capture_output=True, text=True, check=False
    )
    assert (
        done.stdout.startswith("right: every element exact") and done.stdout.split()[-1] == "4096"
    ), done.stderr
