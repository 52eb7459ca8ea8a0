"""What users hand in: arrays on either side, scalars and flags; checked, and seen as the kernels
see them.

A CPU's kernels use the memory of NumPy arrays (`borrowed`), and threads copy it for GPUs. Whoever
lends such memory waits for the device before it goes back to its owner, by return or by any
exception (`complete`).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from numbers import Complex, Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from ..caches import cached
from ..opencl.devices import Device, find_device, of_queue
from ..opencl.launch import in_order
from .problem import Layout, Operand

#: The types of elements that products take: those of BLAS, and float16.
DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))
HALF = np.dtype(np.float16)
ELEMENTS = (*DTYPES, HALF)

#: Candidates that NumPy tries to find out whether two arrays overlap; then it is assumed.
MOST_WORK = 10**6

#: What `trans_a` and `trans_b` may be: as in SciPy, or by BLAS's letters.
TRANSPOSITIONS = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}


def checked(name: str, x, dtypes: tuple[np.dtype, ...] = DTYPES[:1], least: int | None = None):
    """`x`, if it is an array of one of these types of elements; nothing is converted in silence.

    It has two dimensions, or where `least` is given, so many or more.
    """
    if not isinstance(x, (np.ndarray, cla.Array)) or isinstance(x, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must be a NumPy array or a pyopencl.array.Array, not {type(x).__name__}"
        )
    if x.dtype not in dtypes:
        *others, last = map(str, dtypes)
        wanted = f"{', '.join(others)} or {last}" if others else last
        able = x.dtype.kind in "fiu" or (x.dtype.kind == "c" and dtypes[0].kind == "c")
        # a copy of `out` would be lost, and so would the digits of a long double
        able = able and name != "out" and x.dtype.char not in "gG"
        how = f"; convert it with {name}.astype(np.{dtypes[0]})" if able else ""
        raise TypeError(f"{name} must be {wanted}, not {x.dtype}{how}")
    if x.ndim != 2 and (least is None or x.ndim < least):
        wanted = (
            "2 dimensions" if least is None else f"at least {least} dimension{'s' * (least != 1)}"
        )
        raise ValueError(f"{name} must have {wanted}, not {x.ndim} (its shape is {x.shape})")
    return x


def scalar(name: str, value, dtype: np.dtype = DTYPES[0]) -> float | complex:
    """A number that `dtype` can hold, rounded to it: a real one, or for complex types a complex
    one. Factors of float16 products are float32.
    """
    dtype = np.dtype(np.float32) if dtype == HALF else dtype
    if not isinstance(value, Complex if dtype.kind == "c" else Real):
        kind = "number" if dtype.kind == "c" else "real number"
        raise TypeError(f"{name} must be a {kind}, not {type(value).__name__}: {value!r}")
    largest = float(np.finfo(dtype).max)
    for part in (value.real, value.imag):
        number: Any = part  # of any real type; an int may be too large for a float
        if number == number and abs(number) != math.inf and abs(number) > largest:
            raise ValueError(f"{name}={value!r} is beyond the range of {dtype}")
    return dtype.type(value).item()


def transposition(name: str, value) -> str:
    """ "N", "T" or "C": as it is, transposed, conjugated and transposed."""
    if not isinstance(value, (str, bool, np.bool_, Integral)) or value not in TRANSPOSITIONS:
        raise ValueError(
            f"{name} must be 0, 1 or 2 (as it is, transposed, conjugate transposed), not {value!r}"
        )
    return TRANSPOSITIONS[value]


def flag(name: str, value) -> bool:
    """A truth value: True, False, 0 or 1."""
    if not isinstance(value, (bool, np.bool_, Integral)) or value not in (0, 1):
        raise ValueError(f"{name} must be True or False, not {value!r}")
    return bool(value)


class ArraySpec(NamedTuple):
    """How an array lies in memory: all that it takes to plan a product, and a key to remember the
    plan by.

    Attributes:
        dtype: the type of its elements.
        shape: its dimensions.
        strides: bytes from one element to the next along each dimension.
        offset: bytes before its first element.
        size_bytes: bytes of its buffer.
    """

    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int
    size_bytes: int

    @property
    def matrix(self) -> ArraySpec:
        """The first of its matrices."""
        return self._replace(shape=self.shape[-2:], strides=self.strides[-2:])

    def with_axis(self, axis: int) -> ArraySpec:
        """With one more dimension, of one element, at this place: a vector as a row (0) or as a
        column (1).
        """
        shape, strides = list(self.shape), list(self.strides)
        shape.insert(axis, 1)
        strides.insert(axis, self.dtype.itemsize)
        return self._replace(shape=tuple(shape), strides=tuple(strides))

    def steps(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Elements from one matrix to the next along the dimensions before the last two, broadcast
        to this shape.
        """
        own = [
            0 if size == 1 else stride // self.dtype.itemsize
            for size, stride in zip(self.shape[:-2], self.strides[:-2], strict=True)
        ]
        return (*(0 for _ in range(len(shape) - len(own))), *own)


