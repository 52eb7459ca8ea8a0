"""What users hand in: arrays on either side, scalars and flags; checked, and seen as the kernels see them."""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from ..opencl.devices import Device, find_device, of_queue
from ..opencl.launch import in_order
from .problem import Layout, Operand


def checked(name: str, x):
    """`x`, if it is a matrix that we take."""
    if not isinstance(x, (np.ndarray, cla.Array)) or isinstance(x, np.ma.MaskedArray):
        raise TypeError(f"{name} must be a NumPy array or a pyopencl.array.Array, not {type(x).__name__}")
    if x.dtype != np.float32:
        how = f"; convert it with {name}.astype(np.float32)" if x.dtype.kind in "fiu" else ""
        raise TypeError(f"{name} must be float32, not {x.dtype}{how}")
    if x.ndim != 2:
        raise ValueError(f"{name} must have 2 dimensions, not {x.ndim} (its shape is {x.shape})")
    return x


def scalar(name: str, value) -> float:
    """A real number that float32 can hold, rounded to it."""
    if not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, not {type(value).__name__}: {value!r}")
    number: Any = value  # of any real type; an int may be too large for a float
    if number == number and abs(number) != math.inf and abs(number) > float(np.finfo(np.float32).max):
        raise ValueError(f"{name}={value!r} is beyond the range of float32")
    return float(np.float32(number))


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


def swapped(name: str, x, trans: bool = False) -> Operand:
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
        down, across = (stride // 4 for stride in x.strides)
        offset, room = x.offset // 4, x.base_data.size // 4 if x.size else 0
        as_rows = (cols == 1 or across == 1) and (rows == 1 or down >= cols)
        as_columns = (rows == 1 or down == 1) and (cols == 1 or across >= rows)
        by_rows = Layout(cols, rows, cols if rows == 1 else down, offset, room)
        by_columns = Layout(rows, cols, rows if cols == 1 else across, offset, room)
    if not (as_rows or as_columns):
        raise ValueError(f"{name} has the strides {x.strides}; one dimension of a device array must be contiguous")
    readings = (by_rows if as_rows else None, by_columns if as_columns else None)
    return Operand(name, *(readings[::-1] if trans else readings))
