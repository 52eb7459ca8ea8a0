"""What users call for products: matmul and sgemm, for matrices of any size and layout.

The kernels are column-major and want whole tiles. Here operands get there: a row-major product C = A B
is the column-major product C' = B' A' (the same memory, read the other way), so the operands are
swapped; what does not lie or fit as the kernel wants goes through `transpose` and `pad` on the device.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from . import auto
from .arrays import checked, flag, operand, read, scalar, shared_queue
from .catalog import catalog, find
from .device import Device
from .launch import Kernel
from .pipeline import Matrix, Session, demand, fits


@lru_cache(maxsize=64)
def _kernel(number: int, params: tuple | None, device: Device, context: cl.Context) -> Kernel:
    spec = find(number)
    return Kernel(spec, spec.fit(device.limits) if params is None else dict(params), device, context)


def select(
    kernel, params, edges, device: Device, context: cl.Context, sizes: tuple[int, int, int], precision: str = "float32"
) -> Kernel:
    """The compiled kernel for a row-major m x k by k x n product, as `matmul`'s arguments ask for it."""
    if not isinstance(edges, str) or edges not in auto.EDGES:
        raise ValueError(f"edges must be one of {', '.join(map(repr, auto.EDGES))}, not {edges!r}")
    if not isinstance(precision, str) or precision not in auto.PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(map(repr, auto.PRECISIONS))}, not {precision!r}")
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
        m, n, k = sizes
        return _kernel(*auto.choose(device, (n, m, k), edges, precision), device, context)  # the operands are swapped
    spec = find(kernel)  # before the cache, where True and 1.0 would pass for 1
    if spec.tensor and not tensor:
        raise ValueError(
            f"kernel {spec.number} multiplies in TF32: say so to matmul, with precision='tf32' or precision='tf32x3'"
        )
    if tensor and not spec.tensor:
        able = " or ".join(str(n) for n, s in catalog.items() if s.tensor)
        raise ValueError(f"precision={precision!r}, but kernel {spec.number} multiplies in float32; kernel={able} fits")
    if tensor:
        spec.complete(params)  # for its words, should params be something else
        fixed = auto.fixed(precision, spec.number)
        params = {**fixed, **(params or {})}
        other = next((f"{p}={params[p]}" for p in fixed if p != "EVERY" and params[p] != fixed[p]), None)
        if other:
            wanted = ", ".join(f"{p}={v}" for p, v in fixed.items() if p != "EVERY")
            raise ValueError(f"{other}, but precision={precision!r} means {wanted}")
    if edges not in ("auto", spec.edges):
        others = " or ".join(str(n) for n, s in catalog.items() if s.edges == edges)
        raise ValueError(f"edges={edges!r}, but kernel {spec.number} is for edges={spec.edges!r}; kernel={others} fits")
    full = None if params is None else tuple(spec.complete(params).items())
    return _kernel(spec.number, full, device, context)


def multiply(session: Session, chosen: Kernel, a, ta: bool, b, tb: bool, out: Matrix) -> None:
    """out = op(a) op(b), column-major and so with the operands swapped; numbers that TF32 cannot split go elsewhere."""
    left, left_t = operand(b, tb, session, True, "b")
    right, right_t = operand(a, ta, session, not chosen.b_transposed, "a")
    if chosen.spec.tensor and session.strange(left, right):
        sizes = (out.cols, out.rows, left.rows if left_t else left.cols)
        chosen = select("auto", None, "auto", session.device, session.queue.context, sizes)
    session.gemm(chosen, left, left_t, right, right_t, out)


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
    chosen = select(kernel, params, edges, device, queue.context, (m, n, k), precision)
    if empty:
        return cla.zeros(queue, (m, n), np.float32) if on_device else np.zeros((m, n), np.float32)
    across, down, depth = chosen.multiples  # the operands are swapped
    fits(device, demand(m, n, k, (down, across, depth)) | {"the pieces of tiles": chosen.pieces}, chosen.spec.wide)
    session = Session(queue, device)
    if on_device:
        result = cla.empty(queue, (m, n), np.float32)
        out = Matrix(result.base_data, n, m, n)
    else:
        out = session.new(n, m)
    if k and alpha:
        multiply(session, chosen, a, ta, b, tb, out)
    if alpha != 1 or beta != 0:
        y = out
        if beta:
            y, lies = operand(c, False, session, True, "c")
            y = session.transpose(y) if lies else session.compact(y)
        session.axpby(alpha if k else 0.0, out, beta, y, out)
    return result if on_device else read(session, out, (m, n))


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
        kernel: a kernel number, or "auto" for the best known one at that size (see `gemmlab.auto`).
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
