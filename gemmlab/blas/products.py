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
import pyopencl as cl
import pyopencl.array as cla

from ..caches import cached
from ..generate.precision import PRECISIONS, results_of
from ..opencl.build import WorkGroupError
from ..opencl.devices import Device
from . import staging
from .plan import C0, OUT, A, B, Builder, Plan, check_memory, pool_of, wait_for_others
from .problem import Batch, Matrix, Problem
from .request import (
    PLAIN,
    ArraySpec,
    Request,
    check_apart,
    check_out,
    checked,
    flag,
    is_writable,
    readable,
    rows_of,
    scalar,
    shared_queue,
    transposition,
)
from .routes import emit


class Call(NamedTuple):
    """alpha op(a) op(b) + beta c into out. Calls of equal layouts execute the same plan."""

    request: Request
    alpha: float | complex
    beta: float | complex
    ta: str  # op(a): "N" as it is, "T" transposed, "C" conjugated and transposed
    tb: str
    result: np.dtype  # the type of the result
    a: Any  # an array, or the `ArraySpec` of one; the same for the next three
    b: Any
    c: Any = None  # None if it was not given
    out: Any = None  # the same
    queue: Any = None  # the next three follow from the arrays
    device: Any = None
    in_place: bool = False  # whether c and the result are the same memory


@cached(512)
def plan_for(call: Call) -> Plan:
    """The plan of a call; see `matmul` for what it raises.

    A kernel that was chosen automatically may, once it is compiled, fit only smaller work-groups:
    then another one is chosen.
    """
    try:
        return _planned(call)
    except WorkGroupError as error:
        if call.request.params is not None:
            raise
        return plan_for(call._replace(device=call.device.limited(error.limit)))


def _planned(call: Call) -> Plan:
    a, b, c, out = specs = call.a, call.b, call.c, call.out
    for name, spec in zip(("a", "b", "c", "out"), specs, strict=True):
        if spec is not None:
            spec.check_inside(name)
    alpha, beta, result = call.alpha, call.beta, call.result
    call.request.check_for(a.dtype, call.device)
    is_row, is_column = len(a.shape) == 1, len(b.shape) == 1
    a, b = a.with_axis(0) if is_row else a, b.with_axis(1) if is_column else b
    m, n, k = _sizes(call, a, b)
    outer, batch = _batch(a, b)
    shape = (*outer, *(() if is_row else (m,)), *(() if is_column else (n,)))
    if out is not None and out.shape != shape:
        raise ValueError(f"out has the shape {out.shape}, but the product has {shape}")
    elements, itemsize = prod(shape), a.dtype.itemsize
    operands = {"a": prod(a.shape), "b": prod(b.shape)} if alpha else {}
    sizes = operands | {"the result": elements * result.itemsize // itemsize}
    check_memory(call.device, sizes, True, itemsize)
    if not elements:
        return Plan(shape)
    gaps = [] if out is None else _gaps(out, is_row, is_column)
    if batch and not gaps and _is_one_matrix(a, b, call.ta):
        m, batch = elements // n, None
        a = a._replace(shape=(m, k), strides=a.strides[-2:])
    builder = Builder(call.queue, call.device, a.dtype, result)
    memory = builder.memory(elements) if gaps else OUT
    product = Matrix.compact(n, m, memory).T  # row-major
    before = c.matrix("c", OUT if call.in_place else C0) if beta else None
    if k and alpha:
        left, right = a.matrix("a", A, call.ta), b.matrix("b", B, call.tb)
        problem = Problem(left, right, product, alpha, beta, before, batch)
        emit(builder, call.request, problem.turned)
    elif before:
        builder.scale(beta, before, product)
    else:
        builder.zeros(memory, elements * result.itemsize)
    for i, matrix in enumerate(gaps):
        builder.scale(1.0, product.moved(i * m * n), matrix)
    return builder.plan(shape, otherwise=lambda: plan_for(call._replace(request=PLAIN)))


def _gaps(out: ArraySpec, is_row: bool, is_column: bool) -> list[Matrix]:
    """The matrices of a result if they are not row-major and adjacent: kernels cannot write there,
    so a copy follows.
    """
    check_apart("out", out)
    if is_row:
        out = out.with_axis(len(out.shape) - (not is_column))
    if is_column:
        out = out.with_axis(len(out.shape))
    first, starts = out.matrix("out", OUT), out.starts
    adjacent = starts == [i * first.rows * first.cols for i in range(len(starts))]
    return [] if adjacent and first.T.is_compact else [first.moved(start) for start in starts]


def _sizes(call: Call, a: ArraySpec, b: ArraySpec) -> tuple[int, int, int]:
    """m, n and k of op(a) op(b), which is m x n; ValueError for shapes that do not match."""
    ta, tb, c = call.ta, call.tb, call.c
    (m, k) = a.shape[-2:] if ta == "N" else a.shape[:-3:-1]
    (k2, n) = b.shape[-2:] if tb == "N" else b.shape[:-3:-1]
    if k != k2:
        raise ValueError(
            f"a is {m} x {k} and b is {k2} x {n}{'' if ta == tb == 'N' else ' after transposing'}: "
            f"the columns of a ({k}) must be as many as the rows of b ({k2})"
        )
    if c is not None and c.shape != (m, n):
        raise ValueError(f"c has the shape {c.shape}, expected {(m, n)}")
    return m, n, k


def _batch(a: ArraySpec, b: ArraySpec) -> tuple[tuple[int, ...], Batch | None]:
    """The dimensions before the matrices, broadcast as in NumPy, and their products, if there are
    several.
    """
    try:
        shape = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    except ValueError:
        raise ValueError(
            f"a has the shape {a.shape} and b has {b.shape}: the dimensions before the last two "
            "must be equal, or 1, or left out"
        ) from None
    if prod(shape) <= 1:
        return shape, None
    return shape, Batch.over(shape, a.steps(shape), b.steps(shape))


def _is_one_matrix(a: ArraySpec, b: ArraySpec, ta: str) -> bool:
    """Whether a batch is one product: its left matrices are the rows of one tall matrix, and there
    is a single b.
    """
    rows = [pair for pair in zip(a.shape[:-1], a.strides[:-1], strict=True) if pair[0] > 1]
    adjacent = all(
        outer == size * stride for (_, outer), (size, stride) in zip(rows, rows[1:], strict=False)
    )
    return adjacent and ta == "N" and a.shape[-2] > 1 and prod(b.shape[:-2]) == 1


def multiply(call: Call, device: Any) -> Any:
    """The product of checked operands, into `out` or a new array on their side."""
    arrays = {"a": call.a, "b": call.b, "c": call.c, "out": call.out}
    queue, device = shared_queue(arrays, device)
    if call.out is not None and call.out is not call.c:
        check_out(call.out, call.a, call.b)
    return _in_numpy(call, device) if queue is None else _on_device(call, queue, device)


@cached(64)
def _prototype(queue: cl.CommandQueue, shape: tuple[int, ...], dtype: np.dtype) -> cla.Array:
    """An array to copy, without memory: PyOpenCL needs 15 microseconds to make a new one, and one
    to copy it.
    """
    return cla.Array(
        queue, shape, dtype, data=cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, dtype.itemsize)
    )


