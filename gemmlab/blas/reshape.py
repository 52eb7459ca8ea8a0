"""What users call for the supporting kernels: transpose, pad and unpad, for NumPy or device
arrays.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral

import numpy as np
import pyopencl.array as cla

from .arrays import check_inside, checked, shared_queue, spec_of, swapped, uploaded_spec
from .plan import OUT, A, Builder, Matrix, check_memory, placed, pool_of, wait_for_others
from .problem import Layout
from .staging import Direct


def _reshaped(x, shape: tuple[int, int], device, work: Callable[[Builder, Matrix, Matrix], Matrix]):
    """The result, of this shape, of the passes that `work(builder, x, out)` appends; both matrices
    row-major.
    """
    x = checked("x", x)
    queue, device = shared_queue({"x": x}, device)
    on_device = queue is not None
    queue = queue or device.queue
    check_memory(device, {"x": x.size, "the result": shape[0] * shape[1]})
    if shape[0] * shape[1] == 0 or x.size == 0:
        return cla.zeros(queue, shape, np.float32) if on_device else np.zeros(shape, np.float32)
    spec = spec_of(x) if on_device else uploaded_spec(x)
    check_inside("x", spec)
    operand = swapped("x", spec)
    builder = Builder(queue, device)
    matrix = placed(A, operand)
    if not operand.plain:
        matrix = builder.transpose(matrix, Layout.compact(*x.shape[::-1]))
    work(builder, matrix, Matrix(OUT, Layout.compact(*shape[::-1])))
    plan, pool = builder.plan(), pool_of(queue)
    out = pool.allocate(4 * shape[0] * shape[1])
    if on_device:
        wait_for_others(queue, x)
        events = plan(queue, (x.base_data, None, None, out))
        return cla.Array(queue, shape, np.float32, data=out, events=[event for _, event in events])
    memory, transfer = pool.allocate(x.nbytes), Direct()
    transfer.upload(queue, x, memory)
    plan(queue, (memory, None, None, out))
    host = np.empty(shape, np.float32)
    transfer.download(queue, out, host)
    return host


def transpose(x, *, device=None):
    """The n x m transpose of an m x n float32 matrix, by ``transpose.cl``; a new row-major array on
    x's side.
    """
    rows, cols = checked("x", x).shape
    return _reshaped(x, (cols, rows), device, Builder.transpose)


def pad(x, rows: int, cols: int, *, device=None):
    """An m x n float32 matrix as the corner of a rows x cols one, zeroes elsewhere, by ``pad.cl``;
    row-major.
    """
    _sizes(x, rows, cols, larger=True)
    return _reshaped(x, (rows, cols), device, Builder.pad)


def unpad(x, rows: int, cols: int, *, device=None):
    """The first rows x cols elements of a larger float32 matrix, by ``pad.cl``; a new row-major
    array.
    """
    _sizes(x, rows, cols, larger=False)

    def work(builder: Builder, x: Matrix, out: Matrix) -> Matrix:
        return builder.unpad(builder.compact(x), out)

    return _reshaped(x, (rows, cols), device, work)


def _sizes(x, rows, cols, larger: bool) -> None:
    x = checked("x", x)
    for name, size, have in (("rows", rows, x.shape[0]), ("cols", cols, x.shape[1])):
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 0:
            raise ValueError(f"{name} must be a non-negative whole number, not {size!r}")
        if size < have if larger else size > have:
            raise ValueError(
                f"{name}={size}, but x has {have}; it must be at {'least' if larger else 'most'} "
                "that"
            )
