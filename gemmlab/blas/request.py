"""What a caller passes to a product, checked: options, arrays and numbers.

Nothing is converted silently. What is wrong is rejected here, with the name of the argument.
"""

from __future__ import annotations

import cmath
from collections.abc import Callable, Mapping, Sequence
from numbers import Complex, Integral, Real
from typing import Any, NamedTuple

import numpy as np

from ..caches import cached
from ..generate import choice, tiles
from ..generate.precision import PRECISIONS, check_double, letter_of
from ..ladder import KernelSpec, Key, catalog, find
from ..opencl import cl, cla
from ..opencl.devices import Device, check_process, find_device, of_queue
from .problem import Matrix, check_indices

#: Values of `kernel` that do not name a kernel of the catalog.
AUTO, GENERATED, PACKED = "auto", "family", "packed"
#: Values of `edges`: those of kernels of the catalog, and "split", for generated kernels.
EDGES = (*choice.EDGES, "auto", "split")
#: The values of `edges` that each of these supports.
OWN_EDGES = {AUTO: EDGES, GENERATED: ("auto", "guard", "split"), PACKED: ("auto",)}
#: The types of elements that products support.
DTYPES = tuple(dict.fromkeys(one.dtype for one in PRECISIONS.values()))
#: The values of `trans_a` and `trans_b`: SciPy's numbers, or BLAS's letters.
TRANSPOSITIONS = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}

Pairs = tuple[tuple[str, int], ...]

#: The functions that make a NumPy array of an object with one of these attributes.
READERS: dict[str, Callable[[Any], np.ndarray]] = {
    "__array_interface__": np.asarray,
    "__dlpack__": np.from_dlpack,
}
#: DLPack's numbers of the devices whose memory the host can read: the CPU, pinned memory of CUDA
#: and of ROCm, and managed memory of CUDA.
HOST_MEMORY = (1, 3, 11, 13)


class Request(NamedTuple):
    """The options of a product, valid and hashable."""

    kernel: Key = AUTO  # or "family" (generated), "packed", or a kernel of the catalog
    params: Pairs | None = None  # all parameters of the kernel; None for its defaults
    edges: str = "auto"  # or "pad", "guard", "shift" or "split"
    precision: str = "float32"  # or "tf32" or "tf32x3"

    def __str__(self) -> str:
        """The options that are set, as a caller writes them."""
        options = {"kernel": self.kernel, "edges": self.edges, "precision": self.precision}
        usual = {"kernel": AUTO, "edges": "auto", "precision": "float32"}
        chosen = [f"{name}={value!r}" for name, value in options.items() if value != usual[name]]
        return ", ".join(chosen) or f"kernel={AUTO!r}"

    @classmethod
    def of(
        cls, kernel: Any = AUTO, params: Any = None, edges: Any = "auto", precision: Any = "float32"
    ) -> Request:
        """The request for what a caller passed. Raises TypeError, ValueError or ParameterError for
        what is not allowed, or contradicts something else.
        """
        words = params is None and type(kernel) is type(edges) is type(precision) is str
        if words and (kernel, edges, precision) == (AUTO, "auto", "float32"):
            return PLAIN
        _check_word("edges", edges, EDGES)
        _check_word("precision", precision, tuple(choice.IMPLIED))
        if params is not None and not isinstance(params, Mapping):
            raise TypeError(
                f"params must be a dictionary of parameters, not {type(params).__name__}: "
                f"{params!r}"
            )
        spec, in_tf32 = None, precision != "float32"
        if not isinstance(kernel, str) or kernel not in OWN_EDGES:
            spec = find(kernel)
            kernel = spec.number
        allowed = OWN_EDGES[kernel] if spec is None else ("auto", spec.edges)
        if kernel == AUTO and in_tf32:
            allowed = "auto", "guard"
        if edges not in allowed:
            raise ValueError(
                f"edges={edges!r}, but kernel={kernel!r} with precision={precision!r} supports "
                f"edges={' or '.join(map(repr, allowed))}"
            )
        is_tensor = spec is not None and spec.tensor
        if kernel != AUTO and in_tf32 != is_tensor:
            if is_tensor:
                type_and_hint = "TF32; it needs precision='tf32' or 'tf32x3'"
            else:
                able = " or ".join(repr(name) for name, one in catalog.items() if one.tensor)
                type_and_hint = f"float32; kernel='auto' or {able} multiplies in TF32"
            raise ValueError(
                f"precision={precision!r}, but kernel={kernel!r} multiplies in {type_and_hint}"
            )
        return cls(kernel, _complete(kernel, spec, params, precision), edges, precision)

    def check_for(self, dtype: np.dtype, device: Device) -> None:
        """Reject what this type of elements or this device does not support. The ValueError names
        the argument, and what would be possible.
        """
        if self.precision != "float32" and "tensor" not in device.features:
            raise ValueError(
                f"precision={self.precision!r} needs tensor cores for TF32 (NVIDIA's, compute "
                f"capability 8.0 or later); {device} has none: precision='float32' runs everywhere"
            )
        if dtype != np.float32:
            if self.precision != "float32":
                raise ValueError(f"precision={self.precision!r} is for float32, not for {dtype}")
            if self.kernel not in (AUTO, GENERATED, PACKED):
                raise ValueError(
                    f"kernel {self.kernel} multiplies float32, not {dtype}; kernel='auto' and "
                    "'family' support every type"
                )
            if self.edges not in ("auto", "guard", "split"):
                raise ValueError(
                    f"edges={self.edges!r} is for float32, not for {dtype}; 'auto' is for all types"
                )
            check_double(letter_of(dtype), device)
        if self.kernel == PACKED and (dtype.kind != "f" or device.kind != "CPU"):
            raise ValueError(
                f"kernel='packed' multiplies real numbers on CPUs, not {dtype} on {device}; "
                "'auto' and 'family' support all types and devices"
            )


