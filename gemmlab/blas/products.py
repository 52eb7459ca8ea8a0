"""What users call for products: matmul and gemm, for matrices of any size, layout and type.

`matmul` checks its arguments, `product.validate` makes a `Product` of them, `choose` a `Choice` for
a device, `plan.build` a `Plan`, and `run` executes it. Plans are remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from typing import Any, Literal, TypeVar, cast

import numpy as np

from ..generate.candidates import Precision
from ..generate.elements import ELEMENTS, results_of
from ..ladder import Key
from ..opencl import cla
from ..opencl.devices import Device
from .arrays import (
    Number,
    Operand,
    Transposition,
    check_array,
    check_flag,
    check_out,
    check_scalar,
    check_transposition,
    overlaps,
    shared_queue,
)
from .product import Edges, Operation, Options
from .run import Arrays, run_in_numpy, run_on_device, session_of


def _multiply(do: Operation, arrays: Arrays, device: Any) -> Any:
    """Return the product of checked operands, in `out` or a new array on their side."""
    a, b, c, out = arrays
    queue, device = shared_queue(arrays, device)
    if out is not None and out is not c:
        check_out(out, a, b)
    if queue is None:
        return run_in_numpy(session_of(device.queue, device), do, arrays)
    return run_on_device(session_of(queue, device), do, arrays)


def matmul(  # noqa: PLR0913
    a: Operand,
    b: Operand,
    out: Operand | None = None,
    *,
    kernel: Key = "auto",
    params: Mapping[str, int] | None = None,
    device: Device | int | str | None = None,
    edges: Edges = "auto",
    precision: Precision = "float32",
) -> Operand:
    """Return the matrix product a b, computed on an OpenCL device in the type of its operands.

    Arrays of more than two dimensions are batches, as in `numpy.matmul`: the last two dimensions
    multiply, the others are broadcast. A vector on the left is a row, a vector on the right is a
    column, and the result lacks that dimension.

    A call with device arrays returns as soon as everything is enqueued. On the device, it waits for
    what other queues still do to the operands (``Array.events``); the result's event is that of its
    last launch.

    Args:
        a: m x k float32, float64, complex64, complex128 or float16: a NumPy array of any layout, an
            object in the host's memory with ``__dlpack__`` or ``__array_interface__`` (such as a
            tensor of PyTorch), or a ``pyopencl.array.Array`` with one contiguous dimension.
            Products of float16 are added up in float32 and rounded once.
        b: k x n of the same type, on the same side; device arrays on the same queue, which runs in
            order.
        out: where to write the result: an array of its shape and type, on the same side and queue;
            of float16 operands it may be float32. A NumPy array may have any layout; a device array
            needs one contiguous dimension, and must not share memory with a or b.
        kernel: "auto" for the fastest kernel for these sizes, "family" for a generated kernel,
            "packed" for the kernel with packed operands (CPUs, real numbers), or, for float32, the
            number or name of a kernel of the catalog.
        params: the kernel's parameters as a dictionary; of a generated kernel those of
            `gemmlab.generate.tiles.DEFAULTS`. The kernel computes the transpose of the result, so
            parameters of its rows (such as TSM) act on columns of the result, and vice versa.
        device: for NumPy arrays: a Device, an index or part of a name; by default the preferred
            device.
        edges: what to do if the sizes are not multiples of the tile. For float32: "pad" copies the
            matrices into larger ones; "guard" checks each index (kernel 12); "shift" moves the last
            tiles back (kernel 13; the result needs at least one tile). For every type: "split" uses
            up to four launches, for whole tiles and for each edge. "auto" takes what was measured
            to be fastest.
        precision: for float32: "float32", or on tensor cores (NVIDIA's, compute capability 8.0 or
            later) "tf32", which rounds every element of a and b to 10 bits after the point
            (relative errors of about 3e-4), or "tf32x3", which splits it into two such numbers and
            multiplies three times: more accurate than float32 on normal data. If a matrix contains
            infinities, NaN, or magnitudes that cannot be split (below 2^-100, or from 2^127 on),
            the product falls back to "float32"; the call waits for the device to check this. Where
            "float32" is faster, it is used anyway.

    Returns:
        `out`, or a new row-major array, m x n of the operands' type: a NumPy array (of two vectors,
        a NumPy scalar), or a device array on the operands' queue (not waited for). Its memory comes
        from the `allocator` of a or b, or else from a pool of the queue, to which it returns when
        the array is deleted: keep the array for as long as another queue works with it.

    Raises:
        TypeError: for anything but arrays of one of these types; nothing is converted silently.
        ValueError: for shapes that do not match, an `out` that cannot be written, arrays on
            different queues or contexts, unknown kernels, illegal parameters (ParameterError),
            sizes beyond 2^30, operands of 2^31 elements or more (except with production kernels),
            such a result with a kernel of the ladder, or float64 and complex128 on a device without
            double precision.
        MemoryError: if the device cannot hold the matrices.
    """
    options = Options.of(kernel, params, edges, precision)
    a = check_array("a", a, least=1)
    b = check_array("b", b, (a.dtype,), least=1)
    if out is not None:
        check_array("out", out, results_of(a.dtype), least=0)
    result = (a if out is None else out).dtype
    return _multiply(Operation(options, 1.0, 0.0, "N", "N", result), (a, b, None, out), device)


def gemm(  # noqa: PLR0913
    alpha: Number,
    a: Operand,
    b: Operand,
    beta: Number = 0.0,
    c: Operand | None = None,
    trans_a: Transposition = 0,
    trans_b: Transposition = 0,
    *,
    overwrite_c: bool | Literal[0, 1] = False,
    kernel: Key = "auto",
    params: Mapping[str, int] | None = None,
    device: Device | int | str | None = None,
    edges: Edges = "auto",
) -> Operand:
    """Return alpha op(a) op(b) + beta c, with the arguments of ``scipy.linalg.blas``.

    In float32 on a GPU, a kernel of the catalog multiplies, and a second pass applies alpha and
    beta. For all other types one launch does everything.

    Args:
        alpha, beta: numbers, real ones for real operands. As in BLAS, alpha = 0 never reads a or b,
            and beta = 0 never reads c.
        a, b: as in `matmul`, with op(a) of m x k and op(b) of k x n.
        c: m x n of the same type, on the same side; required unless beta = 0. With operands in
            float16 it may be float32, and then so is the result.
        trans_a, trans_b: 0 or "N" for the matrix as it is, 1 or "T" for its transpose, 2 or "C" for
            its conjugate transpose. No copy is made for it, unless a kernel of the catalog needs
            one.
        overwrite_c: whether the result may be written to c, which saves memory. c must then be
            row-major without gaps, and on a device begin with its buffer (or sub-buffer) and share
            no memory with a and b; otherwise it is not used.
        kernel, params, device, edges: as in `matmul`.

    Returns:
        m x n of the operands' type, row-major, as in `matmul`: a new array, or c.

    Raises:
        As `matmul`; ValueError also for a missing c.
    """
    options, overwrites = Options.of(kernel, params, edges), check_flag("overwrite_c", overwrite_c)
    a = check_array("a", a)
    b = check_array("b", b, (a.dtype,))
    alpha, beta = check_scalar("alpha", alpha, a.dtype), check_scalar("beta", beta, a.dtype)
    if c is not None:
        c = check_array("c", c, results_of(a.dtype))
    elif beta != 0:
        raise ValueError(f"beta={beta:g} needs c, an m x n matrix to add")
    ta, tb = check_transposition("trans_a", trans_a), check_transposition("trans_b", trans_b)
    result = (a if c is None else c).dtype
    out = c if overwrites and _may_overwrite(c, a, b) else None
    operation = Operation(options, alpha, beta, ta, tb, result)
    return _multiply(operation, (a, b, c, out), device)


def _may_overwrite(c: Any, a: Any, b: Any) -> bool:
    """Return whether c is row-major without gaps, and on a device begins with its buffer and
    shares no memory with an operand.
    """
    if c is None or not c.flags.c_contiguous:
        return False
    if isinstance(c, np.ndarray):
        return c.flags.writeable
    return c.offset == 0 and not any(isinstance(x, cla.Array) and overlaps(c, x) for x in (a, b))


_Function = TypeVar("_Function", bound=Callable[..., Any])


def _for_type(letter: str, gemm: _Function) -> _Function:
    """Return `gemm` for one type of elements, under its name in BLAS."""
    dtype = ELEMENTS[letter].dtype

    @wraps(gemm)
    def typed(alpha: Any, a: Any, *others: Any, **options: Any) -> Any:
        return gemm(alpha, check_array("a", a, (dtype,)), *others, **options)

    typed.__name__ = typed.__qualname__ = f"{letter}gemm"
    typed.__doc__ = f"`gemm` for {dtype}; its arguments and options are those of `gemm`."
    return cast(_Function, typed)


sgemm = _for_type("s", gemm)
dgemm = _for_type("d", gemm)
cgemm = _for_type("c", gemm)
zgemm = _for_type("z", gemm)
hgemm = _for_type("h", gemm)
