"""Products of Dask arrays: a task for each pair of blocks, and a tree of sums over k. These are the
tasks of `dask.array.matmul`, with gemmlab's products of blocks in place of NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from math import ceil, isnan
from typing import Any, NamedTuple

import dask.array as da
import numpy as np
from dask.array.core import unify_chunks
from dask.layers import ArrayBlockIdDep
from distributed import get_client
from distributed.system import MEMORY_LIMIT
from numpy.typing import DTypeLike

from ..blas.product import Edges
from ..generate.candidates import Precision
from ..generate.elements import ELEMENTS
from ..ladder import Key
from ..ladder.spec import positive
from ..opencl.devices import default_device
from . import blocks, stored
from .workers import survey

#: The types of elements: not those that a partial sum would be rounded to.
DTYPES = tuple(one.dtype for one in ELEMENTS.values() if one.size == one.sum_size)
#: Bytes that a worker takes without any matrix, with compilers and a compiled kernel, at most.
PROCESS = 400 * 2**20
#: The part of the remaining memory that blocks may take: copies in transit need the rest.
SHARE = 0.6


def matmul(
    a: Any,
    b: Any,
    *,
    kernel: Key = "auto",
    params: Mapping[str, int] | None = None,
    edges: Edges = "auto",
    precision: Precision = "float32",
    chunks: tuple[int, int, int] | None = None,
) -> da.Array:
    """Return the matrix product a b, lazily: `gemmlab.matmul` of blocks, on the workers' devices.

    Two Dask arrays are multiplied pair of blocks by pair of blocks, and the products are added in a
    tree, two by two, so that no worker needs a whole row of blocks. Dask decides which worker has
    which blocks.

    Of two matrices in files (Zarr arrays, memory-mapped NumPy files, datasets of h5py) a worker
    computes one block of the result after the other. It reads the next blocks while it multiplies,
    and its memory does not depend on the size of the matrices: see `stored`.

    Args:
        a, b: Dask arrays as `gemmlab.matmul` takes NumPy arrays: float32, float64, complex64 or
            complex128, of the same type; the last two dimensions multiply, the others are
            broadcast. Or two matrices in files.
        kernel, params, edges, precision: as in `gemmlab.matmul`, for each pair of blocks.
        chunks: for matrices in files: the rows and columns of a block of the result, and its steps
            along k; by default `choose_blocks` for the least memory of a worker or its device.

    Returns:
        A Dask array with the chunks of a's rows and b's columns, or those of `chunks`. Its blocks
        are NumPy arrays, unless those of a and b come from `to_device`.

    Raises:
        TypeError: for anything else; nothing is converted.
        ValueError: for shapes that do not match, and for chunks of unknown sizes.
        BlockError: when it is computed, if a pair of blocks cannot be multiplied.
    """
    options = {"kernel": kernel, "params": params, "edges": edges, "precision": precision}
    in_files = stored.is_stored(a) and stored.is_stored(b)
    for name, x, dtypes in (("a", a, DTYPES), ("b", b, (getattr(a, "dtype", None),))):
        if not in_files and not isinstance(x, da.Array):
            raise TypeError(
                f"{name} must be a Dask array (dask.array.from_array makes one), or both a and b "
                f"matrices in files, not {type(x).__name__}"
            )
        if x.dtype not in dtypes:
            wanted = " or ".join(map(str, dtypes))
            raise TypeError(
                f"{name} must be {wanted}, not {x.dtype}; convert it with {name}.astype(...)"
            )
        if x.ndim == 0:
            raise ValueError(f"{name} must have at least 1 dimension, not 0")
        if any(map(isnan, x.shape)):
            raise ValueError(
                f"{name} has chunks of unknown sizes: call {name}.compute_chunk_sizes() first"
            )
    if in_files:
        m, n, k = _sizes(a.shape, b.shape)
        chunks = _blocks_for_workers(m, n, k, a.dtype) if chunks is None else chunks
        return stored.matmul(a, b, chunks, options)
    if chunks is not None:
        raise ValueError("chunks= is for matrices in files; Dask arrays have the method rechunk")
    return _multiply(a, b, options)


def _multiply(a: da.Array, b: da.Array, options: dict[str, Any]) -> da.Array:
    """Return the product of valid arrays."""
    row, column = a.ndim == 1, b.ndim == 1
    a, b = _without_empty_chunks(a), _without_empty_chunks(b)
    a, b = a[np.newaxis] if row else a, b[:, np.newaxis] if column else b
    _sizes(a.shape[-2:], b.shape[-2:])
    batch = tuple(range(max(a.ndim, b.ndim) - 2))
    i, k, j = range(len(batch), len(batch) + 3)
    of_a = (*batch[len(batch) - a.ndim + 2 :], i, k)
    of_b = (*batch[len(batch) - b.ndim + 2 :], k, j)
    chunks, (a, b) = unify_chunks(a, of_a, b, of_b)
    out = (*batch, i, k, j)
    positions = ArrayBlockIdDep(tuple(chunks[axis] for axis in out))
    products = da.blockwise(
        blocks.product,
        out,
        a,
        of_a,
        b,
        of_b,
        positions,
        out,
        options=options,
        adjust_chunks={k: 1},
        align_arrays=False,
        dtype=a.dtype,
        meta=_sample(len(out), a.dtype),
        token="product",
    )
    c = da.reduction(
        products,
        blocks.total,
        blocks.total,
        axis=-2,
        split_every=2,
        concatenate=False,
        dtype=a.dtype,
        meta=_sample(len(out) - 1, a.dtype),
        name="sum",
    )
    return c.squeeze((-2,) * row + (-1,) * column)


def _sample(ndim: int, dtype: np.dtype) -> np.ndarray:
    """Return an empty array for Dask, which would otherwise call our functions to get one."""
    return np.empty((0,) * ndim, dtype)


def _without_empty_chunks(x: da.Array) -> da.Array:
    """Return the array without empty chunks, which mislead Dask's broadcasting."""
    cuts = tuple(tuple(size for size in cut if size) or (0,) for cut in x.chunks)
    return x if cuts == x.chunks else x.rechunk(cuts)


