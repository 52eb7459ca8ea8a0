"""What users call for products: matmul and gemm, for matrices of any size, layout and precision.

The kernels are column-major. A row-major product C = A B is the column-major product C' = B' A'
(the same memory, read the other way): the operands are swapped once, in `_work_out`, and everything
below it is column-major.

A call is a `Request`, which says what the caller chose, and a `Call`, which says what the arrays
are like. `plan_for` makes a plan of both, and remembers it; every call executes its plan.
"""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from ..caches import cached
from ..catalog import find
from ..generate import tiles
from ..generate.precision import letter_of, results_of
from ..opencl.build import WorkGroupError
from ..opencl.devices import Device
from . import staging
from .arrays import (
    DTYPES,
    ELEMENTS,
    HALF,
    ArraySpec,
    by_columns,
    check_inside,
    check_out,
    checked,
    compact_strides,
    flag,
    lendable,
    scalar,
    shared_queue,
    spec_of,
    swapped,
    transposition,
    uploaded_spec,
)
from .plan import (
    C0,
    OUT,
    A,
    B,
    Builder,
    Matrix,
    Plan,
    Product,
    check_memory,
    pool_of,
    wait_for_others,
)
from .problem import Batch, Layout, Operand, Problem, footprint, plan
from .request import Request
from .routes import Ladder, Query, choose


class Operation(NamedTuple):
    """alpha op(a) op(b) + beta c.

    Attributes:
        a, b, c: arrays; c is None where nothing is added.
        alpha, beta: numbers of the arrays' type.
        ta, tb: "N", "T" or "C": as it is, transposed, conjugated and transposed.
        result: the type of the result.
    """

    a: Any
    b: Any
    c: Any
    alpha: float | complex
    beta: float | complex
    ta: str
    tb: str
    result: np.dtype


class Specs(NamedTuple):
    """How the arrays of a call lie in memory; None for one that was not given."""

    a: ArraySpec
    b: ArraySpec
    c: ArraySpec | None
    out: ArraySpec | None


class Call(NamedTuple):
    """All that a plan depends on: equal calls execute the same plan.

    Attributes:
        request: what the caller chose.
        device, queue: where the product is computed.
        specs: how the arrays lie in memory.
        alpha, beta, ta, tb, result: as in `Operation`.
        in_place: whether C0 and the result are the same memory.
    """

    request: Request
    device: Device
    queue: cl.CommandQueue
    specs: Specs
    alpha: float | complex
    beta: float | complex
    ta: str
    tb: str
    result: np.dtype
    in_place: bool


class Planned(NamedTuple):
    """A product that is worked out.

    Attributes:
        shape: that of the result.
        plan: what is enqueued; None for a result without elements.
    """

    shape: tuple[int, ...]
    plan: Plan | None


@cached(64)
def _prototype(queue: cl.CommandQueue, shape: tuple[int, ...], dtype: np.dtype) -> cla.Array:
    """An array to copy: PyOpenCL makes a new one in 15 microseconds, which a small product does not
    take, and a copy in one. It has no memory worth the name.
    """
    return cla.Array(
        queue, shape, dtype, data=cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, dtype.itemsize)
    )


def _sizes(call: Call, a: ArraySpec, b: ArraySpec) -> tuple[int, int, int]:
    """m, n and k of op(a) op(b), which is m x n; ValueError for shapes that do not match."""
    (m, k) = a.shape[-2:] if call.ta == "N" else a.shape[:-3:-1]
    (k2, n) = b.shape[-2:] if call.tb == "N" else b.shape[:-3:-1]
    if k != k2:
        raise ValueError(
            f"a is {m} x {k} and b is {k2} x "
            f"{n}{'' if call.ta == call.tb == 'N' else ' after transposing'}: the columns of a "
            f"({k}) must be as many as the rows of b ({k2})"
        )
    c = call.specs.c
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


def _is_one_matrix(a: ArraySpec, b: ArraySpec) -> bool:
    """Whether a batch is one product: its left matrices are the rows of one tall matrix, and there
    is a single b.
    """
    rows = [
        (size, stride)
        for size, stride in zip(a.shape[:-1], a.strides[:-1], strict=True)
        if size > 1
    ]
    adjacent = all(
        outer == size * stride for (_, outer), (size, stride) in zip(rows, rows[1:], strict=False)
    )
    return adjacent and a.shape[-2] > 1 and prod(b.shape[:-2]) == 1


