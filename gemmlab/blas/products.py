"""What users call for products: matmul and gemm, for matrices of any size, layout and precision.

The kernels are column-major. A row-major product C = A B is the column-major product C' = B' A'
(the same memory, read the other way): so the operands are swapped once, here, and everything below speaks of the
column-major `Problem`. In float32 a kernel of the ladder multiplies; what does not lie or fit as it wants goes through
`transpose` and `pad` on the device. All other types have a kernel of the family, which takes operands as they lie.
"""

from __future__ import annotations

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from ..caches import cached
from ..catalog import catalog, find
from ..family import selection, tiles
from ..family.configuration import letter_of
from ..family.written import check_double
from ..opencl.devices import Device
from ..opencl.launch import Kernel
from . import split
from .operands import DTYPES, checked, flag, scalar, shared_queue, swapped, transposition
from .passes import Matrix, Session, check_memory, placed, planned
from .problem import Layout, Operand, Problem, footprint


@cached(64)
def _kernel(number: int, params: tuple | None, device: Device, context: cl.Context) -> Kernel:
    spec = find(number)
    return Kernel(spec, spec.fit(device.limits) if params is None else dict(params), device, context)


def select(
    kernel, params, edges, device: Device, context: cl.Context, sizes: tuple[int, int, int], precision: str = "float32"
) -> Kernel:
    """The compiled kernel for a column-major M x K by K x N product, as `matmul`'s arguments ask for it."""
    if not isinstance(edges, str) or edges not in selection.EDGES:
        words = ", ".join(map(repr, selection.EDGES))
        raise ValueError(f"edges must be one of {words} (or of the family 'split'), not {edges!r}")
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


def _sizes(a, b, c, ta: str, tb: str) -> tuple[int, int, int]:
    """m, n and k of op(a) op(b), which is m x n; ValueError for shapes that do not match."""
    (m, k), (k2, n) = a.shape[:: 1 if ta == "N" else -1], b.shape[:: 1 if tb == "N" else -1]
    if k != k2:
        raise ValueError(
            f"a is {m} x {k} and b is {k2} x {n}{'' if ta == tb == 'N' else ' after transposing'}: "
            f"the columns of a ({k}) must be as many as the rows of b ({k2})"
        )
    if c is not None and c.shape != (m, n):
        raise ValueError(f"c has the shape {c.shape}, expected {(m, n)}")
    return m, n, k


def _product(
    alpha, a, b, beta, c, ta, tb, kernel, params, device, edges="auto", precision="float32", overwrite_c=False
):
    """alpha op(a) op(b) + beta c for checked operands; `ta` and `tb` are "N", "T" or "C"."""
    queue, device = shared_queue({"a": a, "b": b} | ({"c": c} if c is not None else {}), device)
    m, n, k = _sizes(a, b, c, ta, tb)
    on_device = queue is not None
    queue, dtype = queue or device.queue, a.dtype
    empty = m * n == 0 or (beta == 0 and (k == 0 or alpha == 0))
    edges = "pad" if empty and edges == "shift" else edges
    if by_family(kernel, params, edges, precision, dtype, device):
        chosen, tile = None, None if params is None else tiles.complete_tile(params)
    else:
        chosen = select(kernel, params, edges, device, queue.context, (n, m, k), precision)
    if empty:
        return cla.zeros(queue, (m, n), dtype) if on_device else np.zeros((m, n), dtype)
    shape = Layout.compact(n, m)  # from here on everything is column-major
    if k and alpha:
        problem = Problem(n, m, k, _operand("b", b, tb), _operand("a", a, ta))
    else:  # as in BLAS, A and B are not even read
        alpha, problem = 0.0, Problem.compact(n, m, 0)
    sizes = footprint(problem, planned(chosen, problem) if chosen and problem.k else [])
    check_memory(device, sizes, chosen is not None and chosen.spec.wide, dtype.itemsize)
    reused = c if overwrite_c and _may_overwrite(c, a, b) else None
    with Session(queue, device, dtype=dtype) as session:
        if on_device:
            result = cla.empty(queue, (m, n), dtype) if reused is None else reused
            out = Matrix(result.base_data, shape)
        else:
            out = session.new(shape)

        def memory_of(x):
            return x.base_data if on_device else session.upload(x)

        buffers = (memory_of(b), memory_of(a)) if problem.k else (out.buffer, out.buffer)
        before = (memory_of(c), swapped("c", c)) if beta else None
        if chosen is None:
            multiplies = split.gemm if edges == "split" else Session.gemm
            multiplies(session, problem, buffers, alpha, beta, before, out, tile)
        else:
            _by_ladder(session, chosen, problem, buffers, alpha, beta, before, out)
        return result if on_device else session.download(out.buffer, (m, n), reused)


