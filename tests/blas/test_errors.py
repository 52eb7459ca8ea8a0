"""Bad input gets an error that names the argument, what came and what was expected; a failed call leaks nothing."""

import ctypes
import dataclasses
import gc
import os
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
import pytest
from gemmlab.blas.passes import check_memory

import gemmlab
from gemmlab import BuildError, NoDeviceError, ParameterError, catalog, matmul, sgemm
from gemmlab.blas import passes, products
from gemmlab.blas.problem import Problem, footprint, plan
from gemmlab.catalog import sources
from gemmlab.opencl import build, launch
from gemmlab.opencl.devices import Device, find_device

F32 = np.float32
GOOD = np.ones((3, 4), F32)


def refused(kind, words, function, *args, **options) -> str:
    """That a call raises exactly `kind`, with a message of several words that holds all `words`."""
    with pytest.raises(Exception) as error:
        function(*args, **options)
    message = str(error.value)
    assert error.type is kind, f"{error.type.__name__}: {message}"
    assert [word for word in words if str(word) not in message] == [], message
    assert len(message.split()) >= 4
    return message


# What is no float32 matrix

NOT_MATRICES = [
    (np.ones(4, F32), ValueError, "2 dimensions, not 1", "(4,)"),
    (np.ones((2, 4, 4), F32), ValueError, "2 dimensions, not 3", "(2, 4, 4)"),
    (np.array(3, F32), ValueError, "2 dimensions, not 0", "()"),
    (F32(3), TypeError, "NumPy array", "float32"),
    (np.ones((4, 4)), TypeError, "float32", "not float64", ".astype(np.float32)"),
    (np.ones((4, 4), np.float16), TypeError, "float32", "not float16", ".astype(np.float32)"),
    (np.ones((4, 4), np.int32), TypeError, "float32", "not int32", ".astype(np.float32)"),
    (np.ones((4, 4), np.uint8), TypeError, "float32", "not uint8", ".astype(np.float32)"),
    (np.ones((4, 4), np.complex64), TypeError, "float32", "not complex64"),
    (np.ones((4, 4), object), TypeError, "float32", "not object"),
    (np.ones((4, 4), bool), TypeError, "float32", "not bool"),
    (np.full((4, 4), "x"), TypeError, "float32", "not <U1"),
    (np.zeros((4, 4), [("x", F32)]), TypeError, "float32", "not ["),
    (np.ones((4, 4), ">f4"), TypeError, "float32", "not >f4", ".astype(np.float32)"),
    ([[1.0] * 4] * 4, TypeError, "NumPy array", "not list"),
    (((1.0,) * 4,) * 4, TypeError, "NumPy array", "not tuple"),
    (np.ma.ones((4, 4), F32), TypeError, "NumPy array", "not MaskedArray"),
    (3.0, TypeError, "NumPy array", "not float"),
    (None, TypeError, "NumPy array", "not NoneType"),
    ("a", TypeError, "NumPy array", "not str"),
    (memoryview(np.ones((4, 4), F32)), TypeError, "NumPy array", "not memoryview"),
]


@pytest.mark.parametrize("number", range(len(NOT_MATRICES)), ids=[f"{n[1].__name__}-{n[-1]}" for n in NOT_MATRICES])
def test_what_is_no_float32_matrix(number, any_device):
    wrong, kind, *words = NOT_MATRICES[number]
    good = np.ones((4, 4), F32)
    calls = [
        ("a", sgemm, (1, wrong, good)),
        ("b", sgemm, (1, good, wrong)),
        ("x", gemmlab.transpose, (wrong,)),
        ("x", gemmlab.pad, (wrong, 9, 9)),
        ("x", gemmlab.unpad, (wrong, 1, 1)),
    ]
    if wrong is not None:  # None is "no c"
        calls += [("c", sgemm, (1, good, good, 1, wrong)), ("c", sgemm, (1, good, good, 0, wrong))]
    if kind is TypeError:  # matmul also takes vectors and batches
        calls += [("b", matmul, (good, wrong))]
    if getattr(wrong, "dtype", None) not in (np.float64, np.complex64) or wrong.ndim != 2:  # these take other types
        calls += [("a", gemmlab.gemm, (1, wrong, good))] + [("a", matmul, (wrong, good))] * (kind is TypeError)
    for name, function, arguments in calls:
        message = refused(kind, [f"{name} must ", *words], function, *arguments)
        assert ".astype" not in message or f"{name}.astype(np.float32)" in message


