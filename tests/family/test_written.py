"""Kernels of the family on the devices at hand: exact for every precision, operation, beta, edge and tail."""

import dataclasses

import numpy as np
import pytest
from configurations import case, computed, covering, every, warped, wrong
from conftest import FULL, in_part

from gemmlab import ParameterError
from gemmlab.family import Configuration
from gemmlab.family.configuration import PRECISIONS
from gemmlab.family.written import Written, check_double, written


def test_a_covering_sample(device):
    """Every pair of values of precision, operations, beta, edges, tail, widths and stages."""
    assert wrong(device, in_part(covering(), 4)) == []


def test_a_sample_of_the_kernels_of_warps(device):
    """Few, since they take long to compile; the microscope runs more of them."""
    assert wrong(device, in_part(covering(warped())[::5], 4)) == []


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
