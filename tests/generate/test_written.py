"""Generated kernels on the devices at hand: exact for every precision, op, beta, edge and tail."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pyopencl as cl
import pytest
from configurations import (
    WARPS,
    Stored,
    case,
    computed,
    covering,
    shared,
    split_k_memory,
    warped,
    wrong,
)
from conftest import in_part

from gemmlab import ParameterError, check, matmul
from gemmlab.generate import Schedule, write
from gemmlab.generate import written as family_written
from gemmlab.generate.precision import check_double
from gemmlab.generate.written import GeneratedKernel, written


def test_a_covering_sample(device):
    """Every pair of values of precision, op, beta, edges, tail, load widths and stages; few kernels
    of warps, since they take long to compile; split-K twice, since it needs counters that are 0.
    """
    assert wrong(device, in_part(covering(), 4)) == []
    assert wrong(device, in_part(covering(warped())[::5], 4)) == []
    some = in_part(shared(), 2)
    assert wrong(device, some) == [] and wrong(device, some[:3]) == []


def test_split_k_adds_up_in_one_order(any_device):
    """With numbers that round, repeated launches agree to the last bit, whichever comes last."""
    s = Schedule("c", unit="warps", split_k=3, **WARPS | {"stages": 2})
    m, n, k = sizes = 32, 48, 96
    rng = np.random.default_rng(0)
    a = (rng.random((k, m)) + 1j * rng.random((k, m))).astype(np.complex64)
    b = (rng.random((n, k)) + 1j * rng.random((n, k))).astype(np.complex64)
    stored = {"a": Stored(a.ravel(), 0, m), "b": Stored(b.ravel(), 0, k)}
    given = case(s)._replace(sizes=sizes, expected=a[:n, :m], **stored)
    kernel = written(s, any_device, any_device.context)
    first, _ = computed(kernel, given)
    assert np.allclose(first, given.alpha * (b @ a).T, rtol=1e-4)
    assert all(np.array_equal(computed(kernel, given)[0], first) for _ in range(8))


def test_a_product_with_split_k_is_repeated_by_threads(any_device):
    """They share a plan, and so its counters."""
    tile = {"TSM": 16, "TSN": 16, "TSK": 8, "WPTM": 2, "WPTN": 2, "UNROLL": 8, "STAGES": 2}
    options = {"kernel": "family", "params": tile | {"UNIT": 1, "SHARES": 3}, "device": any_device}
    a, b = check.exact_inputs(40, 50, 90, dtype="complex64")
    with ThreadPoolExecutor(2) as pool:
        found = pool.map(lambda _: matmul(a, b, **options), range(8))
        assert all(check.exact(c, a, b).ok for c in found)


def test_counters_are_zero_after_a_launch(any_device, monkeypatch):
    """With a negative control: without the line that resets them they are not."""
    s = Schedule("c", unit="warps", split_k=2, **WARPS | {"stages": 2})
    reset = "if (before == SHARES - 1) arrived[tile] = 0;"
    for text, counted in ((write(s), 0), (write(s).replace(reset, ""), s.split_k)):
        monkeypatch.setattr(family_written, "write", lambda s, text=text: text)
        kernel, given = GeneratedKernel(s, any_device, any_device.context), case(s)
        queue = cl.CommandQueue(any_device.context)
        workspace = _, counters = split_k_memory(kernel, given, queue)
        c, _ = computed(kernel, given, queue=queue, workspace=workspace)
        found = np.full(counters.size // 4, -1, np.int32)
        cl.enqueue_copy(queue, found, counters)
        assert np.array_equal(c, given.expected) and (found == counted).all()


def test_c_may_be_updated_in_place(device):
    for s in covering():
        if s.beta and s.edges in ("none", "both"):
            given = case(s)
            c, inside = computed(written(s, device, device.context), given, in_place=True)
            assert np.array_equal(c, given.expected) and inside, s.name


def test_what_a_device_cannot_run_is_refused_by_name(any_device):
    limits = replace(any_device.limits, local_memory=1000)
    tight = replace(any_device, limits=limits)
    with pytest.raises(ParameterError) as error:
        GeneratedKernel(Schedule(), tight, tight.context)
    assert Schedule().name in str(error.value) and "1,000" in str(error.value)
    single = replace(any_device, features=any_device.features - {"double"})
    for precision, words in (("d", ["float64", "float32"]), ("z", ["complex128", "complex64"])):
        with pytest.raises(ValueError) as refused:
            check_double(precision, single)
        assert all(word in str(refused.value) for word in [*words, str(single)])
