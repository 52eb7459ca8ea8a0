"""Arrays of every layout inside a frame, in NumPy's memory or on a device."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

#: Bytes before and behind a sub-buffer: a multiple of every device's alignment.
_ALIGNED = 4096


def whole(shape, seed=0, dtype="float32") -> np.ndarray:
    """Odd whole numbers, or Gaussian integers, whose products and sums no type rounds."""
    rng, values = np.random.default_rng(seed), (-3, -1, 1, 3)
    x = rng.choice(values, shape).astype(dtype)
    return x + (1j * rng.choice(values, shape)).astype(dtype) if x.dtype.kind == "c" else x


@dataclass(frozen=True)
class Layout:
    """The layout of an array's matrices in memory."""

    columns: bool = False  # column-major instead of row-major
    frame: int = 0  # elements around the matrix in both dimensions: it is part of a larger one
    rows: int = 1  # step in the memory's own rows: 1, -1 or 2
    cols: int = 1
    batch: int = 1  # step of the first dimension, if there are more than two
    unaligned: bool = False  # one byte off an element's alignment (NumPy's memory only)
    read_only: bool = False  # for NumPy
    sub_buffer: bool = False  # in a part of a larger buffer (devices only)


class Framed:
    """An array of that layout, with NaN in all memory that is not its own.

    `host` is the array in NumPy's memory; `given` is what a call gets: `host`, or an array on the
    device with the same strides.
    """

    def __init__(
        self,
        x: np.ndarray,
        layout: Layout,
        queue: cl.CommandQueue | None = None,
        allocator: Any = None,
    ):
        y = x.swapaxes(-1, -2) if layout.columns and x.ndim > 1 else x
        steps = (
            [1] * max(0, y.ndim - 3) + [layout.batch] * (y.ndim > 2) + [layout.rows] * (y.ndim > 1)
        )
        steps = [*steps, layout.cols][: y.ndim]
        frame = [0] * (y.ndim - min(2, y.ndim)) + [layout.frame] * min(2, y.ndim)
        larger = [size * abs(s) + 2 * f for size, s, f in zip(y.shape, steps, frame, strict=True)]
        elements = int(np.prod(larger, dtype=np.int64))
        bytes_ = np.zeros(elements * y.itemsize + 1, np.uint8)
        at = 1 if layout.unaligned and queue is None else 0
        self._memory = bytes_[at : at + elements * y.itemsize].view(y.dtype).reshape(larger)
        self._memory[...] = np.nan
        view = self._memory
        for axis, (size, s, f) in enumerate(zip(y.shape, steps, frame, strict=True)):
            part = np.moveaxis(view, axis, 0)[f : f + size * abs(s) : abs(s)][:: 1 if s > 0 else -1]
            view = np.moveaxis(part, 0, axis)
        view[...] = y
        self.host = view.swapaxes(-1, -2) if layout.columns and x.ndim > 1 else view
        assert self.host.shape == x.shape
        self._before, self._queue = self._memory.copy(), queue
        self.given: Any = self.host
        if queue is None:
            self.host.flags.writeable = not layout.read_only
        else:
            self.given = self._on_device(queue, allocator, layout.sub_buffer)

    def _on_device(self, queue: cl.CommandQueue, allocator: Any, sub_buffer: bool) -> cla.Array:
        size = max(1, self._memory.nbytes)
        self._ends = np.full(size + 2 * _ALIGNED if sub_buffer else 0, 7, np.uint8)
        self._buffer = cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, max(size, self._ends.size))
        self._larger = self._buffer
        if sub_buffer:
            cl.enqueue_copy(queue, self._larger, self._ends)
            self._buffer = self._larger.get_sub_region(_ALIGNED, size)
        if self._memory.size:
            cl.enqueue_copy(queue, self._buffer, self._memory)
        first = self.host.ctypes.data - self._memory.ctypes.data if self.host.size else 0
        shape, strides = self.host.shape, self.host.strides
        more = {"data": self._buffer, "offset": first, "strides": strides, "allocator": allocator}
        return cla.Array(queue, shape, self.host.dtype, **more)

    def holds(self, expected: np.ndarray | None = None) -> bool:
        """Whether the array has these values, or its first ones, and all around it is untouched."""
        memory = self._memory
        if self._queue is not None and memory.size:
            memory = np.empty_like(memory)
            cl.enqueue_copy(self._queue, memory, self._buffer)
        if self._queue is not None and self._ends.size:
            cl.enqueue_copy(self._queue, self._ends, self._larger)
            if (self._ends[:_ALIGNED] != 7).any() or (self._ends[-_ALIGNED:] != 7).any():
                return False
        if expected is not None:  # the same view of memory that is as it should be
            now, self._memory[...] = self._memory.copy(), self._before
            writeable, self.host.flags.writeable = self.host.flags.writeable, True
            self.host[...] = expected
            wanted, self._memory[...] = self._memory.copy(), now
            self.host.flags.writeable = writeable
        else:
            wanted = self._before
        return np.array_equal(memory, wanted, equal_nan=True)

    def is_readable(self, axis: int) -> bool:
        """Whether a dimension of a device array is contiguous, and no stride negative; axis 0 is
        for rows.
        """
        shape, strides = list(self.host.shape), [s // self.host.itemsize for s in self.host.strides]
        if len(shape) == 1:
            shape.insert(axis, 1)
            strides.insert(axis, 1)
        (rows, cols), (down, across) = shape[-2:], strides[-2:]
        by_rows = (cols == 1 or across == 1) and (rows == 1 or down >= cols)
        by_columns = (rows == 1 or down == 1) and (cols == 1 or across >= rows)
        return by_rows or by_columns
