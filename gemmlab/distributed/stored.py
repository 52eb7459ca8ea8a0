"""Products of matrices in files, in memory that does not depend on their sizes.

A task computes one block of the result, of rows x columns elements. It goes along k in steps, and
reads the next pair of blocks while the device multiplies the previous one. So a worker needs, apart
from what Python and its libraries take, at most

    2 (rows depth + depth columns) + 3 rows columns

elements: two pairs of blocks, and a product, the sum so far, and the result on its way to a file.
The bound is the same for the memory of a GPU. The scheduler never receives a block.

On a GPU four things overlap. Threads copy the next pair from the files to pinned memory; from there
it is transferred to the device; the device multiplies the previous pair; and the previous block of
the result is copied back and written. For the last one a GPU's worker has two threads, of which one
multiplies at a time.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from itertools import accumulate, cycle, pairwise
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


class Mapped:
    """A memory-mapped NumPy array, or a view of one, that other processes open by the name of its
    file: pickled, the array itself would be copied.
    """

    def __init__(self, x: np.memmap):
        whole: Any = x
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        if not isinstance(whole, np.memmap) or whole.filename is None:
            raise TypeError(
                "a memory-mapped array must come from np.memmap or np.load with the name of a file"
            )
        self.file, self.shape = whole.filename, x.shape
        self.dtype, self.strides = x.dtype, x.strides
        self.offset = whole.offset + x.ctypes.data - whole.ctypes.data

    def __getitem__(self, part) -> np.ndarray:
        """This part of the file, mapped: touching it reads the file.

        Raises:
            OSError: if there is no such file.
            TypeError: if the file has become too short.
        """
        found = os.stat(self.file)
        whole: Any = _mapping(self.file, found.st_ino, found.st_size)
        return np.ndarray(self.shape, self.dtype, whole, self.offset, self.strides)[part]


@cached(4)
def _mapping(file: str, inode: int, size: int) -> np.memmap:
    """All bytes of a file; remembered, because the first touch of each page takes as long as
    copying it.
    """
    return np.memmap(file, np.uint8, "r")


def is_stored(x) -> bool:
    """Whether it is a matrix in a file: a mapped array, or an object with shape and dtype that is
    read by slices.
    """
    if isinstance(x, (np.ndarray, da.Array, cla.Array)):
        return isinstance(x, np.memmap)
    return all(hasattr(x, name) for name in ("shape", "dtype", "ndim", "__getitem__"))


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
    rows, columns, steps = (
        normalize_chunks((chunk,), (size,))[0] for chunk, size in zip(chunks, sizes, strict=True)
    )
    return da.map_blocks(
        block,
        operands=tuple(Mapped(x) if isinstance(x, np.memmap) else x for x in (a, b)),
        cuts=[[*accumulate(cut, initial=0)] for cut in (rows, columns, steps)],
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
        block_id: the number of the block, down and across.

    Raises:
        BlockError: if reading or multiplying fails.
    """
    rows, columns = (slice(cut[at], cut[at + 1]) for cut, at in zip(cuts, block_id, strict=False))
    steps = [slice(*ends) for ends in pairwise(cuts[2])]
    a, b = operands
    task = Task(a, b, rows, columns, steps, options, block_id)
    device = default_device()
    if not blocks.has_own_memory(device):
        return _in_host(task)
    with _multiplying:
        total, done = _on_device(task)
    out = np.empty(total.shape, total.dtype)
    staging_of(device.context, device).receive(total.base_data, out, [done])
    return out


class Task(NamedTuple):
    """A block of a product.

    Attributes:
        a, b: the matrices.
        rows, columns: of the block.
        steps: along k.
        options: of `gemmlab.matmul`.
        position: the number of the block, down and across.
    """

    a: Any
    b: Any
    rows: slice
    columns: slice
    steps: list[slice]
    options: dict[str, Any]
    position: tuple[int, int]

    def pair(self, step: slice) -> tuple[np.ndarray, np.ndarray]:
        """The blocks of a and b that a step multiplies."""
        return np.asarray(self.a[self.rows, step]), np.asarray(self.b[step, self.columns])

    def attempt(self, call, step: int):
        """What the call returns; an error becomes a BlockError that names the block and step."""
        i, j = self.position
        return blocks.attempted(call, (i, step, j), self.a, self.b)


