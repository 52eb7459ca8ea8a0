"""The arrays and scalars of a call: checked, and described as the kernels see them.

On a CPU, kernels use the memory of NumPy arrays; for a GPU, threads copy it. A call must not return
that memory to its owner, not even by an exception, before the device has finished with it
(`complete`).
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
from ..generate.precision import PRECISIONS
from ..opencl.devices import Device, find_device, in_order, of_queue
from .problem import Layout, Operand

#: The types of elements that products support.
DTYPES = tuple(dict.fromkeys(one.dtype for one in PRECISIONS.values()))

#: The values of `trans_a` and `trans_b`: SciPy's numbers, or BLAS's letters.
TRANSPOSITIONS = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}


def checked(name: str, x, dtypes: tuple[np.dtype, ...] = DTYPES, least: int | None = None):
    """`x`, if it is an array of one of these types; nothing is converted silently.

    It must have two dimensions, or at least `least` if that is given.
    """
    if not isinstance(x, (np.ndarray, cla.Array)) or isinstance(x, np.ma.MaskedArray):
        raise TypeError(
            f"{name} must be a NumPy array or a pyopencl.array.Array, not {type(x).__name__}"
        )
    if x.dtype not in dtypes:
        *others, last = map(str, dtypes)
        wanted = f"{', '.join(others)} or {last}" if others else last
        is_real = x.dtype.kind in "iuf" and name != "out"  # a converted copy of `out` would be lost
        how = f"; convert it with {name}.astype(np.{dtypes[0]})" if is_real else ""
        raise TypeError(f"{name} must be {wanted}, not {x.dtype}{how}")
    if x.ndim != 2 and (least is None or x.ndim < least):
        wanted = "2 dimensions" if least is None else f"at least {least} dimension"
        raise ValueError(f"{name} must have {wanted}, not {x.ndim} (its shape is {x.shape})")
    return x


def scalar(name: str, value, dtype: np.dtype) -> float | complex:
    """A number that `dtype` can represent, rounded to it; of float16 products, to float32."""
    dtype = np.result_type(dtype, np.float32)
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
    """The layout of an array in memory: all that a plan depends on.

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
        """With another dimension, of one element: a vector as a row (0) or as a column (1)."""
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
    """The layout of a device array in its buffer."""
    memory: Any = x.base_data
    return ArraySpec(x.dtype, x.shape, x.strides, x.offset, memory.size if x.size else 0)


def compact_spec(x: np.ndarray) -> ArraySpec:
    """The layout of a NumPy array without gaps, or of a copy without gaps: that of `rows_of`."""
    if x.flags.c_contiguous:
        return ArraySpec(x.dtype, x.shape, x.strides, 0, x.nbytes)
    rows = rows_of(x)
    strides = compact_strides(rows.shape, x.itemsize)
    if rows is not x:
        strides = (*strides[:-2], strides[-1], strides[-2])
    return ArraySpec(x.dtype, x.shape, strides, 0, x.nbytes)


def rows_of(x: np.ndarray) -> np.ndarray:
    """The array, or its transpose if its matrices are column-major: contiguous if it has no
    gaps.
    """
    by_rows = x.flags.c_contiguous or x.ndim < 2 or abs(x.strides[-2]) >= abs(x.strides[-1])
    return x if by_rows else x.swapaxes(-1, -2)


def compact_strides(shape: tuple[int, ...], each: int) -> tuple[int, ...]:
    """The strides of a row-major array without gaps; `each` is the distance of two elements."""
    strides = []
    for size in reversed(shape):
        strides.append(each)
        each *= size
    return tuple(reversed(strides))


def lendable(x: np.ndarray) -> np.ndarray:
    """The array itself if kernels can read its memory, or else a row-major copy."""
    if x.flags.aligned and (x.flags.c_contiguous or rows_of(x).flags.c_contiguous):
        return x
    return np.require(x, requirements=("C", "A"))


def is_writable(out: np.ndarray, *operands: np.ndarray) -> bool:
    """Whether a product can be written to the array's memory while its operands are read."""
    compact = out.flags.aligned and (out if out.ndim > 2 else rows_of(out)).flags.c_contiguous
    return compact and not any(np.may_share_memory(out, x) for x in operands)


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


