"""A plan: everything that a product enqueues, computed once from the shapes and layouts of its
arrays.

`Builder` has a method per pass over matrices (transpose, pad, multiply, unpad, ...), which appends
steps to a plan; `Plan` enqueues them, for other arrays each time. A `Slot` of the plan stands for
memory that differs from call to call, and for temporary memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
from pyopencl.tools import ImmediateAllocator, MemoryPool

from ..caches import cached
from ..catalog import sources
from ..catalog.spec import Params, round_up, tiles_over
from ..generate import split, tiles
from ..generate.precision import letter_of
from ..generate.tiles import OperandLayout
from ..generate.written import Gemm, View, written
from ..opencl.build import Bound, build
from ..opencl.devices import Device
from ..opencl.launch import INDEX_LIMIT, Kernel, whole
from .arrays import complete, rows_of
from .problem import Batch, Layout, Operand, Pass, Problem, plan

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

#: Bytes that a pool of device memory may keep for the next call, in addition to twice what the last
#: call needed.
HELD = 64 * 2**20


class Slot(NamedTuple):
    """Memory that is given when the plan is executed: an argument of the call, or temporary
    memory.
    """

    number: int


#: The slots of a call's arguments; those of temporary memory follow.
A, B, C0, OUT = ARGUMENTS = tuple(map(Slot, range(4)))

#: A buffer, or the slot of one.
Memory = Any


class Matrix(NamedTuple):
    """A column-major matrix on a device."""

    buffer: Memory
    layout: Layout


class Product(NamedTuple):
    """C = alpha A B + beta C0, column-major, in terms of a plan.

    Attributes:
        problem: sizes and layouts.
        a, b: the memory of the operands.
        alpha, beta: numbers.
        before: the memory and the layout of C0, or None if beta is 0. C0 may be C itself.
        out: C; generated kernels write to any layout, others to a compact one.
    """

    problem: Problem
    a: Memory
    b: Memory
    alpha: float | complex
    beta: float | complex
    before: tuple[Memory, Operand] | None
    out: Matrix


class Launch:
    """A step that launches a kernel; its kernel object keeps the constant arguments."""

    def __init__(self, name: str, bound: Bound):
        self.name = name
        self.global_size, self.local_size = bound.global_size, bound.local_size
        self._kernel = cl.Kernel(bound.built.program, bound.built.kernel.function_name)
        self._constants = bound.args  # OpenCL keeps no buffer alive
        self._slots = []
        for index, (value, kind) in enumerate(zip(bound.args, bound.built.types, strict=True)):
            if isinstance(value, Slot):
                self._slots.append((index, value.number))
                continue
            if value is None:  # no buffer; PyOpenCL 2025.1 does not accept None
                value = np.uintp(0)
            self._kernel.set_arg(index, value if kind is None else kind(value))

    def enqueue(self, queue: cl.CommandQueue, memory: Sequence[Any]) -> cl.Event:
        for index, slot in self._slots:
            self._kernel.set_arg(index, memory[slot])
        return cl.enqueue_nd_range_kernel(queue, self._kernel, self.global_size, self.local_size)


class Fill(NamedTuple):
    """A step that zeroes the beginning of a buffer."""

    name: str
    buffer: Memory
    size_bytes: int

    def enqueue(self, queue: cl.CommandQueue, memory: Sequence[Any]) -> cl.Event:
        buffer = _resolved(self.buffer, memory)
        return cl.enqueue_fill_buffer(queue, buffer, np.int16(0), 0, self.size_bytes)


class Copy(NamedTuple):
    """A step that copies the beginning of a buffer into another one."""

    name: str
    source: Memory
    to: Memory
    offset_bytes: int
    size_bytes: int

    def enqueue(self, queue: cl.CommandQueue, memory: Sequence[Any]) -> cl.Event:
        source, to = _resolved(self.source, memory), _resolved(self.to, memory)
        return cl.enqueue_copy(
            queue, to, source, dst_offset=self.offset_bytes, byte_count=self.size_bytes
        )


def _resolved(buffer: Memory, memory: Sequence[Any]) -> Any:
    return memory[buffer.number] if isinstance(buffer, Slot) else buffer


Step = Launch | Fill | Copy
#: Events by the name of what they are of.
Events = list[tuple[str, cl.Event]]


class Plan:
    """Steps that are enqueued one after another, on a queue that runs in order.

    Attributes:
        shape: that of the result.
        steps: what is enqueued; nothing for a result without elements.
        size_bytes: of all temporary memory.
    """

    def __init__(
        self,
        shape: tuple[int, ...],
        steps: Sequence[Step] = (),
        temporaries: Sequence[int] = (),
        lock: threading.Lock | None = None,
        check: Check | None = None,
    ):
        self.shape, self.steps = shape, tuple(steps)
        self._temporaries, self._check = tuple(temporaries), check
        self._lock = lock or threading.Lock()  # a kernel's arguments belong to one launch at a time
        self.size_bytes = sum(temporaries)

    def __call__(
        self, queue: cl.CommandQueue, arguments: Sequence[Any] = (), allocate: Any = None
    ) -> Events:
        """Enqueue the steps; return their events.

        Args:
            queue: where.
            arguments: the memory of `A`, `B`, `C0` and `OUT`, as far as the steps use it.
            allocate: a function of a number of bytes that gives temporary memory; by default the
                queue's pool.
        """
        pool = pool_of(queue)
        left_out = [None] * (len(ARGUMENTS) - len(arguments))
        memory = [*arguments, *left_out, *map(allocate or pool.allocate, self._temporaries)]
        with self._lock:
            events = [(step.name, step.enqueue(queue, memory)) for step in self.steps]
        if not allocate:
            trim(pool, self.size_bytes)
        if self._check and self._check.fails(queue, memory, dict(events)):
            events += self._check.otherwise()(queue, arguments, allocate)
        return events

    def in_host_memory(self, queue: cl.CommandQueue, arrays: Sequence[np.ndarray | None]) -> None:
        """Execute the steps on the memory of NumPy arrays, and wait.

        By return or by any exception, the device has finished with that memory: a kernel continues
        to write after an exception, OpenCL does not keep the arrays alive, and Ctrl-C raises
        KeyboardInterrupt after any call.

        Args:
            arrays: those of `A`, `B`, `C0` and `OUT`, each as `arrays.lendable` returns it, or
                None.
        """
        if not self.steps:
            return
        try:
            buffers: list[Any] = []
            for x in arrays:
                if x is None or not x.size:
                    buffers.append(None)
                    continue
                # Intel's runtime copies read-only buffers, unless they are aligned to 128 bytes
                access = cl.mem_flags.READ_WRITE if x.flags.writeable else cl.mem_flags.READ_ONLY
                rows = x if x.flags.c_contiguous else rows_of(x)
                flags = access | cl.mem_flags.USE_HOST_PTR
                buffers.append(cl.Buffer(queue.context, flags, hostbuf=rows))
            self(queue, buffers)
            # only a mapped buffer is certain to hold what kernels wrote
            out = arrays[OUT.number]
            assert out is not None
            mapped, _ = cl.enqueue_map_buffer(
                queue,
                buffers[OUT.number],
                cl.map_flags.READ,
                0,
                out.shape,
                out.dtype,
                is_blocking=False,  # one wait, at the end: on PoCL each takes 20 microseconds
            )
            try:
                mapped.base.release(queue)
            except cl.LogicError:  # Mesa 22 unmaps a buffer only when it is mapped
                queue.finish()
                mapped.base.release(queue)
            queue.finish()
        except BaseException:
            complete(queue.finish)
            raise


class Check(NamedTuple):
    """What a plan reads from the device while that multiplies.

    Attributes:
        flag: where the device writes a number, 0 if nothing is wrong.
        step: the name of the step that writes it.
        otherwise: returns the plan that is executed after this one if the number is not 0.
    """

    flag: Slot
    step: str
    otherwise: Callable[[], Plan]

    def fails(
        self, queue: cl.CommandQueue, memory: Sequence[Any], events: dict[str, cl.Event]
    ) -> bool:
        """Read the number on another queue, so that this one continues with the next steps."""
        answer = np.empty(1, np.int32)
        queue.flush()  # the other queue waits for it
        cl.enqueue_copy(
            _second_queue(queue), answer, memory[self.flag.number], wait_for=[events[self.step]]
        )
        return bool(answer[0])


class Builder:
    """Appends the passes of a product to a plan.

    Args:
        queue: where the plan will be executed; kernels that share tiles keep memory for that queue.
        device: the queue's device.
        dtype: of the operands. The supporting kernels and the ladder's take float32 alone,
            generated kernels all types.
        result: of the result, by default that of the operands.
    """

    def __init__(self, queue: cl.CommandQueue, device: Device, dtype=np.float32, result=None):
        self.queue, self.device, self.dtype = queue, device, np.dtype(dtype)
        self.result = self.dtype if result is None else np.dtype(result)
        self.steps: list[Step] = []
        self._flag: Slot | None = None
        self._temporaries: list[int] = []
        self._lock: threading.Lock | None = None

    def plan(
        self, shape: tuple[int, ...] = (), otherwise: Callable[[], Plan] | None = None
    ) -> Plan:
        """The plan of all that was appended.

        Args:
            shape: that of the result, if the caller needs it.
            otherwise: the plan to execute as well if `look_for_unsplittable` finds something.
        """
        check = Check(self._flag, "range", otherwise) if self._flag and otherwise else None
        return Plan(shape, self.steps, self._temporaries, self._lock, check)

    def launch(self, name: str, bound: Bound) -> None:
        self.steps.append(Launch(name, bound))

    def _support(self, file: str, name: str, global_size, local_size, *args) -> None:
        """Launch a kernel of ``kernels/support``."""
        macros = {"ELEMENT": "ushort"} if file == "pad.cl" and self.dtype.itemsize == 2 else {}
        text, function = sources.read(f"support/{file}"), file.removesuffix(".cl")
        built = build(self.device, self.queue.context, file, text, macros, function)
        self.launch(name, Bound(built, global_size, local_size, args))

    def memory(self, elements: int, itemsize: int | None = None) -> Slot:
        """Temporary memory, by default for elements of the result."""
        self._temporaries.append(elements * (itemsize or self.result.itemsize))
        return Slot(len(ARGUMENTS) + len(self._temporaries) - 1)

    def new(self, layout: Layout) -> Matrix:
        return Matrix(self.memory(layout.room), layout)

    def zeros(self, buffer: Memory, elements: int) -> None:
        """Fill a buffer with zeros of the result's type."""
        self.steps.append(Fill("fill", buffer, self.result.itemsize * elements))

    def copy(self, source: Memory, to: Memory, offset: int, elements: int) -> None:
        """Copy elements of the result to this offset of another buffer."""
        each = self.result.itemsize
        self.steps.append(Copy("copy", source, to, each * offset, each * elements))

    def scale(self, beta: float | complex, before: tuple[Memory, Operand], out: Matrix) -> None:
        """C = beta C0, of the result's type: a product without steps of k."""
        problem = Problem.compact(out.layout.rows, out.layout.cols, 0)
        tile = tiles.by_rule(self.device, letter_of(self.dtype, self.result), problem[:3])
        self.gemm(Product(problem, out.buffer, out.buffer, 0.0, beta, before, out), tile)

    def transpose(self, x: Matrix, out: Layout | Matrix) -> Matrix:
        made, y = out if isinstance(out, Matrix) else self.new(out), x.layout
        ld, (tile, columns) = made.layout.ld, TRANSPOSE
        size = round_up(y.rows, tile), tiles_over(ld, tile) * columns
        arguments = y.rows, y.cols, y.ld, y.offset, x.buffer, ld, made.buffer
        self._support("transpose.cl", "transpose", size, TRANSPOSE, *arguments)
        return made

    def pad(self, x: Matrix, out: Layout | Matrix) -> Matrix:
        """`x` as the corner of a compact matrix of that layout, zeros elsewhere."""
        made = out if isinstance(out, Matrix) else self.new(out)
        return self._into_corner("pad", x, made, x.layout.rows, x.layout.cols)

    def unpad(self, x: Matrix, out: Matrix) -> Matrix:
        """The corner of a larger matrix."""
        return self._into_corner("unpad", x, out, out.layout.rows, out.layout.cols)

    def _into_corner(self, name: str, x: Matrix, out: Matrix, rows: int, cols: int) -> Matrix:
        """Copy rows x cols elements of `x` into `out`, with zeros around them."""
        y, z, (group, group_columns, each) = x.layout, out.layout, PAD
        size = round_up(z.rows, group), round_up(tiles_over(z.cols, each), group_columns)
        arguments = rows, cols, y.ld, y.offset, x.buffer, z.rows, z.cols, out.buffer
        self._support("pad.cl", name, size, (group, group_columns), *arguments)
        return out

    def axpby(
        self, alpha: float | complex, x: Matrix, beta: float | complex, y: Matrix, out: Matrix
    ) -> Matrix:
        """out = alpha x + beta y, all compact."""
        (group, each), elements = AXPBY, out.layout.room
        if elements >= INDEX_LIMIT:
            raise ValueError(
                f"the result has {elements:,} elements; with alpha or beta this kernel indexes "
                f"with 32 bits, below {INDEX_LIMIT:,}"
            )
        size = (tiles_over(elements, group * each) * group,)
        self._support(
            "axpby.cl",
            "axpby",
            size,
            (group,),
            elements,
            alpha,
            x.buffer,
            beta,
            y.buffer,
            out.buffer,
        )
        return out

    def compact(self, x: Matrix) -> Matrix:
        return (
            x if x.layout.is_compact else self.pad(x, Layout.compact(x.layout.rows, x.layout.cols))
        )

    def look_for_unsplittable(self, *matrices: Matrix) -> None:
        """Look for numbers that two TF32 numbers cannot represent (``range.cl``); see `plan`."""
        if self._flag is None:
            self._flag = self.memory(1, itemsize=4)
            self.steps.append(Fill("fill", self._flag, 4))
        group, ahead = RANGE
        for buffer, x in matrices:
            size = round_up(x.rows, group), min(tiles_over(x.cols, ahead), RANGE_COLUMNS)
            self._support(
                "range.cl",
                "range",
                size,
                (group, 1),
                x.rows,
                x.cols,
                x.ld,
                x.offset,
                buffer,
                self._flag,
            )

    def multiply(
        self, kernel: Kernel, problem: Problem, a: Memory, b: Memory, out: Matrix, scratch=None
    ) -> Matrix:
        """C = A B with a kernel of the ladder, by the passes that `problem.plan` lists.

        Args:
            a, b: the memory of the operands, which `problem` describes.
            out: M x N, compact; overwritten.
            scratch: where the kernel writes whole tiles if C does not consist of them; new memory
                by default.
        """
        if kernel.turned:
            problem, a, b = problem.turned, b, a
        passes = plan(kernel.spec, kernel.params, problem, self.device.features)
        sizes = whole(problem.m, problem.n, problem.k, kernel.multiples)
        now = {"A": placed(a, problem.a), "B": placed(b, problem.b, kernel.b_transposed), "C": out}
        for step in passes:
            if step.kind == "transpose":
                now[step.operand] = self.transpose(now[step.operand], _made(step))
            elif step.kind == "pad":
                now[step.operand] = self.pad(now[step.operand], _made(step))
            elif step.kind == "gemm":
                if step.out:
                    now["C"] = Matrix(scratch or self.memory(step.out.room), step.out)
                if kernel.workspace:
                    # no other plan may overwrite partial tiles before their fix-up
                    self._lock = kernel.sharing
                # with its fix-up
                for name, bound in kernel.bound(*sizes, [now[x].buffer for x in "ABC"], self.queue):
                    self.launch(name, bound)
            elif step.kind == "unpad":
                self.unpad(now["C"], out)
        return out

    def gemm(self, product: Product, tile: Params, batch: Batch | None = None) -> None:
        """Launch a generated kernel, which computes the product in one step.

        Args:
            product: of the builder's type; A and B are not read where K is 0.
            tile: all parameters of the tile (see `gemmlab.generate.tiles`).
            batch: several products instead of one; their results are adjacent in `out`.
        """
        problem, before = product.problem, view(*product.before) if product.before else None
        (a, in_a), (b, in_b) = (
            self._readable(x, buffer, tile, batch is None and min(problem[:3]) >= WORTH_A_COPY)
            for x, buffer in ((problem.a, product.a), (problem.b, product.b))
        )
        layout = product.out.layout
        submatrix = not layout.is_compact
        schedule = tiles.configure(
            letter_of(self.dtype, self.result),
            tile,
            problem[:3],
            *(batch.aligned(a, b) if batch else (a, b)),
            beta=before is not None,
            batch=batch is not None,
            submatrix=submatrix,
        )
        kernel = written(schedule, self.device, self.queue.context)
        workspace = self._workspace(*kernel.workspace(problem[:3]))
        out = (
            View(product.out.buffer, layout.offset, 1, layout.ld)
            if submatrix
            else product.out.buffer
        )
        starts: Any = batch.launches() if batch else [((0, 0), None)]
        for (at_a, at_b), pairs in starts:
            left = View(in_a, a.offset + at_a, 1, a.ld)
            right = View(in_b, b.offset + at_b, 1, b.ld)
            factors = product.alpha, left, right, product.beta
            gemm = Gemm(problem[:3], *factors, before, out, pairs)
            self.launch("gemm", kernel.bound(gemm, workspace))

    def _workspace(self, pieces_bytes: int, counters_bytes: int) -> tuple[Memory, ...]:
        """Temporary memory for partial tiles, and the plan's own counters, which are 0 now."""
        if not pieces_bytes:
            return ()
        flags = cl.mem_flags.READ_WRITE
        counters = cl.Buffer(self.queue.context, flags, counters_bytes)
        cl.enqueue_fill_buffer(self.queue, counters, np.int32(0), 0, counters_bytes)
        return self.memory(pieces_bytes, 1), counters

    def _readable(
        self, x: Operand, buffer: Memory, tile: Params, worthwhile: bool
    ) -> tuple[OperandLayout, Memory]:
        """An operand and its memory; for elements of 2 bytes on tensor cores, which copy by 4 bytes
        or more, a copy with aligned columns if that is worthwhile.
        """
        layout, matrix = x.layout, placed(buffer, x)
        rows, cols, ld, offset, _ = matrix.layout
        is_aligned = not any(number % HALVES for number in (rows, ld, offset))
        if self.dtype.itemsize != 2 or not tile["UNIT"] or is_aligned or not worthwhile:
            return layout, buffer
        padded = Layout.compact(round_up(rows, HALVES), cols)
        copy = Matrix(self.memory(padded.room, self.dtype.itemsize), padded)
        return OperandLayout(layout.operation, 0, padded.ld, True), self.pad(matrix, copy).buffer

    def gemm_part(self, product: Product, part: split.Launch) -> None:
        """Launch a generated kernel that computes a rectangle of C."""
        (m, _, k, a, b), before, out = product.problem, product.before, product.out
        a, b = _from(a, part.row, 0), _from(b, 0, part.column)
        if before:
            before = before[0], _from(before[1], part.row, part.column)
        first = part.row + part.column * m
        rectangle = Matrix(out.buffer, Layout(part.rows, part.columns, m, first, out.layout.room))
        problem = Problem(part.rows, part.columns, k, a, b)
        self.gemm(product._replace(problem=problem, before=before, out=rectangle), part.tile)


