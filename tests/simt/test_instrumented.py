"""What the simulator counts is what a real device counts, which runs the same text with a counter
at every access.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np
import pyopencl as cl
import pytest
from conftest import lacking
from simt.cases import SMALL, WARPS
from simt.instrument import instrumented
from simt.test_edits import SETTINGS

from gemmlab import simt
from gemmlab.catalog import find
from gemmlab.catalog.sources import read
from gemmlab.opencl.devices import NoDeviceError, find_device
from gemmlab.simt.api import program_of
from gemmlab.simt.types import Scalar

pytestmark = pytest.mark.optimised(False)

#: The settings under which edits are found, with less depth, and what these leave out.
CASES = [(number, *case) for number in SETTINGS for case in SETTINGS[number][:2]]
CASES += [(11, {**SMALL[11], "TRANSPOSED": 0}, (16, 16, 8))]
CASES += [("warp_tiling", WARPS, (40, 33, 19))]
CASES += [
    ("warp_tiling", {**WARPS, "GROUPS": 16, "STAGES": 3, "BATCHES": 3}, (70, 34, 24)),
    ("warp_tiling", {**WARPS, "TRANSPOSED": 0}, (33, 40, 9)),
]


def on_a_device(
    source: str,
    name: str | None,
    sizes: Sequence[int],
    args: Sequence,
    defines: Mapping[str, int] | None,
):
    """Loads and stores of global and of local memory, and the arrays, of a real device; arguments
    as `simt.run` takes them.
    """
    try:
        device = find_device("pocl")
    except NoDeviceError:
        lacking("no PoCL")
    program = program_of(source, name, defines)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    arrays, given = {"counted": np.zeros(4, np.int32)}, []
    for param, value in zip(program.params, args, strict=True):
        if isinstance(param.type, Scalar):
            given.append(param.type.dtype.type(value))
            continue
        empty = isinstance(value, simt.Empty)
        array = np.zeros(value.size, value.dtype) if empty else np.ascontiguousarray(value)
        arrays[param.name] = array.ravel()
        given.append(param.name)
    buffers = {n: cl.Buffer(device.context, flags, hostbuf=a) for n, a in arrays.items()}
    queue = cl.CommandQueue(device.context)
    text = instrumented(source, dict(defines or {}))
    kernel = cl.Kernel(cl.Program(device.context, text).build(["-cl-std=CL1.2"]), program.name)
    given = [buffers[a] if isinstance(a, str) else a for a in [*given, "counted"]]
    kernel(queue, tuple(sizes), program.size[: len(sizes)], *given)
    for array_name, array in arrays.items():
        cl.enqueue_copy(queue, array, buffers[array_name])
    return arrays.pop("counted").tolist(), arrays


def of_the_simulator(run: simt.Run) -> list[int]:
    """The same four counts."""
    space, store, width = (run.table[name] for name in ("space", "store", "width"))
    kinds = itertools.product(("global", "local"), (False, True))
    return [int(width[(space == s) & (store == stores)].sum()) for s, stores in kinds]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("number", "params", "sizes"), CASES)
def test_loads_and_stores_are_those_of_a_device(number, params, sizes):
    run, spec = simt.simulate(number, *sizes, params), find(number)
    assert run.ok, run.verdict
    inputs = [run.arrays[name] for name in run.arrays]
    args = [*sizes, *inputs[:2], *map(np.zeros_like, inputs[2:])]
    launch = spec.global_size(run.m, run.n, run.params)
    counted, arrays = on_a_device(read(spec.file), "gemm", launch, args, run.params)
    c = list(arrays.values())[2]
    if not run.pieces:  # of Stream-K this is the first launch alone
        assert np.array_equal(c.reshape(run.n, run.m).T, run.expected), (
            "the text with counters is still the kernel"
        )
    assert counted == of_the_simulator(run)
    # in others guards, shifts and edges save loads that the formula counts, or fill stages
    if number in range(1, 12):
        m, n, k = sizes
        loads, stores, local_loads, _ = counted
        assert loads == spec.global_loads(run.params) * m * n * k and stores == m * n
        assert local_loads == spec.local_loads(run.params) * m * n * k


X = np.arange(1, 1321, dtype=np.float32)
#: Launches of supporting kernels, of ragged sizes: work-items and arguments.
SUPPORT = {
    "transpose": ((64, 8), [33, 7, 35, 2, X, 9, simt.Empty(297)]),
    "transpose_naive": ((16, 32), [10, 20, X, simt.Empty(200)]),
    "pad": ((32, 16), [7, 30, 8, 3, X, 12, 33, simt.Empty(396)]),
    "axpby": ((128,), [100, 2.0, X[:100], 3.0, X[:100], simt.Empty(100)]),
}


@pytest.mark.parametrize("name", SUPPORT)
def test_so_are_those_of_the_supporting_kernels(name):
    source, (sizes, args) = read(f"support/{name}.cl"), SUPPORT[name]
    run = simt.run(source, name, sizes, None, args)
    counted, arrays = on_a_device(source, name, sizes, args, None)
    assert run.ok and np.array_equal(arrays["out"], run.arrays["out"])
    assert counted == of_the_simulator(run)