def check_inside(name: str, spec: ArraySpec) -> None:
    """Reject a device array that exceeds its buffer: PyOpenCL makes one of any shape, offset and
    strides.

    Raises:
        ValueError: if elements are outside the buffer, or at bytes that are no multiples of their
            size.
    """
    if 0 in spec.shape:
        return
    first, last = _reach(spec)
    if first < 0 or last >= spec.size_bytes:
        raise ValueError(
            f"{name} takes bytes {first:,} to {last:,} of its buffer, which has only "
            f"{spec.size_bytes:,}"
        )
    each = spec.dtype.itemsize
    steps = [s for size, s in zip(spec.shape, spec.strides, strict=True) if size > 1]
    if any(distance % each for distance in (spec.offset, *steps)):
        raise ValueError(
            f"{name} has the offset {spec.offset} and the strides {spec.strides}, in bytes; "
            f"they must be multiples of the {each} bytes of an element"
        )


def check_out(out, a, b) -> None:
    """Reject a read-only array for the result, and a device array that shares memory with an
    operand or with itself.
    """
    if isinstance(out, np.ndarray):
        if not out.flags.writeable:
            raise ValueError("out is read-only; give an array that may be written")
        return
    span = out.dtype.itemsize
    dimensions = zip(map(abs, out.strides), out.shape, strict=True)
    for stride, size in sorted(pair for pair in dimensions if pair[1] > 1):
        if stride < span:
            raise ValueError(
                f"out has the shape {out.shape} and the strides {out.strides}, so its elements "
                "share memory; give another array"
            )
        span += stride * (size - 1)
    first, last = _reach(out)
    for name, x in (("a", a), ("b", b)):
        begin, end = _reach(x)
        if out.base_data == x.base_data and out.size and x.size and first <= end and begin <= last:
            raise ValueError(
                f"out shares memory with {name}, which is read while out is written; give another "
                "array"
            )


def _reach(x: cla.Array | ArraySpec) -> tuple[int, int]:
    """The first and the last byte of a device array's elements in its buffer."""
    steps = [(size - 1) * stride for size, stride in zip(x.shape, x.strides, strict=True)]
    first = x.offset + sum(s for s in steps if s < 0)
    return first, x.offset + sum(s for s in steps if s > 0) + x.dtype.itemsize - 1


def shared_queue(arrays: dict[str, Any], device) -> tuple[cl.CommandQueue | None, Device]:
    """The queue that all device arrays share and its device, or None and the device for NumPy
    arrays.
    """
    (first, x), *_ = arrays.items()
    sides: dict[bool, list[str]] = {True: [], False: []}
    for name, y in arrays.items():
        sides[isinstance(y, cla.Array)].append(name)
    if not sides[True]:
        return None, find_device(device)
    if sides[False]:
        raise TypeError(
            f"{', '.join(sides[True])} on a device, but {', '.join(sides[False])} in NumPy: put "
            "all of them on one side"
        )
    for name, y in arrays.items():
        if y.queue is None:
            raise ValueError(f"{name} has no queue; give it one with {name}.with_queue(queue)")
        if y.queue == x.queue:
            continue
        if y.queue.context != x.queue.context:
            raise ValueError(
                f"{name} is in another context than {first}; both must share one queue"
            )
        raise ValueError(
            f"{name} is on another queue than {first}; use {name}.with_queue({first}.queue)"
        )
    owner = _owner(x.queue)
    if device is not None and find_device(device).cl != owner.cl:
        raise ValueError(f"device={device!r}, but {first} is on {owner}")
    return x.queue, owner


@cached(8)
def _owner(queue: cl.CommandQueue) -> Device:
    """The device of a queue, which must run its commands in order."""
    return of_queue(in_order(queue))


def swapped(name: str, spec: ArraySpec, trans: bool = False, conjugated: bool = False) -> Operand:
    """The transpose of a matrix (or, if `trans`, the matrix itself) as an operand of the swapped,
    column-major product.

    A row-major r x c array is, in memory, a column-major c x r matrix: its transpose, without a
    copy. Only this function turns row-major into column-major.

    Raises:
        ValueError: for a matrix of which no dimension is contiguous.
    """
    each, (rows, cols) = spec.dtype.itemsize, spec.shape
    down, across = (stride // each for stride in spec.strides)
    offset, room = spec.offset // each, spec.size_bytes // each
    as_rows = (cols == 1 or across == 1) and (rows == 1 or down >= cols)
    as_columns = (rows == 1 or down == 1) and (cols == 1 or across >= rows)
    if not (as_rows or as_columns):
        raise ValueError(
            f"{name} has the strides {spec.strides}; one dimension of a device array must be "
            "contiguous"
        )
    by_rows = Layout(cols, rows, cols if rows == 1 else down, offset, room) if as_rows else None
    by_columns = (
        Layout(rows, cols, rows if cols == 1 else across, offset, room) if as_columns else None
    )
    plain, transposed = (by_columns, by_rows) if trans else (by_rows, by_columns)
    return Operand(name, plain, transposed, conjugated)
