"""What users call for products: matmul and gemm, for matrices of any size, layout and precision.

The kernels are column-major. A row-major product C = A B is the column-major product C' = B' A'
(the same memory, read the other way): so the operands are swapped once, here, and everything below speaks of the
column-major `Problem`. In float32 a kernel of the ladder multiplies; what does not lie or fit as it wants goes through
`transpose` and `pad` on the device. All other types have a kernel of the family, which takes operands as they lie.
On processors real matrices are packed first: see `packed`.

Working a product out takes longer than a small product, so that a call consists of two parts: `_prepare` looks at the
forms of the arrays alone, and what it finds is remembered; `_multiply` launches that on their memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from ..caches import cached
from ..catalog import KernelSpec, Key, catalog, find
from ..catalog.spec import Params
from ..family import choice, selection, tiles
from ..family.configuration import letter_of
from ..family.written import check_double
from ..opencl import enqueue
from ..opencl.devices import Device, find_device
from ..opencl.launch import Kernel
from . import host, packed, probe, split, staging, trials
from .operands import (
    DTYPES,
    Form,
    check_inside,
    check_out,
    checked,
    compact_strides,
    flag,
    form,
    scalar,
    shared_queue,
    swapped,
    transposition,
)  # fmt: skip
from .passes import Matrix, Session, check_memory, placed, planned, pool_of, trim, wait_for_others
from .problem import MOST, Batch, Layout, Operand, Problem, footprint, plan
from .repeat import Recording, Repeat
from .results import Result


@cached(256)
def _kernel(number: Key, params: tuple | None, device: Device, context: cl.Context, turned=False) -> Kernel:
    spec = find(number)
    return Kernel(spec, spec.fit(device.limits) if params is None else dict(params), device, context, turned=turned)


def without_transposing(problem: Problem, device: Device, context: cl.Context) -> Kernel | None:
    """The best known kernel in float32 for two operands that can be read as their transposes alone; None for others.

    It multiplies these in the opposite order, and stores the transpose of what it computes, which costs no pass.
    """
    if not problem.k or problem.a.plain or problem.b.plain:
        return None
    number, params = choice.choose(device, problem.turned[:3])
    spec = find(number)
    if not spec.turns or spec.needs_fixup(dict(params), device.features):
        return None
    return _kernel(number, params, device, context, True)


def select(
    kernel, params, edges, device: Device, context: cl.Context, sizes: tuple[int, int, int], precision: str = "float32"
) -> Kernel:
    """The compiled kernel for a column-major M x K by K x N product, as `matmul`'s arguments ask for it."""
    if not isinstance(edges, str) or edges not in selection.EDGES:
        words = ", ".join(map(repr, selection.EDGES))
        raise ValueError(f"edges must be one of {words} (or of the family 'split'), not {edges!r}")
    check_precision(precision, device)
    tensor = precision != "float32"
    if tensor and edges not in ("auto", "guard"):
        raise ValueError(f"edges={edges!r}, but precision={precision!r} is for edges='auto' or 'guard'")
    if isinstance(kernel, str) and kernel == "auto":
        if params is not None:
            raise ValueError("params needs a kernel number as well, such as kernel=3")
        if edges == "auto" and trials.asked_for():
            trials.try_out(device, sizes, precision)
        return _kernel(*choice.choose(device, sizes, edges, precision), device, context)
    spec = find(kernel)  # before the cache, where True and 1.0 would pass for 1
    if spec.tensor and not tensor:
        raise ValueError(
            f"kernel {spec.number} multiplies in TF32: say so to matmul, with precision='tf32' or precision='tf32x3'"
        )
    if tensor:
        params = _with_precision(spec, params, precision)
    if edges not in ("auto", spec.edges):
        others = " or ".join(repr(n) for n, s in catalog.items() if s.edges == edges)
        raise ValueError(f"edges={edges!r}, but kernel {spec.number} is for edges={spec.edges!r}; kernel={others} fits")
    full = None if params is None else tuple(spec.complete(params).items())
    return _kernel(spec.number, full, device, context)


