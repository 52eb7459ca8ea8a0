"""What users call for products: matmul and gemm, for matrices of any size, layout and type.

`plan_for` makes a plan from a `Call`, which holds all that a plan depends on, and remembers it.
Every call executes its plan: the first one and later ones alike.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ..caches import cached
from ..generate.precision import PRECISIONS, results_of
from ..opencl import cl, cla
from ..opencl.build import WorkGroupError
from ..opencl.devices import Device
from . import staging
from .plan import C0, OUT, A, B, Plan, check_memory, pool_of, wait_for_others
from .problem import Batch, Matrix, Problem, check_sizes, is_wide
from .request import (
    PLAIN,
    ArraySpec,
    Request,
    check_apart,
    check_out,
    checked,
    flag,
    is_writable,
    overlaps,
    readable,
    rows_of,
    scalar,
    shared_queue,
    transposition,
)
from .routes import emit


class Operation(NamedTuple):
    """alpha op(a) op(b) + beta c."""

    request: Request
    alpha: float | complex
    beta: float | complex
    ta: str  # op(a): "N" as it is, "T" transposed, "C" conjugated and transposed
    tb: str
    result: np.dtype  # the type of the result


#: a, b, c and out; None for one that was not given.
Arrays = tuple[Any, Any, Any, Any]
Specs = tuple[ArraySpec, ArraySpec, ArraySpec | None, ArraySpec | None]


class Call(NamedTuple):
    """All that a plan depends on."""

    operation: Operation
    specs: Specs  # of the arrays
    queue: cl.CommandQueue
    device: Device
    in_place: bool = False  # whether c and the result are the same memory


@cached(512)
def plan_for(call: Call) -> Plan:
    """The plan of a call; see `matmul` for what it raises. A kernel that was chosen automatically
    may, once it is compiled, fit only smaller work-groups: then another one is chosen.
    """
    try:
        return _planned(call)
    except WorkGroupError as error:
        if call.operation.request.params is not None:
            raise
        return plan_for(call._replace(device=call.device.limited(error.limit)))


def _planned(call: Call) -> Plan:
    do, (a, b, c, out) = call.operation, call.specs
    for name, spec in zip(("a", "b", "c", "out"), call.specs, strict=True):
        if spec is not None:
            spec.check_inside(name)
    do.request.check_for(a.dtype, call.device)
    is_row, is_column = len(a.shape) == 1, len(b.shape) == 1
    a, b = a.with_axis(0) if is_row else a, b.with_axis(1) if is_column else b
    m, n, k, outer, batch = _shapes(do, a, b, c)
    check_sizes(m, n, k)
    shape = (*outer, *(() if is_row else (m,)), *(() if is_column else (n,)))
    if out is not None and out.shape != shape:
        raise ValueError(f"out has the shape {out.shape}, but the product has {shape}")
    elements, itemsize = prod(shape), a.dtype.itemsize
    operands = {"a": prod(a.shape), "b": prod(b.shape)} if do.alpha else {}
    sizes = operands | {"the result": elements * do.result.itemsize // itemsize}
    check_memory(call.device, sizes, True, itemsize)
    plan = Plan(call.queue, call.device, a.dtype, do.result)
    plan.shape = shape
    if not elements:
        return plan
    gaps = [] if out is None else _gaps(out, is_row, is_column)
    may_merge = not gaps and not is_wide(max(elements, prod(a.shape)))
    if batch and may_merge and _is_one_matrix(a, b, do.ta):
        m, batch = elements // n, None
        a = a._replace(shape=(m, k), strides=a.strides[-2:])
    memory = plan.memory(elements) if gaps else OUT
    product = Matrix.compact(n, m, memory).T  # row-major
    before = c.matrix("c", OUT if call.in_place else C0) if c and do.beta else None
    if k and do.alpha:
        left, right = a.matrix("a", A, do.ta), b.matrix("b", B, do.tb)
        problem = Problem(left, right, product, do.alpha, do.beta, before, batch)
        emit(plan, do.request, problem.turned)
    elif before:
        plan.scale(do.beta, before, product)
    else:
        plan.zeros(memory, elements * do.result.itemsize)
    for i, matrix in enumerate(gaps):
        plan.scale(1.0, product.moved(i * m * n), matrix)
    plain = call._replace(operation=do._replace(request=PLAIN))
    plan.fallback = partial(plan_for, plain)
    return plan


def _gaps(out: ArraySpec, is_row: bool, is_column: bool) -> list[Matrix]:
    """The matrices of a result to which kernels cannot write: a copy follows."""
    check_apart("out", out)
    if is_row:
        out = out.with_axis(len(out.shape) - (not is_column))
    if is_column:
        out = out.with_axis(len(out.shape))
    first, steps = out.matrix("out", OUT), out.steps(out.shape[:-2])
    starts = [start for start, *_ in Batch.over(out.shape[:-2], steps, steps).launches(1)]
    adjacent = starts == [i * first.rows * first.cols for i in range(len(starts))]
    return [] if adjacent and first.T.is_compact else [first.moved(start) for start in starts]


def _shapes(
    do: Operation, a: ArraySpec, b: ArraySpec, c: ArraySpec | None
) -> tuple[int, int, int, tuple[int, ...], Batch | None]:
    """m, n and k of op(a) op(b), which is m x n; the dimensions before the matrices, broadcast; and
    the batch, if these make several products. ValueError for shapes that do not match.
    """
    ta, tb = do.ta, do.tb
    (m, k) = a.shape[-2:] if ta == "N" else a.shape[:-3:-1]
    (k2, n) = b.shape[-2:] if tb == "N" else b.shape[:-3:-1]
    if k != k2:
        raise ValueError(
            f"a is {m} x {k} and b is {k2} x {n}{'' if ta == tb == 'N' else ' after transposing'}: "
            f"the columns of a ({k}) must be as many as the rows of b ({k2})"
        )
    if c is not None and c.shape != (m, n):
        raise ValueError(f"c has the shape {c.shape}, expected {(m, n)}")
    try:
        outer = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(
            f"a has the shape {a.shape} and b has {b.shape}: the dimensions before the last two "
            "must be equal, or 1, or left out"
        ) from None
    batch = Batch.over(outer, a.steps(outer), b.steps(outer)) if prod(outer) > 1 else None
    return m, n, k, outer, batch


def _is_one_matrix(a: ArraySpec, b: ArraySpec, ta: str) -> bool:
    """Whether a batch is one product: a tall left matrix, and a single b."""
    rows = [pair for pair in zip(a.shape[:-1], a.strides[:-1], strict=True) if pair[0] > 1]
    adjacent = all(
        outer == size * stride for (_, outer), (size, stride) in zip(rows, rows[1:], strict=False)
    )
    return adjacent and ta == "N" and a.shape[-2] > 1 and prod(b.shape[:-2]) == 1


def multiply(do: Operation, arrays: Arrays, device: Any) -> Any:
    """The product of checked operands, into `out` or a new array on their side."""
    a, b, c, out = arrays
    queue, device = shared_queue(arrays, device)
    if out is not None and out is not c:
        check_out(out, a, b)
    return _in_numpy(do, arrays, device) if queue is None else _on_device(do, arrays, queue, device)


@cached(64)
def _prototype(queue: cl.CommandQueue, shape: tuple[int, ...], dtype: np.dtype) -> cla.Array:
    """An array to copy, without memory: PyOpenCL needs 15 microseconds to make a new one, and one
    to copy it.
    """
    return cla.Array(
        queue, shape, dtype, data=cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, dtype.itemsize)
    )


def _on_device(do: Operation, arrays: Arrays, queue: cl.CommandQueue, device: Device) -> cla.Array:
    """The product of device arrays: enqueued, not waited for."""
    a, b, c, out = arrays
    of = ArraySpec.on_device
    specs = of(a), of(b), None if c is None else of(c), None if out is None else of(out)
    plan = plan_for(Call(do, specs, queue, device, out is not None and out is c))
    wait_for_others(queue, *[x for x in arrays if x is not None])
    allocator, result = a.allocator or b.allocator, out
    if result is None:
        result = _prototype(queue, plan.shape, do.result).with_queue(queue)
        allocate = allocator or pool_of(queue).allocate
        result.base_data = allocate(max(1, result.nbytes))
        result.allocator, result.events = allocator, []
    buffers = [None if x is None else x.base_data for x in (a, b, c, result)]
    events = plan(buffers)
    if events:
        result.events[:] = [events[-1][1]]  # all that came before has been waited for
    return result


def _in_numpy(do: Operation, arrays: Arrays, device: Device) -> np.ndarray | np.generic:
    """The product of NumPy arrays: in their own memory on a CPU, otherwise through copies."""
    (a, b, c, out), on_cpu = arrays, device.kind == "CPU"
    target = out
    if target is not None and not is_writable(target, a, b):
        check_apart("out", target)
        target = np.empty(target.shape, target.dtype)
    of = ArraySpec.on_host
    specs = of(a), of(b), None if c is None else of(c), None if target is None else of(target)
    call = Call(do, specs, device.queue, device, on_cpu and target is not None and target is c)
    plan = plan_for(call)
    if target is None:
        target = np.empty(plan.shape, do.result)
    if on_cpu:
        used = [None if x is None else readable(x) for x in (a, b, c, target)]
        plan.in_host_memory(used)
    elif plan.steps:
        _through_copies(call, plan, (a, b, c, target))
    if out is None:
        return target if target.ndim else target[()]
    if target is not out:
        out[...] = target
    return out


def _through_copies(call: Call, plan: Plan, arrays: Arrays) -> None:
    """Copy the operands to the device, multiply, and copy the result back."""
    queue, (a, b, _, out) = call.queue, arrays
    is_large = a.nbytes + b.nbytes + out.nbytes >= staging.WORTHWHILE
    pinned = staging.staging_for(call.device) if is_large else None
    if pinned and _allows_strips(call.operation, arrays):
        pinned.compute(queue, _strips(call, a, b, out))
        return
    sizes = [0 if x is None else x.nbytes for x in arrays]
    buffers: list[Any] = [pool_of(queue).allocate(size) if size else None for size in sizes]
    operands = [(x, y) for x, y in zip(arrays[:3], buffers, strict=False) if y is not None]
    if pinned:
        copies = [(_as_matrix(x), buffer) for x, buffer in operands]
        launch = partial(plan, buffers)
        pinned.compute(queue, [staging.Strip(copies, launch, buffers[3], _as_matrix(out))])
        return
    for x, buffer in operands:
        cl.enqueue_copy(queue, buffer, readable(x))
    plan(buffers)
    cl.enqueue_copy(queue, out, buffers[3])


def _as_matrix(x: np.ndarray) -> np.ndarray:
    """All rows of an array, as one matrix."""
    rows = rows_of(x)
    return rows.reshape(-1, rows.shape[-1] if rows.ndim else 1)


def _allows_strips(do: Operation, arrays: Arrays) -> bool:
    """Whether the first rows (or columns) may be finished before the last ones have been read."""
    a, b, _, _ = arrays
    two = a.ndim == b.ndim == 2 and a.size > 0 and b.size > 0
    return two and do.alpha != 0 and do.beta == 0 and "C" not in (do.ta, do.tb)


def _strips(call: Call, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> list[staging.Strip]:
    """A product in strips of the longer side of the result; the other operand stays."""
    allocate, do = pool_of(call.queue).allocate, call.operation
    a = a if do.ta == "N" else a.T
    b = b if do.tb == "N" else b.T
    across = out.shape[1] > out.shape[0]
    kept, moving = (a, b) if across else (b, a)
    operands = [(rows_of(kept), kept_buffer := allocate(kept.nbytes))]
    parts = []
    for part in staging.strips(max(out.shape)):
        index = (slice(None), part) if across else (part,)
        x, to = moving[index], out[index]
        buffer, result = allocate(x.nbytes), allocate(to.nbytes)
        pair, buffers = [kept, x], [kept_buffer, buffer]
        if not across:
            pair, buffers = pair[::-1], buffers[::-1]
        left, right, target = map(ArraySpec.on_host, (*pair, to))
        strip = call._replace(
            operation=do._replace(ta="N", tb="N"), specs=(left, right, None, target)
        )
        launch = partial(plan_for(strip), [*buffers, None, result])
        parts.append(staging.Strip([*operands, (rows_of(x), buffer)], launch, result, rows_of(to)))
        operands = []
    return parts


def matmul(a, b, out=None, *, kernel="auto", params=None, device=None, **options):
    """The matrix product a b on an OpenCL device, in the type of its operands.

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
        options: `edges` and `precision`.

            `edges` says what to do if the sizes are not multiples of the tile. For float32: "pad"
            copies the matrices into larger ones; "guard" checks each index (kernel 12); "shift"
            moves the last tiles back (kernel 13; the result needs at least one tile). For every
            type: "split" uses up to four launches, for whole tiles and for each edge. "auto" takes
            what was measured to be fastest.

            `precision` is for float32: "float32", or on tensor cores (NVIDIA's, compute capability
            8.0 or later) "tf32", which rounds every element of a and b to 10 bits after the point
            (relative errors of about 3e-4), or "tf32x3", which splits it into two such numbers and
            multiplies three times: more accurate than float32 on normal data. If a matrix contains
            infinities, NaN, or magnitudes that cannot be split (below 2^-100, or from 2^127 on),
            the product falls back to "float32"; the call waits for the device to check this. Where
            "float32" is faster, it is used anyway.

    Returns:
        `out`, or a new row-major array, m x n of the operands' type: a NumPy array, or a device
        array on the operands' queue (not waited for). Its memory comes from the `allocator` of a or
        b, or else from a pool of the queue, to which it returns when the array is deleted: keep the
        array for as long as another queue works with it.

    Raises:
        TypeError: for anything but arrays of one of these types; nothing is converted silently.
        ValueError: for shapes that do not match, an `out` that cannot be written, arrays on
            different queues or contexts, unknown kernels, illegal parameters (ParameterError),
            sizes beyond 2^30, operands of 2^31 elements or more (except with production kernels),
            such a result with a kernel of the ladder, or float64 and complex128 on a device without
            double precision.
        MemoryError: if the device cannot hold the matrices.
    """
    request = Request.of(kernel, params, **options)
    a = checked("a", a, least=1)
    b = checked("b", b, (a.dtype,), least=1)
    if out is not None:
        checked("out", out, results_of(a.dtype), least=0)
    result = (a if out is None else out).dtype
    return multiply(Operation(request, 1.0, 0.0, "N", "N", result), (a, b, None, out), device)


def gemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, **options):
    """alpha op(a) op(b) + beta c, with the arguments of ``scipy.linalg.blas``.

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
        options: `kernel`, `params`, `device` and `edges`, as in `matmul`; and `overwrite_c`:
            whether the result may be written to c, which saves memory. c must then be row-major
            without gaps, and on a device begin with its buffer (or sub-buffer) and share no memory
            with a and b; otherwise it is not used.

    Returns:
        m x n of the operands' type, row-major, as in `matmul`: a new array, or c.

    Raises:
        As `matmul`; ValueError also for a missing c.
    """
    request, device, overwrites = _options(**options)
    a = checked("a", a)
    b = checked("b", b, (a.dtype,))
    alpha, beta = scalar("alpha", alpha, a.dtype), scalar("beta", beta, a.dtype)
    if c is not None:
        c = checked("c", c, results_of(a.dtype))
    elif beta != 0:
        raise ValueError(f"beta={beta:g} needs c, an m x n matrix to add")
    ta, tb = transposition("trans_a", trans_a), transposition("trans_b", trans_b)
    result = (a if c is None else c).dtype
    out = c if overwrites and _may_overwrite(c, a, b) else None
    operation = Operation(request, alpha, beta, ta, tb, result)
    return multiply(operation, (a, b, c, out), device)


def _options(
    overwrite_c=False, device=None, kernel="auto", params=None, edges="auto"
) -> tuple[Request, Any, bool]:
    return Request.of(kernel, params, edges), device, flag("overwrite_c", overwrite_c)


def _may_overwrite(c: Any, a: Any, b: Any) -> bool:
    """Whether c is row-major without gaps, and on a device begins with its buffer and shares no
    memory with an operand.
    """
    if c is None or not c.flags.c_contiguous:
        return False
    if isinstance(c, np.ndarray):
        return c.flags.writeable
    return c.offset == 0 and not any(isinstance(x, cla.Array) and overlaps(c, x) for x in (a, b))


def _for_type(letter: str) -> Callable[..., Any]:
    """`gemm` for one type of elements, under its name in BLAS."""
    dtype = PRECISIONS[letter].dtype

    @wraps(gemm)
    def typed(alpha, a, *others, **options):
        return gemm(alpha, checked("a", a, (dtype,)), *others, **options)

    typed.__name__ = typed.__qualname__ = f"{letter}gemm"
    typed.__doc__ = f"`gemm` for {dtype}; its arguments and options are those of `gemm`."
    return typed


sgemm, dgemm, cgemm, zgemm, hgemm = map(_for_type, ("s", "d", "c", "z", "h"))
