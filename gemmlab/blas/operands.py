"""What users hand in: arrays on either side, scalars and flags; checked, and seen as the kernels see them."""

from __future__ import annotations

import math
from numbers import Complex, Integral, Real
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from ..opencl.devices import Device, find_device, of_queue
from ..opencl.launch import in_order
from .problem import Layout, Operand

#: The types of elements that products take.
DTYPES = tuple(np.dtype(name) for name in ("float32", "float64", "complex64", "complex128"))

#: What `trans_a` and `trans_b` may be: as in SciPy, or by BLAS's letters.
TRANSPOSITIONS = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}


def checked(name: str, x, dtypes: tuple[np.dtype, ...] = DTYPES[:1]):
    """`x`, if it is a matrix of one of these types of elements; nothing is converted in silence."""
    if not isinstance(x, (np.ndarray, cla.Array)) or isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a NumPy array or a pyopencl.array.Array, not {type(x).__name__}")
    if x.dtype not in dtypes:
        *others, last = map(str, dtypes)
        wanted = f"{', '.join(others)} or {last}" if others else last
        able = x.dtype.kind in "fiu" or (x.dtype.kind == "c" and dtypes[0].kind == "c")
        how = f"; convert it with {name}.astype(np.{dtypes[0]})" if able else ""
        raise TypeError(f"{name} must be {wanted}, not {x.dtype}{how}")
    if x.ndim != 2:
        raise ValueError(f"{name} must have 2 dimensions, not {x.ndim} (its shape is {x.shape})")
    return x


def scalar(name: str, value, dtype: np.dtype = DTYPES[0]) -> float | complex:
    """A number that `dtype` can hold, rounded to it: a real one, or for complex types a complex one."""
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
        raise ValueError(f"{name} must be 0, 1 or 2 (as it is, transposed, conjugate transposed), not {value!r}")
    return TRANSPOSITIONS[value]


def flag(name: str, value) -> bool:
    """A truth value: True, False, 0 or 1."""
    if not isinstance(value, (bool, np.bool_, Integral)) or value not in (0, 1):
        raise ValueError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def shared_queue(arrays: dict[str, object], device) -> tuple[cl.CommandQueue | None, Device]:
    """The queue that all device arrays share and its device, or None and the device for NumPy arrays."""
    on_device = {name: x for name, x in arrays.items() if isinstance(x, cla.Array)}
    if not on_device:
        return None, find_device(device)
    if len(on_device) < len(arrays):
        hosts = ", ".join(name for name in arrays if name not in on_device)
        raise TypeError(f"{', '.join(on_device)} on a device, but {hosts} in NumPy: put all of them on one side")
    first = next(iter(on_device))
    queue = on_device[first].queue
    for name, x in on_device.items():
        if x.queue is None or queue is None:
            homeless = name if x.queue is None else first
            raise ValueError(f"{homeless} has no queue; give it one with {homeless}.with_queue(queue)")
        if x.queue.context != queue.context:
            raise ValueError(f"{name} lives in another context than {first}; both must share one queue")
        if x.queue != queue:
            raise ValueError(f"{name} is on another queue than {first}; use {name}.with_queue({first}.queue)")
    assert queue is not None
    owner = of_queue(in_order(queue))
    if device is not None and find_device(device).cl != owner.cl:
        raise ValueError(f"device={device!r}, but {first} lives on {owner}")
    return queue, owner


def swapped(name: str, x, trans: bool = False, conjugated: bool = False) -> Operand:
    """The transpose of `x` (or, where `trans`, `x` itself) as an operand of the swapped, column-major product.

    A row-major r x c array is, in memory, a column-major c x r matrix: its transpose, without a copy. This is the
    one place where row-major becomes column-major. A NumPy array that is contiguous in neither way is described as
    it will lie after a row-major copy.

    Raises:
        ValueError: for a device array of which no dimension is contiguous.
    """
    rows, cols = x.shape
    if isinstance(x, np.ndarray):
        by_rows, by_columns = Layout.compact(cols, rows), Layout.compact(rows, cols)
        as_rows = x.flags.c_contiguous or not x.flags.f_contiguous
        as_columns = x.flags.f_contiguous
    else:
        down, across = (stride // x.dtype.itemsize for stride in x.strides)
        offset, room = x.offset // x.dtype.itemsize, x.base_data.size // x.dtype.itemsize if x.size else 0
        as_rows = (cols == 1 or across == 1) and (rows == 1 or down >= cols)
        as_columns = (rows == 1 or down == 1) and (cols == 1 or across >= rows)
        by_rows = Layout(cols, rows, cols if rows == 1 else down, offset, room)
        by_columns = Layout(rows, cols, rows if cols == 1 else across, offset, room)
    if not (as_rows or as_columns):
        raise ValueError(f"{name} has the strides {x.strides}; one dimension of a device array must be contiguous")
    readings = (by_rows if as_rows else None, by_columns if as_columns else None)
    plain, transposed = readings[::-1] if trans else readings
    return Operand(name, plain, transposed, conjugated)
