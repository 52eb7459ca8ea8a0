"""NumPy operands for a device with memory of its own: through pinned memory, in strips that
overlap.

A driver copies ordinary (pageable) memory to a device with one thread, through a small buffer of
its own. Pinned memory, which stays at one physical address, the device reads and writes by itself,
several times as fast. So the matrices pass through rings of small pinned buffers, which several
threads fill and empty. And the result is computed in strips: while one is multiplied, the next
one's operand travels up and the last one's result travels down.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyopencl as cl

from ..caches import cached
from ..opencl.devices import Device
from .arrays import ArraySpec, by_columns, compact_strides, complete
from .plan import pool_of, trim

#: Bytes of the matrices of a product from which on it pays.
PAYS = 24 * 2**20
#: Bytes of a pinned buffer: long enough for the full speed of a transfer, short enough to stay in a
#: cache.
PIECE = 4 * 2**20
#: Threads per direction at most: together they copy about as fast as memory is.
THREADS = 8
#: Rows or columns that a strip has at least, so that it keeps a large device busy, and of which it
#: has a multiple, so that it consists of whole tiles where the matrix does; and strips of a product
#: at most.
STRIP, STRIPS = 512, 8


class Stored(NamedTuple):
    """A matrix on its way to the device.

    Attributes:
        matrix: the matrix or its transpose, whichever lies by rows, to be copied row by row.
        spec: how the matrix itself lies in the buffer.
        buffer: where it goes.
    """

    matrix: np.ndarray
    spec: ArraySpec
    buffer: Any

    @classmethod
    def of(cls, x: np.ndarray, allocate: Callable[[int], Any]) -> Stored:
        """A matrix of any layout, in separate memory."""
        turned = abs(x.strides[0]) < abs(x.strides[1])
        y = x.T if turned else x
        strides = compact_strides(y.shape, x.itemsize)
        spec = ArraySpec(x.dtype, x.shape, strides[::-1] if turned else strides, 0, x.nbytes)
        return cls(y, spec, allocate(x.nbytes))


#: Launches the product of two matrices, into a buffer; returns the last event.
Multiply = Callable[[Stored, Stored, Any], cl.Event]


class Transfer(Protocol):
    """A way for a NumPy array to a device and back. The array has any layout; on the device it has
    no gaps.
    """

    def upload(self, queue: cl.CommandQueue, x: np.ndarray, buffer: Any) -> None:
        """Copy an array to a buffer, where it lies as `arrays.uploaded_spec` says; wait for it."""

    def download(self, queue: cl.CommandQueue, buffer: Any, out: np.ndarray) -> None:
        """Copy a buffer into an array."""


class Direct:
    """By the driver, from ordinary memory."""

    def upload(self, queue: cl.CommandQueue, x: np.ndarray, buffer: Any) -> None:
        cl.enqueue_copy(
            queue, buffer, x.swapaxes(-1, -2) if by_columns(x) else np.ascontiguousarray(x)
        )

    def download(self, queue: cl.CommandQueue, buffer: Any, out: np.ndarray) -> None:
        host, rows = _landing(out)
        cl.enqueue_copy(queue, rows, buffer)
        if host is not None:
            out[...] = host


def _landing(out: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
    """A new array that is to be copied into `out` afterwards, if that has gaps; and the rows to
    write to.
    """
    if out.flags.c_contiguous:
        return None, out
    if out.ndim == 2 and by_columns(out):
        return None, out.T
    host = np.empty(out.shape, out.dtype)
    return host, host


def staging_for(device: Device, *arrays: np.ndarray) -> Staging | None:
    """The staging of a device's queue, if arrays travel faster this way: large ones, unless the
    memory is shared.
    """
    if (
        device.kind == "CPU"
        or device.cl.host_unified_memory
        or sum(x.nbytes for x in arrays) < PAYS
    ):
        return None
    return staging_of(device.context, device)


class Pinned:
    """A pinned buffer, mapped into the host's memory for as long as it lives; and the last transfer
    from it.
    """

    def __init__(self, queue: cl.CommandQueue, size_bytes: int):
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        buffer = cl.Buffer(queue.context, flags, size_bytes)
        access: Any = cl.map_flags.READ | cl.map_flags.WRITE
        self._bytes, _ = cl.enqueue_map_buffer(
            queue, buffer, access, 0, (size_bytes,), np.dtype(np.uint8)
        )
        self.sent: cl.Event | None = None

    def like(self, x: np.ndarray) -> np.ndarray:
        """Its beginning as an array of x's shape and type."""
        return self._bytes[: x.nbytes].view(x.dtype).reshape(x.shape)