def test_wrong_types_on_a_device_too(device):
    good = cla.to_device(device.queue, GOOD)
    for dtype in (np.float64, np.int32, np.complex64):
        wrong = cla.to_device(device.queue, GOOD.astype(dtype))
        refused(TypeError, ["a must be float32", np.dtype(dtype)], sgemm, 1, wrong, good.T)
        refused(TypeError, ["b must be float32", np.dtype(dtype)], matmul, good, wrong.T)
    refused(ValueError, ["b must have 2 dimensions, not 1", "(4,)"], sgemm, 1, good, good[0])
    for scalar in (np.array(1, F32), cla.to_device(device.queue, np.array(1, F32))):
        refused(ValueError, ["b must have at least 1 dimension, not 0", "()"], matmul, good, scalar)


# Shapes


def test_shapes_that_do_not_match(device):
    a, b = np.ones((3, 4), F32), np.ones((5, 6), F32)
    expected = ["a is 3 x 4 and b is 5 x 6", "the columns of a (4) must be as many as the rows of b (5)"]
    refused(ValueError, expected, matmul, a, b, device=device)
    refused(ValueError, ["after transposing", "b is 6 x 5"], sgemm, 1, a, b, trans_b=True, device=device)
    refused(ValueError, ["after transposing", "a is 4 x 3"], sgemm, 1, a, b, trans_a=True, device=device)
    refused(ValueError, expected, matmul, cla.to_device(device.queue, a), cla.to_device(device.queue, b))


def test_a_c_of_the_wrong_shape(device):
    for shape in ((4, 3), (3, 1), (1, 3), (0, 3)):
        words = ["c has the shape", shape, "expected (3, 3)"]
        refused(ValueError, words, sgemm, 1, GOOD, GOOD.T, 1, np.ones(shape, F32), device=device)
    refused(ValueError, ["beta=2 needs c", "m x n"], sgemm, 1, GOOD, GOOD.T, 2)


def test_pad_and_unpad_want_sizes_that_fit(any_device):
    for wrong in (1.5, -1, True, "3", None):
        refused(ValueError, ["rows must be a non-negative whole number", repr(wrong)], gemmlab.pad, GOOD, wrong, 9)
        refused(ValueError, ["cols must be a non-negative whole number", repr(wrong)], gemmlab.unpad, GOOD, 1, wrong)
    refused(ValueError, ["rows=2", "x has 3", "at least"], gemmlab.pad, GOOD, 2, 9)
    refused(ValueError, ["cols=3", "x has 4", "at least"], gemmlab.pad, GOOD, 3, 3)
    refused(ValueError, ["rows=4", "x has 3", "at most"], gemmlab.unpad, GOOD, 4, 1)
    refused(ValueError, ["cols=5", "x has 4", "at most"], gemmlab.unpad, GOOD, 1, 5)


