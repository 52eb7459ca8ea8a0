"""A wrong argument is refused by name before anything is launched; a failed call leaks nothing."""

import ctypes
import dataclasses
import gc
import os
import re
import sys
from pathlib import Path

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
import pytest
from texts import portable

import gemmlab
from gemmlab import ParameterError, gemm, matmul, sgemm
from gemmlab.blas import arrays, plan, run

pytestmark = pytest.mark.optimised(False)

F32 = np.float32
SQUARE = np.ones((4, 4), F32)
DOUBLE, TF32 = SQUARE.astype("f8"), {"precision": "tf32"}


@pytest.fixture
def no_launch(monkeypatch):
    """Whatever is launched fails the test."""
    monkeypatch.setattr(run.Session, "run", lambda *_: pytest.fail("launched"))


def refused(kind, name, function, *args, **options) -> None:
    """That a call raises exactly `kind`, with a message about the argument of this name."""
    with pytest.raises(Exception) as error:
        function(*args, **options)
    message = str(error.value)
    assert error.type is kind, f"{error.type.__name__}: {message}"
    assert re.search(rf"(^|[ (]){name}(=|,| (must|has|is|in|on|takes|shares|needs)\b)", message)
    assert len(message.split()) >= 4, message


NOT_ARRAYS = ([[1.0] * 4] * 4, np.ma.ones((4, 4), F32), F32(3), "a", memoryview(SQUARE))
WRONG_TYPES = tuple(SQUARE.astype(kind) for kind in ("i4", "?", "O", "U1", ">f4", "f8,f4"))


def test_sizes_in_messages_are_the_callers(any_device, no_launch):
    """Kernels compute the transpose of a row-major result."""
    x, y = np.ones((200, 9), F32), np.ones((9, 17), F32)
    for first, second, word in ((x, y, "n=17"), (y.T, x.T, "m=17"), (x[:0:-6], y, "n=17")):
        with pytest.raises(ValueError, match=word):
            matmul(first, second, kernel=13, device=any_device)
    with pytest.raises(ValueError, match="n=17"):
        matmul(np.stack([x, x]), np.stack([y, y]), kernel=13, device=any_device)


@pytest.mark.parametrize("name", ["a", "b", "c", "out"])
def test_what_is_no_array_of_the_right_type(name, any_device, no_launch):
    there = cla.to_device(any_device.queue, SQUARE)
    for good, wrongs in (
        (SQUARE, (*NOT_ARRAYS, *WRONG_TYPES)),
        (there, (there.astype(np.int32), "a")),
    ):
        for wrong in wrongs:
            arrays = {"a": good, "b": good, name: wrong}
            if name != "out":
                refused(TypeError, name, sgemm, 1, **{"beta": 1, "c": good, **arrays})
            if name != "c":
                refused(TypeError, name, matmul, **arrays)
    wide = SQUARE.astype("longdouble")
    if name == "a" and wide.dtype != np.float64:
        refused(TypeError, name, matmul, wide, SQUARE)
        with pytest.raises(TypeError, match="float64"):
            matmul(wide, SQUARE)
    other = "b" if name == "a" else name  # the type of a is the one that all must have
    for first, second in ((F32, "f8"), ("c8", F32), ("f8", "c16"), (F32, "f2"), ("f2", "f8")):
        arrays = {"a": SQUARE.astype(first), "b": SQUARE.astype(first), name: SQUARE.astype(second)}
        refused(TypeError, other, gemm if name == "c" else matmul, *[1] * (name == "c"), **arrays)
    refused(TypeError, "a", gemmlab.dgemm, 1, SQUARE, SQUARE)


class Interface:
    """An object that offers its memory as PIL's images do."""

    def __init__(self, array: np.ndarray):
        self.array, self.__array_interface__ = array, array.__array_interface__


class Tensor:
    """An object that offers its memory as PyTorch's tensors do, on a device of DLPack."""

    def __init__(self, array: np.ndarray, device: int = 1):
        self.array, self.device = array, device

    def __dlpack_device__(self):
        return self.device, 0

    def __dlpack__(self, **options):
        return self.array.__dlpack__()


class Gradient(Tensor):
    """A tensor that does not let others read its memory."""

    def __dlpack__(self, **options):
        raise BufferError("tensors that require gradients are not exported")


