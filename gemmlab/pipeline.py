"""The passes over matrices on a device that make up one product: transpose, pad, multiply, unpad, axpby."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyopencl as cl
from pyopencl.tools import ImmediateAllocator, MemoryPool

from . import sources
from .build import Built, build
from .device import Device
from .launch import INDEX_LIMIT, Kernel

_MOVED = 32, 8, 4  # PX, PY and PE of pad.cl
_TURNED = 32, 8  # TT and TR of transpose.cl
_LINE = 64  # WG of axpby.cl and range.cl


class Matrix(NamedTuple):
    """A column-major float32 matrix in a device buffer: columns `ld` elements apart, the first at `offset`."""

    buffer: cl.MemoryObject
    rows: int
    cols: int
    ld: int
    offset: int = 0

    @property
    def compact(self) -> bool:
        return self.offset == 0 and (self.ld == self.rows or self.cols == 1)


class Session:
    """The device side of one call: a queue, and the passes over matrices, each event recorded by name.

    Its matrices come from a pool of memory that the calls on a queue share, since fresh memory can take
    longer than a small product. With ``pooled=False`` they are the caller's to keep.
    """

    def __init__(self, queue: cl.CommandQueue, device: Device, pooled: bool = True):
        self.queue, self.device, self.pooled = queue, device, pooled
        self.events: list[tuple[str, cl.Event]] = []

    def _launch(self, file: str, name: str, global_size, local_size, *args) -> None:
        helper = _helper(self.device, self.queue.context, file, name)
        self.events.append((name, helper(self.queue, global_size, local_size, *args)))

    def new(self, rows: int, cols: int, ld: int | None = None) -> Matrix:
        return Matrix(self._buffer(rows * cols), rows, cols, ld or rows)

    def upload(self, x: np.ndarray) -> Matrix:
        """A C-contiguous r x c array as the column-major c x r matrix that it is in memory."""
        matrix = self.new(x.shape[1], x.shape[0])
        cl.enqueue_copy(self.queue, matrix.buffer, x)
        return matrix

    def _buffer(self, elements: int) -> cl.MemoryObjectHolder:
        if self.pooled:
            return _pool(self.queue).allocate(4 * elements)
        return cl.Buffer(self.queue.context, cl.mem_flags.READ_WRITE, 4 * elements)

    def transpose(self, x: Matrix, aligned: int = 1) -> Matrix:
        """The transpose, its columns at multiples of `aligned` floats."""
        ld = round_up(x.cols, aligned)
        out = Matrix(self._buffer(ld * x.rows), x.cols, x.rows, ld)
        (tile, columns), args = _TURNED, (x.rows, x.cols, x.ld, x.offset, x.buffer, ld, out.buffer)
        size = round_up(x.rows, tile), -(-ld // tile) * columns
        self._launch("transpose.cl", "transpose", size, _TURNED, *args)
        return out

    def pad(self, x: Matrix, rows: int, cols: int) -> Matrix:
        out = self.new(rows, cols)
        args = x.rows, x.cols, x.ld, x.offset, x.buffer, rows, cols, out.buffer
        self._launch("pad.cl", "pad", _moving(rows, cols), _MOVED[:2], *args)
        return out

    def unpad(self, x: Matrix, rows: int, cols: int, out: Matrix) -> Matrix:
        args = x.rows, x.buffer, rows, cols, out.buffer
        self._launch("pad.cl", "unpad", _moving(rows, cols), _MOVED[:2], *args)
        return out

    def axpby(self, alpha: float, x: Matrix, beta: float, y: Matrix, out: Matrix) -> Matrix:
        size = out.rows * out.cols
        args = size, alpha, x.buffer, beta, y.buffer, out.buffer
        self._launch("axpby.cl", "axpby", (round_up(size, _LINE),), (_LINE,), *args)
        return out

    def strange(self, *matrices: Matrix) -> bool:
        """Whether any holds what TF32 parts cannot stand for (see ``range.cl``); waits for the answer."""
        found = Matrix(self._buffer(1), 1, 1, 1)
        cl.enqueue_fill_buffer(self.queue, found.buffer, np.int32(0), 0, 4)
        for x in matrices:
            size, args = (round_up(x.rows, _LINE), min(x.cols, 512)), (x.rows, x.cols, x.ld, x.offset, x.buffer)
            self._launch("range.cl", "range", size, (_LINE, 1), *args, found.buffer)
        answer = np.empty(1, np.int32)
        cl.enqueue_copy(self.queue, answer, found.buffer)
        return bool(answer[0])

    def compact(self, x: Matrix) -> Matrix:
        return x if x.compact else self.pad(x, x.rows, x.cols)

    def gemm(self, kernel: Kernel, a: Matrix, ta: bool, b: Matrix, tb: bool, out: Matrix, tiles=None) -> Matrix:
        """out = op(a) op(b), column-major; op transposes where `ta` or `tb` says that the matrix lies so.

        `tiles` may name the buffer that the kernel writes when the sizes are padded to whole tiles.
        """
        if ta:
            a = self.transpose(a, kernel.aligned[0])
        if tb != kernel.b_transposed:
            b = self.transpose(b, kernel.aligned[1])
        m, k = a.rows, a.cols
        n = b.rows if kernel.b_transposed else b.cols
        mp, np_, kp = kernel.whole(m, n, k)
        lda, ldb = kernel.strides(mp, np_, kp)
        a = self._fit(a, mp, kp, lda)
        b = self._fit(b, *((np_, kp) if kernel.b_transposed else (kp, np_)), ldb)
        whole = (mp, np_) == (m, n)
        c = Matrix(tiles or (out.buffer if whole else self._buffer(mp * np_)), mp, np_, mp)
        self.events += kernel.enqueue(mp, np_, kp, (a.buffer, b.buffer, c.buffer), self.queue)
        return out if c.buffer is out.buffer else self.unpad(c, m, n, out)

    def _fit(self, x: Matrix, rows: int, cols: int, ld: int) -> Matrix:
        """x with so many rows and columns, `ld` floats from one column to the next, from the start of its buffer."""
        there = x.offset == 0 and (x.rows, x.cols) == (rows, cols) and (x.ld == ld or (cols == 1 and ld == rows))
        whole = there and (x.ld == x.rows or x.buffer.size >= 4 * ld * cols)  # behind the last column, too
        return x if whole else self.pad(x, ld, cols)


def demand(m: int, n: int, k: int, tile: tuple[int, int, int]) -> dict[str, int]:
    """The elements of each matrix of an m x k by k x n product, as given and in whole tiles of these sizes."""
    mt, nt, kt = (round_up(size, multiple) for size, multiple in zip((m, n, k), tile, strict=True))
    whole = {"a in whole tiles": mt * kt, "b in whole tiles": kt * nt, "the result in whole tiles": mt * nt}
    return {"a": m * k, "b": k * n, "the result": m * n} | whole


def fits(device: Device, sizes: dict[str, int], wide: bool = False) -> None:
    """Refuse matrices (elements by name) that the device's memory cannot hold, or 32-bit indices unless `wide`."""
    for name, elements in sizes.items():
        if elements >= INDEX_LIMIT and not wide:
            raise ValueError(
                f"{name} has {elements:,} elements; kernels but 15 to 17 index with 32 bits, below {INDEX_LIMIT:,}"
            )
        if 4 * elements > device.largest:
            raise MemoryError(f"{name} needs {4 * elements:,} bytes; {device} allows {device.largest:,} a buffer")
    total = 4 * sum(sizes.values())
    if total > device.memory:
        raise MemoryError(f"the matrices need {total:,} bytes; {device} has {device.memory:,}")


def round_up(size: int, multiple: int) -> int:
    return -(-size // multiple) * multiple


def _moving(rows: int, cols: int) -> tuple[int, int]:
    """Work-items of a launch of pad.cl for a result of rows x cols."""
    return round_up(rows, _MOVED[0]), round_up(-(-cols // _MOVED[2]), _MOVED[1])


@lru_cache(maxsize=64)
def _helper(device: Device, context: cl.Context, file: str, name: str) -> Built:
    return build(device, context, file, sources.read(file), {}, name)


@lru_cache(maxsize=8)
def _pool(queue: cl.CommandQueue) -> MemoryPool:
    """What one call gives back the next one takes; the order of the queue keeps them apart."""
    return MemoryPool(ImmediateAllocator(queue))