def _by_ladder(session: Session, chosen: Kernel, problem: Problem, buffers, alpha, beta, before, out: Matrix) -> None:
    """alpha A B + beta C0 with a kernel of the ladder: one that multiplies, and a pass for alpha and beta.

    The family's kernels need no such pass, but in float32 they block registers as kernel 10 does, and the ladder goes
    on from there: on an H200 at 4096, kernel 10 reaches 37 TFLOPS and kernel 15, which "auto" takes, 53.
    """
    product = out
    if before and before[0] is out.buffer:  # C may only be overwritten once it has been read
        product = session.new(out.layout)
    if problem.k:
        multiply(session, chosen, problem, buffers[0], buffers[1], product)
    if alpha != 1 or before:
        y = product
        if before:
            y = placed(*before)
            y = session.compact(y) if before[1].plain else session.transpose(y, out.layout)
        session.axpby(alpha, product, beta, y, out)


def by_family(kernel, params, edges, precision, dtype: np.dtype, device: Device) -> bool:
    """Whether the family multiplies: where it is asked to, and all but float32. ValueError for what it cannot do."""
    asked, splits = _is(kernel, "family"), _is(kernel, "auto") and _is(edges, "split")
    if not asked and not splits and dtype == np.float32:
        return False
    who = "kernel='family'" if asked else "edges='split'" if splits else f"a is {dtype}"
    if not asked and not _is(kernel, "auto"):
        number = find(kernel).number
        raise ValueError(f"kernel {number} multiplies float32, but {who}; kernel='auto' and 'family' take every type")
    if not asked and params is not None:
        raise ValueError("params needs a kernel as well, such as kernel='family'")
    if not any(_is(edges, way) for way in ("auto", "guard", "split")):
        raise ValueError(f"edges={edges!r}, but {who}: the family guards its edges ('auto') or splits ('split')")
    if not isinstance(precision, str) or precision != "float32":
        raise ValueError(f"precision={precision!r} is for float32 and kernels of the ladder, but {who}")
    check_double(letter_of(dtype), device)
    return True


def _is(given, word: str) -> bool:
    """Whether it is that word; an array compared with one would be an array of answers."""
    return isinstance(given, str) and given == word


def _operand(name: str, x, trans: str) -> Operand:
    """op(x) as it lies, for the column-major product."""
    return swapped(name, x, trans != "N", trans == "C" and x.dtype.kind == "c")