@pytest.mark.parametrize("kind", [Interface, Tensor, lambda array: Tensor(array, 3)])
@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_arrays_of_other_libraries_are_read_where_they_are(kind, dtype, any_device):
    a, b = (np.arange(12).reshape(shape).astype(dtype) for shape in ((3, 4), (4, 3)))
    for first, second in ((kind(a), b), (a, kind(b)), (kind(np.asfortranarray(a)), kind(b))):
        assert np.array_equal(matmul(first, second, device=any_device), a @ b)
    c = np.ones((3, 3), dtype)
    result = gemm(2, kind(a), kind(b), 1, kind(c), device=any_device)
    assert np.array_equal(result, 2 * (a @ b) + c)
    converted = arrays.check_array("a", kind(a))
    assert np.shares_memory(converted, a) and converted.strides == a.strides
    assert np.array_equal(c, np.ones((3, 3))), "not asked to overwrite c"


@pytest.mark.parametrize(
    ("wrong", "remedy"),
    [
        ([[1.0] * 4] * 4, "np.asarray({}, np.float32)"),
        (3, "np.asarray({}, np.float32)"),
        (np.ma.ones((4, 4), F32), "{}.filled(0)"),
        (Tensor(SQUARE, 2), "{}.cpu()"),
        (Gradient(SQUARE), "{}.detach()"),
        (Tensor(SQUARE.astype("i4")), "np.from_dlpack({}).astype(np.float32)"),
        (Interface(SQUARE.astype("i4")), "np.asarray({}).astype(np.float32)"),
    ],
)
def test_what_is_not_read_is_refused_with_the_line_that_converts_it(
    wrong, remedy, any_device, no_launch
):
    for name in ("a", "b"):
        with pytest.raises(TypeError, match=re.escape(remedy.format(name))):
            matmul(**{"a": SQUARE, "b": SQUARE, name: wrong})
    refused(TypeError, "out", matmul, SQUARE, SQUARE, out=wrong)


def test_an_out_is_an_array_itself(any_device, no_launch):
    """A call returns the object that it is given."""
    for wrong, remedy in (
        (Tensor(SQUARE), "np.from_dlpack(out)"),
        (Interface(SQUARE), "np.asarray(out)"),
    ):
        with pytest.raises(TypeError, match=re.escape(remedy)):
            matmul(SQUARE, SQUARE, out=wrong)


def test_shapes_that_do_not_match(device, no_launch):
    x, y = np.ones((3, 4), F32), np.ones((5, 6), F32)
    for on_device in (False, True):
        a, b = (cla.to_device(device.queue, z) for z in (x, y)) if on_device else (x, y)
        options = {} if on_device else {"device": device}
        for trans in ({}, {"trans_a": 1}, {"trans_b": 1}):
            refused(ValueError, "a", sgemm, 1, a, b, **trans, **options)
        refused(ValueError, "c", sgemm, 1, a, a, 1, a, trans_b=1, **options)
        refused(ValueError, "out", matmul, a, a.T, a, **options)
    for left, right in (((3, 4, 4), (2, 4, 4)), ((4,), (5,))):
        refused(ValueError, "a", matmul, np.ones(left, F32), np.ones(right, F32), device=device)
    for wrong in (np.ones(4, F32), np.ones((2, 4, 4), F32)):
        refused(ValueError, "a", sgemm, 1, wrong, SQUARE)
        refused(ValueError, "c", sgemm, 1, SQUARE, SQUARE, 1, wrong)
    refused(ValueError, "b", matmul, SQUARE, np.array(1, F32))
    refused(ValueError, "beta", sgemm, 1, SQUARE, SQUARE, 2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name, kind, values", [
    ("alpha", TypeError, (1j, "2", None, [1.0], np.ones(1, F32))),
    ("alpha", ValueError, (1e39, 10**400)),
    ("beta", TypeError, (np.complex64(1), None)),
    ("trans_a", ValueError, (3, -1, "X", "t", None, 1.0, [], np.ones(2))),
    ("overwrite_c", ValueError, (2, "yes", None, 1.0)),
    ("kernel", ValueError, (0, 99, 1.0, "1", "best", True, None, [3], {}, np.array(["a"]))),
    ("edges", ValueError, ("none", 3, None, np.array(["a", "b"]))),
    ("params", ValueError, ({"TS": 8},)),
    ("device", TypeError, (1.5, True, [0])),
])  # fmt: skip
def test_values_that_are_none_of_those_allowed(name, kind, values, any_device, no_launch):
    for value in values:
        options = {"alpha": 1, "a": SQUARE, "b": SQUARE, "beta": 1, "c": SQUARE, name: value}
        refused(kind, name, sgemm, **options)