def check_precision(precision, device: Device) -> None:
    """Refuse what is no precision of float32 products, and TF32 where a device has no tensor cores."""
    if not isinstance(precision, str) or precision not in selection.PRECISIONS:
        raise ValueError(f"precision must be one of {', '.join(map(repr, selection.PRECISIONS))}, not {precision!r}")
    if precision != "float32" and "tensor" not in device.features:
        raise ValueError(
            f"precision={precision!r} needs tensor cores that take TF32 (NVIDIA's, compute capability 8.0 or later); "
            f"{device} has none: precision='float32' runs everywhere"
        )


def _with_precision(spec, params, precision: str) -> dict[str, int]:
    """The user's parameters and those that a precision means; ValueError where they contradict each other."""
    if not spec.tensor:
        able = " or ".join(repr(n) for n, s in catalog.items() if s.tensor)
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
    """C = A B on buffers, column-major; numbers that TF32 parts cannot stand for are multiplied in float32.

    Tensor cores multiply before the host knows whether there are such numbers: the device would be idle while it asks.
    """
    operands = placed(a, problem.a), placed(b, problem.b)
    unsuited = session.look_for_unsplittable(*operands) if chosen.spec.tensor else None
    session.multiply(chosen, problem, a, b, out)
    if unsuited and unsuited():
        chosen = select("auto", None, "auto", session.device, session.queue.context, problem[:3])
        session.multiply(chosen, problem, a, b, out)


class Prepared(NamedTuple):
    """A product worked out: all of a call but the memory of its matrices, remembered for the next call like it.

    Attributes:
        shape: that of the result.
        batch_shape: the dimensions of the result before its matrices.
        problem: the column-major product; of a batch the first.
        by_columns: whether the result lies by columns, so that `problem.a` is the user's a. Otherwise, as the product
            of the transposes, it is the user's b.
        batch: the products of a batch, if there are several.
        packs: whether the operands are packed first, as on processors.
        splits: whether the family multiplies in up to four launches.
        at_once: whether `chosen` multiplies all products of a batch in one launch.
        chosen: the kernel of the ladder that multiplies otherwise, or None for one of the family.
        tile: parameters for the family, where the user gave some.
        added: how C0 lies, if beta C0 is added.
        places: how the result's matrices lie, where they have gaps and are copied there; otherwise nothing.
    """

    shape: tuple[int, ...]
    batch_shape: tuple[int, ...]
    problem: Problem
    by_columns: bool
    batch: Batch | None
    packs: bool
    splits: bool
    at_once: bool
    chosen: Kernel | None
    tile: dict[str, int] | None
    added: Operand | None
    places: tuple[Layout, ...]

    @property
    def elements(self) -> int:
        return prod(self.batch_shape) * self.problem.m * self.problem.n


