"""NumPy operands for a device with separate memory: through pinned memory, in strips that overlap.

A driver copies ordinary memory with one thread, through a small buffer. Pinned memory, which stays
at one physical address, is read and written by the device itself, several times as fast. So
matrices pass through rings of small pinned buffers, which several threads fill and empty. While one
strip of the result is multiplied, the operand of the next one and the result of the previous one
are copied.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import Any, NamedTuple

import numpy as np

from ..caches import cached
from ..opencl import cl
from ..opencl.devices import Device

#: Bytes of the matrices of a product from which staging is worthwhile.
WORTHWHILE = 24 * 2**20
#: Bytes of a pinned buffer: long enough for the full speed of a transfer, short enough to stay in a
#: cache.
PIECE = 4 * 2**20
#: Threads per direction at most: together they copy about as fast as memory is.
THREADS = 8
#: Rows or columns of a strip: a multiple of this number, so that it consists of whole tiles.
STRIP = 512
#: Strips of a product at most.
STRIPS = 8


class Strip(NamedTuple):
    """A part of a result."""

    operands: list[tuple[np.ndarray, Any]]  # what must be on the device first, and the buffers
    launch: Callable[[], list[tuple[str, cl.Event]]]  # launches the product
    buffer: Any  # where the device writes the part
    out: np.ndarray  # where it is copied to


def staging_for(device: Device) -> Staging | None:
    """Return the staging of a device, unless it shares the host's memory."""
    is_shared = device.kind == "CPU" or device.cl.host_unified_memory
    return None if is_shared else staging_of(device.context, device)


class Lane:
    """One direction of the traffic: a queue, a ring of pinned buffers, and threads."""

    def __init__(self, device: Device, context: cl.Context, threads: int, buffers: int):
        self.queue = cl.CommandQueue(context, device.cl)
        self._threads = ThreadPoolExecutor(threads, "gemmlab-staging")
        self._number, self._piece = threads, PIECE
        # pinned memory, each piece with the last transfer from it, least recently used first
        self.ring: SimpleQueue[tuple[np.ndarray, cl.Event | None]] = SimpleQueue()
        flags = cl.mem_flags.READ_WRITE | cl.mem_flags.ALLOC_HOST_PTR
        access: Any = cl.map_flags.READ | cl.map_flags.WRITE
        for _ in range(buffers):
            buffer = cl.Buffer(context, flags, PIECE)
            memory, _ = cl.enqueue_map_buffer(
                self.queue, buffer, access, 0, (PIECE,), np.dtype(np.uint8)
            )
            self.ring.put((memory, None))

    def start(self, copy: Callable[..., Any], x: np.ndarray, *more: Any) -> list[Future[Any]]:
        """Begin to copy a matrix, row by row, each piece by a thread."""
        return [
            self._threads.submit(copy, self, part, at, *more) for at, part in pieces(x, self._piece)
        ]

    def stop(self) -> None:
        """Drop the copies that have not begun, and wait for those that have."""
        self._threads.shutdown(wait=True, cancel_futures=True)
        self.queue.finish()
        self._threads = ThreadPoolExecutor(self._number, "gemmlab-staging")


def _upload(lane: Lane, x: np.ndarray, at: int, buffer: Any) -> cl.Event:
    """Copy a piece of a matrix to byte `at` of a buffer, through pinned memory."""
    pinned, sent = lane.ring.get()
    try:
        if sent is not None:
            sent.wait()
        here = pinned[: x.nbytes].view(x.dtype).reshape(x.shape)
        np.copyto(here, x)
        sent = cl.enqueue_copy(lane.queue, buffer, here, dst_offset=at, is_blocking=False)
        lane.queue.flush()
        return sent
    finally:
        lane.ring.put((pinned, sent))


def _download(lane: Lane, out: np.ndarray, at: int, buffer: Any, after: list[cl.Event]) -> None:
    """Copy from byte `at` of a buffer into a piece of a matrix, through pinned memory; wait."""
    pinned, _ = lane.ring.get()
    try:
        here = pinned[: out.nbytes].view(out.dtype).reshape(out.shape)
        cl.enqueue_copy(
            lane.queue, here, buffer, src_offset=at, is_blocking=False, wait_for=after
        ).wait()
        np.copyto(out, here)
    finally:
        lane.ring.put((pinned, None))


def pieces(x: np.ndarray, size_bytes: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield consecutive blocks of a matrix, of so many bytes at most, and the bytes before each."""
    rows, cols = x.shape
    width = min(cols, size_bytes // x.itemsize)
    height = max(1, size_bytes // (x.itemsize * cols))
    for i in range(0, rows, height):
        for j in range(0, cols, width):
            yield x.itemsize * (i * cols + j), x[i : i + height, j : j + width]


def strips(length: int) -> list[slice]:
    """Return a side in strips of equal length, a multiple of `STRIP`; the last one also takes the
    rest.
    """
    number = max(1, min(STRIPS, length // STRIP))
    each = length // number // STRIP * STRIP if number > 1 else length
    return [slice(i * each, length if i == number - 1 else (i + 1) * each) for i in range(number)]


class Staging:
    """Copies NumPy arrays to a device and back; for one product at a time."""

    def __init__(self, context: cl.Context, device: Device):
        threads = min(THREADS, os.cpu_count() or 1)
        # one is filled while another one travels
        self._up = Lane(device, context, threads, 2 * threads)
        self._down = Lane(device, context, threads, threads)
        self._alone = threading.Lock()

    def send(self, x: np.ndarray, buffer: Any) -> list[Future[Any]]:
        """Begin to copy a matrix to a buffer, row by row; each piece yields the event of its
        transfer. Neither may be used for anything else before.
        """
        return self._up.start(_upload, x, buffer)

    def give_up(self) -> None:
        """Drop what `send` has not begun, and wait for the rest."""
        complete(self._up.stop)

    def receive(self, buffer: Any, out: np.ndarray, after: list[cl.Event]) -> None:
        """Copy a buffer into a matrix, row by row, once the events have happened; wait for it."""
        _results(self._down.start(_download, out, buffer, after))

    def compute(self, queue: cl.CommandQueue, parts: list[Strip]) -> None:
        """Compute a result strip by strip, on this queue. By return or by any exception, nobody
        uses the arrays' memory any more.
        """
        with self._alone:
            try:
                queue.finish()  # the buffers may have been another product's
                sent = [[f for x in part.operands for f in self.send(*x)] for part in parts]
                received: list[Future[Any]] = []
                for part, arriving in zip(parts, sent, strict=True):
                    cl.enqueue_barrier(queue, _results(arriving))
                    _, done = part.launch()[-1]
                    queue.flush()
                    received += self._down.start(_download, part.out, part.buffer, [done])
                _results(received)
                for each in (self._up.queue, queue, self._down.queue):
                    each.finish()
            except BaseException:
                complete(self._up.stop, queue.finish, self._down.stop)
                raise


def complete(*waits: Callable[[], object]) -> None:
    """Call each function, such as `queue.finish`, until it returns, however often it is
    interrupted: a second Ctrl-C has to wait as well.
    """
    for wait in waits:
        while True:
            try:
                wait()
                break
            except cl.Error:  # the device is lost, and does not write any more
                break
            except BaseException:  # the caller raises the first exception
                continue


def _results(futures: list[Future[Any]]) -> list[Any]:
    return [future.result() for future in futures]


@cached(2)
def staging_of(context: cl.Context, device: Device) -> Staging:
    """Return the staging of a device, cached because pinning memory takes longer than most
    products.
    """
    return Staging(context, device)