def _in_host(task: Task) -> np.ndarray:
    """A block, where the device multiplies NumPy arrays in place."""

    def read(step: slice) -> list[np.ndarray]:
        return [np.array(x, order="C") for x in task.pair(step)]  # copies what is only mapped

    total: Any = None
    with ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(read, task.steps[0])
        for number, following in enumerate([*task.steps[1:], None]):
            x, y = task.attempt(ahead.result, number)
            if following is not None:
                ahead = reader.submit(read, following)
            part = task.attempt(partial(multiply, x, y, **task.options), number)
            total = part if total is None else np.add(total, part, out=total)
    return total


#: Held by the thread whose block the device computes; others read, copy back, or write theirs.
_multiplying = threading.Lock()


class PairMemory:
    """Device memory for a pair of blocks, and the last product that reads it."""

    def __init__(self, device: Device, sizes: tuple[int, int]):
        flags = cl.mem_flags.READ_ONLY
        self.buffers = [cl.Buffer(device.context, flags, size) for size in sizes]
        self.used: cl.Event | None = None


@cached(1)
def _two_pairs(device: Device, sizes: tuple[int, int]) -> Iterator[PairMemory]:
    """Two of them, alternating: one pair is multiplied while the next one arrives."""
    return cycle([PairMemory(device, sizes), PairMemory(device, sizes)])


def _on_device(task: Task) -> tuple[cla.Array, cl.Event]:
    """A block in the device's memory, and the event after which it is complete."""
    device = default_device()
    queue, allocate = device.queue, pool_of(device.queue).allocate
    staging = staging_of(device.context, device)
    depth = max(step.stop - step.start for step in task.steps)
    shape = task.rows.stop - task.rows.start, task.columns.stop - task.columns.start
    rows_bytes, columns_bytes = (task.a.dtype.itemsize * depth * side for side in shape)
    pairs = _two_pairs(device, (rows_bytes, columns_bytes))
    total, part = (cla.empty(queue, shape, task.a.dtype, allocator=allocate) for _ in range(2))
    memory = next(pairs)
    with ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(_send, task, memory, staging, task.steps[0])
        try:
            for number, following in enumerate([*task.steps[1:], None]):
                (x, y), arrived = task.attempt(ahead.result, number)
                cl.enqueue_barrier(queue, arrived)
                out = part if number else total
                task.attempt(partial(multiply, x, y, out=out, **task.options), number)
                if number:
                    with blocks.adding:
                        total += part
                memory.used = done = cl.enqueue_marker(queue)
                queue.flush()
                if following is not None:
                    memory = next(pairs)
                    ahead = reader.submit(_send, task, memory, staging, following)
        except BaseException:
            wait([ahead])
            staging.give_up()  # nobody may use the memory before
            queue.finish()
            raise
    return total, done


def _send(
    task: Task, memory: PairMemory, staging: Staging, step: slice
) -> tuple[list[cla.Array], list[cl.Event]]:
    """Begin to copy a pair of blocks from the files to the device: the arrays there, and the events
    after which they are complete.
    """
    pair = task.pair(step)
    if memory.used is not None:
        memory.used.wait()
    arrays, pieces = [], []
    for x, buffer in zip(pair, memory.buffers, strict=True):
        queue, strides = default_device().queue, compact_spec(x).strides
        arrays.append(cla.Array(queue, x.shape, x.dtype, data=buffer, strides=strides))
        pieces += staging.send(rows_of(x), buffer)
    return arrays, [piece.result() for piece in pieces]