def _prepare(
    a: Form, b: Form, c: Form | None, out: Form | None, ta: str, tb: str, reads: bool, adds: bool,
    kernel, params, edges, precision, device: Device, context: cl.Context,
) -> Prepared:  # fmt: skip
    """Work out a product of arrays of these forms; `reads` if a and b are, `adds` if c is."""
    for name, lies in (("a", a), ("b", b), ("c", c), ("out", out)):
        if lies is not None:
            check_inside(name, lies)
    vectors = len(a.shape) == 1, len(b.shape) == 1
    a, b = a.with_axis(0) if vectors[0] else a, b.with_axis(1) if vectors[1] else b
    m, n, k = _sizes(a, b, c, ta, tb)
    batch_shape, batch = _batch(a, b)
    shape: tuple[int, ...] = (
        *batch_shape,
        *(size for size, left_out in zip((m, n), vectors, strict=True) if not left_out),
    )
    if out is not None and out.shape != shape:
        raise ValueError(f"out has the shape {out.shape}, but the product has {shape}")
    by_columns, places = (False, ()) if out is None else _places(out, vectors)
    if batch is not None and not (by_columns or places) and ta == "N" and _stacked(a, b):
        m, batch_shape, batch = prod(a.shape[:-1]), (), None
        a = a.matrix._replace(shape=(m, k))
    empty = prod(shape) == 0
    problem = Problem.compact(m, n, k if reads and not empty else 0)
    if problem.k:
        left, right = _operand("a", a.matrix, ta, by_columns), _operand("b", b.matrix, tb, by_columns)
        problem = Problem(m, n, k, left, right) if by_columns else Problem(n, m, k, right, left)
    elif not by_columns:
        problem = Problem.compact(n, m, 0)
    if not by_columns and batch is not None:
        batch = batch.swapped
    if (m * n == 0 or not (problem.k or adds)) and edges == "shift":
        edges = "pad"  # there is nothing to shift
    packs = packed.takes(kernel, params, edges, precision, a.dtype, device)
    if packs and batch is not None and kernel == "auto":
        packs = m * n * k >= _PACKED_ALONE
    auto = batch is not None and kernel == "auto" and (edges, precision) == ("auto", "float32")
    in_one, chosen = auto and m * n * k < _ALONE, None
    if batch is not None and auto and not packs and a.dtype == np.float32 and params is None:
        chosen = _for_a_batch(problem, batch, device, context)
    if packs or chosen:
        tile = None
    elif by_family("family" if in_one else kernel, params, edges, precision, a.dtype, device):
        chosen, tile = None, None if params is None else tiles.complete_tile(params)
    else:
        chosen, tile = select(kernel, params, edges, device, context, problem[:2] + (k,), precision), None
        if _is(kernel, "auto") and (edges, precision) == ("auto", "float32"):
            chosen = without_transposing(problem, device, context) or chosen
    at_once = bool(chosen and batch and _at_once(chosen.spec, chosen.params, device, problem, batch))
    splits = chosen is None and not packs and edges == "split"
    each = a.dtype.itemsize
    sizes = footprint(problem, planned(chosen, problem) if chosen and problem.k else [])
    check_memory(device, sizes, chosen is not None and chosen.spec.wide, each)
    whole = {"a": prod(a.shape) * reads, "b": prod(b.shape) * reads, "the result": prod(shape)}
    check_memory(device, sizes | whole, True, each)
    added = swapped("c", c) if adds and c is not None and m * n else None
    return Prepared(shape, batch_shape, problem, by_columns, batch, packs, splits, at_once, chosen, tile, added, places)


_remembered = cached(1024)(_prepare)  # working a product out takes longer than a small product

#: Multiply-adds from which a float32 product of a batch is worth launches of its own, by the faster kernels of the
#: ladder, if they cannot multiply all of it in one: on an H200, 512 cubed is not and 1024 cubed just is.
_ALONE = 2**30
#: The same on a processor, whose kernels of the family are much slower than those for packed operands.
_PACKED_ALONE = 2**20
#: Tiles of the kernel with warp tiles for batches of matrices that are smaller than the tile that was chosen.
_WARP_TILE = {"TSK": 16, "WPTM": 8, "WPTN": 8, "WARPM": 4, "BATCHES": 10, "SPLIT": 0, "DOWN": 1}
_SMALLER = ({"TSM": 128, "TSN": 64, **_WARP_TILE}, {"TSM": 64, "TSN": 64, **_WARP_TILE})


def _for_a_batch(problem: Problem, batch: Batch, device: Device, context: cl.Context) -> Kernel | None:
    """The quickest kernel of the ladder for a batch in one launch, or None where there is none that suits.

    Larger tiles than a result are no use, and vectors that do not divide the sizes are replaced by single floats.
    """
    m, n, k = problem[:3]
    if not k or device.kind != "GPU":
        return None
    order = choice.ranked_for_batch(device, (m, n, k), batch.number)
    number, first = order[0]
    smaller = [(number, tuple({**dict(first), **tile}.items())) for tile in _SMALLER] if "WARPM" in dict(first) else []
    for number, pairs in (*order, *smaller):
        spec, params = find(number), dict(pairs)
        for width in ({}, {"WIDTH": 1}) if "WIDTH" in params else ({},):
            offered = {**params, **width, **({"GROUPS": 0} if "GROUPS" in params else {})}  # a work-group for each tile
            rows, columns, _ = spec.tiles(offered)
            fits = rows <= m and columns <= n and not spec.problems(offered, device.limits)
            if fits and _at_once(spec, offered, device, problem, batch):
                return _kernel(number, tuple(offered.items()), device, context)
    return None