CONTRADICTIONS = (
    ("kernel", DOUBLE, {"kernel": 3}),
    ("edges", DOUBLE, {"edges": "pad"}),
    ("edges", SQUARE, {"kernel": "family", "edges": "shift"}),
    ("edges", SQUARE, {"kernel": 12, "edges": "pad"}),
    ("kernel", SQUARE, {"kernel": "packed", "params": {"TS": 4}}),
    ("kernel", SQUARE, {"kernel": "packed", "edges": "pad"}),
    ("kernel", SQUARE.astype("c8"), {"kernel": "packed"}),
    ("precision", SQUARE, TF32 | {"kernel": "packed"}),
    ("precision", SQUARE, TF32 | {"kernel": 3}),
    ("precision", SQUARE, {"precision": "double"}),
    ("precision", DOUBLE, TF32),
    ("precision", SQUARE, {"precision": "tf32x3", "edges": "pad"}),
    ("PARTS", SQUARE, {"precision": "tf32x3", "kernel": "tensor_cores", "params": {"PARTS": 1}}),
    ("TENSOR", SQUARE, TF32 | {"kernel": "warpgroups", "params": {"TENSOR": 0}}),
    ("precision", SQUARE, {"kernel": "tensor_cores"}),
)


def test_choices_that_contradict_each_other_or_the_device(any_device, no_launch):
    tensor = dataclasses.replace(any_device, features=any_device.features | {"tensor"})
    for name, x, options in CONTRADICTIONS:
        refused(ValueError, name, matmul, x, x, device=tensor, **options)
    for precision in ("tf32", "tf32x3"):
        options = {"precision": precision, "device": portable(any_device)}
        refused(ValueError, "precision", matmul, SQUARE, SQUARE, **options)
    gpu = dataclasses.replace(any_device, kind="GPU")
    refused(ValueError, "kernel", matmul, SQUARE, SQUARE, kernel="packed", device=gpu)
    single = dataclasses.replace(any_device, features=any_device.features - {"double"})
    for wrong in (DOUBLE, SQUARE.astype("c16")):
        refused(ValueError, wrong.dtype, matmul, wrong, wrong, device=single)


def test_wrong_parameters_reach_the_caller(any_device, no_launch):
    for call in (
        lambda **chosen: matmul(SQUARE, SQUARE, kernel=3, device=any_device, **chosen),
        lambda **chosen: gemmlab.measure(3, 8, device=any_device, **chosen),
    ):
        for name, params in {"TS": {"TS": 20}, "wpt": {"wpt": 4}}.items():
            with pytest.raises(ParameterError, match=name):
                call(params=params)
        with pytest.raises(TypeError, match="TS"):
            call(params={"TS": 8.0})
    empty_tile = {"TSM": 0, "TSN": 0}
    refused(ParameterError, "TSM", matmul, SQUARE, SQUARE, kernel=6, params=empty_tile)
    direct = {"TSM": 8, "TSN": 8, "TSK": 1, "WPTM": 8, "UNROLL": 1, "WIDTH": 8, "STAGES": 0}
    for kind, words, params in (
        (ParameterError, "TSX", {"TSX": 8}),
        (TypeError, "TSM", {"TSM": 8.0}),
        (ParameterError, "UNIT must be from 0 to 3, not 4", {"UNIT": 4}),
        (ParameterError, "30 rows", {"TSM": 30}),
        (ParameterError, "STAGES=0.*4 x 4", direct),
    ):
        with pytest.raises(kind, match=words):
            matmul(SQUARE, SQUARE, kernel="family", params=params, device=any_device)
    refused(TypeError, "params", matmul, SQUARE, SQUARE, kernel=3, params=[8])


