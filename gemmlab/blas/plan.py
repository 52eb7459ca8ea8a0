"""A plan: the commands that a product enqueues, and how it is built for a choice.

`build` returns a `Plan`, which does not change any more; `run` executes it. A `Slot` stands for
memory that differs from call to call, or for temporary memory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..generate import Schedule, tiles, write
from ..generate.elements import letter_of
from ..ladder import Key, ParameterError, sources
from ..ladder.spec import Params, round_up, tiles_over
from ..opencl import cl
from ..opencl.build import Bound, Built
from ..opencl.build import build as compile_kernel
from ..opencl.devices import Device
from ..opencl.launch import Kernel
from . import packed
from .choose import Choice
from .layout import ARGUMENTS, Layouts, Matrix, Slot, check_indices, is_wide
from .product import FAMILY, MAX_BATCH, PACKED, Operation, Pass, Product, passes

#: PX, PY and PE of pad.cl.
PAD = 32, 8, 4
#: TT and TR of transpose.cl.
TRANSPOSE = 32, 8
#: WG and EACH of axpby.cl.
AXPBY = 128, 4
#: WG and AHEAD of range.cl.
RANGE = 64, 8
#: Columns of work-items of range.cl at most.
RANGE_COLUMNS = 512

#: Rows, columns and steps of a float16 product on tensor cores from which it is worthwhile to copy
#: an operand that only loads of 2 bytes could read.
WORTH_A_COPY = 128
#: Elements of 2 bytes in the widest load.
HALVES = 8
FLOAT_BYTES = 4

#: A buffer, or the slot of one.
Memory = Any
#: Enqueues a command on a queue that runs in order, with the memory of all slots.
Enqueue = Callable[[cl.CommandQueue, Sequence[Any]], cl.Event]


class Command(NamedTuple):
    """What a plan enqueues, by a name such as "gemm" or "pad"."""

    name: str
    enqueue: Enqueue


@dataclass(frozen=True)
class Plan:
    """What a product enqueues on an in-order queue, on other arrays each time."""

    shape: tuple[int, ...]  # of the result, which may have no elements
    commands: tuple[Command, ...]
    temporaries: tuple[int, ...]  # bytes of each temporary memory
    size_bytes: int  # of all temporary memory
    #: 0, or 1 after the commands if a matrix contains numbers that TF32 cannot represent.
    flag: Slot | None
    #: What to plan and run if the flag is 1: an operation, layouts, whether it is in place.
    fallback: tuple[Operation, Layouts, bool] | None = None


class KernelLaunch:
    """Launches a kernel; its kernel object keeps the constant arguments."""

    def __init__(self, bound: Bound):
        self._sizes = bound.global_size, bound.local_size
        self._kernel = cl.Kernel(bound.built.program, bound.built.kernel.function_name)
        self._constants = bound.args  # OpenCL keeps no buffer alive
        self._slots: list[tuple[int, int]] = []
        for index, (value, kind) in enumerate(zip(bound.args, bound.built.types, strict=True)):
            if isinstance(value, Slot):
                self._slots.append((index, value.number))
                continue
            if value is None:  # no buffer; PyOpenCL 2025.1 does not accept None
                value = np.uintp(0)
            self._kernel.set_arg(index, value if kind is None else kind(value))

    def __call__(self, queue: cl.CommandQueue, memory: Sequence[Any]) -> cl.Event:
        for index, slot in self._slots:
            self._kernel.set_arg(index, memory[slot])
        return cl.enqueue_nd_range_kernel(queue, self._kernel, *self._sizes)


#: Compiles a kernel of the catalog, by its key, its parameters and the device; `True` for one that
#: stores the transpose of C.
Compile = Callable[[Key, tuple[tuple[str, int], ...], Device, bool], Kernel]


def build(
    product: Product, choice: Choice | None, queue: cl.CommandQueue, device: Device, kernel: Compile
) -> Plan:
    """Return the plan of a product for this choice; None for a product that multiplies nothing.

    Raise MemoryError if the device cannot hold temporary matrices, ValueError for matrices that the
    kernel cannot index, ParameterError or BuildError for kernels that do not compile.
    """
    plan = PlanBuilder(queue, device, product.dtype, product.result)
    if product.gaps:
        product = product._replace(c=product.c._replace(buffer=plan.memory(prod(product.shape))))
    if choice is not None:
        _multiply(plan, product, choice, kernel)
    elif product.before:
        plan.scale(product.beta, product.before, product.c)
    elif prod(product.shape):
        plan.zeros(product.c.buffer, prod(product.shape) * product.result.itemsize)
    rows = product.c.T
    for i, gap in enumerate(product.gaps):
        plan.scale(1.0, rows.moved(i * gap.rows * gap.cols), gap)
    return plan.finish(product.shape)


def _multiply(plan: PlanBuilder, product: Product, choice: Choice, kernel: Compile) -> None:
    """Append a product, or all of a batch, whose results are adjacent."""
    if product.batch is None or choice.whole_batch:
        _multiply_one(plan, product, choice, kernel)
        return
    c = product.c
    target = plan.new(c)  # kernels write to the beginning of a buffer
    for at_a, at_b, i, _ in product.batch.launches(1):
        a, b = product.a.moved(at_a), product.b.moved(at_b)
        _multiply_one(plan, product._replace(a=a, b=b, c=target, batch=None), choice, kernel)
        plan.copy(target.buffer, c.buffer, i * c.room, c.room)


def _multiply_one(plan: PlanBuilder, product: Product, choice: Choice, kernel: Compile) -> None:
    match choice.kernel:
        case str(name) if name == PACKED:
            multiply_packed(plan, product)
        case str(name) if name == FAMILY:
            parts = tiles.cut(product.sizes, choice.params) if choice.in_parts else []
            for x in parts:
                part = product.part(x.row, x.column, x.rows, x.columns)
                multiply_generated(plan, part, x.tile)
            if not choice.in_parts:
                multiply_generated(plan, product, choice.params)
        case key:
            pairs = tuple(choice.params.items())
            multiply_by_catalog(plan, product, kernel(key, pairs, plan.device, choice.swapped))


class PlanBuilder:
    """The commands of a plan so far. Each pass over matrices (transpose, pad, ...) has a method,
    which appends commands.

    Matrices are in buffers or in slots. Kernels of the catalog support only float32.
    """

    def __init__(
        self,
        queue: cl.CommandQueue,
        device: Device,
        dtype: DTypeLike = np.float32,
        result: DTypeLike | None = None,
    ):
        self.queue: cl.CommandQueue = queue
        self.device: Device = device
        self.dtype: np.dtype = np.dtype(dtype)  # of the operands, and by default of the result
        self.result: np.dtype = self.dtype if result is None else np.dtype(result)
        self._commands: list[Command] = []
        self._temporaries: list[int] = []
        self._flag: Slot | None = None

    def finish(self, shape: tuple[int, ...] = ()) -> Plan:
        """Return the plan for a result of this shape."""
        size_bytes, temporaries = sum(self._temporaries), tuple(self._temporaries)
        return Plan(shape, tuple(self._commands), temporaries, size_bytes, self._flag)

    # Memory

    def memory(self, elements: int, itemsize: int | None = None) -> Memory:
        """Return temporary memory, by default for elements of the result."""
        itemsize = itemsize or self.result.itemsize
        check_memory(self.device, {"a temporary matrix": elements}, True, itemsize)
        self._temporaries.append(elements * itemsize)
        return Slot(len(ARGUMENTS) + len(self._temporaries) - 1)

    def new(self, like: Matrix) -> Matrix:
        """Return the matrix in temporary memory."""
        return like._replace(buffer=self.memory(like.room))

    # Commands

    def launch(self, name: str, bound: Bound) -> None:
        """Append the launch of a kernel."""
        self._commands.append(Command(name, KernelLaunch(bound)))

    def compile(
        self,
        file: str,
        macros: Mapping[str, int | str] | None = None,
        function: str = "",
        flags: tuple[str, ...] = (),
    ) -> Built:
        """Return a kernel of a file in ``kernels``, by default the one with the file's name."""
        name = file.rpartition("/")[2]
        function = function or name.removesuffix(".cl")
        text = sources.read(file)
        context = self.queue.context
        return compile_kernel(self.device, context, name, text, macros or {}, function, flags)

    def zeros(self, buffer: Memory, size_bytes: int) -> None:
        """Fill the beginning of a buffer with zeros."""

        def fill(queue: cl.CommandQueue, memory: Sequence[Any]) -> cl.Event:
            x = _resolve(buffer, memory)
            return cl.enqueue_fill_buffer(queue, x, np.array(0, np.int16), 0, size_bytes)

        self._commands.append(Command("fill", fill))

    def copy(self, source: Memory, to: Memory, offset: int, elements: int) -> None:
        """Copy elements of the result from a buffer to this offset of another one."""
        size_bytes, offset_bytes = (self.result.itemsize * number for number in (elements, offset))

        def enqueue(queue: cl.CommandQueue, memory: Sequence[Any]) -> cl.Event:
            x, y = _resolve(source, memory), _resolve(to, memory)
            return cl.enqueue_copy(queue, y, x, dst_offset=offset_bytes, byte_count=size_bytes)

        self._commands.append(Command("copy", enqueue))

    def transpose(self, x: Matrix, to: Matrix) -> Matrix:
        """Write the transpose of a column-major matrix to memory, from the start of its buffer."""
        tile, columns = TRANSPOSE
        size = round_up(x.rows, tile), tiles_over(to.across, tile) * columns
        arguments = x.rows, x.cols, x.across, x.offset, x.buffer, to.across, to.buffer
        built = self.compile("support/transpose.cl")
        self.launch("transpose", Bound(built, size, TRANSPOSE, arguments))
        return to

    def pad(self, x: Matrix, to: Matrix, name: str = "pad") -> Matrix:
        """Write as much of `x` as fits to the corner of a compact matrix, with zeros around it."""
        rows, cols = min(x.rows, to.rows), min(x.cols, to.cols)
        group, group_columns, per_item = PAD
        size = round_up(to.rows, group), round_up(tiles_over(to.cols, per_item), group_columns)
        arguments = rows, cols, x.across, x.offset, x.buffer, to.rows, to.cols, to.buffer
        macros = {"ELEMENT": "ushort"} if self.dtype.itemsize == 2 else {}
        built = self.compile("support/pad.cl", macros)
        self.launch(name, Bound(built, size, (group, group_columns), arguments))
        return to

    def axpby(
        self, alpha: float | complex, x: Matrix, beta: float | complex, y: Matrix, out: Matrix
    ) -> None:
        """Compute out = alpha x + beta y, all compact; alpha and beta are numbers."""
        (group, per_item), elements = AXPBY, out.room
        size = (tiles_over(elements, group * per_item) * group,)
        arguments = elements, alpha, x.buffer, beta, y.buffer, out.buffer
        self.launch("axpby", Bound(self.compile("support/axpby.cl"), size, (group,), arguments))

    def compact(self, x: Matrix) -> Matrix:
        """Return a column-major matrix without gaps with the elements of `x`, a copy if needed."""
        if x.is_compact:
            return x
        to = self.new(Matrix.compact(x.rows, x.cols))
        return self.pad(x, to) if x.by_columns else self.transpose(x.T, to)

    def scale(self, beta: float | complex, before: Matrix, c: Matrix) -> None:
        """Compute C = beta C0, of the result's type: a product without steps of k."""
        if not c.by_columns:
            c, before = c.T, before.T
        empty = Product.compact(c.rows, c.cols, 0, c.buffer, c.buffer)
        product = empty._replace(c=c, alpha=0.0, beta=beta, before=before)
        letter = letter_of(self.dtype, self.result)
        multiply_generated(self, product, tiles.by_rule(self.device, letter, product.sizes))

    def look_for_unsplittable(self, *matrices: Matrix) -> None:
        """Look for numbers that two TF32 numbers cannot represent (see ``range.cl``)."""
        if self._flag is None:
            self._flag = self.memory(1, itemsize=4)
            self.zeros(self._flag, 4)
        group, ahead = RANGE
        built = self.compile("support/range.cl")
        for x in (one.stored for one in matrices):
            size = round_up(x.rows, group), min(tiles_over(x.cols, ahead), RANGE_COLUMNS)
            arguments = x.rows, x.cols, x.across, x.offset, x.buffer, self._flag
            self.launch("range", Bound(built, size, (group, 1), arguments))

    def counters(self, number: int) -> cl.Buffer:
        """Return the plan's own counters, which are 0 between launches."""
        memory = cl.Buffer(self.queue.context, cl.mem_flags.READ_WRITE, 4 * number)
        cl.enqueue_fill_buffer(self.queue, memory, np.array(0, np.int32), 0, 4 * number)
        return memory


