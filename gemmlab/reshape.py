"""What users call for the supporting kernels: transpose, pad and unpad, for NumPy or device arrays."""

from __future__ import annotations

from numbers import Integral

import numpy as np
import pyopencl.array as cla

from .arrays import checked, operand, read, shared_queue
from .pipeline import Session, fits


def _reshaped(x, shape, device, work):
    """Run `work(session, matrix, out)` on x's memory; the result has `shape` (after reading x by rows)."""
    x = checked("x", x)
    queue, device = shared_queue({"x": x}, device)
    on_device = queue is not None
    queue = queue or device.queue
    fits(device, {"x": x.size, "the result": shape[0] * shape[1]})
    session = Session(queue, device, pooled=not on_device)
    if shape[0] * shape[1] == 0 or x.size == 0:
        return cla.zeros(queue, shape, np.float32) if on_device else np.zeros(shape, np.float32)
    matrix, lies = operand(x, False, session, True, "x")
    out = work(session, session.transpose(matrix) if lies else matrix)
    if on_device:
        return cla.Array(queue, shape, np.float32, data=out.buffer)
    return read(session, out, shape)


def transpose(x, *, device=None):
    """The n x m transpose of an m x n float32 matrix, by ``transpose.cl``; a new row-major array on x's side."""
    return _reshaped(x, checked("x", x).shape[::-1], device, lambda session, matrix: session.transpose(matrix))


def pad(x, rows: int, cols: int, *, device=None):
    """An m x n float32 matrix as the corner of a rows x cols one, zeroes elsewhere, by ``pad.cl``; row-major."""
    _sizes(x, rows, cols, larger=True)
    return _reshaped(x, (rows, cols), device, lambda session, matrix: session.pad(matrix, cols, rows))


def unpad(x, rows: int, cols: int, *, device=None):
    """The first rows x cols elements of a larger float32 matrix, by ``pad.cl``; a new row-major array."""
    _sizes(x, rows, cols, larger=False)

    def work(session, matrix):
        return session.unpad(session.compact(matrix), cols, rows, session.new(cols, rows))

    return _reshaped(x, (rows, cols), device, work)


def _sizes(x, rows, cols, larger: bool) -> None:
    x = checked("x", x)
    for name, size, have in (("rows", rows, x.shape[0]), ("cols", cols, x.shape[1])):
        if isinstance(size, bool) or not isinstance(size, Integral) or size < 0:
            raise ValueError(f"{name} must be a whole number from 0 on, not {size!r}")
        if size < have if larger else size > have:
            raise ValueError(f"{name}={size}, but x has {have}; it must be at {'least' if larger else 'most'} that")