def _on_device(call: Call, queue: cl.CommandQueue, device: Device) -> cla.Array:
    """The product of device arrays: enqueued, not waited for."""
    arrays = call.a, call.b, call.c, call.out
    a, b, c, out = (None if x is None else ArraySpec.on_device(x) for x in arrays)
    in_place = out is not None and call.out is call.c
    plan = plan_for(Call(*call[:6], a, b, c, out, queue, device, in_place))
    wait_for_others(queue, *[x for x in arrays if x is not None])
    allocator, result = call.a.allocator or call.b.allocator, call.out
    if result is None:
        result = _prototype(queue, plan.shape, call.result).with_queue(queue)
        allocate = allocator or pool_of(queue).allocate
        result.base_data = allocate(max(1, result.nbytes))
        result.allocator, result.events = allocator, []
    buffers = [None if x is None else x.base_data for x in (*arrays[:3], result)]
    events = plan(queue, buffers, allocator)
    if events:
        result.events[:] = [events[-1][1]]  # all that came before has been waited for
    return result


def _in_numpy(call: Call, device: Device) -> np.ndarray | np.generic:
    """The product of NumPy arrays: in their own memory on a CPU, otherwise through copies."""
    on_cpu, target = device.kind == "CPU", call.out
    if target is not None and not is_writable(target, call.a, call.b):
        check_apart("out", target)
        target = np.empty(target.shape, target.dtype)
    arrays = call.a, call.b, call.c, target
    a, b, c, out = (None if x is None else ArraySpec.on_host(x) for x in arrays)
    in_place = on_cpu and target is not None and target is call.c
    planned = Call(*call[:6], a, b, c, out, device.queue, device, in_place)
    plan = plan_for(planned)
    if target is None:
        target = np.empty(plan.shape, call.result)
    if on_cpu:
        arrays = call.a, call.b, call.c, target
        plan.in_host_memory(device.queue, [None if x is None else readable(x) for x in arrays])
    elif plan.steps:
        _through_copies(planned, plan, call._replace(out=target))
    if call.out is None:
        return target if target.ndim else target[()]
    if target is not call.out:
        call.out[...] = target
    return call.out


