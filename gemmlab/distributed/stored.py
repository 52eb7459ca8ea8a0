"""Products of matrices in files, in memory that does not depend on their sizes.

A task computes one block of the result, of rows x columns elements. It goes along k in steps, and
reads the next pair of blocks while the device multiplies the previous one. So a worker needs, apart
from what Python and its libraries take, at most

    2 (rows depth + depth columns) + 3 rows columns

elements: two pairs of blocks, and a product, the sum so far, and the result that is being written.
The bound is the same for the memory of a GPU.

On a GPU four things overlap: threads copy the next pair from the files to pinned memory; from there
it travels to the device, which multiplies the previous pair; and the previous block of the result
is copied back and written, by the worker's other thread.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import accumulate, cycle, pairwise
from typing import Any, NamedTuple
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks

from ..blas.arrays import layout_on_host, rows_of
from ..blas.products import matmul as multiply
from ..blas.run import session_of
from ..blas.staging import staging_of
from ..caches import cached
from ..ladder.spec import positive
from ..opencl import cl, cla
from ..opencl.devices import Device, default_device
from . import blocks


class Mapped:
    """A memory-mapped NumPy array, or a view of one, that other processes open by the name of its
    file: pickled, the array would be copied, as `dask.array.from_array` does (Dask's issue 11850).
    """

    def __init__(self, x: np.memmap):
        whole: Any = x
        while isinstance(whole.base, np.ndarray):
            whole = whole.base
        if not isinstance(whole, np.memmap) or whole.filename is None:
            raise TypeError(
                "a memory-mapped array must come from np.memmap or np.load with the name of a file"
            )
        self.file: str = whole.filename
        self.shape: tuple[int, ...] = x.shape
        self.dtype: np.dtype = x.dtype
        self.strides: tuple[int, ...] = x.strides
        self.offset: int = whole.offset + x.ctypes.data - whole.ctypes.data

    def __getitem__(self, part: Any) -> np.ndarray:
        """Map this part of the file. Raises OSError if there is no such file, TypeError if it has
        become too short.
        """
        status = os.stat(self.file)
        whole: Any = _map(self.file, status.st_ino, status.st_size)
        return np.ndarray(self.shape, self.dtype, whole, self.offset, self.strides)[part]


@cached(4)
def _map(file: str, inode: int, size: int) -> np.memmap:
    """Map all bytes of a file; cached, because the first access to a page takes time."""
    return np.memmap(file, np.uint8, "r")


def is_stored(x: Any) -> bool:
    """Whether x is a mapped array, or an object that is read by slices."""
    if isinstance(x, (np.ndarray, da.Array, cla.Array)):
        return isinstance(x, np.memmap)
    return all(hasattr(x, name) for name in ("shape", "dtype", "ndim", "__getitem__"))


def matmul(a: Any, b: Any, chunks: tuple[int, int, int], options: dict[str, Any]) -> da.Array:
    """Return the product of two matrices in files as a Dask array; `chunks` are the rows, columns
    and steps along k of a block.
    """
    if not isinstance(chunks, Sequence) or len(chunks) != 3:
        raise ValueError(f"chunks must be (rows, columns, steps along k), not {chunks!r}")
    rows, columns, steps = (
        normalize_chunks((positive("chunks", chunk),), (size,))[0]
        for chunk, size in zip(chunks, (a.shape[0], b.shape[1], a.shape[1]), strict=True)
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
    operands: tuple[Any, Any],
    cuts: list[list[int]],
    options: dict[str, Any],
    block_id: tuple[int, int] = (0, 0),
) -> np.ndarray:
    """Compute a block of the product; rows, columns and steps along k begin at `cuts`."""
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
    """A block of a product: its rows and columns of the matrices a and b, and its steps along k."""

    a: Any
    b: Any
    rows: slice
    columns: slice
    steps: list[slice]
    options: dict[str, Any]  # of `gemmlab.matmul`
    position: tuple[int, int]  # of the block, down and across

    def pair(self, step: slice) -> tuple[np.ndarray, np.ndarray]:
        """Return the blocks of a and b that a step multiplies."""
        return np.asarray(self.a[self.rows, step]), np.asarray(self.b[step, self.columns])

    def walk(self, read: Callable[[slice], tuple[Any, ...]], work: Callable[..., None]) -> None:
        """Call `work` for each step with the pair that a thread reads during the previous step."""
        with ThreadPoolExecutor(1) as reader:
            ahead = reader.submit(read, self.steps[0])
            for number, following in enumerate([*self.steps[1:], None]):
                pair = self.name_errors(ahead.result, number)
                if following is not None:
                    ahead = reader.submit(read, following)
                work(number, *pair)

    def multiply(self, number: int, x: Any, y: Any, out: Any = None) -> Any:
        return self.name_errors(partial(multiply, x, y, out=out, **self.options), number)

    def name_errors(self, call: Callable[[], Any], number: int) -> Any:
        """Return what the call returns; raise BlockError with the block and step if it fails."""
        i, j = self.position
        return blocks.name_errors(call, (i, number, j), self.a, self.b)


def _in_host(task: Task) -> np.ndarray:
    """Compute a block, where the device multiplies NumPy arrays in place."""
    total: Any = None

    def read(step: slice) -> tuple[np.ndarray, ...]:
        return tuple(np.array(x, order="C") for x in task.pair(step))  # copies what is only mapped

    def work(number: int, x: np.ndarray, y: np.ndarray) -> None:
        nonlocal total
        part = task.multiply(number, x, y)
        total = part if total is None else np.add(total, part, out=total)

    task.walk(read, work)
    return total


#: Held by the thread whose block the device computes; others read, copy back, or write theirs.
_multiplying = threading.Lock()


class PairMemory:
    """Device memory for a pair of blocks, and the last product that reads it."""

    def __init__(self, device: Device, sizes: tuple[int, int]):
        flags = cl.mem_flags.READ_ONLY
        self.buffers: list[cl.Buffer] = [cl.Buffer(device.context, flags, size) for size in sizes]
        self.used: cl.Event | None = None


@cached(1)
def _two_pairs(device: Device, sizes: tuple[int, int]) -> Iterator[PairMemory]:
    """Iterate over two of them forever: a pair is multiplied while the next one arrives."""
    return cycle([PairMemory(device, sizes), PairMemory(device, sizes)])


def _on_device(task: Task) -> tuple[cla.Array, cl.Event]:
    """Compute a block in the device's memory; return it, and the event that completes it."""
    device = default_device()
    queue, allocate = device.queue, session_of(device.queue, device).pool.allocate
    staging = staging_of(device.context, device)
    depth = max(step.stop - step.start for step in task.steps)
    shape = task.rows.stop - task.rows.start, task.columns.stop - task.columns.start
    rows_bytes, columns_bytes = (task.a.dtype.itemsize * depth * side for side in shape)
    memories = _two_pairs(device, (rows_bytes, columns_bytes))
    total, part = (cla.empty(queue, shape, task.a.dtype, allocator=allocate) for _ in range(2))

    def send(step: slice) -> tuple[PairMemory, list[cla.Array], list[cl.Event]]:
        """Begin to copy a pair; return its memory, the arrays there, and the events to wait for."""
        pair, memory = task.pair(step), next(memories)
        if memory.used is not None:
            memory.used.wait()
        arrays, pieces = [], []
        for x, buffer in zip(pair, memory.buffers, strict=True):
            strides = layout_on_host(x).strides
            arrays.append(cla.Array(queue, x.shape, x.dtype, data=buffer, strides=strides))
            pieces += staging.send(rows_of(x), buffer)
        return memory, arrays, [piece.result() for piece in pieces]

    def work(
        number: int, memory: PairMemory, pair: list[cla.Array], arrived: list[cl.Event]
    ) -> None:
        nonlocal total
        x, y = pair
        cl.enqueue_barrier(queue, arrived)
        task.multiply(number, x, y, part if number else total)
        if number:
            with blocks.adding:
                total += part
        memory.used = cl.enqueue_marker(queue)
        queue.flush()

    try:
        task.walk(send, work)
    except BaseException:
        staging.give_up()  # nobody may use the memory before
        queue.finish()
        raise
    return total, cl.enqueue_marker(queue)
