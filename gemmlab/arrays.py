"""What users hand in: arrays on either side, scalars and flags; checked, and seen as the kernels see them."""

from __future__ import annotations

import math
from numbers import Integral, Real

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from .device import Device, find_device, of_queue
from .launch import in_order
from .pipeline import Matrix, Session


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
    if not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, not {type(value).__name__}: {value!r}")
    if value == value and abs(value) != math.inf and abs(value) > float(np.finfo(np.float32).max):
        raise ValueError(f"{name}={value!r} is beyond the range of float32")
    return float(np.float32(value))


def flag(name: str, value) -> bool:
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
    first, queue = next((name, x.queue) for name, x in on_device.items())
    for name, x in on_device.items():
        if x.queue is None:
            raise ValueError(f"{name} has no queue; give it one with {name}.with_queue(queue)")
        if x.queue.context != queue.context:
            raise ValueError(f"{name} lives in another context than {first}; both must share one queue")
        if x.queue != queue:
            raise ValueError(f"{name} is on another queue than {first}; use {name}.with_queue({first}.queue)")
    owner = of_queue(in_order(queue))
    if device is not None and find_device(device).cl != owner.cl:
        raise ValueError(f"device={device!r}, but {first} lives on {owner}")
    return queue, owner


def operand(x, trans: bool, session: Session, prefer_rows: bool, name: str) -> tuple[Matrix, bool]:
    """`x` (or its transpose) as the kernels see it after the swap, and whether it lies transposed.

    A row-major r x c array is a column-major c x r matrix in memory, which is what the swap wants. A
    column-major array lies transposed. Where both readings fit, `prefer_rows` chooses.
    """
    if isinstance(x, np.ndarray):
        x = x.T if trans else x
        transposed = x.flags.f_contiguous and not (prefer_rows and x.flags.c_contiguous)
        return session.upload(np.ascontiguousarray(x.T if transposed else x)), transposed
    (rows, cols), strides, offset = x.shape, [s // 4 for s in x.strides], x.offset // 4
    if trans:
        rows, cols, strides = cols, rows, strides[::-1]
    down, across = strides
    as_rows = (cols == 1 or across == 1) and (rows == 1 or down >= cols)
    as_cols = (rows == 1 or down == 1) and (cols == 1 or across >= rows)
    if not (as_rows or as_cols):
        raise ValueError(f"{name} has the strides {x.strides}; one dimension of a device array must be contiguous")
    if as_rows and (prefer_rows or not as_cols):
        return Matrix(x.base_data, cols, rows, cols if rows == 1 else down, offset), False
    return Matrix(x.base_data, rows, cols, rows if cols == 1 else across, offset), True


def read(session: Session, out: Matrix, shape: tuple[int, int]) -> np.ndarray:
    host = np.empty(shape, np.float32)
    cl.enqueue_copy(session.queue, host, out.buffer)
    return host
