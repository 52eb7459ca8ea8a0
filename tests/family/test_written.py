"""Kernels of the family on the devices at hand: exact for every precision, operation, beta, edge and tail."""

import dataclasses

import numpy as np
import pyopencl as cl
import pytest
from configurations import Case, case, covering, every

from gemmlab import ParameterError, check
from gemmlab.family import Configuration
from gemmlab.family.configuration import PRECISIONS
from gemmlab.family.written import View, Written, check_double, written
from gemmlab.opencl.devices import Device

FRAME_BYTES = 4096  # before and behind C; a multiple of every device's alignment


def on_device(device: Device, memory: np.ndarray) -> cl.Buffer:
    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    return cl.Buffer(device.context, flags, hostbuf=np.ascontiguousarray(memory))


def computed(kernel: Written, given: Case, in_place: bool = False) -> tuple[np.ndarray, bool]:
    """C, m x n, and whether the memory before and behind it is untouched. It is NaN before, or C0 if `in_place`."""
    c, (m, n, _), queue = kernel.configuration, given.sizes, kernel.device.queue
    before = given.before
    dtype = given.expected.dtype
    frame = FRAME_BYTES // dtype.itemsize
    memory = np.full(m * n + 2 * frame, 7, dtype)
    inner = memory[frame:-frame].reshape(n, m).T
    inner[:] = np.nan
    if in_place:
        inner[:] = before.memory[before.offset :].reshape(n, before.ld).T[:m]
    framed = on_device(kernel.device, memory)
    out = framed.get_sub_region(FRAME_BYTES, m * n * dtype.itemsize)
    a, b = (View(on_device(kernel.device, x.memory), x.offset, 1, x.ld) for x in (given.a, given.b))
    added = None
    if c.beta:
        added = (
            View(out, 0, 1, m)
            if in_place
            else View(on_device(kernel.device, before.memory), before.offset, 1, before.ld)
        )
    kernel(queue, given.sizes, given.alpha, a, b, given.beta, added, out)
    cl.enqueue_copy(queue, memory, framed)
    return inner, bool((memory[:frame] == 7).all() and (memory[-frame:] == 7).all())


def wrong(device: Device, configurations: list[Configuration]) -> list[str]:
    """What is not exact, or stores outside."""
    found = []
    for c in configurations:
        if PRECISIONS[c.precision].real == "double" and "double" not in device.features:
            continue
        given = case(c)
        got, inside = computed(Written(c, device, device.context), given)
        verdict = check.compare(got, given.expected, 0.0)
        if not verdict.ok or not inside:
            found.append(f"{c.name}: {verdict}{'' if inside else '; stores outside C'}")
    return found


def test_a_covering_sample(device):
    """Every pair of values of precision, operations, beta, edges, tail, widths and stages."""
    assert wrong(device, covering()) == []


def test_every_combination(device):
    assert wrong(device, every()) == []


def test_c_may_be_updated_in_place(device):
    for c in (c for c in covering() if c.beta and c.edges in ("none", "both")):
        given = case(c)
        got, inside = computed(written(c, device, device.context), given, in_place=True)
        assert np.array_equal(got, given.expected) and inside, c.name


def test_a_kernel_is_compiled_once(any_device):
    c = covering()[0]
    assert written(c, any_device, any_device.context) is written(c, any_device, any_device.context)


def test_what_a_device_cannot_run_is_refused_in_words(any_device):
    tight = dataclasses.replace(any_device, limits=dataclasses.replace(any_device.limits, local_memory=1000))
    with pytest.raises(ParameterError) as error:
        Written(Configuration(), tight, tight.context)
    assert "sgemm_NN_64x64x16" in str(error.value) and "1,000" in str(error.value)
    single = dataclasses.replace(any_device, features=any_device.features - {"double"})
    for precision, words in (("d", ["float64", "float32"]), ("z", ["complex128", "complex64"])):
        with pytest.raises(ValueError) as refused:
            Written(Configuration(precision), single, single.context)
        assert all(word in str(refused.value) for word in [*words, str(single), "double precision"])
    for precision in "sc":
        check_double(precision, single)