# Kernels of the catalog


def multiply_by_catalog(plan: PlanBuilder, product: Product, kernel: Kernel) -> None:
    """Append C = alpha A B + beta C0 with a kernel of the catalog."""
    spec, out, before = kernel.spec, product.c, product.before
    if spec.edges == "shift":
        kernel.global_size(*product.sizes, names="nmk")  # rejects less than a tile
    if product.batch and product.shared:
        if not spec.wide:
            check_indices({x.name or "the result": x.span for x in product[:3]})
        buffers = product.a.buffer, product.b.buffer, out.buffer
        number = product.batch.number
        plan.launch("gemm", kernel.batch(*product.sizes, number, product.shared, buffers))
        return
    target = out
    if before and before.buffer is out.buffer:
        # C may only be overwritten once it has been read
        target = plan.new(Matrix.compact(out.rows, out.cols))
    if spec.tensor:
        plan.look_for_unsplittable(product.a, product.b)
    multiply_in_passes(plan, product._replace(c=target), kernel)
    if product.alpha != 1 or before:
        y = plan.compact(before) if before else target
        plan.axpby(product.alpha, target, product.beta, y, out)


def multiply_in_passes(
    plan: PlanBuilder, product: Product, kernel: Kernel, scratch: Memory = None
) -> None:
    """Append C = A B with a kernel of the catalog, by the passes that `passes` lists; C is compact.
    If C does not consist of whole tiles, the kernel writes to `scratch`, or to new memory.
    """
    out = product.c
    if kernel.swapped:  # it stores the transpose of what it computes: C again
        product = product.swapped
    planned = passes(kernel.spec, kernel.params, product, plan.device.features)
    now = {"A": product.a, "B": product.b.T if kernel.b_transposed else product.b, "C": out}
    names = {operand: x.name or "the result" for operand, x in now.items()}
    sizes = {names[operand]: x.rows * x.cols for operand, x in now.items()}
    sizes |= {f"{names[p.operand]} after '{p.kind}'": p.out.room for p in planned if p.out}
    check_memory(plan.device, sizes, kernel.spec.wide)
    if kernel.spec.wide:
        check_indices(_within_a_tile(now, planned, kernel))
    for step in planned:
        x, to = now[step.operand], step.out
        match step.kind:
            case "gemm":
                if to:
                    now["C"] = to._replace(buffer=scratch or plan.memory(to.room))
                m, n, k = map(round_up, product.sizes, kernel.multiples)
                buffers = [now[name].buffer for name in "ABC"]
                for name, bound in kernel.bound(m, n, k, buffers, plan.queue):  # with its fix-up
                    plan.launch(name, bound)
            case "unpad":
                plan.pad(x, out, "unpad")
            case "pad" if to:
                now[step.operand] = plan.pad(x, plan.new(to))
            case "transpose" if to:
                now[step.operand] = plan.transpose(x.T, plan.new(to))


