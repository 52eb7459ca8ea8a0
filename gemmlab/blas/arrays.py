"""Arrays and numbers that a caller passes, checked.

Nothing is converted silently. What is wrong is rejected here, with the name of the argument.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable, Mapping, Sequence
from numbers import Complex, Integral, Real
from typing import Any, Literal, TypeVar

import numpy as np

from ..caches import cached
from ..generate.elements import ELEMENTS
from ..opencl import cl, cla
from ..opencl.devices import Device, check_process, find_device, of_queue
from .layout import Layout

#: The types of elements that products support.
DTYPES = tuple(dict.fromkeys(one.dtype for one in ELEMENTS.values()))
#: The values of `trans_a` and `trans_b`: SciPy's numbers, or BLAS's letters.
Transposition = bool | Literal[0, 1, 2, "N", "T", "C"]
TRANSPOSITIONS = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}

#: The operands and the result of a product are on the same side: all in NumPy, or all on a device.
Operand = TypeVar("Operand", np.ndarray[Any, Any], cla.Array)
#: A factor, such as `alpha`.
Number = complex | np.number[Any]

#: The functions that make a NumPy array of an object with one of these attributes.
READERS: dict[str, Callable[[Any], np.ndarray]] = {
    "__array_interface__": np.asarray,
    "__dlpack__": np.from_dlpack,
}
#: DLPack's numbers of the devices whose memory the host can read: the CPU, pinned memory of CUDA
#: and of ROCm, and managed memory of CUDA.
HOST_MEMORY = (1, 3, 11, 13)


def check_array(
    name: str, x: Any, dtypes: tuple[np.dtype, ...] = DTYPES, least: int | None = None
) -> Any:
    """Return `x` as an array with elements of one of these types, and with two dimensions, or with
    at least `least`. Raise TypeError for other types, ValueError for other dimensions.
    """
    expression = name
    if not isinstance(x, (np.ndarray, cla.Array)) or isinstance(x, np.ma.MaskedArray):
        x, expression = _in_numpy(name, x, dtypes[0])
    if x.dtype not in dtypes:
        wanted = " or ".join(map(str, dtypes))
        is_real = x.dtype.kind in "iuf" and name != "out"  # a converted copy of `out` would be lost
        widest = x.dtype.kind == "f" and x.dtype.itemsize > 8  # as longdouble is
        to = "float64" if widest and np.dtype("float64") in dtypes else dtypes[0]
        how = f"; convert it with {expression}.astype(np.{to})" if is_real else ""
        raise TypeError(f"{name} must be {wanted}, not {x.dtype}{how}")
    if x.ndim != 2 and (least is None or x.ndim < least):
        wanted = "2 dimensions" if least is None else f"at least {least} dimension"
        raise ValueError(f"{name} must have {wanted}, not {x.ndim} (its shape is {x.shape})")
    return x


def _in_numpy(name: str, x: Any, dtype: np.dtype) -> tuple[np.ndarray, str]:
    """Return a NumPy array in the memory of an object that offers it, and the expression for it.

    Raise TypeError, with the expression that converts `x`, for an object that does not offer its
    memory or whose memory is not the host's, and for a masked array. An `out` must be an array
    itself, because a call returns what the caller passed.
    """
    must = f"{name} must be a NumPy array or a pyopencl.array.Array, not {type(x).__name__}"
    is_masked = isinstance(x, np.ma.MaskedArray)
    if is_masked or isinstance(x, np.generic):
        make = None
    else:
        make = next((make for method, make in READERS.items() if hasattr(x, method)), None)
    if make is None:
        how = f"replace what is masked: {name}.filled(0)"
        if not is_masked:
            how = f"convert it: np.asarray({name}, np.{dtype})"
        raise TypeError(must if name == "out" else f"{must}; {how}")
    expression = f"np.{make.__name__}({name})"
    try:
        on_host = make is np.asarray or x.__dlpack_device__()[0] in HOST_MEMORY
        array = make(x) if on_host else None
    except Exception as error:  # of any kind: the object's own code runs
        raise TypeError(
            f"{must}, and {expression} fails: {error}; convert it, in PyTorch by {name}.detach(), "
            f"or by {name}.float() if NumPy lacks its type"
        ) from error
    if array is None:
        raise TypeError(
            f"{must} in the memory of a GPU; copy it to the host: {name}.cpu() in PyTorch, "
            f"{name}.get() in CuPy, jax.device_get({name}) in JAX"
        )
    if name == "out":
        raise TypeError(f"{must}; give {expression}")
    return array, expression


def check_scalar(name: str, value: Any, dtype: np.dtype) -> float | complex:
    """Return a number rounded to `dtype`, for float16 to float32; raise ValueError beyond its
    range.
    """
    dtype = np.result_type(dtype, np.float32)
    if not isinstance(value, Complex if dtype.kind == "c" else Real):
        kind = "number" if dtype.kind == "c" else "real number"
        raise TypeError(f"{name} must be a {kind}, not {type(value).__name__}: {value!r}")
    try:
        with np.errstate(over="ignore"):
            number = dtype.type(value).item()
        if not cmath.isinf(number) or cmath.isinf(value):
            return number
    except OverflowError:  # of an int that no float can represent
        pass
    raise ValueError(f"{name}={value!r} is beyond the range of {dtype}")


def check_transposition(name: str, value: Any) -> str:
    """Return "N", "T" or "C": as it is, transposed, conjugated and transposed."""
    if not isinstance(value, (str, bool, np.bool_, Integral)) or value not in TRANSPOSITIONS:
        raise ValueError(
            f"{name} must be 0, 1 or 2 (as it is, transposed, conjugate transposed), not {value!r}"
        )
    return TRANSPOSITIONS[value]


def check_flag(name: str, value: Any) -> bool:
    """Return a truth value: True, False, 0 or 1."""
    if not isinstance(value, (bool, np.bool_, Integral)) or value not in (0, 1):
        raise ValueError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def rows_of(x: np.ndarray) -> np.ndarray:
    """Return the array, or its transpose if its matrices are column-major."""
    by_rows = x.flags.c_contiguous or x.ndim < 2 or abs(x.strides[-2]) >= abs(x.strides[-1])
    return x if by_rows else x.swapaxes(-1, -2)


def layout_on_host(x: np.ndarray) -> Layout:
    """Return the layout of a NumPy array without gaps, or of the copy by `to_readable`."""
    if x.flags.c_contiguous:
        return Layout(x.dtype, x.shape, x.strides, 0, x.nbytes)
    rows = rows_of(x)
    layout = Layout.compact(x.dtype, rows.shape)
    return layout if rows is x else layout.swapped


def layout_on_device(x: cla.Array) -> Layout:
    """Return the layout of a device array in its buffer."""
    memory: Any = x.base_data
    return Layout(x.dtype, x.shape, x.strides, x.offset, memory.size if x.size else 0)


def to_readable(x: np.ndarray) -> np.ndarray:
    """Return the array's rows (see `rows_of`), copied if kernels cannot read them as they are."""
    rows = x if x.flags.c_contiguous else rows_of(x)
    if rows.flags.c_contiguous and rows.flags.aligned:
        return rows
    return np.require(rows, requirements=("C", "A"))