def test_arrays_that_are_not_on_one_queue(device, no_launch):
    here = cla.to_device(device.queue, SQUARE)
    context = cl.Context([device.cl])  # kept: PoCL's queues do not
    for wrong, kind in (
        (SQUARE, TypeError),
        (here.with_queue(cl.CommandQueue(device.context)), ValueError),
        (here.with_queue(None), ValueError),
        (cla.to_device(cl.CommandQueue(context), SQUARE), ValueError),
    ):
        for name in "abc":
            # where a is on another queue, it is b that does not agree with the first array
            second = "b" if name == "a" and kind is ValueError and wrong.queue is not None else name
            arrays = {"a": here, "b": here, "beta": 1, "c": here, name: wrong}
            refused(kind, second, sgemm, 1, overwrite_c=True, **arrays)
        refused(kind, "out", matmul, here, here, wrong)
    for other in gemmlab.devices():
        if other.cl != device.cl:
            refused(ValueError, "device", matmul, here, here, device=other)
    unordered = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE
    if device.cl.queue_properties & unordered:
        x = here.with_queue(cl.CommandQueue(device.context, properties=unordered))
        with pytest.raises(ValueError, match="order"):
            matmul(x, x)


def test_device_arrays_that_kernels_cannot_read(any_device, no_launch):
    """PyOpenCL makes arrays of any offset and strides; a kernel would use other memory."""
    buffer = cl.Buffer(any_device.context, cl.mem_flags.READ_WRITE, 60)
    good = cla.to_device(any_device.queue, np.ones((3, 3), F32))
    for shape, offset, strides in (
        ((3, 5), 4, None),
        ((3, 3), 0, (-12, 4)),
        ((3, 3), 0, (14, 4)),
        ((3, 3), 0, (20, 8)),
        ((2, 3, 3), 0, (38, 12, 4)),
    ):
        wrong = cla.Array(any_device.queue, shape, F32, data=buffer, offset=offset, strides=strides)
        refused(ValueError, "b", matmul, good, wrong)
        if shape == (3, 3):
            refused(ValueError, "a", matmul, wrong, good)
            refused(ValueError, "out", matmul, good, good, wrong)
            refused(ValueError, "c", sgemm, 1, good, good, 1, wrong)


def test_a_result_that_shares_memory(any_device):
    """With an operand: on a device it is refused; NumPy arrays may overlap, as in NumPy."""
    host = np.arange(48, dtype=F32).reshape(12, 4)
    memory = cla.to_device(any_device.queue, host)
    for name, part in (("a", slice(4)), ("a", slice(3, 7)), ("b", slice(5, 9))):
        refused(ValueError, name, matmul, memory[:4], memory[8:], memory[part])
        x = host.copy()
        expected = x[:4] @ x[8:]
        assert np.array_equal(matmul(x[:4], x[8:], x[part], device=any_device), expected)
        assert np.array_equal(x[part], expected)
    for strides in ((0, 4), (4, 4), (4, 0)):
        out = cla.Array(any_device.queue, (4, 4), F32, data=memory.base_data, strides=strides)
        refused(ValueError, "out", matmul, *2 * [cla.to_device(any_device.queue, SQUARE)], out)
        out = np.lib.stride_tricks.as_strided(host, (4, 4), strides)
        refused(ValueError, "out", matmul, SQUARE, SQUARE, out, device=any_device)
    frozen = SQUARE.copy()
    frozen.flags.writeable = False
    refused(ValueError, "out", matmul, SQUARE, SQUARE, frozen, device=any_device)