def _within_a_tile(
    matrices: dict[str, Matrix], planned: Sequence[Pass], kernel: Kernel
) -> dict[str, int]:
    """Return the elements between the first and the last step of k of a tile, by the operands that
    have one column for each step: production kernels count them with 32 bits.
    """
    copies = {p.operand: p.out for p in planned if p.out}
    _, _, depth = kernel.spec.tiles(kernel.params)
    spans = {}
    for operand in "AB" if kernel.b_transposed else "A":
        x = copies.get(operand, matrices[operand])
        spans[f"a tile of {matrices[operand].name}"] = min(depth, x.cols) * x.across
    return spans


# Generated kernels


def multiply_generated(plan: PlanBuilder, product: Product, tile: Params) -> None:
    """Append a generated kernel with a tile (see `gemmlab.generate.tiles`), which may need aligned
    copies of float16 operands. C is column-major; A and B are not read if K is 0.
    """
    copies = plan.dtype.itemsize == 2 and tile["UNIT"] and product.batch is None
    if copies and min(product.sizes) >= WORTH_A_COPY:
        product = product._replace(a=_aligned(plan, product.a), b=_aligned(plan, product.b))
    a, b = product.layouts
    schedule = tiles.configure(
        letter_of(plan.dtype, plan.result),
        tile,
        product.sizes,
        a,
        b,
        beta=product.before is not None,
        batch=product.batch is not None,
        submatrix=not product.c.is_compact,
        wide=any(is_wide(x.span) for x in (product.c, product.before) if x),
    )
    launch_schedule(plan, product, schedule)