def _at_once(spec: KernelSpec, params: Params, device: Device, problem: Problem, batch: Batch) -> bool:
    """Whether a kernel of the ladder can multiply all products in one launch: as they lie, without any other pass."""
    if not problem.k or spec.tensor or spec.workspace(params) or batch.shared(problem) is None:
        return False
    (only, *more) = plan(spec, params, problem, device.features)
    return batch.number <= MOST and not more and only.out is None


def _sizes(a: Form, b: Form, c: Form | None, ta: str, tb: str) -> tuple[int, int, int]:
    """m, n and k of op(a) op(b), which is m x n; ValueError for shapes that do not match."""
    (m, k), (k2, n) = a.shape[-2:][:: 1 if ta == "N" else -1], b.shape[-2:][:: 1 if tb == "N" else -1]
    if k != k2:
        raise ValueError(
            f"a is {m} x {k} and b is {k2} x {n}{'' if ta == tb == 'N' else ' after transposing'}: "
            f"the columns of a ({k}) must be as many as the rows of b ({k2})"
        )
    if c is not None and c.shape != (m, n):
        raise ValueError(f"c has the shape {c.shape}, expected {(m, n)}")
    return m, n, k


def _batch(a: Form, b: Form) -> tuple[tuple[int, ...], Batch | None]:
    """The dimensions before the matrices, broadcast as in NumPy, and their products, if there are several."""
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


def _stacked(a: Form, b: Form) -> bool:
    """Whether a batch is one product: its left matrices follow each other as if they were one, times a single b."""
    rows = [(size, stride) for size, stride in zip(a.shape[:-1], a.strides[:-1], strict=True) if size > 1]
    follows = all(outer == size * stride for (_, outer), (size, stride) in zip(rows, rows[1:], strict=False))
    return follows and a.shape[-2] > 1 and prod(b.shape[:-2]) == 1


def _places(out: Form, vectors: tuple[bool, bool]) -> tuple[bool, tuple[Layout, ...]]:
    """Whether a result is to lie by columns, and where its matrices do if they have gaps."""
    for axis, left_out in zip((-2, -1), vectors, strict=True):
        if left_out:
            out = out.with_axis(len(out.shape) + 1 + axis if out.shape else 0)
    if not prod(out.shape):
        return False, ()
    lying = swapped("out", out.matrix)
    layout = lying.plain or lying.transposed
    assert layout is not None, "a matrix lies by rows or by columns"
    batch = out.shape[:-2]
    steps, compact = out.steps(batch), compact_strides(batch, layout.rows * layout.cols)
    if layout.is_compact and all(size == 1 or x == y for size, x, y in zip(batch, steps, compact, strict=True)):
        return lying.plain is None, ()
    starts = (sum(i * step for i, step in zip(index, steps, strict=True)) for index in np.ndindex(*batch))
    return lying.plain is None, tuple(layout._replace(offset=layout.offset + start) for start in starts)


def _product(
    alpha, a, b, beta, c, ta, tb, kernel, params, device, edges="auto", precision="float32", out=None,
    overwrite_c=False, known=None,
):  # fmt: skip
    """alpha op(a) op(b) + beta c for checked operands; `ta` and `tb` are "N", "T" or "C". See `_known`."""
    arrays = {name: x for name, x in (("a", a), ("b", b), ("c", c), ("out", out)) if x is not None}
    queue, device = shared_queue(arrays, device)
    on_device = queue is not None
    queue = queue or device.queue
    plain = params is None and type(edges) is type(precision) is str and type(kernel) in (str, int)
    prepared = (_remembered if plain else _prepare)(
        form(a), form(b), None if c is None else form(c), None if out is None else form(out), ta, tb, alpha != 0,
        beta != 0, kernel, params, edges, precision, device, queue.context,
    )  # fmt: skip
    if out is not None:
        check_out(out, a, b)
    elif overwrite_c and _may_overwrite(c, a, b):
        out = c
    if on_device:
        return _on_device(prepared, queue, device, alpha, a, b, beta, c, out, known)
    return _from_numpy(prepared, queue, device, alpha, a, b, beta, c, out, ta, tb, known)