def view(buffer: Memory, operand: Operand) -> View:
    """A matrix with its strides, whether it is row-major or column-major."""
    x = operand.layout
    down, across = (1, x.ld) if x.operation in "NR" else (x.ld, 1)
    return View(buffer, x.offset, down, across)


def _from(x: Operand, row: int, column: int) -> Operand:
    """The part of an operand from this element on."""
    _, _, down, across = view(None, x)
    return x.moved(row * down + column * across)


def placed(buffer: Memory, operand: Operand, transposed: bool = False) -> Matrix:
    """An operand in its buffer, or its transpose if only that is column-major."""
    layout = (
        (operand.transposed or operand.plain)
        if transposed
        else (operand.plain or operand.transposed)
    )
    assert layout is not None, "a matrix is row-major or column-major"
    return Matrix(buffer, layout)


def _made(step: Pass) -> Layout:
    assert step.out is not None
    return step.out


def check_memory(
    device: Device, sizes: dict[str, int], wide: bool = False, itemsize: int = 4
) -> None:
    """Reject matrices that the device's memory cannot hold, or, unless `wide`, 32-bit indices.

    Args:
        sizes: elements by the matrix's name.
        itemsize: bytes per element.
    """
    for name, elements in sizes.items():
        if elements >= INDEX_LIMIT and not wide:
            raise ValueError(
                f"{name} has {elements:,} elements; kernels of the ladder index with 32 bits, "
                f"below {INDEX_LIMIT:,}"
            )
    for name, elements in sizes.items():
        if itemsize * elements > device.largest:
            raise MemoryError(
                f"{name} needs {itemsize * elements:,} bytes; {device} allows {device.largest:,}"
            )
    total = itemsize * sum(sizes.values())
    if total > device.memory:
        raise MemoryError(f"the matrices need {total:,} bytes; {device} has {device.memory:,}")


