"""What the simulator counts is what a real device counts, which runs the same text with a counter
at every access.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from microscope.harness import pocl
from microscope.instrument import instrumented
from microscope.test_random import counts as of_the_simulator
from simulation.cases import SMALL, WARPS
from simulation.test_edits import SETTINGS

import clscope
import gemmlab
from clscope.translate import compile_kernel
from clscope.types import Scalar
from gemmlab.ladder import find
from gemmlab.ladder.sources import read

pytestmark = pytest.mark.optimised(False)

#: The settings under which edits are found, with less depth, and what these leave out.
CASES = [(number, *case) for number in SETTINGS for case in SETTINGS[number][:2]]
CASES += [(11, {**SMALL[11], "TRANSPOSED": 0}, (16, 16, 8))]
CASES += [("warp_tiling", WARPS, (40, 33, 19))]
CASES += [
    ("warp_tiling", {**WARPS, "GROUPS": 16, "STAGES": 3, "BATCHES": 3}, (70, 34, 24)),
    ("warp_tiling", {**WARPS, "TRANSPOSED": 0}, (33, 40, 9)),
]


def plain(of, value):
    """An argument as PyOpenCL takes it."""
    if isinstance(of, Scalar):
        return of.dtype.type(value)
    return (
        np.zeros(value.size, value.dtype) if isinstance(value, clscope.Empty) else np.ravel(value)
    )


def counted(source: str, name: str, sizes: Sequence[int], args: Sequence, defines=None):
    """Loads and stores of global and of local memory, and the arrays, of a real device; arguments
    as `clscope.run` takes them.
    """
    program = compile_kernel(source, name, defines)
    given = [plain(p.type, value) for p, value in zip(program.params, args, strict=True)]
    given.append(np.zeros(4, np.int32))
    text, local = instrumented(source, dict(defines or {})), program.size[: len(sizes)]
    *after, counts = pocl().launch(text, name, tuple(sizes), local, given)
    return counts.tolist(), [a for a in after if isinstance(a, np.ndarray)]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("number", "params", "sizes"), CASES)
def test_loads_and_stores_are_those_of_a_device(number, params, sizes):
    run, spec = gemmlab.simulate(number, *sizes, params), find(number)
    assert run.ok, run.verdict
    inputs = [run.arrays[name] for name in run.arrays]
    args = [*sizes, *inputs[:2], *map(np.zeros_like, inputs[2:])]
    launch = spec.global_size(run.m, run.n, run.params)
    counts, (_, _, c, *_) = counted(read(spec.file), "gemm", launch, args, run.params)
    if not run.pieces:  # of Stream-K this is the first launch alone
        assert np.array_equal(c.reshape(run.n, run.m).T, run.expected), (
            "the text with counters is still the kernel"
        )
    assert counts == of_the_simulator(run)
    # in others guards, shifts and edges save loads that the formula counts, or fill stages
    if number in range(1, 12):
        m, n, k = sizes
        loads, stores, local_loads, _ = counts
        assert loads == spec.global_loads(run.params) * m * n * k and stores == m * n
        assert local_loads == spec.local_loads(run.params) * m * n * k


X = np.arange(1, 1321, dtype=np.float32)
#: Launches of supporting kernels, of ragged sizes: work-items and arguments.
SUPPORT = {
    "transpose": ((64, 8), [33, 7, 35, 2, X, 9, clscope.Empty(297)]),
    "transpose_naive": ((16, 32), [10, 20, X, clscope.Empty(200)]),
    "pad": ((32, 16), [7, 30, 8, 3, X, 12, 33, clscope.Empty(396)]),
    "axpby": ((128,), [100, 2.0, X[:100], 3.0, X[:100], clscope.Empty(100)]),
}


@pytest.mark.parametrize("name", SUPPORT)
def test_so_are_those_of_the_supporting_kernels(name):
    source, (sizes, args) = read(f"support/{name}.cl"), SUPPORT[name]
    run = clscope.run(source, name, sizes, None, args)
    counts, arrays = counted(source, name, sizes, args)
    assert run.ok and np.array_equal(arrays[-1], run.arrays["out"])
    assert counts == of_the_simulator(run)
