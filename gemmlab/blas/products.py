"""What users call for products: matmul and sgemm, for matrices of any size and layout.

The kernels are column-major and want whole tiles. A row-major product C = A B is the column-major product C' = B' A'
(the same memory, read the other way): so the operands are swapped once, here, and everything below speaks of the
column-major `Problem`. What does not lie or fit as the kernel wants goes through `transpose` and `pad` on the device.
"""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from ..caches import cached
from ..catalog import catalog, find
from ..family import selection
from ..opencl.devices import Device
from ..opencl.launch import Kernel
from .operands import checked, flag, scalar, shared_queue, swapped
from .passes import Matrix, Session, check_memory, placed, planned
from .problem import Layout, Problem, footprint


@cached(64)
def _kernel(number: int, params: tuple | None, device: Device, context: cl.Context) -> Kernel:
    spec = find(number)
    return Kernel(spec, spec.fit(device.limits) if params is None else dict(params), device, context)


def select(
    kernel, params, edges, device: Device, context: cl.Context, sizes: tuple[int, int, int], precision: str = "float32"
) -> Kernel:
    """The compiled kernel for a column-major M x K by K x N product, as `matmul`'s arguments ask for it."""
    if not isinstance(edges, str) or edges not in selection.EDGES:
        raise ValueError(f"edges must be one of {', '.join(map(repr, selection.EDGES))}, not {edges!r}")
    if not isinstance(precision, str) or precision not in selection.PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(map(repr, selection.PRECISIONS))}, not {precision!r}")
    tensor = precision != "float32"
    if tensor and "tensor" not in device.features:
        raise ValueError(
            f"precision={precision!r} needs tensor cores that take TF32 (NVIDIA's, compute capability 8.0 or later); "
            f"{device} has none: precision='float32' runs everywhere"
        )
    if tensor and edges not in ("auto", "guard"):
        raise ValueError(f"edges={edges!r}, but precision={precision!r} is for edges='auto' or 'guard'")
    if isinstance(kernel, str) and kernel == "auto":
        if params is not None:
            raise ValueError("params needs a kernel number as well, such as kernel=3")
        return _kernel(*selection.choose(device, sizes, edges, precision), device, context)
    spec = find(kernel)  # before the cache, where True and 1.0 would pass for 1
    if spec.tensor and not tensor:
        raise ValueError(
            f"kernel {spec.number} multiplies in TF32: say so to matmul, with precision='tf32' or precision='tf32x3'"
        )
    if tensor:
        params = _with_precision(spec, params, precision)
    if edges not in ("auto", spec.edges):
        others = " or ".join(str(n) for n, s in catalog.items() if s.edges == edges)
        raise ValueError(f"edges={edges!r}, but kernel {spec.number} is for edges={spec.edges!r}; kernel={others} fits")
    full = None if params is None else tuple(spec.complete(params).items())
    return _kernel(spec.number, full, device, context)


def _with_precision(spec, params, precision: str) -> dict[str, int]:
    """The user's parameters and those that a precision means; ValueError where they contradict each other."""
    if not spec.tensor:
        able = " or ".join(str(n) for n, s in catalog.items() if s.tensor)
        raise ValueError(f"precision={precision!r}, but kernel {spec.number} multiplies in float32; kernel={able} fits")
    spec.complete(params)  # for its words, should params be something else
    implied = selection.implied(precision, spec.number)
    wanted = {name: value for name, value in implied.items() if name != "EVERY"}  # that one is the user's to choose
    given = {**implied, **(params or {})}
    for name, value in wanted.items():
        if given[name] != value:
            words = ", ".join(f"{n}={v}" for n, v in wanted.items())
            raise ValueError(f"{name}={given[name]}, but precision={precision!r} means {words}")
    return given


def multiply(session: Session, chosen: Kernel, problem: Problem, a, b, out: Matrix) -> None:
    """C = A B on buffers, column-major; numbers that TF32 parts cannot stand for are multiplied in float32."""
    if chosen.spec.tensor and session.has_unsplittable(placed(a, problem.a), placed(b, problem.b)):
        chosen = select("auto", None, "auto", session.device, session.queue.context, problem[:3])
    session.multiply(chosen, problem, a, b, out)