def is_writable(out: np.ndarray, *operands: np.ndarray) -> bool:
    """Return whether a product can be written to the array's memory while its operands are read."""
    compact = out.flags.aligned and out.flags.c_contiguous
    return compact and not any(np.may_share_memory(out, x) for x in operands)


def overlaps(x: cla.Array, y: cla.Array) -> bool:
    """Return whether the elements of two device arrays may share memory: in a buffer, in its
    sub-buffers, or in buffers that use the same host memory.
    """
    if not (x.size and y.size):
        return False
    (memory, first, last), (other, begin, end) = map(_extent, (x, y))
    return memory == other and first <= end and begin <= last


def _extent(x: cla.Array) -> tuple[Any, int, int]:
    """Return an array's buffer, and the first and the last byte of its elements. In host memory
    there is no buffer, and bytes count from address 0.
    """
    memory: Any = x.base_data
    first, last = layout_on_device(x).reach
    begin, parent = 0, memory.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
    if parent is not None:  # OpenCL has no sub-buffers of sub-buffers
        begin, memory = memory.get_info(cl.mem_info.OFFSET), parent
    if memory.get_info(cl.mem_info.FLAGS) & cl.mem_flags.USE_HOST_PTR:
        begin += memory.get_host_array((1,), np.uint8).ctypes.data
        memory = None
    return memory, begin + first, begin + last


def check_out(out: Any, a: Any, b: Any) -> None:
    """Reject a result that is read-only, or on a device shares memory with an operand."""
    if isinstance(out, np.ndarray):
        if not out.flags.writeable:
            raise ValueError("out is read-only; give an array that may be written")
        return
    for name, x in (("a", a), ("b", b)):
        if overlaps(out, x):
            raise ValueError(
                f"out shares memory with {name}, which is read while out is written; give another "
                "array"
            )


def shared_queue(
    arrays: Sequence[Any], device: Device | int | str | None
) -> tuple[cl.CommandQueue | None, Device]:
    """Return the queue that all device arrays share and its device, or None and the device for
    NumPy arrays. `arrays` are a, b, c and out, or None for an absent array.
    """
    queue: Any = getattr(arrays[0], "queue", None)
    apart = [x for x in arrays if x is not None and getattr(x, "queue", None) is not queue]
    if queue is None or apart:
        names = zip(("a", "b", "c", "out"), arrays, strict=True)
        by_name = {name: x for name, x in names if x is not None}
        if not any(isinstance(x, cla.Array) for x in by_name.values()):
            return None, find_device(device)
        _check_queues(by_name)
    check_process()
    owner = _owner(queue)
    if device is not None and find_device(device).cl != owner.cl:
        raise ValueError(f"device={device!r}, but a is on {owner}")
    return queue, owner


def _check_queues(arrays: Mapping[str, Any]) -> None:
    """Reject arrays on both sides, and device arrays without a queue, or on several."""
    on_device = [name for name, x in arrays.items() if isinstance(x, cla.Array)]
    on_host = [name for name in arrays if name not in on_device]
    if on_device and on_host:
        raise TypeError(
            f"{', '.join(on_device)} on a device, but {', '.join(on_host)} in NumPy: put all of "
            "them on one side"
        )
    for name in on_device:
        queue = arrays[name].queue
        if queue is None:
            raise ValueError(f"{name} has no queue; give it one with {name}.with_queue(queue)")
        if queue != arrays["a"].queue:
            raise ValueError(
                f"{name} is on another queue than a; use {name}.with_queue(a.queue), or copy it if "
                "that queue is in another context"
            )


_owner = cached(8)(of_queue)