#: The text of a schedule.
_text = lru_cache(maxsize=256)(write)


def launch_schedule(plan: PlanBuilder, product: Product, s: Schedule) -> None:
    """Append the kernel of a schedule; for a batch as often as its matrices require."""
    check_indices({x.name: x.span for x in (product.a, product.b)})
    problems = s.problems(plan.device.limits)
    if problems:
        raise ParameterError(f"{s.name}: " + "; ".join(problems))
    built = compile_kernel(plan.device, plan.queue.context, s.name, _text(s), {})
    built.check_fits(s.name, s.work_items)
    sizes, c, batch = product.sizes, product.c, product.batch
    axes = zip(sizes, s.tile, s.local_size, strict=False)
    items = [tiles_over(size, side) * count for size, side, count in axes]
    last: tuple[Any, ...] = c.buffer, *((c.offset, c.across) if s.submatrix else ())
    if s.split_k > 1:  # memory for parts of tiles
        count = prod(map(tiles_over, sizes, s.tile))
        parts = plan.memory(count * s.split_k * prod(s.tile), s.element.sum_size)
        last = parts, plan.counters(count), *last
    added: tuple[Any, ...] = ()
    if product.before:
        x = product.before.indexed
        added = *_factor(s, product.beta), x.buffer, x.offset, x.down, x.across
    launches = batch.launches(MAX_BATCH) if batch else [(0, 0, 0, s.split_k)]
    for at_a, at_b, first, number in launches:
        a, b = product.a.moved(at_a).stored.indexed, product.b.moved(at_b).stored.indexed
        operands = a.buffer, a.offset, a.across, b.buffer, b.offset, b.across
        pairs = (first, *batch.steps) if batch else ()
        arguments = *sizes, *_factor(s, product.alpha), *operands, *added, *pairs, *last
        plan.launch("gemm", Bound(built, (*items, number), (*s.local_size, 1), arguments))