#: No option is set.
PLAIN = Request()


def _check_word(name: str, value: Any, words: tuple[str, ...]) -> None:
    if not isinstance(value, str) or value not in words:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, words))}, not {value!r}")


def _complete(kernel: Key, spec: KernelSpec | None, params: Any, precision: str) -> Pairs | None:
    """All parameters of a kernel, or None to choose them for the device and the product."""
    if kernel in (AUTO, PACKED):
        if params is not None:
            raise ValueError(
                f"params={dict(params)!r}, but kernel={kernel!r} has no parameters; "
                "kernel=3 or kernel='family' has some"
            )
        return None
    if spec is None:
        return None if params is None else tuple(tiles.complete_tile(dict(params)).items())
    if params is not None:
        spec.complete(params)  # rejects names and values
    implied = choice.implied(precision, kernel)
    if implied:
        params = {**implied, **(params or {})}
    for name, value in implied.items():
        if name != "EVERY" and params[name] != value:  # how often sums are moved is free
            raise ValueError(
                f"params has {name}={params[name]}, but precision={precision!r} means "
                f"{name}={value}"
            )
    return None if params is None else tuple(spec.complete(params).items())


def checked(name: str, x, dtypes: tuple[np.dtype, ...] = DTYPES, least: int | None = None):
    """`x` as an array, if its elements have one of these types, and if it has two dimensions, or at
    least `least`.
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


def _in_numpy(name: str, x, dtype: np.dtype) -> tuple[np.ndarray, str]:
    """A NumPy array in the memory of an object that offers it, and the expression that makes it.

    Raises TypeError, with the expression that converts `x`, for an object that does not offer its
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