def spec_of(x: cla.Array) -> ArraySpec:
    """How a device array lies in its buffer."""
    memory: Any = x.base_data
    return ArraySpec(x.dtype, x.shape, x.strides, x.offset, memory.size if x.size else 0)


def uploaded_spec(x: np.ndarray) -> ArraySpec:
    """How a copy of a NumPy array lies on a device: without gaps, as `by_columns` says."""
    if by_columns(x):
        *batch, rows, cols = x.shape
        *steps, across, down = compact_strides((*batch, cols, rows), x.itemsize)
        return ArraySpec(x.dtype, x.shape, (*steps, down, across), 0, x.nbytes)
    return ArraySpec(x.dtype, x.shape, compact_strides(x.shape, x.itemsize), 0, x.nbytes)


def lendable(x: np.ndarray) -> tuple[np.ndarray, ArraySpec]:
    """The array itself if kernels can read it where it is, or else a row-major copy; and how that
    lies in memory.

    It may be any array without gaps, and a matrix that is part of a larger one.
    """
    compact = x.flags.aligned and (x.flags.c_contiguous or by_columns(x))
    if not (compact or _is_part_of_a_matrix(x)):
        x = np.require(x, requirements=("C", "A"))
    size_bytes = x.nbytes
    if not x.flags.forc:
        size_bytes = x.itemsize + sum(
            (size - 1) * stride for size, stride in zip(x.shape, x.strides, strict=True)
        )
    return x, ArraySpec(x.dtype, x.shape, x.strides, 0, size_bytes)


def _is_part_of_a_matrix(x: np.ndarray) -> bool:
    """Whether one dimension of a matrix is contiguous, and its rows (or columns) do not overlap."""
    if x.ndim != 2 or not x.size or not x.flags.aligned:
        return False
    (rows, cols), (down, across), each = x.shape, x.strides, x.itemsize
    row_major = across == each and (rows == 1 or down >= cols * each)
    column_major = down == each and (cols == 1 or across >= rows * each)
    whole = down > 0 and across > 0 and down % each == across % each == 0
    return whole and (row_major or column_major)