def _product(alpha, a, b, beta, c, ta, tb, kernel, params, device, edges="auto", precision="float32"):
    queue, device = shared_queue({"a": a, "b": b} | ({"c": c} if c is not None else {}), device)
    (m, k), (k2, n) = a.shape[:: -1 if ta else 1], b.shape[:: -1 if tb else 1]
    if k != k2:
        raise ValueError(
            f"a is {m} x {k} and b is {k2} x {n}{' after transposing' if ta or tb else ''}: "
            f"the columns of a ({k}) must be as many as the rows of b ({k2})"
        )
    if c is not None and c.shape != (m, n):
        raise ValueError(f"c has the shape {c.shape}, expected {(m, n)}")
    on_device = queue is not None
    queue = queue or device.queue
    empty = m * n == 0 or (beta == 0 and (k == 0 or alpha == 0))
    edges = "pad" if empty and edges == "shift" else edges
    chosen = select(kernel, params, edges, device, queue.context, (n, m, k), precision)
    if empty:
        return cla.zeros(queue, (m, n), np.float32) if on_device else np.zeros((m, n), np.float32)
    shape = Layout.compact(n, m)  # from here on everything is column-major
    problem = Problem(n, m, k, swapped("b", b, tb), swapped("a", a, ta)) if k and alpha else None
    sizes = footprint(problem, planned(chosen, problem)) if problem else {"the result": m * n}
    check_memory(device, sizes, chosen.spec.wide)
    with Session(queue, device) as session:
        if on_device:
            result = cla.empty(queue, (m, n), np.float32)
            out = Matrix(result.base_data, shape)
        else:
            out = session.new(shape)

        def memory_of(x):
            return x.base_data if on_device else session.upload(x)

        if problem:
            multiply(session, chosen, problem, memory_of(b), memory_of(a), out)
        if alpha != 1 or beta != 0:
            y = out
            if beta:
                added = swapped("c", c)
                y = placed(memory_of(c), added)
                y = session.compact(y) if added.plain else session.transpose(y, shape)
            session.axpby(alpha if k else 0.0, out, beta, y, out)
        return result if on_device else session.download(out.buffer, (m, n))


def matmul(
    a,
    b,
    *,
    kernel="auto",
    params: dict[str, int] | None = None,
    device=None,
    edges: str = "auto",
    precision: str = "float32",
):
    """The matrix product a b in float32, on an OpenCL device.

    Args:
        a: m x k float32: a NumPy array of any layout, or a ``pyopencl.array.Array`` with one contiguous dimension.
        b: k x n likewise, on the same side; device arrays on the same queue, which runs in order.
        kernel: a kernel number, or "auto" for the best known one at that size (see `gemmlab.family.selection`).
        params: the kernel's parameters. C is computed as its transpose, so that parameters of the kernel's
            rows (such as TSM) act on columns of the result, and the other way round.
        device: for NumPy arrays: a Device, an index or part of a name; the preferred device by default.
        edges: what to do where the sizes are no whole tiles: "pad" copies the matrices into larger ones; "guard"
            asks for every element whether it exists (kernel 12); "shift" moves the last tiles back (kernel 13,
            for results of one tile at least); "auto" takes what was measured to be fastest at such sizes.
        precision: "float32", or on tensor cores (NVIDIA's, compute capability 8.0 or later): "tf32" rounds every
            element of a and b to 10 bits after the point (relative errors of about 3e-4), "tf32x3" cuts it into two
            such numbers and multiplies three times. On normal data that is more accurate than a chain of float32
            multiply-adds: kernel 16 and its chapter have the figures. Matrices with infinities, NaN, or magnitudes
            that do not split (not zero, but below 2^-100; from 2^127 on) are found first and multiplied as
            "float32"; looking for them waits for the device.

    Returns:
        m x n float32, row-major: a NumPy array, or a device array on the operands' queue (not waited for).

    Raises:
        TypeError: for anything but float32 arrays; nothing is converted in silence.
        ValueError: for shapes that do not match, arrays on different queues or contexts, unknown kernels, illegal
            parameters (ParameterError), or matrices beyond 32-bit indices (but for kernels 15 to 17).
        MemoryError: if the device cannot hold the matrices.
    """
    a, b = checked("a", a), checked("b", b)
    return _product(1.0, a, b, 0.0, None, False, False, kernel, params, device, edges, precision)


def sgemm(
    alpha,
    a,
    b,
    beta=0.0,
    c=None,
    trans_a=False,
    trans_b=False,
    *,
    kernel="auto",
    params: dict[str, int] | None = None,
    device=None,
):
    """alpha op(a) op(b) + beta c in float32, as ``scipy.linalg.blas.sgemm``; op transposes where asked.

    Args:
        alpha, beta: real numbers. As in BLAS, alpha = 0 never reads a or b, and beta = 0 never reads c.
        a, b, kernel, params, device: as in `matmul`, with op(a) of m x k and op(b) of k x n.
        c: m x n float32, on the same side; not modified. Needed unless beta = 0.
        trans_a, trans_b: whether to transpose a and b first (no copy is made for it).

    Returns:
        A new m x n float32 array, row-major, as in `matmul`.

    Raises:
        As `matmul`; ValueError also for a missing c.
    """
    a, b = checked("a", a), checked("b", b)
    alpha, beta = scalar("alpha", alpha), scalar("beta", beta)
    if c is not None:
        c = checked("c", c)
    elif beta != 0:
        raise ValueError(f"beta={beta:g} needs c, an m x n matrix to add")
    return _product(alpha, a, b, beta, c, flag("trans_a", trans_a), flag("trans_b", trans_b), kernel, params, device)
