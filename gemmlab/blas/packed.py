"""Products on processors: both operands are packed into panels, then multiplied (see `gemmlab.family.packed`).

That takes two launches. Where it does not pay, one is enough, whose operands stay where they are (see
`gemmlab.family.in_place`, `gemmlab.family.dots`, and `gemmlab.family.matrix_vector`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyopencl as cl

from ..caches import cached
from ..catalog.spec import round_up, tiles_over
from ..family import dots
from ..family.configuration import PRECISIONS, letter_of
from ..family.in_place import DEPTH, InPlace, lower, shaped
from ..family.in_place import write as write_in_place
from ..family.matrix_vector import MatrixVector
from ..family.matrix_vector import write as write_vector
from ..family.packed import Packed, write, write_packing
from ..family.written import View, check_double
from ..opencl.build import Bound, Built, build
from ..opencl.devices import Device
from .passes import Matrix, Session, view
from .probe import settled, vector_of
from .problem import Problem

#: Relaxations that the compiler may make: a*b + c in one instruction, rounded once. `fma` would ask for the same, but
#: is a function call on some runtimes.
_FLAGS = ("-cl-mad-enable",)
#: Bytes that the panels of a product take at most, as long as that is one block of k or more.
_PANELS = 8 * 2**20
#: Multiply-adds that are worth a work-item: waking a thread takes as long.
_WORTH = 2**17
#: Rows side by side that are worth a work-item: shorter pieces of columns take longer to read.
_PIECE = 128
#: Columns of C, or rows, that are few, and steps of k from which on they are served like a single one, if A has so many
#: bytes that it comes from memory.
_FEW, _LONG, _FROM_MEMORY = 8, 256, 16 * 2**20
#: Steps of k from which on dot products pay, if they are at least half as many as the rows or columns. With blocks for
#: 16 registers they pay up to so many bytes of the smaller operand, which stays in the second cache; with those for 32,
#: up to so many rows or columns.
_LONG_DOTS, _SMALL_DOTS, _SIDE_OF_DOTS = 128, 2**20, 640
#: Steps of k for which a text of its own multiplies a matrix with rows of so many by a vector.
_SHORT_ROWS = 8
#: Steps of k that are so few that writing C decides.
_SHORT = 48
#: Bytes of an A that need not be copied to stay in the first cache, or hardly to leave it.
_FIRST_CACHE = 64 * 1024
#: Blocks of columns up to which reading A once for each of them is quicker than packing it; and columns up to which
#: that also holds for a panel of A that stays in half of the second cache.
_OFTEN, _COLUMNS = 6, 256
#: Bytes of a page of memory, and of all pages that a panel of A may lie on to be read again and again: a processor
#: remembers the addresses of a thousand pages or more. Steps at a distance of whole pages also take each other's places
#: in the caches, the more so the more pages it is.
_PAGE, _PAGES = 4096, 4 * 2**20
#: Bytes of the second cache: what processors have at least. And bytes of an A that stays in the third.
_SECOND_CACHE, _THIRD_CACHE = 512 * 1024, 4 * 2**20
#: Rows of a larger A up to which it is read again and again, in parts, instead of being packed: by register blocks that
#: fit 16 registers, if A stays in the third cache; and by those for 32, which read it less often. And columns of C up
#: to which that pays for any number of rows.
_ROWS_OF_16, _ROWS_OF_32 = 256, 1280
_COLUMNS_OF_16, _COLUMNS_OF_32 = 64, 128
#: Work-items for each compute unit. More of them share the work more evenly; where nothing is packed, fewer read the
#: operands less often.
_PACKED_PER_UNIT, _PER_UNIT = 16, 4


def takes(kernel, params, edges, precision, dtype: np.dtype, device: Device) -> bool:
    """Whether a product is packed: where that is asked for, and on processors where nothing else is.

    Raises:
        ValueError: if kernel="packed" is asked for together with what it cannot do.
    """
    if not isinstance(kernel, str) or kernel not in ("auto", "packed"):
        return False
    words = isinstance(edges, str) and isinstance(precision, str)  # an array would be compared element by element
    plain = params is None and words and (edges, precision) == ("auto", "float32")
    if kernel == "auto":
        return plain and device.kind == "CPU" and dtype.kind == "f" and _has(dtype, device)
    if dtype.kind != "f":
        raise ValueError(f"kernel='packed' multiplies float32 and float64, not {dtype}; 'family' takes every type")
    if device.kind != "CPU":
        raise ValueError(f"kernel='packed' is for processors, and {device} is none; kernel='auto' suits every device")
    if not plain:
        given = f"params={params!r}, edges={edges!r}, precision={precision!r}"
        raise ValueError(f"kernel='packed' has no choice of params, edges or precision, but got {given}")
    check_double(letter_of(dtype), device)
    return True


def _has(dtype: np.dtype, device: Device) -> bool:
    return dtype == np.float32 or "double" in device.features


def gemm(session: Session, problem: Problem, buffers, alpha, beta, before, out: Matrix) -> None:
    """C = alpha A B + beta C0, column-major.

    Args:
        session: of the type of the elements; it lends the memory for panels, and keeps the events.
        problem: the sizes, all positive, and how A and B lie.
        buffers: those of A and B.
        before: the buffer of C0 and how it lies (an `Operand`), or None where beta is 0. C0 may be C itself.
        out: M x N, compact; overwritten.
    """
    lying = session, problem, buffers, alpha, out.buffer
    alone = None if before else _few(*lying) or _dots(*lying) or _in_place(*lying)
    if alone:
        session.launch("gemm", alone)
    else:
        setting = settled(session.device, letter_of(session.dtype), problem[:3], run)
        run(session, setting, problem, buffers, alpha, beta, before, out)


def _views(problem: Problem, buffers) -> tuple[View, View]:
    """The operands: memory, first element, and the distances of rows of A (columns of B) and of steps of k."""
    (op_a, offset_a, lda), (op_b, offset_b, ldb) = problem.a.lying, problem.b.lying
    a = View(buffers[0], offset_a, *((1, lda) if op_a == "N" else (lda, 1)))
    return a, View(buffers[1], offset_b, *((ldb, 1) if op_b == "N" else (1, ldb)))


def _width(device: Device, precision: str, problem: Problem) -> int:
    """Elements of a vector: as many as the device's own have, unless its compiler does better with half of them."""
    return min(vector_of(device, precision), settled(device, precision, problem[:3], run).width)


