"""Kernels of the family on the devices at hand: exact for every precision, operation, beta, edge and tail."""

import dataclasses
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pyopencl as cl
import pytest
from configurations import WARPS, Stored, case, computed, covering, every, shared, warped, wrong
from conftest import FULL, in_part

from gemmlab import ParameterError
from gemmlab.family import Configuration, write
from gemmlab.family import written as family_written
from gemmlab.family.configuration import PRECISIONS
from gemmlab.family.written import Written, check_double, written


def test_a_covering_sample(device):
    """Every pair of values of precision, operations, beta, edges, tail, widths and stages."""
    assert wrong(device, in_part(covering(), 4)) == []


def test_a_sample_of_the_kernels_of_warps(device):
    """Few, since they take long to compile; the microscope runs more of them."""
    assert wrong(device, in_part(covering(warped())[::5], 4)) == []


def test_work_groups_that_share_tiles(device):
    """On all runtimes; twice, since counters have to be 0 again for the next launch."""
    some = in_part(shared(), 2)
    assert wrong(device, some) == [] and wrong(device, some[:3]) == []


def test_sums_of_shares_have_one_order(any_device):
    """In numbers that round, repeated launches agree to the last bit, whoever comes last."""
    c = Configuration("c", unit="warps", shares=3, **WARPS | {"stages": 2})
    m, n, k = sizes = 32, 48, 96
    rng = np.random.default_rng(0)
    a, b = ((rng.random(shape) + 1j * rng.random(shape)).astype(np.complex64) for shape in ((k, m), (n, k)))
    given = case(c)._replace(sizes=sizes, a=Stored(a.ravel(), 0, m), b=Stored(b.ravel(), 0, k), expected=a[:n, :m])
    kernel = written(c, any_device, any_device.context)
    first, _ = computed(kernel, given)
    assert np.allclose(first, given.alpha * (b @ a).T, rtol=1e-4)
    assert all(np.array_equal(computed(kernel, given)[0], first) for _ in range(8))


def test_two_queues_have_workspaces_of_their_own(any_device):
    c = Configuration("d", unit="tensor", shares=2, **WARPS | {"stages": 2})
    kernel, queues = written(c, any_device, any_device.context), [cl.CommandQueue(any_device.context) for _ in "ab"]
    spaces = [kernel.workspace((64, 64, 64), queue) for queue in queues]
    assert not {id(buffer) for buffer in spaces[0]} & {id(buffer) for buffer in spaces[1]}
    assert kernel.workspace((32, 32, 64), queues[0]) == spaces[0], "what is large enough is kept"
    given = case(c)
    with ThreadPoolExecutor(2) as pool:
        got = [each for each, _ in pool.map(lambda queue: computed(kernel, given, queue=queue), queues * 4)]
    assert all(np.array_equal(each, given.expected) for each in got)


def test_counters_are_zero_again_after_a_launch(any_device, monkeypatch):
    """With a negative control: without the line that resets them they are not."""
    c = Configuration("c", unit="warps", shares=2, **WARPS | {"stages": 2})
    text, reset = write(c), "if (before == SHARES - 1) arrived[tile] = 0;"
    for changed, still in ((text, 0), (text.replace(reset, ""), c.shares)):
        monkeypatch.setattr(family_written, "write", lambda c, changed=changed: changed)
        kernel, given = Written(c, any_device, any_device.context), case(c)
        queue = cl.CommandQueue(any_device.context)
        got, _ = computed(kernel, given, queue=queue)
        _, counters = kernel.workspace(given.sizes, queue)
        found = np.full(counters.size // 4, -1, np.int32)
        cl.enqueue_copy(queue, found, counters)
        assert np.array_equal(got, given.expected) and (found == still).all()


@pytest.mark.parametrize("precision", PRECISIONS)
def test_every_combination_of_three(precision, first_device):
    """Every three values that occur together, and in full runs all that there are."""
    chosen = every() if FULL else covering(every(), 3)
    assert wrong(first_device, [c for c in chosen if c.precision == precision]) == []


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


def test_devices_without_the_instructions_are_refused_in_words(any_device):
    c = Configuration("d", unit="tensor", stages=2, tile=(16, 16), micro_tile=(2, 2), depth=8, unroll=8)
    for missing, words in (("asynchronous", "asynchronous copies"), ("warpgroups", "tensor cores")):
        limits = dataclasses.replace(any_device.limits, **{missing: False})
        assert [words in problem for problem in c.problems(limits)] == [True]