def _may_overwrite(c, a, b) -> bool:
    """Whether the result can be written over c: it lies by rows without gaps, and is no part of an operand."""
    if c is None or not c.flags.c_contiguous:
        return False
    if isinstance(c, np.ndarray):
        return c.flags.writeable
    return c.offset == 0 and c.base_data not in (a.base_data, b.base_data)


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
    """The matrix product a b on an OpenCL device, in the type of its operands.

    Args:
        a: m x k float32, float64, complex64 or complex128: a NumPy array of any layout, or a
            ``pyopencl.array.Array`` with one contiguous dimension.
        b: k x n of the same type, on the same side; device arrays on the same queue, which runs in order.
        kernel: "auto" for the best known kernel at that size (see `gemmlab.family`), "family" for a kernel that the
            family writes, or for float32 the number of a kernel of the ladder.
        params: the kernel's parameters; for "family" those of `gemmlab.family.tiles.DEFAULTS`. C is computed as its
            transpose, so that parameters of the kernel's rows (such as TSM) act on columns of the result, and the
            other way round.
        device: for NumPy arrays: a Device, an index or part of a name; the preferred device by default.
        edges: what to do in float32 where the sizes are no whole tiles: "pad" copies the matrices into larger ones;
            "guard" asks for every element whether it exists (kernel 12); "shift" moves the last tiles back (kernel
            13, for results of one tile at least); "auto" takes what was measured to be fastest at such sizes. The
            family guards; with "split", for every type, it multiplies whole tiles and what is left at the edges in up
            to four launches (see `gemmlab.family.split`).
        precision: "float32", or on tensor cores (NVIDIA's, compute capability 8.0 or later): "tf32" rounds every
            element of a and b to 10 bits after the point (relative errors of about 3e-4), "tf32x3" cuts it into two
            such numbers and multiplies three times. On normal data that is more accurate than a chain of float32
            multiply-adds: kernel 16 and its chapter have the figures. Matrices with infinities, NaN, or magnitudes
            that do not split (not zero, but below 2^-100; from 2^127 on) are found first and multiplied as
            "float32"; looking for them waits for the device. Other types than float32 have no such choice.

    Returns:
        m x n of the operands' type, row-major: a NumPy array, or a device array on the operands' queue (not waited
        for).

    Raises:
        TypeError: for anything but arrays of one of these types; nothing is converted in silence.
        ValueError: for shapes that do not match, arrays on different queues or contexts, unknown kernels, illegal
            parameters (ParameterError), matrices beyond 32-bit indices (but for kernels 15 to 17), or float64 and
            complex128 on a device without double precision.
        MemoryError: if the device cannot hold the matrices.
    """
    a = checked("a", a, DTYPES)
    b = checked("b", b, (a.dtype,))
    return _product(1.0, a, b, 0.0, None, "N", "N", kernel, params, device, edges, precision)


def gemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=False, **options):
    """alpha op(a) op(b) + beta c, as ``scipy.linalg.blas``; the operands' type says which of its functions.

    In float32 the best known kernel of the ladder multiplies, and a second pass applies alpha and beta. In all other
    types one launch does everything.

    Args:
        alpha, beta: numbers, real ones for real operands. As in BLAS, alpha = 0 never reads a or b, and beta = 0
            never reads c.
        a, b: as in `matmul`, with op(a) of m x k and op(b) of k x n.
        c: m x n of the same type, on the same side. Needed unless beta = 0.
        trans_a, trans_b: 0 or "N" for the matrix as it is, 1 or "T" for its transpose, 2 or "C" for its conjugate
            transpose. No copy is made for it, unless a kernel of the ladder wants one.
        overwrite_c: whether the result may be written over c, which saves memory. It is where c lies by rows
            without gaps, and on a device not in the buffer of a or b; otherwise c is left alone.
        options: `kernel`, `params`, `device` and `edges`, as in `matmul`.

    Returns:
        m x n of the operands' type, row-major, as in `matmul`: a new array, or c.

    Raises:
        As `matmul`; ValueError also for a missing c.
    """
    a = checked("a", a, DTYPES)
    return _gemm(a.dtype, alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)


def _gemm(
    dtype, alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, *, kernel="auto", params=None, device=None, edges="auto"
):
    a, b = checked("a", a, (dtype,)), checked("b", b, (dtype,))
    alpha, beta = scalar("alpha", alpha, dtype), scalar("beta", beta, dtype)
    if c is not None:
        c = checked("c", c, (dtype,))
    elif beta != 0:
        raise ValueError(f"beta={beta:g} needs c, an m x n matrix to add")
    ta, tb = transposition("trans_a", trans_a), transposition("trans_b", trans_b)
    overwrite_c = flag("overwrite_c", overwrite_c)
    return _product(alpha, a, b, beta, c, ta, tb, kernel, params, device, edges, overwrite_c=overwrite_c)


def sgemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=False, **options):
    """`gemm` for float32, as ``scipy.linalg.blas.sgemm``; options are `kernel`, `params` and `device`."""
    return _gemm(DTYPES[0], alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)


def dgemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=False, **options):
    """`gemm` for float64, as ``scipy.linalg.blas.dgemm``; options are `kernel`, `params` and `device`."""
    return _gemm(DTYPES[1], alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)


def cgemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=False, **options):
    """`gemm` for complex64, as ``scipy.linalg.blas.cgemm``; options are `kernel`, `params` and `device`."""
    return _gemm(DTYPES[2], alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)


def zgemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=False, **options):
    """`gemm` for complex128, as ``scipy.linalg.blas.zgemm``; options are `kernel`, `params` and `device`."""
    return _gemm(DTYPES[3], alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)
