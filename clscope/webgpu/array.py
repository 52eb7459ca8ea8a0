"""Arrays on the GPU: as much of `pyopencl.array` as carries data to kernels and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from math import prod
from typing import Any

import numpy as np

from .memory import Buffer, enqueue_copy
from .queue import CommandQueue, Event, LogicError, mem_flags

Allocator = Callable[[int], Buffer]


class Array:
    """An array in a buffer: shape, dtype, and strides in bytes.

    Attributes:
        base_data: its buffer; offset: the byte in it at which the array begins.
        events: of the commands that write it.
    """

    def __init__(  # noqa: PLR0913
        self,
        queue: CommandQueue,
        shape: int | Sequence[int],
        dtype: Any,
        order: str = "C",
        allocator: Allocator | None = None,
        data: Buffer | None = None,
        offset: int = 0,
        strides: tuple[int, ...] | None = None,
        events: list[Event] | None = None,
    ):
        self.queue = queue
        self.context = queue.context
        self.shape: tuple[int, ...] = (shape,) if isinstance(shape, int) else tuple(shape)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        self.ndim: int = len(self.shape)
        self.size: int = prod(self.shape)
        self.nbytes: int = self.size * self.dtype.itemsize
        self.strides: tuple[int, ...] = strides or _strides(self.shape, self.dtype.itemsize, order)
        self.offset: int = offset
        self.allocator = allocator
        self.events: list[Event] = events or []
        size = max(1, self.nbytes)
        allocated = allocator(size) if allocator and data is None else data
        self.base_data: Buffer = allocated or Buffer(self.context, mem_flags.READ_WRITE, size)

    @property
    def data(self) -> Buffer:
        if self.offset:
            raise LogicError("the array begins inside its buffer: use base_data and offset")
        return self.base_data

    @property
    def flags(self) -> Any:
        """NumPy's flags of such an array."""
        one = np.empty(1, self.dtype)
        return np.lib.stride_tricks.as_strided(one, self.shape, self.strides).flags

    @property
    def T(self) -> Array:
        x = copy(self)
        x.shape, x.strides = self.shape[::-1], self.strides[::-1]
        return x

    def with_queue(self, queue: CommandQueue) -> Array:
        x = copy(self)
        x.queue = queue
        return x

    def get(self) -> np.ndarray:
        """Copy the array to the host."""
        memory = np.empty(self.base_data.size, np.uint8)
        enqueue_copy(self.queue, memory, self.base_data)
        return np.ndarray(self.shape, self.dtype, memory, self.offset, self.strides).copy(order="K")


def to_device(queue: CommandQueue, ary: np.ndarray, allocator: Allocator | None = None) -> Array:
    """Copy an array to the GPU, row-major or column-major as it is."""
    dense = ary if ary.flags.forc else np.ascontiguousarray(ary)
    order = "C" if dense.flags.c_contiguous else "F"
    x = Array(queue, dense.shape, dense.dtype, order, allocator)
    if x.size:
        enqueue_copy(queue, x.base_data, dense)
    return x


def empty(
    queue: CommandQueue,
    shape: int | Sequence[int],
    dtype: Any,
    order: str = "C",
    allocator: Allocator | None = None,
) -> Array:
    return Array(queue, shape, dtype, order, allocator)


def _strides(shape: tuple[int, ...], itemsize: int, order: str) -> tuple[int, ...]:
    sides = shape if order == "C" else shape[::-1]
    strides = tuple(itemsize * prod(sides[i + 1 :]) for i in range(len(sides)))
    return strides if order == "C" else strides[::-1]
