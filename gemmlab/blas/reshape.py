"""What users call for the supporting kernels: transpose, pad and unpad, for NumPy or device arrays."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral

import numpy as np
import pyopencl.array as cla

from .operands import check_inside, checked, form, shared_queue, swapped
from .passes import Matrix, Session, check_memory, placed, wait_for_others
from .problem import Layout


def _reshaped(x, shape: tuple[int, int], device, work: Callable[[Session, Matrix], Matrix]):
    """Run `work(session, matrix)` on x's memory, read by rows; the result, read by rows, has `shape`."""
    x = checked("x", x)
    queue, device = shared_queue({"x": x}, device)
    on_device = queue is not None
    queue = queue or device.queue
    check_memory(device, {"x": x.size, "the result": shape[0] * shape[1]})
    if shape[0] * shape[1] == 0 or x.size == 0:
        return cla.zeros(queue, shape, np.float32) if on_device else np.zeros(shape, np.float32)
    if on_device:
        wait_for_others(queue, x)
    lies = form(x)
    check_inside("x", lies)
    operand = swapped("x", lies)
    with Session(queue, device) as session:
        matrix = placed(x.base_data if on_device else session.upload(x), operand)
        if not operand.plain:
            matrix = session.transpose(matrix, Layout.compact(*x.shape[::-1]))
        out = work(session, matrix)
        if on_device:
            return cla.Array(queue, shape, np.float32, data=out.buffer, events=[event for _, event in session.events])
        host = np.empty(shape, np.float32)
        session.download(out.buffer, host)
        return host


def transpose(x, *, device=None):
    """The n x m transpose of an m x n float32 matrix, by ``transpose.cl``; a new row-major array on x's side."""
    rows, cols = checked("x", x).shape
    return _reshaped(x, (cols, rows), device, lambda session, x: session.transpose(x, Layout.compact(rows, cols)))


def pad(x, rows: int, cols: int, *, device=None):
    """An m x n float32 matrix as the corner of a rows x cols one, zeroes elsewhere, by ``pad.cl``; row-major."""
    _sizes(x, rows, cols, larger=True)
    return _reshaped(x, (rows, cols), device, lambda session, x: session.pad(x, Layout.compact(cols, rows)))


def unpad(x, rows: int, cols: int, *, device=None):
    """The first rows x cols elements of a larger float32 matrix, by ``pad.cl``; a new row-major array."""
    _sizes(x, rows, cols, larger=False)

    def work(session: Session, x: Matrix) -> Matrix:
        return session.unpad(session.compact(x), session.new(Layout.compact(cols, rows)))

    return _reshaped(x, (rows, cols), device, work)


def _sizes(x, rows, cols, larger: bool) -> None:
    x = checked("x", x)
    for name, size, have in (("rows", rows, x.shape[0]), ("cols", cols, x.shape[1])):
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 0:
            raise ValueError(f"{name} must be a non-negative whole number, not {size!r}")
        if size < have if larger else size > have:
            raise ValueError(f"{name}={size}, but x has {have}; it must be at {'least' if larger else 'most'} that")