def scalar(name: str, value, dtype: np.dtype) -> float | complex:
    """A number that `dtype` can represent, rounded to it; of float16 products, to float32."""
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
    """The layout of an array in memory: all that a plan depends on."""

    dtype: np.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]  # bytes from one element to the next along each dimension
    offset: int  # bytes before the first element
    size_bytes: int  # of the whole buffer

    @classmethod
    def compact(cls, dtype: np.dtype, shape: tuple[int, ...]) -> ArraySpec:
        """A row-major array without gaps."""
        strides, size = [], dtype.itemsize
        for length in reversed(shape):
            strides.append(size)
            size *= length
        return cls(dtype, shape, tuple(reversed(strides)), 0, size)

    @classmethod
    def on_host(cls, x: np.ndarray) -> ArraySpec:
        """A NumPy array without gaps, or its copy without gaps: that of `rows_of`."""
        if x.flags.c_contiguous:
            return cls(x.dtype, x.shape, x.strides, 0, x.nbytes)
        rows = rows_of(x)
        spec = cls.compact(x.dtype, rows.shape)
        return spec if rows is x else spec.swapped

    @classmethod
    def on_device(cls, x: cla.Array) -> ArraySpec:
        """A device array in its buffer."""
        memory: Any = x.base_data
        return cls(x.dtype, x.shape, x.strides, x.offset, memory.size if x.size else 0)

    @property
    def swapped(self) -> ArraySpec:
        """With its last two dimensions exchanged."""
        (*outer, m, n), (*steps, down, across) = self.shape, self.strides
        return self._replace(shape=(*outer, n, m), strides=(*steps, across, down))

    def with_axis(self, axis: int) -> ArraySpec:
        """With another dimension, of one element: a vector as a row or as a column."""
        shape, strides = list(self.shape), list(self.strides)
        shape.insert(axis, 1)
        strides.insert(axis, self.dtype.itemsize)
        return self._replace(shape=tuple(shape), strides=tuple(strides))

    def steps(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Elements from one matrix to the next along each dimension of a broadcast shape."""
        own = [
            0 if size == 1 else stride // self.dtype.itemsize
            for size, stride in zip(self.shape[:-2], self.strides[:-2], strict=True)
        ]
        return (*(0 for _ in range(len(shape) - len(own))), *own)

    def matrix(self, name: str, buffer: Any = None, operation: str = "N") -> Matrix:
        """The first of its matrices, transposed or conjugated as `operation` says. Raises
        ValueError if no dimension is contiguous.
        """
        each, (rows, cols) = self.dtype.itemsize, self.shape[-2:]
        down, across = (stride // each for stride in self.strides[-2:])
        # a single row or column has any stride
        down, across = cols if rows == 1 else down, rows if cols == 1 else across
        check_indices({f"a row or column of {name}": max(down, across)})
        x = Matrix(rows, cols, down, across, self.offset // each, self.size_bytes // each, buffer)
        if not (x.by_columns or x.T.by_columns):
            raise ValueError(
                f"{name} has the strides {self.strides}; one dimension of a device array must be "
                "contiguous"
            )
        x = x._replace(name=name, conjugated=operation == "C" and self.dtype.kind == "c")
        return x if operation == "N" else x.T

    @property
    def reach(self) -> tuple[int, int]:
        """The first and the last byte of the elements in the buffer."""
        steps = [(size - 1) * stride for size, stride in zip(self.shape, self.strides, strict=True)]
        first = self.offset + sum(s for s in steps if s < 0)
        return first, self.offset + sum(s for s in steps if s > 0) + self.dtype.itemsize - 1

    def check_inside(self, name: str) -> None:
        """Reject a device array outside its buffer, or at bytes that are no multiples of an
        element: PyOpenCL makes arrays of any shape, offset and strides.
        """
        if 0 in self.shape:
            return
        (first, last), each = self.reach, self.dtype.itemsize
        if first < 0 or last >= self.size_bytes:
            raise ValueError(
                f"{name} takes bytes {first:,} to {last:,} of its buffer, which has only "
                f"{self.size_bytes:,}"
            )
        steps = [s for size, s in zip(self.shape, self.strides, strict=True) if size > 1]
        if any(distance % each for distance in (self.offset, *steps)):
            raise ValueError(
                f"{name} has the offset {self.offset} and the strides {self.strides}, in bytes; "
                f"they must be multiples of the {each} bytes of an element"
            )


def check_apart(name: str, x: ArraySpec | np.ndarray) -> None:
    """Reject an array whose elements share memory."""
    span = x.dtype.itemsize
    dimensions = zip(map(abs, x.strides), x.shape, strict=True)
    for stride, size in sorted(pair for pair in dimensions if pair[1] > 1):
        if stride < span:
            raise ValueError(
                f"{name} has the shape {x.shape} and the strides {x.strides}, so its elements "
                "share memory; give another array"
            )
        span += stride * (size - 1)


def rows_of(x: np.ndarray) -> np.ndarray:
    """The array, or its transpose if its matrices are column-major."""
    by_rows = x.flags.c_contiguous or x.ndim < 2 or abs(x.strides[-2]) >= abs(x.strides[-1])
    return x if by_rows else x.swapaxes(-1, -2)


def readable(x: np.ndarray) -> np.ndarray:
    """The array's rows (see `rows_of`) if kernels can read them as they are, or else a copy."""
    rows = x if x.flags.c_contiguous else rows_of(x)
    if rows.flags.c_contiguous and rows.flags.aligned:
        return rows
    return np.require(rows, requirements=("C", "A"))


def is_writable(out: np.ndarray, *operands: np.ndarray) -> bool:
    """Whether a product can be written to the array's memory while its operands are read."""
    compact = out.flags.aligned and out.flags.c_contiguous
    return compact and not any(np.may_share_memory(out, x) for x in operands)


def overlaps(x: cla.Array, y: cla.Array) -> bool:
    """Whether the elements of two device arrays may share memory: in a buffer, in sub-buffers of
    it, or in buffers that use the same host memory.
    """
    if not (x.size and y.size):
        return False
    (memory, first, last), (other, begin, end) = map(_extent, (x, y))
    return memory == other and first <= end and begin <= last


def _extent(x: cla.Array) -> tuple[Any, int, int]:
    """The first and the last byte of an array's elements, and the buffer from whose beginning they
    count. Bytes of host memory count from address 0, and there is no buffer.
    """
    memory: Any = x.base_data
    first, last = ArraySpec.on_device(x).reach
    begin, parent = 0, memory.get_info(cl.mem_info.ASSOCIATED_MEMOBJECT)
    if parent is not None:  # OpenCL has no sub-buffers of sub-buffers
        begin, memory = memory.get_info(cl.mem_info.OFFSET), parent
    if memory.get_info(cl.mem_info.FLAGS) & cl.mem_flags.USE_HOST_PTR:
        begin += memory.get_host_array((1,), np.uint8).ctypes.data
        memory = None
    return memory, begin + first, begin + last


def check_out(out, a, b) -> None:
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


def shared_queue(arrays: Sequence[Any], device) -> tuple[cl.CommandQueue | None, Device]:
    """The queue that all device arrays share and its device, or None and the device for NumPy
    arrays. `arrays` are a, b, c and out; None stands for one that was not given.
    """
    queue: Any = getattr(arrays[0], "queue", None)
    apart = [x for x in arrays if x is not None and getattr(x, "queue", None) is not queue]
    if queue is None or apart:
        names = zip(("a", "b", "c", "out"), arrays, strict=True)
        given = {name: x for name, x in names if x is not None}
        if not any(isinstance(x, cla.Array) for x in given.values()):
            return None, find_device(device)
        _check_queues(given)
    check_process()
    owner = _owner(queue)
    if device is not None and find_device(device).cl != owner.cl:
        raise ValueError(f"device={device!r}, but a is on {owner}")
    return queue, owner


def _check_queues(given: Mapping[str, Any]) -> None:
    """Reject arrays on both sides, and device arrays without a queue, or on several."""
    on_device = [name for name, x in given.items() if isinstance(x, cla.Array)]
    on_host = [name for name in given if name not in on_device]
    if on_device and on_host:
        raise TypeError(
            f"{', '.join(on_device)} on a device, but {', '.join(on_host)} in NumPy: put all of "
            "them on one side"
        )
    for name in on_device:
        queue = given[name].queue
        if queue is None:
            raise ValueError(f"{name} has no queue; give it one with {name}.with_queue(queue)")
        if queue != given["a"].queue:
            raise ValueError(
                f"{name} is on another queue than a; use {name}.with_queue(a.queue), or copy it if "
                "that queue is in another context"
            )


_owner = cached(8)(of_queue)
