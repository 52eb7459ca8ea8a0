"""Products of matrices in files, in memory that does not depend on their sizes.

A task makes one block of the result, of rows x columns elements. It goes along k in steps: a thread
reads the next pair of blocks while the device multiplies the last one. So a worker needs, beside
what Python and its libraries take,

    2 (rows depth + depth columns) + 3 rows columns

elements: two pairs of blocks, and a product, the sum so far, and the result on its way into a file.
The figure is the same for the memory of a GPU. The scheduler never sees a block.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any
from uuid import uuid4

import dask.array as da
import numpy as np
from dask.array.core import normalize_chunks

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

    def __getitem__(self, part) -> np.ndarray:
        """A copy of this part: the file is mapped for so long alone."""
        whole = np.memmap(self.file, np.uint8, "r")
        x = np.ndarray(self.shape, self.dtype, whole, self.offset, self.strides)[part]
        copy = np.empty(x.shape, x.dtype)
        rows = range(0, len(x), max(1, -(-len(x) // COPYING)))
        with ThreadPoolExecutor(COPYING) as threads:
            list(
                threads.map(
                    lambda at: np.copyto(copy[at : at + rows.step], x[at : at + rows.step]), rows
                )
            )
        return copy


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
    (i, j), (a, b) = block_id, operands
    rows, columns = (slice(cut[at], cut[at + 1]) for cut, at in zip(cuts, block_id, strict=False))
    steps = [slice(*ends) for ends in pairwise(cuts[2])]
    sum_ = None
    with ThreadPoolExecutor(1) as reader:
        ahead = reader.submit(_read, a, b, rows, columns, steps[0])
        for step, following in enumerate([*steps[1:], None]):
            x, y = blocks.attempted(ahead.result, (i, step, j), a, b)
            if following is not None:
                ahead = reader.submit(_read, a, b, rows, columns, following)
            part = blocks.product(x, y, (i, step, j), options)
            sum_ = part if sum_ is None else blocks.total([sum_, part])
    return blocks.finished(sum_)


def _read(a, b, rows: slice, columns: slice, step: slice) -> tuple[np.ndarray, np.ndarray]:
    """A pair of blocks, in memory."""
    return np.ascontiguousarray(a[rows, step]), np.ascontiguousarray(b[step, columns])