def _sizes(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, int, int]:
    """Return m, n and k of a product of these shapes. Raises ValueError if they do not match."""
    if len(a) != 2 or len(b) != 2:
        raise ValueError(
            f"matrices in files must have 2 dimensions; a has the shape {a}, b has {b}"
        )
    if a[1] != b[0]:
        raise ValueError(
            f"a is {a[0]} x {a[1]} and b is {b[0]} x {b[1]}: the columns of a ({a[1]}) must be as "
            f"many as the rows of b ({b[0]})"
        )
    return a[0], b[1], a[1]


def _blocks_for_workers(m: int, n: int, k: int, dtype: np.dtype) -> Blocks:
    """Return blocks that fit each worker and its device; without a client, this machine."""
    try:
        client = get_client()
    except ValueError:
        return choose_blocks(m, n, k, dtype)
    workers = client.scheduler_info()["workers"].values()
    available = [w["memory_limit"] - PROCESS for w in workers if w["memory_limit"]]
    if min(available, default=1) <= 0:  # such a worker may not live to report its device
        raise ValueError(
            f"a worker may take {min(available) + PROCESS:,} bytes, of which {PROCESS:,} are for "
            "Python and compilers: start workers with more memory"
        )
    available += [device["memory_bytes"] for device in survey(client).values()]
    least = min(available, default=None)
    return choose_blocks(m, n, k, dtype, memory_bytes=least, workers=max(1, len(workers)))


class Blocks(NamedTuple):
    """A block of the result is rows x columns, and its products are `depth` long."""

    rows: int
    columns: int
    depth: int


def choose_blocks(
    m: int,
    n: int,
    k: int,
    dtype: DTypeLike = "float32",
    *,
    memory_bytes: float | None = None,
    workers: int = 1,
) -> Blocks:
    """Choose blocks that fit a worker's memory, with at least two blocks of the result per worker.

    A block of rows x columns reads (rows + columns) k elements for 2 rows columns k operations,
    whatever its steps along k. So it is as large as memory allows, nearly square, and a step is a
    quarter of its side. Two pairs of blocks and three blocks of the result (see `stored`) take 60 %
    of the memory.

    Args:
        m, n, k: the product is m x n, its sums have k terms.
        dtype: of the elements.
        memory_bytes: of a worker, or of its device if that is less; by default of the preferred
            device, or an equal part of this machine's.
        workers: their number.

    Raises:
        ValueError: if a size is not a positive whole number, or if the memory is too small for
            blocks of 64.
    """
    for name, value in {"m": m, "n": n, "k": k, "workers": workers}.items():
        positive(name, value)
    if memory_bytes is None:
        memory_bytes = min(default_device().memory, MEMORY_LIMIT / workers)
    elements = SHARE * memory_bytes / np.dtype(dtype).itemsize
    # 3 side^2 for the result, 4 side (side/4) for two pairs
    side = 64 * int((elements / 4) ** 0.5 // 64)
    if side < 64:
        raise ValueError(
            f"{memory_bytes:,.0f} bytes are not enough for blocks of 64 x 64 {np.dtype(dtype)}"
        )
    while side > 64 and ceil(m / side) * ceil(n / side) < 2 * workers:
        side -= 64 * max(1, side // 64 // 8)
    return Blocks(_even(m, side), _even(n, side), _even(k, max(64, side // 4)))


def _even(size: int, most: int) -> int:
    """Return the size of equal blocks, of at most `most`; whole tiles of 64 if several."""
    number = ceil(size / most)
    return size if number == 1 else min(most, 64 * ceil(size / number / 64))


def to_device(a: da.Array) -> da.Array:
    """Return the array with its blocks in the memory of the workers' devices, for operands of
    several products.

    On CPUs nothing happens. On GPUs only `matmul` and `to_host` accept such blocks.
    """
    return _map(blocks.copy_to_device, a)


def to_host(c: da.Array) -> da.Array:
    """Return the array with its blocks in the workers' host memory, as NumPy arrays."""
    return _map(np.asarray, c)


def _map(function: Callable[[Any], Any], x: da.Array) -> da.Array:
    return da.map_blocks(function, x, dtype=x.dtype, meta=_sample(x.ndim, x.dtype))