def _on_device(prepared: Prepared, queue, device, alpha, a, b, beta, c, out, known) -> cla.Array:
    """The product of device arrays: enqueued, not waited for. Its launches are left in `known`, if that is a list."""
    blank = _blank(queue, prepared.shape, a.dtype)
    result = _unwritten(blank, a.allocator or b.allocator) if out is None else out
    if not prepared.elements:
        return result
    wait_for_others(queue, *(x for x in (a, b, c, out) if x is not None))
    with Session(queue, device, dtype=a.dtype, allocate=a.allocator or b.allocator) as session:
        session.recording = None if known is None else Recording()
        memory = session.memory(prepared.elements) if out is None or prepared.places else out.base_data
        buffers = (a.base_data, b.base_data) if prepared.problem.k else (memory, memory)
        _multiply(session, prepared, alpha, buffers, beta, c.base_data if prepared.added else None, memory)
        if out is None:
            result.base_data = memory
        if prepared.places:
            for product, place in zip(_results(prepared), prepared.places, strict=True):
                session.copy(Matrix(memory, product), Matrix(out.base_data, place))
        result.events[:] = [session.events[-1][1]]  # all that came before has been waited for
        if session.recording:
            given, quiet = (a.base_data, b.base_data, memory), enqueue.pays(queue, device)
            known.append(Repeat(session.recording, given, blank, quiet))
    return result


# A short way for calls like one before: all that is checked and worked out depends on what `_known` looks at.


def _known(a, b, out, kernel, params: Any, device, edges, precision) -> list | None:
    """A list for the launches of calls like this one, which the first of them fills: a `Repeat` for device arrays, or
    for NumPy's a function that multiplies two of them.

    None stands for calls that are always worked out: on other arrays, and with options of types that could be mistaken
    for others (1, 1.0 and True are the same key).
    """
    if params is not None:
        if type(params) is not dict or not all(type(value) is int for value in params.values()):
            return None
        params = tuple(params.items())
    if not (type(edges) is type(precision) is str and type(kernel) in (str, int)):
        return None
    if type(a) is type(b) is np.ndarray and out is None:
        forms = a.dtype, a.shape, a.flags.num, b.dtype, b.shape, b.flags.num  # flags tell rows from columns
        return _kept(forms, find_device(device), kernel, params, edges, precision)
    if device is not None or not (type(a) in _ARRAYS and type(b) in _ARRAYS and (out is None or type(out) in _ARRAYS)):
        return None
    x, y, z = a.base_data, b.base_data, None if out is None else out.base_data
    shared = x is y, y is z, z is x
    return _kept(_kind(a), _kind(b), None if out is None else _kind(out), shared, kernel, params, edges, precision)


_ARRAYS = cla.Array, Result


def _kind(x: cla.Array) -> tuple:
    """All that a product has to know of a device array, but its memory."""
    buffer: Any = x.base_data
    return x.queue, x.dtype, x.shape, x.strides, x.offset, buffer.size if x.size else 0


@cached(512)
def _kept(*call) -> list:
    return []


choice.when_settled(_remembered.cache_clear)  # type: ignore[attr-defined]
choice.when_settled(_kept.cache_clear)  # type: ignore[attr-defined]
probe.when_settled(_kept.cache_clear)  # type: ignore[attr-defined]


