"""Products of matrices in files, in memory that does not depend on their sizes.

A task computes one block of the result, of rows x columns elements. It goes along k in steps, and
reads the next pair of blocks while the device multiplies the previous one. So a worker needs, apart
from what Python and its libraries take, at most

    2 (rows depth + depth columns) + 3 rows columns

elements: two pairs of blocks, and a product, the sum so far, and the result on its way to a file.
The bound is the same for the memory of a GPU. The scheduler never receives a block.

On a GPU four things overlap. Threads copy the next pair from the files to pinned memory; from there
it is transferred to the device; the device multiplies the previous pair; and the last block of the
result is copied back and written. For the latter a GPU's worker has two threads, of which one
multiplies at a time.
"""

from __future__ import annotations

import os
import threading
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple
from uuid import uuid4

import dask.array as da
import numpy as np
import pyopencl as cl
import pyopencl.array as cla
from dask.array.core import normalize_chunks

from ..blas.arrays import compact_spec, rows_of
from ..blas.plan import pool_of
from ..blas.products import matmul as multiply
from ..blas.staging import Staging, staging_of
from ..caches import cached
from ..opencl.devices import Device, default_device
from . import blocks

#: Threads that copy mapped memory: one alone is slower than the way to a GPU.
COPYING = 8


class Mapped:
    """A memory-mapped NumPy array, or a view of one, that other processes open by the name of its
    file.

    Pickled by itself, such an array would be copied.
    """

    def __init__(self, x: np.memmap):
        whole: Any = x
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        if not isinstance(whole, np.memmap) or whole.filename is None:
            raise TypeError(
                "a memory-mapped array must come from np.memmap or np.load with the name of a file"
            )
        self.file, self.shape, self.dtype, self.strides, self.ndim = (
            whole.filename,
            x.shape,
            x.dtype,
            x.strides,
            x.ndim,
        )
        self.offset = whole.offset + x.ctypes.data - whole.ctypes.data

    def view(self, part) -> np.ndarray:
        """This part of the file, mapped: touching it reads the file.

        Raises:
            OSError: if there is no such file.
            TypeError: if the file has become too short.
        """
        found = os.stat(self.file)
        whole: Any = _mapping(self.file, found.st_ino, found.st_size)
        return np.ndarray(self.shape, self.dtype, whole, self.offset, self.strides)[part]

    def __getitem__(self, part) -> np.ndarray:
        """A copy of this part."""
        x = self.view(part)
        copy = np.empty(x.shape, x.dtype)
        rows = range(0, len(x), max(1, -(-len(x) // COPYING)))
        parts = [slice(at, at + rows.step) for at in rows]
        with ThreadPoolExecutor(COPYING) as threads:
            list(threads.map(lambda some: np.copyto(copy[some], x[some]), parts))
        return copy


@cached(4)
def _mapping(file: str, inode: int, size: int) -> np.memmap:
    """All bytes of a file; remembered, because the first touch of each page takes as long as
    copying it.
    """
    return np.memmap(file, np.uint8, "r")


def is_stored(x) -> bool:
    """Whether it is an array in a file: mapped memory, or what has a shape and a type and is read
    by slices.
    """
    if isinstance(x, (np.ndarray, da.Array)):
        return isinstance(x, np.memmap)
    return all(
        hasattr(x, name) for name in ("shape", "dtype", "ndim", "__getitem__")
    ) and not hasattr(x, "queue")


def matmul(a, b, chunks: tuple[int, int, int], options: dict[str, Any]) -> da.Array:
    """The product of two matrices in files as a Dask array; `chunks` are rows, columns and steps
    along k of a block.
    """
    sizes = (a.shape[0], b.shape[1], a.shape[1])
    if len(chunks) != 3 or not all(
        isinstance(size, (int, np.integer)) and size > 0 for size in chunks
    ):
        raise ValueError(
            f"chunks must be three whole numbers (rows, columns, steps along k), not {chunks!r}"
        )
    cuts = [
        np.cumsum([0, *normalize_chunks((c,), (size,))[0]]).tolist()
        for c, size in zip(chunks, sizes, strict=True)
    ]
    rows, columns, _ = (tuple(end - start for start, end in pairwise(cut)) for cut in cuts)
    return da.map_blocks(
        block,
        operands=tuple(Mapped(x) if isinstance(x, np.memmap) else x for x in (a, b)),
        cuts=cuts,
        options=options,
        chunks=(rows, columns),
        dtype=a.dtype,
        meta=np.empty((0, 0), a.dtype),
        name=f"product-of-files-{uuid4().hex}",  # a file may be another one the next time
    )


def block(
    operands, cuts: list[list[int]], options: dict[str, Any], block_id: tuple[int, int] = (0, 0)
) -> np.ndarray:
    """A block of the product of two matrices in files.

    Args:
        operands: a and b, which are read by slices.
        cuts: where rows, columns and steps along k begin, and the end.
        options: keyword arguments of `gemmlab.matmul`.
        block_id: which block.

    Raises:
        BlockError: if reading or multiplying fails.
    """
    rows, columns = (slice(cut[at], cut[at + 1]) for cut, at in zip(cuts, block_id, strict=False))
    steps = [slice(*ends) for ends in pairwise(cuts[2])]
    a, b = operands
    task = Task(a, b, rows, columns, steps, options, block_id)
    if not blocks.has_own_memory(default_device()):
        return _in_host(task)
    with _multiplying:
        sum_, done = _on_device(task)
    out = np.empty(sum_.shape, sum_.dtype)
    device = default_device()
    staging_of(device.context, device).receive(sum_.base_data, out, [done])
    return out


class Task(NamedTuple):
    """A block of a product.

    Attributes:
        a, b: the matrices.
        rows, columns: of the block.
        steps: along k.
        options: of `gemmlab.matmul`.
        place: the number of the block, down and across.
    """

    a: Any
    b: Any
    rows: slice
    columns: slice
    steps: list[slice]
    options: dict[str, Any]
    place: tuple[int, int]

    def attempt(self, call, step: int):
        """What the call returns; an error becomes a BlockError that names the block and step."""
        i, j = self.place
        return blocks.attempted(call, (i, step, j), self.a, self.b)


def _in_host(task: Task) -> np.ndarray:
    """A block, where the device multiplies NumPy arrays in place."""
    sum_: Any = None
    with ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(_read, task, task.steps[0])
        for step, following in enumerate([*task.steps[1:], None]):
            x, y = task.attempt(ahead.result, step)
            if following is not None:
                ahead = reader.submit(_read, task, following)
            i, j = task.place
            part = blocks.product(x, y, (i, step, j), task.options)
            sum_ = part if sum_ is None else blocks.total([sum_, part])
    return blocks.finished(sum_)


def _read(task: Task, step: slice) -> tuple[np.ndarray, np.ndarray]:
    """A pair of blocks, in memory."""
    parts = task.a[task.rows, step], task.b[step, task.columns]
    return np.ascontiguousarray(parts[0]), np.ascontiguousarray(parts[1])


#: Held by the thread whose block the device computes; others read, copy back, or write theirs.
_multiplying = threading.Lock()


class Pair(NamedTuple):
    """A pair of blocks on its way to the device, and the transfers of its pieces."""

    x: cla.Array
    y: cla.Array
    sent: list[Future]

    def arrived(self) -> list[cl.Event]:
        """The events after which the pair is on the device."""
        return [piece.result() for piece in self.sent]


class Rooms:
    """Device memory for two pairs of blocks: one is multiplied while the next one arrives.

    Args:
        device: which has this memory.
        sizes: bytes of a block of a, and of one of b.
    """

    def __init__(self, device: Device, sizes: tuple[int, int]):
        flags = cl.mem_flags.READ_ONLY
        self._buffers = [[cl.Buffer(device.context, flags, n) for n in sizes] for _ in range(2)]
        self._used: list[cl.Event | None] = [None, None]
        self._turn = 0

    def free(self) -> list[cl.Buffer]:
        """The memory for the next pair, once nothing uses it any more."""
        self._turn = 1 - self._turn
        used = self._used[self._turn]
        if used is not None:
            used.wait()
        return self._buffers[self._turn]

    def use_until(self, event: cl.Event) -> None:
        """The product of the pair whose memory `free` gave last is complete with this event."""
        self._used[self._turn] = event


@cached(1)
def _rooms(device: Device, sizes: tuple[int, int]) -> Rooms:
    return Rooms(device, sizes)


def _on_device(task: Task) -> tuple[cla.Array, cl.Event]:
    """A block in the device's memory, and the event after which it is complete."""
    device = default_device()
    queue, allocate = device.queue, pool_of(device.queue).allocate
    staging = staging_of(device.context, device)
    depth = max(step.stop - step.start for step in task.steps)
    shape = task.rows.stop - task.rows.start, task.columns.stop - task.columns.start
    rows_bytes, columns_bytes = (task.a.dtype.itemsize * depth * side for side in shape)
    rooms = _rooms(device, (rows_bytes, columns_bytes))
    sum_, part = (cla.empty(queue, shape, task.a.dtype, allocator=allocate) for _ in range(2))
    with ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(_send, task, rooms, staging, task.steps[0])
        try:
            for step, following in enumerate([*task.steps[1:], None]):
                pair = task.attempt(ahead.result, step)
                cl.enqueue_barrier(queue, task.attempt(pair.arrived, step))
                with blocks.one_at_a_time:
                    out = part if step else sum_
                    task.attempt(partial(multiply, pair.x, pair.y, out=out, **task.options), step)
                    if step:
                        sum_ += part
                    done = cl.enqueue_marker(queue)
                queue.flush()
                rooms.use_until(done)
                if following is not None:
                    ahead = reader.submit(_send, task, rooms, staging, following)
        except BaseException:
            wait([ahead])
            staging.give_up()  # nobody may use the memory before
            queue.finish()
            raise
    return sum_, done


def _send(task: Task, rooms: Rooms, staging: Staging, step: slice) -> Pair:
    """Begin to copy a pair of blocks from the files to the device."""
    parts = (task.rows, step), (step, task.columns)
    read = [
        x.view(part) if isinstance(x, Mapped) else np.asarray(x[part])
        for x, part in zip((task.a, task.b), parts, strict=True)
    ]
    (x, x_sent), (y, y_sent) = (
        _upload(block, buffer, staging) for block, buffer in zip(read, rooms.free(), strict=True)
    )
    return Pair(x, y, x_sent + y_sent)


def _upload(x: np.ndarray, buffer: cl.Buffer, staging: Staging) -> tuple[cla.Array, list[Future]]:
    """Begin to copy a block to a buffer: the array there, and the transfers of its pieces."""
    queue, strides = default_device().queue, compact_spec(x).strides
    array = cla.Array(queue, x.shape, x.dtype, data=buffer, strides=strides)
    return array, staging.send(rows_of(x), buffer)