def _factor(s: Schedule, number: float | complex) -> tuple[float, ...]:
    return (number.real, number.imag) if s.element.components == 2 else (number.real,)


def _aligned(plan: PlanBuilder, x: Matrix) -> Matrix:
    """Return a matrix for tensor cores, which copy by 4 bytes or more: of 2 bytes per element, with
    aligned columns; a copy where necessary.
    """
    stored = x.stored
    if not any(number % HALVES for number in (stored.rows, stored.across, stored.offset)):
        return x
    rows = round_up(stored.rows, HALVES)
    to = Matrix.compact(rows, stored.cols, plan.memory(rows * stored.cols, 2), x.name)
    plan.pad(stored, to)
    copy = to._replace(rows=stored.rows, conjugated=x.conjugated, padded=True)
    return copy if x.by_columns else copy.T


# Packed operands, on CPUs


def multiply_packed(plan: PlanBuilder, product: Product) -> None:
    """Append a product of real numbers, no size 0; A, B and C0 of any layout, C column-major and
    compact. float16 is converted to float32, and the result back.
    """
    m, n, k = product.sizes
    check_indices({x.name: x.span for x in (product.a, product.b)})
    a, b, out = product.a.indexed, product.b.indexed, product.c.buffer
    before = product.before and product.before.indexed
    if plan.dtype == np.float16:
        a, b = _to_floats(plan, a), _to_floats(plan, b)
    if plan.result == np.float16:
        out = plan.memory(m * n, FLOAT_BYTES)
        before = before and _to_floats(plan, before)
    blocks = packed.Blocks.of(plan.device, plan.dtype)
    macros = blocks.macros(before is not None)
    pack = plan.compile(packed.FILE, macros, "pack", packed.FLAGS)
    multiply = plan.compile(packed.FILE, macros, "gemm", packed.FLAGS)
    height = round_up(m, blocks.rows)
    part = blocks.steps_per_part(height, k)
    panels = plan.memory(height * part, blocks.dtype.itemsize)
    rows, columns = blocks.shares(m, n, plan.device.units)
    groups = tiles_over(m, rows), tiles_over(n, columns)
    for k0 in range(0, k, part):
        steps = min(part, k - k0)
        size = height // blocks.rows, tiles_over(steps, blocks.depth)
        from_a = a.buffer, a.offset + k0 * a.across, a.down, a.across
        from_b = b.buffer, b.offset + k0 * b.down, b.across, b.down
        added: tuple[Any, ...] = ()
        if before:
            added = product.beta, before.buffer, before.offset, before.down, before.across
        plan.launch("pack", Bound(pack, size, (1, 1), (m, steps, *from_a, panels)))
        sizes = m, n, steps, rows, columns
        arguments = *sizes, product.alpha, panels, *from_b, *added, int(k0 == 0), out
        plan.launch("gemm", Bound(multiply, groups, (1, 1), arguments))
    if plan.result == np.float16:
        to_half = plan.compile(packed.HALF_FILE, {}, "to_half", packed.FLAGS)
        groups = tiles_over(m * n, packed.CHUNK), 1
        plan.launch("to_half", Bound(to_half, groups, (1, 1), (m * n, out, product.c.buffer)))