def _again(repeat: Repeat, a: cla.Array, b: cla.Array, out: cla.Array | None) -> cla.Array:
    """The product of device arrays, by the launches of a call like it."""
    queue: Any = a.queue
    pool, allocator = pool_of(queue), a.allocator or b.allocator
    allocate = allocator or pool.allocate
    if out is None:
        wait_for_others(queue, a, b)
        result = _unwritten(repeat.blank, allocator, Result if repeat.quiet else cla.Array)
        result.base_data = allocate(result.nbytes)
    else:
        check_out(out, a, b)
        wait_for_others(queue, a, b, out)
        result = out
    buffers = a.base_data, b.base_data, result.base_data
    if out is None and isinstance(result, Result):
        repeat.quietly(queue, buffers, allocate)
        result.launched(queue)
    else:  # other views of `out` share its list of events
        result.events[:] = [repeat(queue, buffers, allocate)]
    if not allocator:
        trim(pool, repeat.size_bytes)
    return result


def _from_numpy(prepared: Prepared, queue, device, alpha, a, b, beta, c, out, ta, tb, known) -> np.ndarray:
    """The product of NumPy arrays. In the host's own memory its launches are left in `known`, if that is a list."""
    result = np.empty(prepared.shape, a.dtype) if out is None else out
    if not prepared.elements:
        return result
    if _in_place(prepared, a, b, result):
        host.multiply(device, a, b, (ta != "N", tb != "N"), alpha, beta, c, result, known)
        return result
    ring = staging.staging_of(queue.context, device) if staging.pays(device, a, b, result) else None
    if ring and _in_strips(prepared, a, b, ta, tb, result):
        _by_strips(prepared, queue, device, alpha, a.T if ta == "T" else a, b.T if tb == "T" else b, result, ring)
        return result
    with Session(queue, device, dtype=a.dtype) as session:
        upload, download = session.upload, session.download
        if ring:
            upload, download = partial(ring.upload, session), partial(ring.download, session)
        memory = session.memory(prepared.elements)
        buffers = (upload(a), upload(b)) if prepared.problem.k else (memory, memory)
        _multiply(session, prepared, alpha, buffers, beta, upload(c) if prepared.added else None, memory)
        landed = np.empty(prepared.shape, a.dtype) if prepared.places else result
        download(memory, landed)
        if landed is not result:  # vectors of a batch, which lie side by side there and not one after the other
            result[...] = landed
    return result if result.ndim or out is not None else result[()]


def _in_place(prepared: Prepared, a, b, result: np.ndarray) -> bool:
    """Whether a processor can multiply in the arrays' own memory, which is read while the result is written."""
    one = prepared.packs and prepared.problem.k > 0 and a.ndim == b.ndim == result.ndim == 2
    return one and result.flags.c_contiguous and not any(np.may_share_memory(result, x) for x in (a, b))


def _in_strips(prepared: Prepared, a, b, ta: str, tb: str, result: np.ndarray) -> bool:
    """Whether the first rows (or columns) may be finished before the last ones have been read."""
    plain = prepared.problem.k > 0 and not (prepared.added or "C" in (ta, tb))
    return plain and a.ndim == b.ndim == 2 and not any(np.may_share_memory(result, x) for x in (a, b))


def _by_strips(prepared: Prepared, queue, device, alpha, a, b, result: np.ndarray, ring: staging.Staging) -> None:
    """The product of two matrices in NumPy's memory, as `staging` says; all strips by the same kernel."""
    by_columns = prepared.by_columns

    def multiply(x: staging.Stored, y: staging.Stored, memory) -> None:
        (m, k), (_, n) = x.form.shape, y.form.shape
        left, right = (_operand(name, z.form, "N", by_columns) for name, z in (("a", x), ("b", y)))
        problem = Problem(m, n, k, left, right) if by_columns else Problem(n, m, k, right, left)
        _multiply(session, prepared._replace(problem=problem), alpha, (x.buffer, y.buffer), 0.0, None, memory)

    with Session(queue, device, dtype=a.dtype) as session:
        ring.multiply(session, a, b, result, by_columns, multiply)


