"""What the simulator counts is what a real device counts, which runs the same text with a counter
at every access.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyopencl as cl
import pytest
from configurations import case, covering
from conftest import in_part, lacking
from generate.test_writer import launch_arguments, simulated
from simt.cases import SMALL, WARPS
from simt.instrument import instrumented
from simt.test_edits import SETTINGS, SUPPORT

from gemmlab import simt
from gemmlab.catalog import find
from gemmlab.catalog.sources import read
from gemmlab.generate import write
from gemmlab.generate.precision import PRECISIONS
from gemmlab.opencl.devices import NoDeviceError, find_device
from gemmlab.simt.api import program_of
from gemmlab.simt.types import Scalar

pytestmark = pytest.mark.optimised(False)

#: The settings under which edits are found, with less depth, and what these leave out.
CASES = [(number, *case) for number in SETTINGS for case in SETTINGS[number][:2]]
CASES += [(11, {**SMALL[11], "TRANSPOSED": 0}, (16, 16, 8))]
CASES += [("warp_tiling", {**WARPS, "SPLIT": 8}, (40, 33, 19))]
CASES += [("warp_tiling", {**WARPS, "GROUPS": 5}, (70, 34, 40))]

Counts = dict[str, int]


def on_a_device(
    source: str,
    name: str | None,
    sizes: Sequence[int],
    args: Sequence,
    defines: Mapping[str, int] | None,
):
    """Loads and stores by array, and the arrays, of a real device; arguments as `simt.run` takes
    them.
    """
    try:
        device = find_device("pocl")
    except NoDeviceError:
        lacking("no PoCL")
    program = program_of(source, name, defines)
    written, counters = instrumented(source, dict(defines or {}))
    queue = cl.CommandQueue(device.context)
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    arrays, given = {}, []
    for param, value in zip(program.params, args, strict=True):
        if isinstance(param.type, Scalar):
            given.append(param.type.dtype.type(value))
            continue
        empty = isinstance(value, simt.Empty)
        arrays[param.name] = (
            np.zeros(value.size, value.dtype) if empty else np.ascontiguousarray(value).ravel()
        )
        given.append(cl.Buffer(device.context, flags, hostbuf=arrays[param.name]))
    tally = np.zeros(max(1, len(counters)), np.int32)
    given.append(cl.Buffer(device.context, flags, hostbuf=tally))
    kernel = cl.Kernel(cl.Program(device.context, written).build(["-cl-std=CL1.2"]), program.name)
    kernel(queue, tuple(sizes), program.size[: len(sizes)], *given)
    for array, buffer in zip(
        [*arrays.values(), tally], [b for b in given if isinstance(b, cl.Buffer)], strict=True
    ):
        cl.enqueue_copy(queue, array, buffer)
    loads, stores = (
        {
            name: int(tally[i])
            for i, (name, store) in enumerate(counters)
            if store == which and tally[i]
        }
        for which in (False, True)
    )
    return loads, stores, arrays


def assert_same_counts(run: simt.Run, loads: Counts, stores: Counts) -> None:
    assert loads == {name: count for name, count in run.counts.loads.items() if count}
    assert stores == {name: count for name, count in run.counts.stores.items() if count}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("number", "params", "sizes"), CASES)
def test_loads_and_stores_are_those_of_a_device(number, params, sizes):
    run, spec = simt.simulate(number, *sizes, params), find(number)
    inputs = [run.arrays[name] for name in run.arrays]
    args = [*sizes, *inputs[:2], *map(np.zeros_like, inputs[2:])]
    launch = spec.global_size(run.m, run.n, run.params)
    loads, stores, arrays = on_a_device(read(spec.file), "gemm", launch, args, run.params)
    c = list(arrays.values())[2]
    if not run.pieces:  # of Stream-K this is the first launch alone
        assert np.array_equal(c.reshape(run.n, run.m).T, run.expected), (
            "the text with counters is still the kernel"
        )
    assert_same_counts(run, loads, stores)
    # in others guards, shifts and edges save loads that the formula counts, or fill stages
    if number in range(1, 12):
        m, n, k = sizes
        assert loads["A"] + loads["B"] == spec.global_loads(run.params) * m * n * k
        assert (
            sum(loads.values()) - loads["A"] - loads["B"]
            == spec.local_loads(run.params) * m * n * k
        )
        assert stores["C"] == m * n


#: Without float16: the counters are in subscripts, and these texts load by functions.
SUBSCRIPTED = [c for c in covering() if not PRECISIONS[c.precision].half]


@pytest.mark.parametrize("c", in_part(SUBSCRIPTED, 12), ids=lambda c: c.name)
def test_so_are_those_of_the_family_s_texts(c):
    run, right = simulated(c, write(c))
    items, args = launch_arguments(c, case(c, 0))
    loads, stores, arrays = on_a_device(write(c), None, items, args, None)
    assert right and np.array_equal(arrays["C"], run.arrays["C"])
    assert_same_counts(run, loads, stores)


@pytest.mark.parametrize("file", ["transpose", "transpose_naive", "pad", "axpby"])
def test_so_are_those_of_the_supporting_kernels(file):
    source = read(f"support/{file}.cl")
    name, sizes, _, args, _ = SUPPORT[file][0]
    run = simt.run(source, name, sizes, None, args)
    loads, stores, arrays = on_a_device(source, name, sizes, args, None)
    assert run.ok and np.array_equal(arrays["out"], run.arrays["out"])
    assert_same_counts(run, loads, stores)
