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
from simt.cases import SMALL, THIN, WARPS
from simt.instrument import instrumented

from gemmlab import simt
from gemmlab.catalog import find
from gemmlab.catalog.sources import read
from gemmlab.generate import write
from gemmlab.generate.precision import PRECISIONS
from gemmlab.opencl.devices import NoDeviceError, find_device
from gemmlab.simt.api import program_of
from gemmlab.simt.types import Scalar

pytestmark = pytest.mark.optimised(False)

CASES = [(number, SMALL[number], (16, 32, 16)) for number in SMALL]
CASES += [
    (12, SMALL[12], (11, 13, 9)),
    (13, SMALL[13], (11, 13, 9)),
    (11, {**SMALL[11], "TRANSPOSED": 0}, (16, 16, 8)),
]
CASES += [("warp_tiling", {**WARPS, **more}, (37, 41, 19)) for more in ({}, {"TRANSPOSED": 0})]
CASES += [
    ("warp_tiling", {**WARPS, "SPLIT": 8}, (40, 33, 19)),
    ("warp_tiling", {**WARPS, "GROUPS": 5}, (70, 34, 40)),
]
CASES += [
    (15, {"TSM": 16, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "WARPM": 4}, (32, 32, 24)),
    (16, {"TSM": 64, "TSN": 64}, (64, 64, 32)),
    (17, {"TSM": 64, "TSN": 64, "GROUPS": 3}, (128, 64, 32)),
    (18, {"TSM": 64, "TSN": 64, "PARTS": 1}, (64, 64, 32)),
    (19, {"TSM": 128, "TSK": 8, "PARTS": 1}, (128, 128, 16)),
    (
        "tensor_cores",
        {"TSM": 32, "TSN": 32, "TSK": 8, "WM": 32, "WN": 32, "PARTS": 2},
        (21, 37, 19),
    ),
    ("warpgroups", {"TSK": 8, "PARTS": 2}, (21, 24, 13)),
]
CASES += [("narrow", params, sizes) for sizes, params in THIN]

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


X = np.arange(1, 251, dtype=np.float32)
#: File, kernel, size of the launch and arguments: ragged, so that guards leave out some work-items.
SUPPORT = (
    ("transpose", "transpose", (64, 8), [33, 7, 35, 2, X, 9, simt.Empty(297)]),
    ("transpose_naive", "transpose_naive", (16, 32), [10, 20, X, simt.Empty(200)]),
    ("pad", "pad", (32, 16), [7, 30, 8, 3, X, 12, 33, simt.Empty(396)]),
    ("axpby", "axpby", (128,), [100, 2.0, X, 3.0, X[:100], simt.Empty(100)]),
)


@pytest.mark.parametrize(
    ("file", "name", "sizes", "args"), SUPPORT, ids=[case[1] for case in SUPPORT]
)
def test_so_are_those_of_the_supporting_kernels(file, name, sizes, args):
    source = read(f"support/{file}.cl")
    run = simt.run(source, name, sizes, None, args)
    loads, stores, arrays = on_a_device(source, name, sizes, args, None)
    assert run.ok and np.array_equal(arrays["out"], run.arrays["out"])
    assert_same_counts(run, loads, stores)