def suited_to_few(
    device: Device, precision: str, problem: Problem, buffers=(None, None)
) -> tuple[MatrixVector, View, View] | None:
    """The kernel that reads A once, where C has one column (or row), or a few and A is large; None where none does.

    With it come A and B as it takes them: exchanged if C is a row, since the transpose of a product is that of the
    exchanged operands, and a vector lies like its transpose. Few rows side by side are left to `suited`, whose sums
    stay in registers, and adjacent steps of k to `suited_to_dots`, unless they are very few.
    """
    (m, n, k), (a, b) = problem[:3], _views(problem, buffers)
    if m == 1:
        m, n, a, b = n, m, b, a
    if n == 1 and k <= _SHORT_ROWS and a.down == k and a.across == b.across == 1:
        return MatrixVector(precision, k), a, b
    few = n <= _FEW and k > _LONG and m * k * PRECISIONS[precision].size > _FROM_MEMORY
    serves = a.down == 1 and m >= 2 * _PIECE and (n == 1 or few)
    return (MatrixVector(precision), a, b) if serves else None


def suited_to_dots(
    device: Device, precision: str, problem: Problem, buffers=(None, None)
) -> tuple[dots.Dots, View, View] | None:
    """The kernel that adds up dot products, with A and B, where steps of k are adjacent in both and it pays."""
    (m, n, k), (a, b) = problem[:3], _views(problem, buffers)
    if not a.across == b.across == 1:
        return None
    c = dots.shaped(precision, _width(device, precision, problem), m, n, k)
    side = min(m, n)
    small = side <= _SIDE_OF_DOTS if c.columns == 4 else side * k * PRECISIONS[precision].size <= _SMALL_DOTS
    return (c, a, b) if side == 1 or small and k >= max(_LONG_DOTS, side // 2) else None


def _is_near(precision: str, k: int, step: int) -> bool:
    """Whether a panel of A lies on so few pages that it may be read again, with so many elements from step to step."""
    return k * min(step * PRECISIONS[precision].size, _PAGE) <= _PAGES


def _few(session: Session, problem: Problem, buffers, alpha, out) -> Bound | None:
    """The launch of the kernel that `suited_to_few` names, if it does."""
    device = session.device
    found = suited_to_few(device, letter_of(session.dtype), problem, buffers)
    if found is None:
        return None
    (c, a, b), (m, n, k) = found, problem[:3]
    m, n = (n, m) if m == 1 else (m, n)
    wanted, least = (_PER_UNIT * device.units, 1) if c.steps else (device.units, _PIECE)
    items = min(wanted, tiles_over(m * n * k, _WORTH), m // least)
    kernel = build(device, session.queue.context, c.name, write_vector(c), {}, flags=_FLAGS)
    return Bound(kernel, (items, 1), (1, 1), (m, n, k, m // items, alpha, *a, *b, out))


def _dots(session: Session, problem: Problem, buffers, alpha, out) -> Bound | None:
    """The launch of dot products, if they pay."""
    device = session.device
    found = suited_to_dots(device, letter_of(session.dtype), problem, buffers)
    if found is None:
        return None
    (c, a, b), (m, n, k) = found, problem[:3]
    rows, columns = shares_of_dots(c, m, n, k, device.units)
    kernel = build(device, session.queue.context, c.name, dots.write(c), {}, flags=_FLAGS)
    args = m, n, k, rows, columns, alpha, *a, *b, out
    return Bound(kernel, c.groups(m, n, rows, columns), (1, 1), args)


def shares_of_dots(c: dots.Dots, m: int, n: int, k: int, units: int) -> tuple[int, int]:
    """Rows and columns of C for a work-item: all of the smaller operand, and an even share of the other one."""
    wanted = min(_PER_UNIT * units, tiles_over(m * n * k, _WORTH))
    if c.down:
        return round_up(m, c.rows), round_up(tiles_over(n, wanted), c.columns)
    return round_up(tiles_over(m, wanted), c.rows), round_up(n, c.columns)


def _in_place(session: Session, problem: Problem, buffers, alpha, out) -> Bound | None:
    """The launch that reads the operands where they lie, if that pays."""
    (m, n, k), (a, b), device = problem[:3], _views(problem, buffers), session.device
    c = suited(device, letter_of(session.dtype), problem)
    if c is None:
        return None
    rows, columns = parts(c, m, n, k, device.units)
    kernel = build(device, session.queue.context, c.name, write_in_place(c), {}, flags=_FLAGS)
    args = m, n, k, rows, columns, alpha, *a, *b, out
    return Bound(kernel, c.groups(m, n, rows, columns), (1, 1), args)


def suited(device: Device, precision: str, problem: Problem) -> InPlace | None:
    """The kernel that reads the operands where they lie, or None if packing them pays.

    A panel of A that several blocks of columns use is copied first; transposing it costs more. If it is too long, it is
    read again for each block, where that is quicker than packing: in parts, or as a whole. So is one of an A that stays
    in the first cache.
    """
    m, n, k = problem[:3]
    c, (operation, _, step) = shaped(precision, _width(device, precision, problem), m, n), problem.a.lying
    size = PRECISIONS[precision].size
    if operation != "N":  # steps of k lie side by side
        return replace(c, copies=True) if k <= c.most_steps and k < _LONG_DOTS else None
    if k <= _SHORT and not c.pads:
        return replace(c, down=True)
    in_parts = not c.pads and step * size % (4 * _PAGE) > 0
    fits, few = m * k * size <= _SECOND_CACHE, n <= 2 * c.columns
    if c.pads or m * k * size <= _FIRST_CACHE or few and (fits or k < 2 * DEPTH or not in_parts):
        return c
    if k <= c.most_steps:
        return replace(c, copies=True)
    if c.many_registers:
        again = m <= _ROWS_OF_32 or n <= _COLUMNS_OF_32
    else:
        again = m <= _ROWS_OF_16 and m * k * size <= _THIRD_CACHE or n <= _COLUMNS_OF_16
    if again and in_parts and not fits:
        return replace(c, adds=k > DEPTH)
    return next((x for x in (c, lower(c, n)) if fits or _reads_again(x, n, k, step)), None)


def _reads_again(c: InPlace, n: int, k: int, step: int) -> bool:
    """Whether reading a panel of A where it lies, once for each block of columns, is quicker than packing it."""
    size = PRECISIONS[c.precision].size
    stays = c.rows * k * size <= _SECOND_CACHE // 2 and step * size % (4 * _PAGE) > 0
    return _is_near(c.precision, k, step) and (n <= _OFTEN * c.columns or n <= _COLUMNS and stays)


def parts(c: InPlace, m: int, n: int, k: int, units: int) -> tuple[int, int]:
    """Rows and columns of C for a work-item: columns whose part of B stays in the second cache (or, where blocks follow
    each other `down` the columns, rows whose part of A does), and an even share of the work, if there is enough of it.
    """
    wanted = min((2 if c.down else 1) * _PER_UNIT * units, tiles_over(m * n * k, _WORTH))
    if c.down:
        down = tiles_over(m, c.most_rows(k))
        across = min(tiles_over(n, c.columns), tiles_over(wanted, down))
        down = max(down, min(tiles_over(m, c.rows), tiles_over(wanted, across)))
    else:
        across = tiles_over(n, c.block(min(k, DEPTH) if c.adds else k))
        down = min(tiles_over(m, c.rows), tiles_over(wanted, across))
        across = max(across, min(tiles_over(n, c.columns), tiles_over(wanted, down)))
    return round_up(tiles_over(m, down), c.rows), round_up(tiles_over(n, across), c.columns)


def run(session: Session, setting: Packed, problem: Problem, buffers, alpha, beta, before, out: Matrix) -> None:
    """Pack the operands with these settings, and multiply."""
    a, b = _views(problem, buffers)
    added = (beta, *view(*before)) if before is not None else ()
    _in_two(session, replace(setting, beta=before is not None), problem, a, b, alpha, added, out.buffer)


def _in_two(session: Session, c: Packed, problem: Problem, a: View, b: View, alpha, added: tuple, out) -> None:
    """Pack both operands, or as many steps of k as fit `_PANELS`, and multiply the panels."""
    m, n, k = problem[:3]
    pack, multiply = _kernels(c, session.device, session.queue.context)
    panels_of = tiles_over(m, c.rows), tiles_over(n, c.columns)
    lengths = panels_of[0] * c.rows, panels_of[1] * c.columns
    part = steps_at_once(c, lengths, k)
    panels = [session.memory(length * part) for length in lengths]
    rows, columns = shares(c, m, n, session.device.units)
    groups = tiles_over(m, rows), tiles_over(n, columns)
    for k0 in range(0, k, part):
        steps = min(part, k - k0)
        size = sum(panels_of), tiles_over(steps, c.depth)
        from_a, from_b = (x._replace(offset=x.offset + k0 * x.across) for x in (a, b))
        session.launch("pack", Bound(pack, size, (1, 1), (m, n, steps, *from_a, *from_b, *panels)))
        args = m, n, steps, rows, columns, alpha, *panels, *added, int(k0 == 0), out
        session.launch("gemm", Bound(multiply, groups, (1, 1), args))


def steps_at_once(c: Packed, lengths: tuple[int, int], k: int) -> int:
    """Steps of k whose panels fit `_PANELS`: whole blocks, at least one, shared evenly among the parts of the sum.

    Args:
        lengths: rows of A and columns of B, in whole panels.
        k: all steps.
    """
    blocks = max(1, _PANELS // (sum(lengths) * c.depth * (4 if c.precision == "s" else 8)))
    parts = tiles_over(k, blocks * c.depth)
    return round_up(tiles_over(k, parts), c.depth) if parts > 1 else k


def shares(c: Packed, m: int, n: int, units: int) -> tuple[int, int]:
    """Rows and columns of C for a work-item: a block of A as in `Packed.block`, and columns for an even share."""
    rows = round_up(tiles_over(m, tiles_over(m, c.block)), c.rows)
    wanted = tiles_over(_PACKED_PER_UNIT * units, tiles_over(m, rows))
    return rows, round_up(tiles_over(n, wanted), c.columns)


@cached(64)
def _kernels(c: Packed, device: Device, context: cl.Context) -> tuple[Built, Built]:
    """What packs, and what multiplies."""
    packing = build(device, context, f"pack of {c.name}", write_packing(c), {}, "pack")
    return packing, build(device, context, c.name, write(c), {}, flags=_FLAGS)