def _to_floats(plan: PlanBuilder, x: Matrix) -> Matrix:
    """Append the conversion of a float16 matrix; return its elements as float32, without gaps."""
    stored = x if x.down == 1 else x.T
    to = Matrix.compact(stored.rows, stored.cols)
    to = to._replace(buffer=plan.memory(to.room, FLOAT_BYTES))
    arguments = stored.rows, x.buffer, x.offset, 1, stored.across, to.buffer
    from_half = plan.compile(packed.HALF_FILE, {}, "from_half", packed.FLAGS)
    groups = stored.cols, tiles_over(stored.rows, packed.CHUNK)
    plan.launch("from_half", Bound(from_half, groups, (1, 1), arguments))
    return to if x.down == 1 else to.T


def _resolve(buffer: Memory, memory: Sequence[Any]) -> Any:
    return memory[buffer.number] if isinstance(buffer, Slot) else buffer


def check_memory(
    device: Device, sizes: dict[str, int], wide: bool = False, itemsize: int = 4
) -> None:
    """Reject matrices of so many elements, by name, that the device's memory cannot hold, or,
    unless `wide`, 32-bit indices.
    """
    if not wide:
        check_indices(sizes)
    for name, elements in sizes.items():
        if itemsize * elements > device.largest:
            raise MemoryError(
                f"{name} needs {itemsize * elements:,} bytes; {device} allows {device.largest:,}"
            )
    total = itemsize * sum(sizes.values())
    if total > device.memory:
        raise MemoryError(f"the matrices need {total:,} bytes; {device} has {device.memory:,}")