def _output(out: ArraySpec, vectors: tuple[bool, bool]) -> tuple[bool, tuple[Layout, ...]]:
    """Whether a result is column-major, and the layout of each of its matrices if they are not
    adjacent.
    """
    for axis, left_out in zip((-2, -1), vectors, strict=True):
        if left_out:
            out = out.with_axis(len(out.shape) + 1 + axis if out.shape else 0)
    if not prod(out.shape):
        return False, ()
    operand = swapped("out", out.matrix)
    layout = operand.plain or operand.transposed
    assert layout is not None, "a matrix is row-major or column-major"
    batch = out.shape[:-2]
    steps, adjacent = out.steps(batch), compact_strides(batch, layout.rows * layout.cols)
    if layout.is_compact and all(
        size == 1 or x == y for size, x, y in zip(batch, steps, adjacent, strict=True)
    ):
        return operand.plain is None, ()
    starts = (
        sum(i * step for i, step in zip(index, steps, strict=True)) for index in np.ndindex(*batch)
    )
    return operand.plain is None, tuple(
        layout._replace(offset=layout.offset + start) for start in starts
    )


@cached(512)
def plan_for(call: Call) -> Planned:
    """The plan of a call; see `matmul` for what it raises.

    A kernel that was chosen automatically may turn out to fit only smaller work-groups, when it is
    compiled: then another one is chosen.
    """
    a, b, c, out = call.specs
    for name, spec in call.specs._asdict().items():
        if spec is not None:
            check_inside(name, spec)
    call.request.check_for(a.dtype, call.device)
    vectors = len(a.shape) == 1, len(b.shape) == 1
    a = a.with_axis(0) if vectors[0] else a
    b = b.with_axis(1) if vectors[1] else b
    m, n, k = _sizes(call, a, b)
    batch_shape, batch = _batch(a, b)
    kept = [size for size, left_out in zip((m, n), vectors, strict=True) if not left_out]
    shape = (*batch_shape, *kept)
    if out is not None and out.shape != shape:
        raise ValueError(f"out has the shape {out.shape}, but the product has {shape}")
    by_columns, gaps = (False, ()) if out is None else _output(out, vectors)
    if batch is not None and not (by_columns or gaps) and call.ta == "N" and _is_one_matrix(a, b):
        m, batch_shape, batch = prod(a.shape[:-1]), (), None
        a = a.matrix._replace(shape=(m, k))
    elements = prod(shape)
    itemsize = a.dtype.itemsize
    operands = {"a": prod(a.shape), "b": prod(b.shape)} if call.alpha else {}
    whole = operands | {"the result": elements * call.result.itemsize // itemsize}
    check_memory(call.device, whole, True, itemsize)
    if not elements:
        return Planned(shape, None)
    builder = Builder(call.queue, call.device, a.dtype, call.result)
    memory = builder.memory(elements) if gaps else OUT
    if k and call.alpha:
        problem = _column_major(call, a, b, m, n, k, by_columns)
        try:
            _emit_products(builder, call, problem, batch, memory, by_columns)
        except WorkGroupError as error:
            return plan_for(_with_smaller_groups(call, error))
    elif call.beta:
        _emit_scaled(builder, call, m, n, memory)
    else:
        builder.zeros(memory, elements)
    if gaps:
        rows, cols = (m, n) if by_columns else (n, m)
        for i, place in enumerate(gaps):
            builder.copy(
                Matrix(memory, Layout.compact(rows, cols)._replace(offset=i * m * n)),
                Matrix(OUT, place),
            )
    exact = call._replace(request=Request())
    return Planned(shape, builder.plan(otherwise=lambda: _plan_of(plan_for(exact))))


def _with_smaller_groups(call: Call, error: WorkGroupError) -> Call:
    """The call, for kernels that fit the limit; the error, if the caller chose the parameters."""
    if call.request.params is not None:
        raise error
    return call._replace(device=call.device.limited(error.limit))


def _plan_of(worked_out: Planned) -> Plan:
    assert worked_out.plan is not None
    return worked_out.plan


def _column_major(
    call: Call, a: ArraySpec, b: ArraySpec, m: int, n: int, k: int, by_columns: bool
) -> Problem:
    """The column-major product that computes the row-major one: that of the transposes, in the
    opposite order, unless the result is column-major itself.
    """
    left, right = _operand("a", a, call.ta, by_columns), _operand("b", b, call.tb, by_columns)
    return Problem(m, n, k, left, right) if by_columns else Problem(n, m, k, right, left)


def _operand(name: str, spec: ArraySpec, trans: str, by_columns: bool) -> Operand:
    """op(x) as column-major BLAS sees it: transposed, or itself where the result is
    column-major.
    """
    return swapped(
        name, spec.matrix, (trans != "N") != by_columns, trans == "C" and spec.dtype.kind == "c"
    )


def _emit_products(
    builder: Builder,
    call: Call,
    problem: Problem,
    batch: Batch | None,
    memory: Any,
    by_columns: bool,
) -> None:
    """Append one product, or all of a batch; the results are adjacent in `memory`."""
    if batch is not None and not by_columns:
        batch = batch.swapped
    route = choose(Query(call.request, builder.dtype, problem, batch, call.device))
    if isinstance(route, Ladder):
        spec, laid_out = find(route.kernel), problem.turned if route.turned else problem
        sizes = footprint(problem, plan(spec, route.params, laid_out, call.device.features))
        check_memory(call.device, sizes, spec.wide, builder.dtype.itemsize)
    before = None
    if call.beta and call.specs.c is not None:
        before = (OUT if call.in_place else C0, swapped("c", call.specs.c))
    buffers = (A, B) if by_columns else (B, A)
    out = Matrix(memory, Layout.compact(problem.m, problem.n))
    product = Product(problem, *buffers, call.alpha, call.beta, before, out)
    if batch is None or route.whole_batch:
        route.emit(builder, product, batch)
        return
    size, compact = problem.m * problem.n, Layout.compact(problem.m, problem.n)
    for i, (at_a, at_b) in enumerate(batch.products()):
        moved = problem._replace(a=problem.a.moved(at_a), b=problem.b.moved(at_b))
        place = Matrix(memory, compact._replace(offset=i * size))
        target = builder.new(compact)  # kernels write to the beginning of a buffer
        route.emit(builder, product._replace(problem=moved, out=target), None)
        builder.copy(target, place)


def _emit_scaled(builder: Builder, call: Call, m: int, n: int, memory: Any) -> None:
    """beta c alone, since a and b are not to be read."""
    assert call.specs.c is not None
    before = (OUT if call.in_place else C0, swapped("c", call.specs.c))
    out = Matrix(memory, Layout.compact(n, m))
    problem = Problem.compact(n, m, 0)
    tile = tiles.choose(call.device, letter_of(builder.dtype), problem[:3]).tile
    builder.gemm(Product(problem, memory, memory, 0.0, call.beta, before, out), tile)


def multiply(request: Request, op: Operation, out: Any = None, device: Any = None) -> Any:
    """The product of checked operands, into `out` or a new array on their side."""
    arrays = {
        name: x
        for name, x in (("a", op.a), ("b", op.b), ("c", op.c), ("out", out))
        if x is not None
    }
    queue, device = shared_queue(arrays, device)
    if out is not None and out is not op.c:
        check_out(out, op.a, op.b)
    if queue is not None:
        return _on_device(request, op, out, queue, device)
    if device.kind == "CPU":
        return _in_host_memory(request, op, out, device)
    return _through_copies(request, op, out, device)


def _on_device(
    request: Request, op: Operation, out: Any, queue: cl.CommandQueue, device: Device
) -> cla.Array:
    """The product of device arrays: enqueued, not waited for."""
    arrays = op.a, op.b, op.c, out
    c, given = (None if x is None else spec_of(x) for x in arrays[2:])
    specs = Specs(spec_of(op.a), spec_of(op.b), c, given)
    planned = plan_for(
        Call(request, device, queue, specs, *op[3:], out is not None and out is op.c)
    )
    wait_for_others(queue, *(x for x in arrays if x is not None))
    allocator = op.a.allocator or op.b.allocator
    allocate = allocator or pool_of(queue).allocate
    result = out
    if out is None:
        result = _prototype(queue, planned.shape, op.result).with_queue(queue)
        result.base_data = allocate(max(1, result.nbytes))
        result.allocator, result.events = allocator, []
    if planned.plan is None:
        return result
    buffers = [None if x is None else x.base_data for x in (*arrays[:3], result)]
    events = planned.plan(queue, buffers, allocator)
    result.events[:] = [events[-1][1]]  # all that came before has been waited for
    return result


def _in_host_memory(request: Request, op: Operation, out: Any, device: Device) -> Any:
    """The product of NumPy arrays on a CPU: kernels read and write the arrays' own memory."""
    queue = device.queue
    (a, spec_a), (b, spec_b) = lendable(op.a), lendable(op.b)
    c, spec_c = (None, None) if op.c is None else lendable(op.c)
    target = out if out is not None and _is_writable_in_place(out, a, b) else None
    specs = Specs(spec_a, spec_b, spec_c, None if target is None else lendable(target)[1])
    planned = plan_for(
        Call(request, device, queue, specs, *op[3:], target is not None and target is op.c)
    )
    if out is not None:
        _check_shape(out, planned)
    if target is None:
        target = np.empty(planned.shape, op.result)
    if planned.plan is not None:
        planned.plan.in_host_memory(queue, (a, b, c, target))
    if out is None:
        return target if target.ndim else target[()]
    if target is not out:
        out[...] = target
    return out


def _is_writable_in_place(out: np.ndarray, *operands: np.ndarray) -> bool:
    """Whether kernels may write to the array's own memory: it has no gaps, and is no part of what
    they read.
    """
    compact = out.flags.aligned and (
        out.flags.c_contiguous or out.ndim == 2 and out.flags.f_contiguous
    )
    return compact and not any(np.may_share_memory(out, x) for x in operands)


def _check_shape(out: np.ndarray, planned: Planned) -> None:
    if out.shape != planned.shape:
        raise ValueError(f"out has the shape {out.shape}, but the product has {planned.shape}")


def _through_copies(request: Request, op: Operation, out: Any, device: Device) -> Any:
    """The product of NumPy arrays on a device with memory of its own: they are copied there, and
    the result back.
    """
    queue = device.queue
    columns = out is not None and out.ndim == 2 and by_columns(out)
    c = None if op.c is None else uploaded_spec(op.c)
    specs = Specs(
        uploaded_spec(op.a), uploaded_spec(op.b), c, uploaded_spec(out) if columns else None
    )
    call = Call(request, device, queue, specs, *op[3:], False)
    planned = plan_for(call)
    if out is not None:
        _check_shape(out, planned)
    result = np.empty(planned.shape, op.result) if out is None else out
    if planned.plan is not None:
        ring = staging.staging_for(device, op.a, op.b, result)
        if ring and _allows_strips(op, result):
            _by_strips(call, op, result, columns, ring)
        else:
            _copied(planned.plan, queue, op, result, ring or staging.Direct())
    return result if result.ndim or out is not None else result[()]


def _copied(
    plan: Plan,
    queue: cl.CommandQueue,
    op: Operation,
    result: np.ndarray,
    transfer: staging.Transfer,
) -> None:
    """Copy all operands, multiply, and copy the result."""
    pool = pool_of(queue)
    buffers: list[Any] = []
    for x in (op.a, op.b, op.c):
        buffers.append(None if x is None or not x.size else pool.allocate(x.nbytes))
        if buffers[-1] is not None:
            transfer.upload(queue, x, buffers[-1])
    buffers.append(pool.allocate(result.nbytes))
    plan(queue, buffers)
    transfer.download(queue, buffers[-1], result)


def _allows_strips(op: Operation, result: np.ndarray) -> bool:
    """Whether the first rows (or columns) may be finished before the last ones have been read."""
    plain = op.alpha != 0 and op.beta == 0 and "C" not in (op.ta, op.tb)
    two = op.a.ndim == op.b.ndim == result.ndim == 2 and op.a.size > 0 and op.b.size > 0
    return plain and two and not any(np.may_share_memory(result, x) for x in (op.a, op.b))


def _by_strips(
    call: Call, op: Operation, result: np.ndarray, columns: bool, ring: staging.Staging
) -> None:
    """The product of two matrices in NumPy's memory, in strips: see `staging`."""
    queue = call.queue
    a, b = op.a if op.ta == "N" else op.a.T, op.b if op.tb == "N" else op.b.T

    def multiply(x: staging.Stored, y: staging.Stored, memory: Any) -> cl.Event:
        strip = (
            uploaded_spec(np.empty((y.spec.shape[1], x.spec.shape[0]), op.result).T)
            if columns
            else None
        )
        part = call._replace(specs=Specs(x.spec, y.spec, None, strip), ta="N", tb="N")
        return _plan_of(plan_for(part))(queue, (x.buffer, y.buffer, None, memory))[-1][1]

    ring.multiply(queue, a, b, result, columns, multiply)


def _may_overwrite(c: Any, a: Any, b: Any) -> bool:
    """Whether the result can be written over c: it is row-major without gaps, and is no part of an
    operand.
    """
    if c is None or not c.flags.c_contiguous:
        return False
    if isinstance(c, np.ndarray):
        return c.flags.writeable
    return c.offset == 0 and c.base_data not in (a.base_data, b.base_data)


def matmul(  # noqa: PLR0913
    a,
    b,
    out=None,
    *,
    kernel="auto",
    params: dict[str, int] | None = None,
    device=None,
    edges: str = "auto",
    precision: str = "float32",
):
    """The matrix product a b on an OpenCL device, in the type of its operands.

    Arrays of more than two dimensions are batches, as in `numpy.matmul`: the last two dimensions
    multiply, the others are broadcast. A vector at the left is a row, a vector at the right is a
    column, and the result lacks that dimension. The family multiplies a batch in one launch if its
    matrices lie at equal distances, kernels of the ladder if they follow each other as such a
    kernel wants them; otherwise these multiply one pair after another, without waiting. A batch of
    left matrices that follow each other, times a single right one, is one tall product.

    A call with device arrays returns when everything is enqueued. What other queues still do to the
    operands (``Array.events``) is waited for on the device; the result's event is that of its last
    launch.

    Args:
        a: m x k float32, float64, complex64, complex128 or float16: a NumPy array of any layout, or
            a ``pyopencl.array.Array`` with one contiguous dimension. Products of float16 are added
            up in float32 and rounded once; NVIDIA's tensor cores compute them.
        b: k x n of the same type, on the same side; device arrays on the same queue, which runs in
            order.
        out: where to write the result: an array of its shape and type, on the same side and queue,
            that shares no memory with a or b; of float16 operands it may be float32. A NumPy array
            may have any layout, a device array needs one contiguous dimension; where it has gaps,
            the result is copied into it.
        kernel: "auto" for the best known kernel at that size (see `gemmlab.generate`), "family" for
            a kernel that the family writes, "packed" for one with packed operands (on CPUs, of
            real numbers; "auto" takes it there), or for float32 the number or name of a
            kernel of the catalog.
        params: the kernel's parameters; for "family" those of `gemmlab.generate.tiles.DEFAULTS`. C
            is computed as its transpose, so that parameters of the kernel's rows (such as TSM) act
            on columns of the result, and the other way round.
        device: for NumPy arrays: a Device, an index or part of a name; the preferred device by
            default.
        edges: what to do in float32 where the sizes are no whole tiles: "pad" copies the matrices
            into larger ones; "guard" asks for every element whether it exists (kernel 12); "shift"
            moves the last tiles back (kernel 13, for results of one tile at least); "auto" takes
            what was measured to be fastest at such sizes. The family guards; with "split", for
            every type, it multiplies whole tiles and what is left at the edges in up to four
            launches (see `gemmlab.generate.split`).
        precision: "float32", or on tensor cores (NVIDIA's, compute capability 8.0 or later): "tf32"
            rounds every element of a and b to 10 bits after the point (relative errors of about
            3e-4), "tf32x3" cuts it into two such numbers and multiplies three times. On normal data
            that is more accurate than a chain of float32 multiply-adds: "tensor_cores" and its
            chapter have the figures. Matrices with infinities, NaN, or magnitudes that do not split
            (not zero, but below 2^-100; from 2^127 on) are found and multiplied as "float32"; the
            call waits until the device has looked for them, which it does before it multiplies. At
            sizes where "float32" is quicker it multiplies anyway, and nothing is looked for. Other
            types than float32 have no such choice.

    Returns:
        `out`, or a new array, m x n of the operands' type, row-major: a NumPy array, or a device
        array on the operands' queue (not waited for). Its memory comes from the `allocator` of a or
        b, if one of them has one, or else from a pool of the queue. It goes back there when the
        array is forgotten, for the next call on that queue: keep the array for as long as another
        queue works with it.

    Raises:
        TypeError: for anything but arrays of one of these types; nothing is converted in silence.
        ValueError: for shapes that do not match, an `out` that cannot be written or shares memory
            with an operand, arrays on different queues or contexts, unknown kernels, illegal
            parameters (ParameterError), matrices beyond 32-bit indices (but for those of
            production), or float64 and complex128 on a device without double precision.
        MemoryError: if the device cannot hold the matrices.
    """
    request = Request.of(kernel, params, edges, precision)
    a = checked("a", a, ELEMENTS, least=1)
    b = checked("b", b, (a.dtype,), least=1)
    if out is not None:
        checked("out", out, results_of(a.dtype), least=0)
    result = (a if out is None else out).dtype
    return multiply(request, Operation(a, b, None, 1.0, 0.0, "N", "N", result), out, device)


def gemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=False, **options):  # noqa: PLR0913
    """alpha op(a) op(b) + beta c, as ``scipy.linalg.blas``; the operands' type says which of its
    functions.

    In float32 the best known kernel of the ladder multiplies, and a second pass applies alpha and
    beta. In all other types one launch does everything.

    Args:
        alpha, beta: numbers, real ones for real operands. As in BLAS, alpha = 0 never reads a or b,
            and beta = 0 never reads c.
        a, b: as in `matmul`, with op(a) of m x k and op(b) of k x n.
        c: m x n of the same type, on the same side. Needed unless beta = 0. With operands in
            float16 it may be float32, and then so is the result.
        trans_a, trans_b: 0 or "N" for the matrix as it is, 1 or "T" for its transpose, 2 or "C" for
            its conjugate transpose. No copy is made for it, unless a kernel of the ladder wants
            one.
        overwrite_c: whether the result may be written over c, which saves memory. It is where c
            lies by rows without gaps, and on a device not in the buffer of a or b; otherwise c is
            left alone.
        options: `kernel`, `params`, `device` and `edges`, as in `matmul`.

    Returns:
        m x n of the operands' type, row-major, as in `matmul`: a new array, or c.

    Raises:
        As `matmul`; ValueError also for a missing c.
    """
    a = checked("a", a, ELEMENTS)
    return _gemm(a.dtype, alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)