def borrowed(context: cl.Context, x: np.ndarray | None) -> Any:
    """A buffer in the memory of a `lendable` array, see `Plan.in_host_memory`; None for one without
    elements.

    It is writable where the array is: Intel's runtime copies buffers that are only for reading,
    unless they begin at a multiple of 128 bytes.
    """
    if x is None or not x.size:
        return None
    if not x.flags.forc:  # a buffer takes contiguous memory: all from the first element to the last
        span = 1 + sum(
            (size - 1) * (stride // x.itemsize)
            for size, stride in zip(x.shape, x.strides, strict=True)
        )
        x = np.lib.stride_tricks.as_strided(x, (span,), (x.itemsize,), writeable=x.flags.writeable)
    access = cl.mem_flags.READ_WRITE if x.flags.writeable else cl.mem_flags.READ_ONLY
    return cl.Buffer(context, access | cl.mem_flags.USE_HOST_PTR, hostbuf=x)


def complete(*waits: Callable[[], object]) -> None:
    """Call each wait until it returns, however often it is interrupted: a second Ctrl-C has to wait
    as well.

    Args:
        waits: functions that return once commands are done, such as `queue.finish`.
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


def by_columns(x: np.ndarray) -> bool:
    """Whether the matrices in a NumPy array lie by columns without gaps, and not by rows."""
    return x.ndim > 1 and x.swapaxes(-1, -2).flags.c_contiguous and not x.flags.c_contiguous


def compact_strides(shape: tuple[int, ...], each: int) -> tuple[int, ...]:
    """The strides of an array that lies by rows without gaps; `each` is the distance of two
    elements.
    """
    strides = []
    for size in reversed(shape):
        strides.append(each)
        each *= size
    return tuple(reversed(strides))


def check_inside(name: str, lies: ArraySpec) -> None:
    """Refuse a device array that is not what its buffer holds: PyOpenCL makes one of any shape,
    offset and strides.

    Raises:
        ValueError: if elements lie outside the buffer, or at bytes that are no multiples of their
            size.
    """
    if 0 in lies.shape:
        return
    first, last = _reach(lies)
    if first < 0 or last >= lies.size_bytes:
        raise ValueError(
            f"{name} takes bytes {first:,} to {last:,} of its buffer, which has only "
            f"{lies.size_bytes:,}"
        )
    each, steps = (
        lies.dtype.itemsize,
        [s for size, s in zip(lies.shape, lies.strides, strict=True) if size > 1],
    )
    if any(distance % each for distance in (lies.offset, *steps)):
        raise ValueError(
            f"{name} has the offset {lies.offset} and the strides {lies.strides}, in bytes; "
            f"they must be multiples of the {each} bytes of an element"
        )


def check_out(out, a, b) -> None:
    """Refuse a result's array that is read-only, that shares memory with an operand, or whose
    elements share memory.
    """
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError("out is read-only; give an array that may be written")
    span = out.dtype.itemsize
    dimensions = zip(map(abs, out.strides), out.shape, strict=True)
    for stride, size in sorted(pair for pair in dimensions if pair[1] > 1):
        if stride < span:
            raise ValueError(
                f"out has the shape {out.shape} and the strides {out.strides}, so its elements "
                "share memory; give another array"
            )
        span += stride * (size - 1)
    for name, x in (("a", a), ("b", b)):
        if _overlap(out, x):
            raise ValueError(
                f"out shares memory with {name}, which is read while out is written; give another "
                "array"
            )


def _overlap(x, y) -> bool:
    """Whether two arrays share memory; for device arrays, whether their bytes lie among each other
    in one buffer.
    """
    if type(x) is not type(y) or not (x.size and y.size):
        return False
    if isinstance(x, np.ndarray):
        try:
            return np.shares_memory(x, y, max_work=MOST_WORK)  # type: ignore[arg-type]
        except RuntimeError:  # too hard
            return True
    if x.base_data != y.base_data:
        return False
    (first, last), (begin, end) = _reach(x), _reach(y)
    return first <= end and begin <= last


def _reach(x: cla.Array | ArraySpec) -> tuple[int, int]:
    """The first and the last byte of a device array's elements in its buffer."""
    steps = [(size - 1) * stride for size, stride in zip(x.shape, x.strides, strict=True)]
    return x.offset + sum(s for s in steps if s < 0), x.offset + sum(
        s for s in steps if s > 0
    ) + x.dtype.itemsize - 1


def shared_queue(arrays: dict[str, Any], device) -> tuple[cl.CommandQueue | None, Device]:
    """The queue that all device arrays share and its device, or None and the device for NumPy
    arrays.
    """
    names = list(arrays)
    first, x = names[0], arrays[names[0]]
    on_device = [isinstance(y, cla.Array) for y in arrays.values()]
    if not any(on_device):
        return None, find_device(device)
    if not all(on_device):
        there, here = (
            [n for n, d in zip(names, on_device, strict=True) if d is side]
            for side in (True, False)
        )
        raise TypeError(
            f"{', '.join(there)} on a device, but {', '.join(here)} in NumPy: put all of them on "
            "one side"
        )
    queue = x.queue
    for name, y in arrays.items():
        if y.queue is None or queue is None:
            homeless = name if y.queue is None else first
            raise ValueError(
                f"{homeless} has no queue; give it one with {homeless}.with_queue(queue)"
            )
        if y.queue is queue or y.queue == queue:
            continue
        if y.queue.context != queue.context:
            raise ValueError(
                f"{name} lives in another context than {first}; both must share one queue"
            )
        raise ValueError(
            f"{name} is on another queue than {first}; use {name}.with_queue({first}.queue)"
        )
    owner = _owner(queue)
    if device is not None and find_device(device).cl != owner.cl:
        raise ValueError(f"device={device!r}, but {first} lives on {owner}")
    return queue, owner


@cached(8)
def _owner(queue: cl.CommandQueue) -> Device:
    """The device of a queue, which must run its commands in order; remembered, since asking takes a
    while.
    """
    return of_queue(in_order(queue))


def swapped(name: str, lies: ArraySpec, trans: bool = False, conjugated: bool = False) -> Operand:
    """The transpose of a matrix (or, where `trans`, the matrix itself) as an operand of the
    swapped, column-major product.

    A row-major r x c array is, in memory, a column-major c x r matrix: its transpose, without a
    copy. This is the one place where row-major becomes column-major.

    Raises:
        ValueError: for a matrix of which no dimension is contiguous.
    """
    each, (rows, cols) = lies.dtype.itemsize, lies.shape
    down, across = (stride // each for stride in lies.strides)
    offset, room = lies.offset // each, lies.size_bytes // each
    as_rows = (cols == 1 or across == 1) and (rows == 1 or down >= cols)
    as_columns = (rows == 1 or down == 1) and (cols == 1 or across >= rows)
    if not (as_rows or as_columns):
        raise ValueError(
            f"{name} has the strides {lies.strides}; one dimension of a device array must be "
            "contiguous"
        )
    by_rows = Layout(cols, rows, cols if rows == 1 else down, offset, room) if as_rows else None
    by_columns = (
        Layout(rows, cols, rows if cols == 1 else across, offset, room) if as_columns else None
    )
    plain, transposed = (by_columns, by_rows) if trans else (by_rows, by_columns)
    return Operand(name, plain, transposed, conjugated)