def _multiply(session: Session, prepared: Prepared, alpha, buffers, beta, before, memory) -> None:
    """Launch a product, or all of a batch, on the buffers of a, b and c; the results follow each other in `memory`."""
    problem, batch, chosen, added = prepared.problem, prepared.batch, prepared.chosen, prepared.added
    out = Matrix(memory, Layout.compact(problem.m, problem.n))
    of_a, of_b = buffers if prepared.by_columns else buffers[::-1]
    before, alpha = (before, added) if added else None, alpha if problem.k else 0.0
    if not (problem.k or before):
        session.zeroes(memory, prepared.elements)
        return
    if chosen is None and not (prepared.splits or prepared.packs and problem.k):
        session.gemm(problem, (of_a, of_b), alpha, beta, before, out, prepared.tile, batch)
    elif batch is not None and chosen is not None and prepared.at_once:
        shared = batch.shared(problem)
        assert shared is not None, "see `_at_once`"
        session.launch("gemm", chosen.batch(*problem[:3], batch.number, shared, (of_a, of_b, memory)))
    elif batch is None:
        _one(session, prepared, problem, (of_a, of_b), alpha, beta, before, out)
    else:
        for (at_a, at_b), place in zip(batch.products(), _results(prepared), strict=True):
            (part_a, cut_a), (part_b, cut_b) = session.part(of_a, at_a), session.part(of_b, at_b)
            moved = problem._replace(a=problem.a.moved(at_a, cut_a), b=problem.b.moved(at_b, cut_b))
            part, cut = session.part(memory, place.offset)
            # these kernels write at the beginning of a buffer
            product = Matrix(part, out.layout) if cut == place.offset else session.new(out.layout)
            _one(session, prepared, moved, (part_a, part_b), alpha, beta, before, product)
            if cut != place.offset:
                session.copy(product, Matrix(memory, place))


def _one(session: Session, prepared: Prepared, problem: Problem, buffers, alpha, beta, before, out: Matrix) -> None:
    """A single product, by packed operands, in launches of the family, or by a kernel of the ladder."""
    if prepared.splits:
        split.gemm(session, problem, buffers, alpha, beta, before, out, prepared.tile)
    elif prepared.chosen is None:
        packed.gemm(session, problem, buffers, alpha, beta, before, out)
    else:
        _by_ladder(session, prepared.chosen, problem, buffers, alpha, beta, before, out)


def _results(prepared: Prepared) -> Iterator[Layout]:
    """Where the matrices of a result lie that has no gaps."""
    m, n = prepared.problem[:2]
    compact = Layout.compact(m, n)
    return (compact._replace(offset=i * m * n) for i in range(prod(prepared.batch_shape)))


def _unwritten(blank: dict[str, Any], allocator, kind: type[cla.Array] = cla.Array) -> cla.Array:
    """A device array whose memory is yet to be given: a copy, since PyOpenCL's constructor takes 15 microseconds."""
    array = kind.__new__(kind)
    vars(array).update(blank, allocator=allocator, events=[])
    return array


@cached(256)
def _blank(queue: cl.CommandQueue, shape: tuple[int, ...], dtype: np.dtype) -> dict[str, Any]:
    """The attributes of an array by rows, but for its memory."""
    return vars(cla.Array(queue, shape, dtype, data=())) | {"base_data": None}