def _gemm(dtype, alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options):  # noqa: PLR0913
    device = options.pop("device", None)
    request = Request.of(*_options(**options), "float32")
    a, b = checked("a", a, (dtype,)), checked("b", b, (dtype,))
    alpha, beta = scalar("alpha", alpha, dtype), scalar("beta", beta, dtype)
    if c is not None:
        c = checked("c", c, results_of(dtype))
    elif beta != 0:
        raise ValueError(f"beta={beta:g} needs c, an m x n matrix to add")
    ta, tb = transposition("trans_a", trans_a), transposition("trans_b", trans_b)
    overwrites = flag("overwrite_c", overwrite_c) and _may_overwrite(c, a, b)
    op = Operation(a, b, c, alpha, beta, ta, tb, (a if c is None else c).dtype)
    return multiply(request, op, c if overwrites else None, device)


def _options(kernel="auto", params=None, edges="auto") -> tuple:
    return kernel, params, edges


def sgemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=False, **options):  # noqa: PLR0913
    """`gemm` for float32, as ``scipy.linalg.blas.sgemm``; options are those of `gemm`."""
    return _gemm(DTYPES[0], alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)


def dgemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=False, **options):  # noqa: PLR0913
    """`gemm` for float64, as ``scipy.linalg.blas.dgemm``; options are those of `gemm`."""
    return _gemm(DTYPES[1], alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)


def cgemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=False, **options):  # noqa: PLR0913
    """`gemm` for complex64, as ``scipy.linalg.blas.cgemm``; options are those of `gemm`."""
    return _gemm(DTYPES[2], alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)


def zgemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=False, **options):  # noqa: PLR0913
    """`gemm` for complex128, as ``scipy.linalg.blas.zgemm``; options are those of `gemm`."""
    return _gemm(DTYPES[3], alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)


def hgemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=False, **options):  # noqa: PLR0913
    """`gemm` for float16, with sums in float32; options are those of `gemm`."""
    return _gemm(HALF, alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)