# Numbers


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", ["alpha", "beta"])
@pytest.mark.parametrize(
    ("value", "kind", "words"),
    [
        (1j, TypeError, "not complex: 1j"),
        (np.complex64(1), TypeError, "not complex64"),
        ("2", TypeError, "not str: '2'"),
        (None, TypeError, "not NoneType: None"),
        (np.ones(1, F32), TypeError, "not ndarray"),
        ([1.0], TypeError, "not list"),
        (1e39, ValueError, "=1e+39 is beyond the range of float32"),
        (-1e300, ValueError, "=-1e+300 is beyond the range of float32"),
        (10**400, ValueError, "is beyond the range of float32"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_alpha_and_beta_must_be_real_numbers(name, value, kind, words, any_device):
    arguments = {"alpha": 1, "a": GOOD, "b": GOOD.T, "beta": 1, "c": np.ones((3, 3), F32), name: value}
    refused(kind, [name, words], sgemm, **arguments)


@pytest.mark.parametrize("value", [3, -1, "X", "t", "", None, 0.5, 1.0, [], np.ones(2)], ids=str)
def test_trans_must_be_a_number_or_letter_of_blas(value, any_device):
    for name in ("trans_a", "trans_b"):
        words = [f"{name} must be 0, 1 or 2", repr(value)]
        refused(ValueError, words, sgemm, 1, GOOD, GOOD.T, **{name: value})


@pytest.mark.parametrize("number", [0, 99, -1, 1.0, "1", "best", True, None, [3], {}], ids=repr)
def test_unknown_kernels(number, any_device):
    words = ["kernel must be one of 1, 2, 3", f"not {number!r}"]
    matmul(GOOD, GOOD.T, kernel=1)  # True and 1.0 equal 1: what was built for 1 must not answer for them
    refused(ValueError, words, matmul, GOOD, GOOD.T, kernel=number)
    refused(ValueError, words, sgemm, 1, GOOD, GOOD.T, kernel=number)
    refused(ValueError, words, gemmlab.kernel, number)
    refused(ValueError, words, gemmlab.measure, number, 8)


def test_parameters(device):
    """The catalog's sentences reach the caller of every function that takes parameters."""
    for function, *arguments in (
        (matmul, GOOD, GOOD.T),
        (sgemm, 2, GOOD, GOOD.T),
        (lambda kernel, params, device: gemmlab.kernel(kernel, params, device),),
        (gemmlab.measure,),
    ):
        for kind, words, params in (
            (ParameterError, ["TS=20 is not a multiple of WPT=8"], {"TS": 20}),
            (ParameterError, ["'wpt'", "did you mean WPT"], {"wpt": 4}),
            (ParameterError, ["TS=0"], {"TS": 0}),
            (
                ParameterError,
                [f"{8 * 4096**2:,} bytes of local memory", device.limits.name],
                {"TS": 4096, "WPT": 4096},
            ),
            (TypeError, ["TS must be a whole number, not float: 8.0"], {"TS": 8.0}),
            (TypeError, ["TS must be a whole number, not bool: True"], {"TS": True}),
            (TypeError, ["params must be a dict", "not list"], [8]),
        ):
            if function is gemmlab.measure:
                refused(kind, words, function, 3, 8, params=params, device=device)
            else:
                refused(kind, words, function, *arguments, kernel=3, params=params, device=device)


def test_params_without_a_kernel(any_device):
    refused(ValueError, ["params needs a kernel number"], matmul, GOOD, GOOD.T, params={"TS": 8})


@pytest.mark.parametrize("size", [0, -3, 1.0, "8", True, [8]], ids=repr)
def test_measure_wants_positive_sizes(size, any_device):
    for name in ("m", "n", "k", "repeats"):
        words = [f"{name} must be a positive whole number", repr(size)]
        refused(ValueError, words, gemmlab.measure, 1, **{"m": 8, name: size})


@pytest.mark.parametrize("limit", [0, -1.0, "8", float("nan"), [8]], ids=repr)
def test_measure_wants_time(limit, any_device):
    words = ["most_seconds must be a positive number", repr(limit)]
    refused(ValueError, words, gemmlab.measure, 1, 8, most_seconds=limit)


@pytest.mark.parametrize("name", ["kernel", "edges", "precision"])
def test_an_array_is_no_choice(name, any_device):
    refused(ValueError, [f"{name} must be one of", "array("], matmul, GOOD, GOOD.T, **{name: np.array(["a", "b"])})


# Devices


def test_unknown_devices(any_device):
    for wrong in ("no such thing", 99, -1, "99"):
        refused(NoDeviceError, ["no device fits", f"0: {any_device}"], matmul, GOOD, GOOD.T, device=wrong)
    for wrong in (1.5, True, [0], any_device.cl):
        refused(TypeError, ["device must be", "an index or part of a name", repr(wrong)], find_device, wrong)


def test_a_device_in_the_environment(any_device, monkeypatch):
    for found in gemmlab.devices():
        monkeypatch.setenv("GEMMLAB_DEVICE", str(found.index))
        assert gemmlab.default_device() is found and find_device() is found
        monkeypatch.setenv("GEMMLAB_DEVICE", found.platform[:8].upper())
        assert gemmlab.default_device().platform == found.platform
    monkeypatch.setenv("GEMMLAB_DEVICE", "no such thing")
    refused(NoDeviceError, ["no device fits 'no such thing'"], matmul, GOOD, GOOD.T)


def test_no_device_at_all(monkeypatch):
    monkeypatch.setattr("gemmlab.opencl.devices._find", lambda: ())
    refused(NoDeviceError, ["no OpenCL device was found", "gemmlab doctor"], matmul, GOOD, GOOD.T)


def test_arrays_of_different_places(device):
    host = np.ones((3, 3), F32)
    here = cla.to_device(device.queue, host)
    other_queue = here.with_queue(cl.CommandQueue(device.context))
    context = cl.Context([device.cl])
    other_context = cla.to_device(cl.CommandQueue(context), host)
    nowhere = here.with_queue(None)
    for name, wrong, kind, *words in (
        ("a", other_queue, ValueError, "b is on another queue than a", "b.with_queue(a.queue)"),
        ("b", other_queue, ValueError, "b is on another queue than a", "b.with_queue(a.queue)"),
        ("c", other_queue, ValueError, "c is on another queue than a", "c.with_queue(a.queue)"),
        ("a", other_context, ValueError, "b lives in another context than a"),
        ("b", other_context, ValueError, "b lives in another context than a"),
        ("c", other_context, ValueError, "c lives in another context than a"),
        ("a", nowhere, ValueError, "a has no queue", "a.with_queue(queue)"),
        ("b", nowhere, ValueError, "b has no queue", "b.with_queue(queue)"),
        ("c", nowhere, ValueError, "c has no queue", "c.with_queue(queue)"),
        ("a", host, TypeError, "b, c on a device, but a in NumPy"),
        ("b", host, TypeError, "a, c on a device, but b in NumPy"),
        ("c", host, TypeError, "a, b on a device, but c in NumPy"),
    ):
        refused(kind, words, sgemm, 1, **{"a": here, "b": here, "beta": 1, "c": here, name: wrong})
    for function, *arguments in ((gemmlab.transpose,), (gemmlab.pad, 9, 9), (gemmlab.unpad, 1, 1)):
        refused(ValueError, ["x has no queue", "x.with_queue(queue)"], function, nowhere, *arguments)


def test_a_device_that_is_not_the_arrays_own(any_device):
    x = cla.to_device(any_device.queue, np.ones((3, 3), F32))
    for other in gemmlab.devices():
        if other.cl == any_device.cl:
            assert np.array_equal(matmul(x, x, device=other).get(), np.full((3, 3), 3))
        else:
            refused(ValueError, ["device=", f"a lives on {any_device}"], matmul, x, x, device=other)


def test_device_arrays_without_a_contiguous_dimension(device):
    x = cla.to_device(device.queue, np.ones((8, 8), F32))
    for name, a, b in (("a", x[:, ::2], x[:4]), ("b", x, x[:, ::2])):
        words = [f"{name} has the strides (32, 8)", "one dimension of a device array must be contiguous"]
        refused(ValueError, words, matmul, a, b)


def test_device_arrays_that_are_not_what_their_buffer_holds(any_device):
    """PyOpenCL makes them of any shape, offset and strides, and a kernel would read, or write, other memory."""
    buffer = cl.Buffer(any_device.context, cl.mem_flags.READ_WRITE, 60)  # of 3 x 5 floats
    good = cla.to_device(any_device.queue, np.ones((3, 3), F32))

    def lying(shape, offset=0, strides=None):
        return cla.Array(any_device.queue, shape, F32, data=buffer, offset=offset, strides=strides)

    for wrong, *words in (
        (lying((3, 6)), "bytes 0 to 71", "60"),
        (lying((3, 5), offset=4), "bytes 4 to 63", "60"),
        (lying((3, 3), strides=(-12, 4)), "bytes -24 to 11", "60"),
        (lying((3, 3), offset=2), "offset 2", "multiples of the 4 bytes"),
        (lying((3, 3), strides=(14, 4)), "strides (14, 4)", "multiples of the 4 bytes"),
        (lying((2, 3, 3), strides=(38, 12, 4)), "bytes 0 to 73", "60"),
    ):
        same = cla.to_device(any_device.queue, np.ones(wrong.shape, F32))
        refused(ValueError, ["b ", *words], matmul, good, wrong)
        refused(ValueError, ["out ", *words], matmul, good, same, wrong)
        if wrong.ndim == 2:
            refused(ValueError, ["x ", *words], gemmlab.transpose, wrong)
        if wrong.shape == (3, 3):
            refused(ValueError, ["a ", *words], matmul, wrong, good)
            refused(ValueError, ["c ", *words], sgemm, 1, good, good, 1, wrong)
    assert np.array_equal(matmul(good, good).get(), np.full((3, 3), 3))


# Sizes


def endless(rows: int, cols: int) -> np.ndarray:
    """A matrix of any size in four bytes of memory."""
    return np.lib.stride_tricks.as_strided(np.ones(1, F32), (rows, cols), (0, 0))


@pytest.mark.parametrize(
    ("a", "b", "name", "elements"),
    [
        ((2**16, 2**15), (2**15, 1), "a", 2**31),
        ((1, 2**15), (2**15, 2**16), "b", 2**31),
        ((2**16, 1), (1, 2**15), "the result", 2**31),
        ((46340, 1), (1, 46340), "the result", 46400**2),  # below 2^31, but not in whole tiles
    ],
)
def test_more_elements_than_32_bits_count(a, b, name, elements, any_device):
    options = {"kernel": 3, "params": {"TS": 64 if elements > 2**31 else 32, "WPT": 8}}
    words = [name, f"{elements:,} elements", "32 bits", f"{2**31:,}"]
    refused(ValueError, words, matmul, endless(*a), endless(*b), **options)
    refused(ValueError, words, sgemm, 2, endless(*a), endless(*b), **options)


def test_helpers_and_measure_count_elements_too(any_device):
    words = [f"{2**31:,}", "32 bits"]
    refused(ValueError, ["x has", *words], gemmlab.transpose, endless(2**16, 2**15))
    refused(ValueError, ["the result has", *words], gemmlab.pad, GOOD, 2**16, 2**15)
    refused(ValueError, ["x has", *words], gemmlab.unpad, endless(2**16, 2**15), 1, 1)
    refused(ValueError, ["the result has", *words], gemmlab.measure, 1, 2**16, 2**15, 1)


def test_kernels_of_production_count_with_64_bits(any_device):
    """What it may take is refused for want of memory at most; nothing is allocated here."""
    roomy = small(any_device, 2**42, 2**41)
    product = Problem.compact(2**17, 2**16, 2**16)
    many = footprint(product, plan(catalog["warp_tiling"], catalog["warp_tiling"].defaults, product))
    assert max(many.values()) > 2**32
    check_memory(roomy, many, wide=True)
    refused(ValueError, ["a has 8,589,934,592 elements", "kernels of the ladder", "32 bits"], check_memory, roomy, many)
    refused(MemoryError, ["a needs 34,359,738,368 bytes"], check_memory, small(any_device, 2**34, 2**33), many, True)
    poor = small(any_device, 2**34, 2**33)
    a, b = endless(2**17, 2**16), endless(2**16, 2**4)
    words = ["34,359,738,368 bytes", str(poor)]
    refused(MemoryError, words, matmul, a, b, kernel="warp_tiling", device=poor)
    refused(MemoryError, words, gemmlab.measure, "warp_tiling", 2**17, 2**4, 2**16, device=poor)
    refused(ValueError, ["a has 8,589,934,592 elements"], matmul, a, b, kernel=3, device=poor)
    built = gemmlab.kernel("warp_tiling", None, any_device)
    empty = cla.empty(any_device.queue, 4, np.float32)
    refused(ValueError, ["a holds 16 bytes", f"{2**32:,}"], built, 2**16, 4, 2**16, empty, empty, empty)
    built = gemmlab.kernel(1, None, any_device)
    refused(ValueError, ["a has", f"{2**32:,} elements"], built, 2**16, 2**5, 2**16, empty, empty, empty)


def small(device: Device, memory: int, largest: int) -> Device:
    """The same device, as if it had less memory."""
    return dataclasses.replace(device, memory=memory, largest=largest)


def test_more_memory_than_the_device_has(device):
    """In whole tiles, as the device has to hold them."""
    a, b = endless(300, 200), endless(200, 100)
    options = {"kernel": 2, "params": {"TS": 32}}
    tight, poor = small(device, 2**30, 4 * 300 * 200), small(device, 300_000, 299_000)
    words = ["a in whole tiles needs", f"{4 * 320 * 224:,} bytes", str(tight), f"allows {4 * 300 * 200:,} per buffer"]
    refused(MemoryError, words, matmul, a, b, **options, device=tight)
    total = 4 * (300 * 200 + 200 * 100 + 300 * 100 + 320 * 224 + 224 * 128 + 320 * 128)
    words = ["the matrices need", f"{total:,} bytes", str(poor), "has 300,000"]
    refused(MemoryError, words, matmul, a, b, **options, device=poor)
    for function, *arguments in (
        (gemmlab.transpose, a),
        (gemmlab.pad, GOOD, 300, 300),
        (gemmlab.unpad, endless(300, 300), 1, 1),
    ):
        refused(MemoryError, ["bytes", str(poor)], function, *arguments, device=poor)


def test_measure_refuses_more_memory_than_the_device_has(device):
    """Before it makes the matrices on the host."""
    poor = small(device, 1_000_000, 500_000)
    refused(MemoryError, ["bytes", str(poor)], gemmlab.measure, 1, 500, device=poor)


# Kernels to take away


def test_a_kernel_refuses_what_it_cannot_launch(device):
    kernel = gemmlab.kernel(3, {"TS": 8, "WPT": 2}, device)
    x, host = cla.zeros(device.queue, (8, 8), F32), np.ones(64, F32)
    for sizes, word in (((8, 8, 9), "K=9"), ((7, 8, 8), "M=7"), ((8, 0, 8), "N=0"), ((8, -8, 8), "N=-8")):
        refused(ValueError, [word, "positive multiple of 8"], kernel, *sizes, x, x, x)
        refused(ValueError, [word, "positive multiple of 8"], kernel.global_size, *sizes)
    refused(TypeError, ["b must be a device array or buffer, not ndarray"], kernel, 8, 8, 8, x, host, x)
    refused(TypeError, ["c must be a device array or buffer, not NoneType"], kernel, 8, 8, 8, x, x, None)
    refused(ValueError, ["a holds 256 bytes, but 128 float32 elements"], kernel, 16, 8, 8, x, x, x)
    wide = cla.zeros(device.queue, 128, F32)
    refused(ValueError, ["c holds 256 bytes, but 128 float32 elements"], kernel, 8, 16, 8, x, wide, x)
    refused(ValueError, ["a has", "32 bits"], kernel, 2**17, 8, 2**14, x, x, x)


def test_a_kernel_refuses_arrays_that_it_would_misread(device):
    """Their bytes would do, but not what they mean."""
    kernel = gemmlab.kernel(3, {"TS": 8, "WPT": 2}, device)
    x = cla.zeros(device.queue, (8, 8), F32)
    refused(TypeError, ["a must be float32, not float64"], kernel, 8, 8, 8, x.astype(np.float64), x, x)
    refused(TypeError, ["b must be float32, not int32"], kernel, 8, 8, 8, x, x.astype(np.int32), x)
    wide = cla.zeros(device.queue, (8, 16), F32)
    refused(ValueError, ["a ", "contiguous"], kernel, 8, 8, 8, wide[:, :8], x, x)
    context = cl.Context([device.cl])
    elsewhere = cla.zeros(cl.CommandQueue(context), (8, 8), F32)
    refused(ValueError, ["c ", "another context"], kernel, 8, 8, 8, x, x, elsewhere)


def test_a_work_group_that_the_compiled_kernel_cannot_take(device, monkeypatch):
    """CL_KERNEL_WORK_GROUP_SIZE may be less than what the device allows: known only after building."""
    built_init = build.Built.__init__

    def limited(self, *args):
        built_init(self, *args)
        self.work_group_limit = 10

    monkeypatch.setattr(build.Built, "__init__", limited)
    build._build.cache_clear()
    products._kernel.cache_clear()
    try:
        words = ["kernel 3", device.name, "at most 10 work-items", "8 x 4 = 32"]
        params = {"TS": 8, "WPT": 2}
        refused(ParameterError, words, gemmlab.kernel, 3, params, device)
        refused(ParameterError, words, matmul, GOOD, GOOD.T, kernel=3, params=params, device=device)
        refused(ParameterError, words, gemmlab.measure, 3, 8, params=params, device=device)
    finally:  # nothing built with that limit may reach another test
        build._build.cache_clear()
        products._kernel.cache_clear()


# Build errors

MISTAKES = {
    "undeclared": ("acc += A", "acc += oops + A", "oops"),
    "semicolon": ("float acc = 0.0f;", "float acc = 0.0f", "expected"),
    "type": ("const int m =", "const itn m =", "itn"),
    "#error": ("__kernel __attr", "#error a mistake on purpose\n__kernel __attr", "a mistake on purpose"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_build_error_shows_the_line(mistake, device):
    old, new, word = MISTAKES[mistake]
    text = sources.read("01_naive.cl")
    assert text.count(old) == 1
    text = text.replace(old, new)
    lines = text.splitlines()
    number = next(i for i, line in enumerate(lines, 1) if new.splitlines()[0] in line)
    words = ["kernel 1 (01_naive.cl) does not compile", f"line {number}: ", word]
    words += [f"> {number:4d} | {lines[number - 1]}", f"  {number - 1:4d} | {lines[number - 2]}"]
    for params in (None, {"TS": 4}):  # the numbers are those of the file, whatever the parameters
        message = refused(BuildError, words, gemmlab.measure, 1, 8, source=text, params=params, device=device)
        assert len(message.splitlines()) < 40


def test_a_build_error_keeps_all_that_the_compiler_said(device):
    with pytest.raises(BuildError) as error:
        gemmlab.measure(1, 8, source="__kernel void gemm( {", device=device)
    assert len(error.value.log) > 20 and "line 1" in str(error.value)


@pytest.mark.parametrize("change", [("__kernel", ""), ("void gemm(", "void other(")], ids=["no kernel", "other name"])
def test_a_text_without_the_kernel(change, device):
    text = sources.read("01_naive.cl").replace(*change)
    message = refused(BuildError, ["kernel 1"], gemmlab.measure, 1, 8, source=text, device=device)
    assert "gemm" in message.partition("(01_naive.cl)")[2], message


@pytest.mark.parametrize("change", [("const int K,", ""), ("const int K,", "const int K, const int L,")])
def test_a_text_with_other_arguments(change, device):
    """A learner's slip in the signature is said as such, not as a crash somewhere in the launch."""
    text = (
        sources.read("01_naive.cl")
        .replace(*change)
        .replace("int k = 0", "int K = 8, k = 0" if not change[1] else "int k = 0")
    )
    with pytest.raises((BuildError, ParameterError, ValueError, TypeError)) as error:
        gemmlab.measure(1, 8, source=text, device=device)
    assert "argument" in str(error.value), str(error.value)


# Leaks


def resident() -> int:
    """Bytes of this process that lie in memory now, without what it has freed but not yet given back."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Broken(Exception):
    pass


def breaks(*args, **kwargs):
    raise Broken("on purpose")


needs_linux = pytest.mark.skipif(sys.platform != "linux", reason="memory in use is read from Linux's /proc")


@needs_linux
@pytest.mark.optimised  # large enough for a leak to show
@pytest.mark.parametrize("where", ["shape", "type", "parameters", "build", "axpby", "unpad", "launch"])
def test_a_failed_call_leaks_no_memory(where, some_device, monkeypatch):
    """Three matrices of 17 MB a call, ten times: one leaked buffer of each call would be 168 MB."""
    side = 2047
    a, b, c = np.ones((side, 40), F32), np.ones((40, side), F32), np.ones((side, side), F32)
    call = {
        "alpha": 2,
        "a": a,
        "b": b,
        "beta": 1,
        "c": c,
        "kernel": 3,
        "params": {"TS": 64, "WPT": 16},
        "device": some_device,
    }
    kind = Broken
    if where == "shape":
        kind, call["c"] = ValueError, c[1:]
    elif where == "type":
        kind, call["b"] = TypeError, b.astype(np.float64)
    elif where == "parameters":
        kind, call["params"] = ParameterError, {"TS": 20}
    elif where == "build":
        kind, call["params"] = BuildError, {"TS": 48, "WPT": 3}
        monkeypatch.setattr(sources, "read", lambda file: "no OpenCL C")
    elif where == "launch":
        monkeypatch.setattr(launch.Kernel, "bound", breaks)
    else:  # the last passes, when everything lies on the device
        monkeypatch.setattr(passes.Session, where, breaks)

    def fail():
        with pytest.raises(kind):
            sgemm(**call)
        some_device.queue.finish()

    for _ in range(3):
        fail()
    before = resident()
    for _ in range(10):
        fail()
    grown = resident() - before
    assert grown < 60e6, f"{grown / 1e6:.0f} MB more"


@needs_linux
def test_the_watch_over_memory_sees_a_leak():
    before = resident()
    kept = [np.ones((2047, 2047), F32) for _ in range(10)]
    assert resident() - before > 150e6 and len(kept) == 10


def test_a_failed_build_leaves_no_file(device, monkeypatch, tmp_path):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    assert tempfile.gettempdir() == str(tmp_path)
    for number in catalog:
        text = sources.read(catalog[number].file) + f"// {number}\n#error on purpose\n"
        refused(BuildError, ["on purpose"], gemmlab.measure, number, 8, source=text, device=device)
    assert list(tmp_path.iterdir()) == []


def test_after_every_failure_the_next_call_is_right(device):
    for wrong in (np.ones((4, 4)), np.ones((9, 9), F32), [1]):
        with pytest.raises((TypeError, ValueError)):
            matmul(GOOD, wrong, device=device)
        assert np.array_equal(matmul(GOOD, GOOD.T, device=device), np.full((3, 3), 4))