def _through_copies(planned: Call, plan: Plan, given: Call) -> None:
    """Copy the operands (of `given`) to the device, multiply, and copy the result back."""
    queue, out = planned.queue, given.out
    pinned = staging.staging_for(planned.device, given.a, given.b, out)
    if pinned and _allows_strips(given):
        pinned.compute(queue, _strips(planned, given))
        return
    arrays = given.a, given.b, given.c, out
    sizes = [0 if x is None else x.nbytes for x in arrays]
    buffers: list[Any] = [pool_of(queue).allocate(size) if size else None for size in sizes]
    copies = [
        (_as_matrix(x), y) for x, y in zip(arrays[:3], buffers[:3], strict=True) if y is not None
    ]
    if pinned:
        launch = partial(plan, queue, buffers)
        pinned.compute(queue, [staging.Strip(copies, launch, buffers[3], _as_matrix(out))])
        return
    for x, buffer in copies:
        cl.enqueue_copy(queue, buffer, np.ascontiguousarray(x))
    plan(queue, buffers)
    cl.enqueue_copy(queue, _as_matrix(out), buffers[3])


def _as_matrix(x: np.ndarray) -> np.ndarray:
    """All rows of an array, as one matrix."""
    rows = rows_of(x)
    return rows.reshape(-1, rows.shape[-1] if rows.ndim else 1)


def _allows_strips(call: Call) -> bool:
    """Whether the first rows (or columns) may be finished before the last ones have been read."""
    two = call.a.ndim == call.b.ndim == 2 and call.a.size > 0 and call.b.size > 0
    return two and call.alpha != 0 and call.beta == 0 and "C" not in (call.ta, call.tb)


def _strips(planned: Call, given: Call) -> list[staging.Strip]:
    """A product in strips of the longer side of the result; the smaller operand stays on the
    device.
    """
    queue, allocate = planned.queue, pool_of(planned.queue).allocate
    a = given.a if given.ta == "N" else given.a.T
    b = given.b if given.tb == "N" else given.b.T
    across = given.out.shape[1] > given.out.shape[0]
    kept, moving = (a, b) if across else (b, a)
    operands = [(rows_of(kept), kept_buffer := allocate(kept.nbytes))]
    parts = []
    for part in staging.strips(max(given.out.shape)):
        index = (slice(None), part) if across else (part,)
        x, out = moving[index], given.out[index]
        buffer, result = allocate(x.nbytes), allocate(out.nbytes)
        pair, buffers = [kept, x], [kept_buffer, buffer]
        if not across:
            pair, buffers = pair[::-1], buffers[::-1]
        left, right, to = map(ArraySpec.on_host, (*pair, out))
        plan = plan_for(planned._replace(ta="N", tb="N", a=left, b=right, c=None, out=to))
        launch = partial(plan, queue, [*buffers, None, result])
        parts.append(staging.Strip([*operands, (rows_of(x), buffer)], launch, result, rows_of(out)))
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
        a: m x k float32, float64, complex64, complex128 or float16: a NumPy array of any layout, or
            a ``pyopencl.array.Array`` with one contiguous dimension. Products of float16 are added
            up in float32 and rounded once.
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
            matrices beyond 32-bit indices (except with production kernels), or float64 and
            complex128 on a device without double precision.
        MemoryError: if the device cannot hold the matrices.
    """
    request = Request.of(kernel, params, **options)
    a = checked("a", a, least=1)
    b = checked("b", b, (a.dtype,), least=1)
    if out is not None:
        checked("out", out, results_of(a.dtype), least=0)
    result = (a if out is None else out).dtype
    return multiply(Call(request, 1.0, 0.0, "N", "N", result, a, b, None, out), device)


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
            without gaps, and on a device in another buffer than a and b; otherwise it is not used.

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
    return multiply(Call(request, alpha, beta, ta, tb, result, a, b, c, out), device)


def _options(
    overwrite_c=False, device=None, kernel="auto", params=None, edges="auto"
) -> tuple[Request, Any, bool]:
    return Request.of(kernel, params, edges), device, flag("overwrite_c", overwrite_c)


def _may_overwrite(c: Any, a: Any, b: Any) -> bool:
    """Whether c is row-major without gaps, and shares no buffer with an operand."""
    if c is None or not c.flags.c_contiguous:
        return False
    if isinstance(c, np.ndarray):
        return c.flags.writeable
    return c.offset == 0 and all(c.base_data != getattr(x, "base_data", None) for x in (a, b))


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