def _by_ladder(session: Session, chosen: Kernel, problem: Problem, buffers, alpha, beta, before, out: Matrix) -> None:
    """alpha A B + beta C0 with a kernel of the ladder: one that multiplies, and a pass for alpha and beta.

    The family's kernels need no such pass, but in float32 they block registers as kernel 10 does, and the ladder goes
    on from there: on an H200 at 4096, kernel 10 reaches 37 TFLOPS and "warp_tiling", which "auto" takes, 53.
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


def _operand(name: str, lies: Form, trans: str, by_columns: bool) -> Operand:
    """op(x) as it lies, for a column-major product: its transpose, or where the result lies `by_columns`, itself."""
    return swapped(name, lies, (trans != "N") != by_columns, trans == "C" and lies.dtype.kind == "c")


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
    out=None,
    *,
    kernel="auto",
    params: dict[str, int] | None = None,
    device=None,
    edges: str = "auto",
    precision: str = "float32",
):
    """The matrix product a b on an OpenCL device, in the type of its operands.

    Arrays of more than two dimensions are batches, as in `numpy.matmul`: the last two dimensions multiply, the others
    are broadcast. A vector at the left is a row, a vector at the right is a column, and the result lacks that
    dimension. The family multiplies a batch in one launch if its matrices lie at equal distances, kernels of the ladder
    if they follow each other as such a kernel wants them; otherwise these multiply one pair after another, without
    waiting. A batch of left matrices that follow each other, times a single right one, is one tall product.

    A call with device arrays returns when everything is enqueued, and one like it before only repeats its launches.
    What other queues still do to the operands (``Array.events``) is waited for on the device, and the result's
    event, which is made when somebody asks for it where events cost time, follows its last launch.

    Args:
        a: m x k float32, float64, complex64 or complex128: a NumPy array of any layout, or a
            ``pyopencl.array.Array`` with one contiguous dimension.
        b: k x n of the same type, on the same side; device arrays on the same queue, which runs in order.
        out: where to write the result: an array of its shape and type, on the same side and queue, that shares no
            memory with a or b. A NumPy array may have any layout, a device array needs one contiguous dimension;
            where it has gaps, the result is copied into it.
        kernel: "auto" for the best known kernel at that size (see `gemmlab.family`), "family" for a kernel that the
            family writes, "packed" for one with packed operands (on processors, float32 and float64; "auto" takes it
            there), or for float32 the number or name of a kernel of the catalog.
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
            multiply-adds: "tensor_cores" and its chapter have the figures. Matrices with infinities, NaN, or magnitudes
            that do not split (not zero, but below 2^-100; from 2^127 on) are found and multiplied as "float32"; the
            call waits until the device has looked for them, which it does before it multiplies. At sizes where
            "float32" is quicker it multiplies anyway, and nothing is looked for. Other types than float32 have no such
            choice.

    Returns:
        `out`, or a new array, m x n of the operands' type, row-major: a NumPy array, or a device array on the
        operands' queue (not waited for). Its memory comes from the `allocator` of a or b, if one of them has one, or
        else from a pool of the queue. It goes back there when the array is forgotten, for the next call on that
        queue: keep the array for as long as another queue works with it.

    Raises:
        TypeError: for anything but arrays of one of these types; nothing is converted in silence.
        ValueError: for shapes that do not match, an `out` that cannot be written or shares memory with an operand,
            arrays on different queues or contexts, unknown kernels, illegal parameters (ParameterError), matrices
            beyond 32-bit indices (but for those of production), or float64 and complex128 on a device without double
            precision.
        MemoryError: if the device cannot hold the matrices.
    """
    known = _known(a, b, out, kernel, params, device, edges, precision)
    if known and isinstance(a, np.ndarray):
        return known[0](a, b)
    if known:
        return _again(known[0], a, b, out)
    a = checked("a", a, DTYPES, least=1)
    b = checked("b", b, (a.dtype,), least=1)
    if out is not None:
        checked("out", out, (a.dtype,), least=0)
    return _product(1.0, a, b, 0.0, None, "N", "N", kernel, params, device, edges, precision, out, known=known)


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
    """`gemm` for float32, as ``scipy.linalg.blas.sgemm``; options are those of `gemm`."""
    return _gemm(DTYPES[0], alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)


def dgemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=False, **options):
    """`gemm` for float64, as ``scipy.linalg.blas.dgemm``; options are those of `gemm`."""
    return _gemm(DTYPES[1], alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)


def cgemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=False, **options):
    """`gemm` for complex64, as ``scipy.linalg.blas.cgemm``; options are those of `gemm`."""
    return _gemm(DTYPES[2], alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)


def zgemm(alpha, a, b, beta=0.0, c=None, trans_a=0, trans_b=0, overwrite_c=False, **options):
    """`gemm` for complex128, as ``scipy.linalg.blas.zgemm``; options are those of `gemm`."""
    return _gemm(DTYPES[3], alpha, a, b, beta, c, trans_a, trans_b, overwrite_c, **options)