def _views(kind: str, queue, size: int):
    """A function that makes arrays of 64 x 64 from byte `at` of `size` bytes on."""
    flags, host = cl.mem_flags.READ_WRITE, np.zeros(size, np.uint8)
    if "host memory" in kind:
        flags |= cl.mem_flags.USE_HOST_PTR
    made = {"hostbuf": host} if "host memory" in kind else {"size": size}
    whole = cl.Buffer(queue.context, flags, **made)

    def view(at: int) -> cla.Array:
        memory, offset = whole, at
        if "sub-buffers" in kind:
            memory, offset = whole.get_sub_region(at, 4 * 64 * 64), 0
        elif kind == "host memory, used twice":
            memory, offset = cl.Buffer(queue.context, flags, hostbuf=host[at:]), 0
        elif kind == "a buffer and its half" and at >= size // 2:
            memory, offset = whole.get_sub_region(size // 2, size // 2), at - size // 2
        return cla.Array(queue, (64, 64), F32, data=memory, offset=offset)

    return view


@pytest.mark.parametrize(
    "kind",
    [
        "a buffer",
        "sub-buffers",
        "a buffer and its half",
        "sub-buffers of host memory",
        "host memory, used twice",
    ],
)
def test_results_in_the_memory_behind_a_buffer(kind, device):
    """An operand's is refused as `out`, and not used as c; memory beside it is right."""
    if "host memory" in kind and device.kind != "CPU":
        pytest.skip("such a buffer is a copy on another device")
    size, queue = 4 * 64 * 64, device.queue
    view = _views(kind, queue, 8 * size)
    rng = np.random.default_rng(0)
    x, y, z = rng.integers(-4, 5, (3, 64, 64)).astype(F32)
    a, b = view(size), view(5 * size)
    a.set(x)
    b.set(y)
    expected = x @ y
    for at in (0, 2, 4, 6):
        out = view(at * size)
        assert np.array_equal(matmul(a, b, out).get(), expected)
        out.set(z)
        c = gemm(1, a, b, 1, out, overwrite_c=True)
        assert np.array_equal(c.get(), expected + z)
        assert (c is out) == (out.offset == 0)
    for name, at in (("a", 1), ("a", 1.5), ("b", 5), ("b", 4.5)):
        out = view(int(at * size))
        refused(ValueError, name, matmul, a, b, out)
        before = out.get()
        c = gemm(1, a, b, 1, out, overwrite_c=True)
        assert c is not out and np.array_equal(c.get(), expected + before)


def test_more_than_a_device_or_an_index_can_hold(device, no_launch):
    roomy = dataclasses.replace(device, memory=2**42, largest=2**41)
    plan.check_memory(roomy, {"a": 2**33}, wide=True)
    with pytest.raises(ValueError, match="^a spans .* 32 bits"):
        plan.check_memory(roomy, {"a": 2**31})
    poor = dataclasses.replace(device, memory=300_000, largest=299_000)
    large = dataclasses.replace(device, memory=2**30, largest=4 * 300 * 200)
    ladder = {"kernel": 3, "params": {"TS": 32, "WPT": 8}}
    for words, call in (
        (str(poor), lambda: matmul(np.ones((300, 300)), np.ones((300, 300)), device=poor)),
        ("after 'pad'", lambda: matmul(*2 * [np.ones((244, 244), F32)], device=large, **ladder)),
        ("bytes", lambda: gemmlab.measure(1, 500, device=poor)),
    ):
        with pytest.raises(MemoryError, match=re.escape(words)):
            call()


def resident() -> int:
    """Bytes of this process in memory now, without what it has freed but not returned."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(sys.platform != "linux", reason="memory in use is read from Linux's /proc")
@pytest.mark.optimised  # large enough for a leak to show
@pytest.mark.parametrize("leaks", [False, True])
def test_a_failed_call_leaks_no_memory(leaks, some_device, monkeypatch):
    """Three matrices of 17 MB a call, ten times: one leaked buffer of each call would be 168 MB."""
    side, kept = 2047, []
    a, b, c = np.ones((side, 40), F32), np.ones((40, side), F32), np.ones((side, side), F32)
    call = {"alpha": 2, "a": a, "b": b, "beta": 1, "c": c, "kernel": 3, "device": some_device}

    def fail():
        with monkeypatch.context() as patch:
            patch.setattr(plan.KernelLaunch, "__call__", lambda *_: 1 / 0)
            with pytest.raises(ZeroDivisionError):
                sgemm(**call)
        some_device.queue.finish()
        if leaks:  # the control: the watch sees a leak
            kept.append(c.copy())

    for _ in range(3):
        fail()
    before = resident()
    for _ in range(10):
        fail()
    assert (resident() - before > 60e6) == leaks
    assert np.array_equal(sgemm(**call), np.full((side, side), 81, F32)), "the next one is right"