def wait_for_others(queue: cl.CommandQueue, *arrays: cla.Array) -> None:
    """Make the queue wait for what other queues still do to these arrays.

    Events that have happened are removed from the arrays' lists, so that later calls need not query
    the driver again.
    """
    awaited = []
    for x in arrays:
        for event in tuple(x.events):
            if event.command_execution_status == cl.command_execution_status.COMPLETE:
                with suppress(ValueError):  # another thread was first
                    x.events.remove(event)
            elif event.command_queue != queue:
                awaited.append(event)
    if awaited:
        cl.enqueue_barrier(queue, awaited)


@cached(8)
def _second_queue(queue: cl.CommandQueue) -> cl.CommandQueue:
    return cl.CommandQueue(queue.context, queue.device)


@cached(8)
def pool_of(queue: cl.CommandQueue) -> MemoryPool:
    """Memory that one call returns and the next one reuses: the queue's order separates them."""
    return MemoryPool(ImmediateAllocator(queue))


def trim(pool: MemoryPool, size_bytes: int) -> None:
    """Return memory to the device, if a pool holds more than `HELD` and twice the bytes of the last
    call.
    """
    most = HELD + 2 * size_bytes
    if pool.managed_bytes > most and pool.managed_bytes - pool.active_bytes > most:
        pool.free_held()