class Lane:
    """One direction of the traffic: a queue, a ring of pinned buffers, and the threads that fill or
    empty them.
    """

    def __init__(
        self, context: cl.Context, device: cl.Device, threads: int, buffers: int, piece: int
    ):
        self.queue, self._piece = cl.CommandQueue(context, device), piece
        self._threads = ThreadPoolExecutor(threads, "gemmlab-staging")
        self._number = threads
        self._ring: SimpleQueue[Pinned] = SimpleQueue()  # the one used longest ago comes first
        for _ in range(buffers):
            self._ring.put(Pinned(self.queue, piece))

    def upload(self, x: np.ndarray, buffer: Any) -> list[Future]:
        """Begin to copy a matrix, row by row; each piece yields its event once it is enqueued."""
        return [
            self._threads.submit(self._up, part, buffer, at) for at, part in pieces(x, self._piece)
        ]

    def download(self, buffer: Any, out: np.ndarray, after: list[cl.Event]) -> list[Future]:
        """Begin to copy a matrix, row by row, as soon as the events have happened; a piece is done
        once it is there.
        """
        return [
            self._threads.submit(self._down, buffer, at, part, after)
            for at, part in pieces(out, self._piece)
        ]

    def settle(self) -> None:
        """Drop the copies that have not begun, and wait for those that have."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self.queue.finish()
        self._threads = ThreadPoolExecutor(self._number, "gemmlab-staging")

    def _up(self, x: np.ndarray, buffer: Any, at: int) -> cl.Event:
        pinned = self._ring.get()
        try:
            if pinned.sent is not None:
                pinned.sent.wait()
            np.copyto(pinned.like(x), x)
            pinned.sent = cl.enqueue_copy(
                self.queue, buffer, pinned.like(x), dst_offset=at, is_blocking=False
            )
            self.queue.flush()
            return pinned.sent
        finally:
            self._ring.put(pinned)

    def _down(self, buffer: Any, at: int, out: np.ndarray, after: list[cl.Event]) -> None:
        pinned = self._ring.get()
        try:
            here = pinned.like(out)
            cl.enqueue_copy(
                self.queue, here, buffer, src_offset=at, is_blocking=False, wait_for=after
            ).wait()
            np.copyto(out, here)
        finally:
            self._ring.put(pinned)


def pieces(x: np.ndarray, size_bytes: int) -> Iterator[tuple[int, np.ndarray]]:
    """Blocks of a matrix that follow each other row by row, of so many bytes at most, and the bytes
    before each.
    """
    rows, cols = x.shape
    width = min(cols, size_bytes // x.itemsize)
    height = max(1, size_bytes // (x.itemsize * cols))
    for i in range(0, rows, height):
        for j in range(0, cols, width):
            yield x.itemsize * (i * cols + j), x[i : i + height, j : j + width]


class Staging:
    """The way from NumPy's arrays to a device and back; one product at a time."""

    def __init__(
        self,
        context: cl.Context,
        device: cl.Device,
        threads: int | None = None,
        piece: int | None = None,
    ):
        threads = threads or min(THREADS, os.cpu_count() or 1)
        piece = piece or PIECE
        # one is filled while another one travels
        self._up = Lane(context, device, threads, 2 * threads, piece)
        self._down = Lane(context, device, threads, threads, piece)
        self._alone = threading.Lock()

    def upload(self, queue: cl.CommandQueue, x: np.ndarray, buffer: Any) -> None:
        """See `Transfer`."""
        rows = x.swapaxes(-1, -2) if by_columns(x) else x
        with self._alone:
            queue.finish()  # the memory may have been another product's
            self._lend(
                queue, lambda: _all(self._up.upload(rows.reshape(-1, rows.shape[-1]), buffer))
            )

    def download(self, queue: cl.CommandQueue, buffer: Any, out: np.ndarray) -> None:
        """See `Transfer`."""
        host, rows = _landing(out)
        with self._alone:
            queue.finish()
            matrix = rows.reshape(-1, rows.shape[-1] if rows.ndim else 1)
            self._lend(queue, lambda: _all(self._down.download(buffer, matrix, [])))
        if host is not None:
            out[...] = host

    def send(self, x: np.ndarray, buffer: Any) -> list[Future]:
        """Begin to copy a matrix to a buffer, row by row; each piece yields the event of its
        transfer. Neither may be used for anything else before.
        """
        return self._up.upload(x, buffer)

    def give_up(self) -> None:
        """Drop what `send` has not begun, and wait for the rest."""
        complete(self._up.settle)

    def receive(self, buffer: Any, out: np.ndarray, after: list[cl.Event]) -> None:
        """Copy a buffer into a matrix, row by row, once the events have happened; wait for it."""
        _all(self._down.download(buffer, out, after))

    def multiply(
        self,
        queue: cl.CommandQueue,
        a: np.ndarray,
        b: np.ndarray,
        out: np.ndarray,
        columns: bool,
        multiply: Multiply,
    ) -> None:
        """The product in strips of the longer side of the result; the smaller operand stays on the
        device.

        Args:
            queue: where the products run.
            a, b: m x k and k x n, of any layout.
            out: m x n, of any layout; shares no memory with a and b.
            columns: whether `multiply` writes its result column-major.
            multiply: launches a product. It is called for each strip.
        """
        pool = pool_of(queue)
        across = out.shape[1] > out.shape[0]
        parts = [(slice(None), part) if across else (part,) for part in strips(max(out.shape))]
        kept = Stored.of(a if across else b, pool.allocate)
        moving = [Stored.of((b if across else a)[part], pool.allocate) for part in parts]
        results = [out[part] for part in parts]
        memory = [pool.allocate(x.nbytes) for x in results]

        def work() -> None:
            queue.finish()  # the memory may have been another product's
            received: list[Future] = []
            sent = [self._up.upload(x.matrix, x.buffer) for x in (kept, *moving)]
            there = _all(sent[0])
            for x, arriving, result, room in zip(moving, sent[1:], results, memory, strict=True):
                cl.enqueue_barrier(queue, there + _all(arriving))
                done = multiply(*((kept, x) if across else (x, kept)), room)
                queue.flush()
                there = []
                received += self._down.download(room, result.T if columns else result, [done])
            _all(received)

        with self._alone:
            self._lend(queue, work)
        trim(pool, a.nbytes + b.nbytes + out.nbytes)

    def _lend(self, queue: cl.CommandQueue, work: Callable[[], object]) -> None:
        """Do what copies a user's arrays, and come to its end or give it up before anybody else
        uses their memory.
        """
        try:
            work()
            for each in (self._up.queue, queue, self._down.queue):
                each.finish()
        except BaseException:
            complete(self._up.settle, queue.finish, self._down.settle)
            raise


def _all(futures: list[Future]) -> list:
    return [future.result() for future in futures]


def strips(length: int) -> list[slice]:
    """A side in strips of equal length, a multiple of `STRIP`; the last one takes what is left as
    well.
    """
    number = max(1, min(STRIPS, length // STRIP))
    each = length // number // STRIP * STRIP if number > 1 else length
    return [slice(i * each, length if i == number - 1 else (i + 1) * each) for i in range(number)]


@cached(2)
def staging_of(context: cl.Context, device: Device) -> Staging:
    """Remembered, since pinning memory takes longer than most products."""
    return Staging(context, device.cl)
