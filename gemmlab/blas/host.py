"""Products of NumPy arrays on processors, in the arrays' own memory.

A processor's OpenCL device computes in the memory of the host. So NumPy operands are not uploaded: kernels read their
own memory, and the result is written straight into the array that is returned. Where a device shares all memory with
the host (OpenCL's "fine-grained system" sharing), kernels are given its address; elsewhere it becomes a buffer.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial

import numpy as np
import pyopencl as cl

from ..caches import cached
from ..opencl.devices import Device
from ..opencl.lending import lend
from . import packed
from .passes import Matrix, Session, pool_of, trim
from .problem import Layout, Operand, Problem
from .repeat import Recording, Repeat

#: A function that multiplies two arrays.
Again = Callable[[np.ndarray, np.ndarray], np.ndarray]
#: Multiply-adds, and bytes of the three matrices, for which one thread takes as long as the others take to wake up:
#: those of PoCL, and those of Intel's runtime, which wake sooner.
_POCL_AWAKE, _INTEL_AWAKE = (2**21, 2**20), (2**20, 2**19)


def multiply(device: Device, a, b, trans: tuple[bool, bool], alpha, beta, c, out: np.ndarray, known=None) -> None:
    """out = alpha op(a) op(b) + beta c, row-major, on a processor.

    Args:
        a, b: matrices of one type and of any layout; what has no contiguous dimension is copied first.
        trans: whether each of them is transposed.
        c: added if beta is not 0.
        out: where the result goes: by rows, without gaps. It may be c.
        known: a list where a function of a and b for calls like this one is left, or None.
    """
    m, n = out.shape
    k = a.shape[0 if trans[0] else 1]
    device = _suited(device, m, n, k, out.itemsize)
    operands = _operand(device, "b", b, trans[1]), _operand(device, "a", a, trans[0])
    problem = Problem(n, m, k, operands[0][1], operands[1][1])  # from here on everything is column-major
    result, before = _memory(device, out), None
    if beta:
        own = Operand("c", Layout.compact(n, m), None)
        before = (result, own) if c is out else _operand(device, "c", c)
    buffers = operands[0][0], operands[1][0]
    if device.team:
        device.team.make_room()
    with Session(device.queue, device, dtype=out.dtype) as session:
        repeatable = known is not None and all(x.flags.forc and x.flags.aligned for x in (a, b))
        session.recording = Recording() if repeatable else None

        def work() -> None:
            packed.gemm(session, problem, buffers, alpha, beta, before, Matrix(result, Layout.compact(n, m)))
            if session.recording:
                known.append(again(Repeat(session.recording, (*buffers, result)), device, a, b, out))
            _bring_back(device, result, out)

        lend(work, device.queue.finish)


def _suited(device: Device, m: int, n: int, k: int, size: int) -> Device:
    """The device itself, or its `in_caller`, if there is one, for a product that is so small that threads save less
    time than they take to wake up."""
    alone, saved = device.in_caller, 1 - 1 / device.units
    if alone is None:
        return device
    work = m * n * k, size * (m * k + k * n + m * n)
    awake = _INTEL_AWAKE if alone.cl == device.cl else _POCL_AWAKE
    return alone if all(saved * x <= y for x, y in zip(work, awake, strict=True)) else device


def again(repeat: Repeat, device: Device, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> Again:
    """A function for products of arrays of the same forms as in an earlier call to `multiply`, by its launches.

    What is the same for all of them is looked up once: the rest of a small product takes no longer than that.

    Args:
        repeat: the launches, whose buffers are those of b, a and the result.
        device: where they run.
        a, b: arrays of these forms.
        out: an array like the result.
    """
    queue, pool, shape, dtype = device.queue, pool_of(device.queue), out.shape, out.dtype
    of_a, of_b, of_out = (_passing(device, x.flags.writeable) for x in (a, b, out))
    in_place = of_out is cl.SVM or _writes_in_place(device)
    make_room = device.team.make_room if device.team else None
    if in_place and len(repeat.launches) == 1 and not repeat.size_bytes:
        return _by_one_launch(repeat, queue, (of_b, of_a, of_out), shape, dtype, make_room)

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        out = np.empty(shape, dtype)
        result = of_out(out)
        left, right = of_b(b), of_a(a)
        if make_room:
            make_room()

        def work() -> None:
            repeat(queue, (left, right, result), pool.allocate)
            _bring_back(device, result, out)

        lend(work, queue.finish)
        trim(pool, repeat.size_bytes)
        return out

    return multiply


def _by_one_launch(repeat: Repeat, queue: cl.CommandQueue, passing, shape, dtype, make_room) -> Again:
    """The same where nothing else is to be done: a product may take less time than a few of Python's steps."""
    kernel, global_size, local_size, places, _ = repeat.launches[0]
    (at_left, _), (at_right, _), (at_result, _) = sorted(places, key=lambda place: place[1])
    of_b, of_a, of_out = passing
    set_arg, empty, enqueue, lock = kernel.set_arg, np.empty, cl.enqueue_nd_range_kernel, repeat.lock
    finish = queue.finish

    def multiply(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        out = empty(shape, dtype)
        left, right, result = of_b(b), of_a(a), of_out(out)  # OpenCL keeps no memory alive for an argument
        if make_room:
            make_room()

        def work() -> None:
            with lock:
                set_arg(at_left, left)
                set_arg(at_right, right)
                set_arg(at_result, result)
                enqueue(queue, kernel, global_size, local_size)

        lend(work, finish)
        return out

    return multiply


def _bring_back(device: Device, result: cl.Buffer | cl.SVM, out: np.ndarray) -> None:
    """Make sure that what the device has written to an array's memory is there.

    Of a buffer OpenCL promises it only after it is mapped, which takes another command and as long as a small product.
    """
    if isinstance(result, cl.Buffer) and not _writes_in_place(device):
        mapped, _ = cl.enqueue_map_buffer(device.queue, result, cl.map_flags.READ, 0, out.shape, out.dtype)
        mapped.base.release(device.queue)


@cached(8)
def _writes_in_place(device: Device) -> bool:
    """Whether what a device writes to a buffer in the host's memory is there at once."""
    found = np.zeros(1024, np.int32)[1:]  # of no particular alignment
    memory, queue = _buffer(device.context, found), device.queue
    lend(lambda: cl.enqueue_fill_buffer(queue, memory, np.int32(1), 0, found.nbytes), queue.finish)
    return bool(found.all())


@cached(8)
def _shares_memory(device: Device) -> bool:
    """Whether kernels take any address of the host's memory; an OpenCL older than 2.0 is not asked.

    PoCL 3 does not say so, but on a processor a buffer is nothing but its address there, too.
    """
    with suppress(cl.Error):
        found, any_address = device.cl.svm_capabilities, cl.device_svm_capabilities.FINE_GRAIN_SYSTEM
        return bool(found & any_address) or found > 0 and "PoCL 3." in device.version
    return False


def _operand(device: Device, name: str, x: np.ndarray, trans: bool = False) -> tuple[cl.Buffer | cl.SVM, Operand]:
    """The array's memory, and how its transpose (or, where `trans`, itself) lies there.

    A matrix by rows is in memory its transpose by columns: see `operands.swapped`. But here parts of larger arrays
    are read where they are.
    """
    (rows, cols), (down, across) = x.shape, (stride // x.itemsize for stride in x.strides)
    if not x.flags.aligned or not (across == 1 and down >= cols or down == 1 and across >= rows):
        x, down, across = np.ascontiguousarray(x), cols, 1
    by_rows = across == 1 and down >= cols
    layout = Layout.compact(cols, rows, down) if by_rows else Layout.compact(rows, cols, across)
    if not x.flags.forc:  # all that lies between the first element and the last
        length = (rows - 1) * down + (cols - 1) * across + 1
        x = np.lib.stride_tricks.as_strided(x, (length,), (x.itemsize,), writeable=x.flags.writeable)
    return _memory(device, x), Operand(name, *((layout, None) if by_rows != trans else (None, layout)))


def _memory(device: Device, x: np.ndarray) -> cl.Buffer | cl.SVM:
    """The memory of a contiguous array, as a kernel takes it."""
    return _passing(device, x.flags.writeable)(x)


def _passing(device: Device, writeable: bool) -> Callable[[np.ndarray], cl.Buffer | cl.SVM]:
    """The function that turns an array into memory for a kernel. (PyOpenCL passes no address of a read-only one.)"""
    return cl.SVM if writeable and _shares_memory(device) else partial(_buffer, device.context)


def _buffer(context: cl.Context, x: np.ndarray) -> cl.Buffer:
    """A buffer that is the memory of a contiguous array.

    It may be written where the array may: of a buffer for reading alone Intel's runtime makes a copy, unless the memory
    begins at a multiple of 128 bytes, and that can take longer than the product.
    """
    access = cl.mem_flags.READ_WRITE if x.flags.writeable else cl.mem_flags.READ_ONLY
    return cl.Buffer(context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=x)
