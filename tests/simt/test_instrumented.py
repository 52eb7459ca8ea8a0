"""What the simulator counts is what a real device counts, which runs the same text with a counter at every access."""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pytest
from conftest import lacking
from simt.cases import SMALL, WARPS, text
from simt.instrument import instrumented

from gemmlab import catalog, simt
from gemmlab.opencl.devices import NoDeviceError, find_device

CASES = [(number, SMALL[number], (16, 32, 16)) for number in SMALL]
CASES += [(12, SMALL[12], (11, 13, 9)), (13, SMALL[13], (11, 13, 9)), (11, {**SMALL[11], "TRANSPOSED": 0}, (16, 16, 8))]
CASES += [("warp_tiling", {**WARPS, **more}, (37, 41, 19)) for more in ({}, {"TRANSPOSED": 0})]


def counted(number: int, params: dict[str, int], run: simt.ProductRun) -> tuple[dict, dict, np.ndarray]:
    """Loads and stores by array, and C, as a device counts and computes them."""
    spec = catalog[number]
    try:
        device = find_device("pocl")
    except NoDeviceError:
        lacking("no PoCL")
    source, counters = instrumented(text(number), run.params)
    queue = cl.CommandQueue(device.context)
    program = cl.Program(device.context, source).build(["-cl-std=CL1.2"])
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    inputs = [np.ascontiguousarray(run.arrays[name]) for name in run.arrays]
    inputs[2] = np.zeros_like(inputs[2])
    tally = np.zeros(max(1, len(counters)), np.int32)
    buffers = [cl.Buffer(device.context, flags, hostbuf=array) for array in (*inputs, tally)]
    sizes = np.int32([run.m, run.n, run.k])
    program.gemm(queue, spec.global_size(run.m, run.n, run.params), spec.local_size(run.params), *sizes, *buffers)
    cl.enqueue_copy(queue, tally, buffers[-1])
    cl.enqueue_copy(queue, inputs[2], buffers[2])
    loads, stores = ({name: int(tally[i]) for i, (name, store) in enumerate(counters) if store == which and tally[i]}
                     for which in (False, True))  # fmt: skip
    return loads, stores, inputs[2]


@pytest.mark.parametrize(("number", "params", "sizes"), CASES)
def test_loads_and_stores_are_those_of_a_device(number, params, sizes):
    run = simt.simulate(number, *sizes, params)
    loads, stores, c = counted(number, params, run)
    assert np.array_equal(c.reshape(run.n, run.m).T, run.expected), "the text with counters is still the kernel"
    assert loads == {name: count for name, count in run.counts.loads.items() if count}
    assert stores == {name: count for name, count in run.counts.stores.items() if count}
    spec = catalog[number]
    if number not in (12, 13, "warp_tiling"):  # there guards, shifts and edges save loads that the formula counts
        m, n, k = sizes
        assert loads["A"] + loads["B"] == spec.global_loads(run.params) * m * n * k
        assert sum(loads.values()) - loads["A"] - loads["B"] == spec.local_loads(run.params) * m * n * k
        assert stores["C"] == m * n


def test_a_count_that_differs_is_seen():
    """The control: a kernel that loads an element of A once more than the simulated one."""
    run = simt.simulate(2, 16, 16, 16, SMALL[2])
    more = simt.simulate(2, 16, 16, 16, SMALL[2], text(2).replace("float acc = 0.0f;", "float acc = 0.0f*A[0];"))
    assert counted(2, SMALL[2], run)[0] == run.counts.loads != more.counts.loads
