"""A plan: everything that a product enqueues. A `Slot` stands for memory that differs from call to
call, or for temporary memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from ..caches import cached
from ..generate import Schedule, tiles, write
from ..generate.precision import letter_of
from ..ladder import ParameterError, sources
from ..ladder.spec import Params, round_up, tiles_over
from ..opencl import cl, cla
from ..opencl.build import Bound, Built, build
from ..opencl.devices import Device
from ..opencl.launch import Kernel
from .problem import MAX_BATCH, Matrix, Pass, Problem, check_indices, is_wide, passes

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
    """Memory that is given when the plan is executed: an argument, or temporary memory."""

    number: int


#: The slots of a call's arguments; those of temporary memory follow.
A, B, C0, OUT = ARGUMENTS = tuple(map(Slot, range(4)))
#: What a plan without arguments gets for them.
NOTHING = (None,) * len(ARGUMENTS)

#: A buffer, or the slot of one.
Memory = Any
#: Enqueues a command on a queue that runs in order, with the memory of all slots.
Step = Callable[[cl.CommandQueue, Sequence[Any]], cl.Event]
#: Events by the name of what they are of.
Events = list[tuple[str, cl.Event]]


class Launch:
    """A step that launches a kernel; its kernel object keeps the constant arguments."""

    def __init__(self, bound: Bound):
        self._sizes = bound.global_size, bound.local_size
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

    def __call__(self, queue: cl.CommandQueue, memory: Sequence[Any]) -> cl.Event:
        for index, slot in self._slots:
            self._kernel.set_arg(index, memory[slot])
        return cl.enqueue_nd_range_kernel(queue, self._kernel, *self._sizes)


class Plan:
    """What a product enqueues on an in-order queue, made once from the shapes and layouts of its
    arrays.

    Each pass over matrices (transpose, pad, multiply ...) has a method, which appends
    steps; calling the plan enqueues all steps, on other arrays each time. Matrices are in buffers
    or in slots. Work-groups that share tiles use memory that is kept for the queue.

    Kernels of the catalog support only float32.
    """

    def __init__(
        self,
        queue: cl.CommandQueue,
        device: Device,
        dtype: DTypeLike = np.float32,
        result: DTypeLike | None = None,
    ):
        self.queue, self.device = queue, device
        self.dtype = np.dtype(dtype)  # of the operands, and by default of the result
        self.result = self.dtype if result is None else np.dtype(result)
        self.shape: tuple[int, ...] = ()  # of the result, which may have no elements
        self.steps: list[tuple[str, Step]] = []
        self.size_bytes = 0  # of temporary memory
        #: Returns the plan to execute after this one if `look_for_unsplittable` finds something.
        self.fallback: Callable[[], Plan] | None = None
        self._temporaries: list[int] = []
        self._flag: Slot | None = None  # of `look_for_unsplittable`, 0 for nothing
        self._lock = threading.Lock()  # a kernel's arguments belong to one launch at a time

    def __call__(self, arguments: Sequence[Any] = NOTHING) -> Events:
        """Enqueue the steps, with the memory of `A`, `B`, `C0` and `OUT`; return their events."""
        queue, pool = self.queue, pool_of(self.queue)
        memory = [*arguments, *map(pool.allocate, self._temporaries)]
        with self._lock:
            events = [(name, step(queue, memory)) for name, step in self.steps]
        most = HELD + 2 * self.size_bytes
        if pool.managed_bytes > most and pool.managed_bytes - pool.active_bytes > most:
            pool.free_held()
        if self._flag and self.fallback:
            flag = np.empty(1, np.int32)
            queue.flush()  # the other queue, which reads, waits for it; this one continues
            written = [dict(events)["range"]]
            cl.enqueue_copy(_second_queue(queue), flag, memory[self._flag.number], wait_for=written)
            if flag[0]:
                events += self.fallback()(arguments)
        return events

    def in_host_memory(self, arrays: Sequence[np.ndarray | None]) -> None:
        """Execute the steps on the memory of NumPy arrays, and wait.

        By return or by any exception, the device has finished with that memory: a kernel continues
        to write after an exception, OpenCL does not keep the arrays alive, and Ctrl-C raises
        KeyboardInterrupt after any call.

        `arrays` are those of `A`, `B`, `C0` and `OUT`, as `request.readable` returns them, or None.
        """
        out, queue, context = arrays[OUT.number], self.queue, self.queue.context
        if not self.steps or out is None:
            return
        try:
            buffers: list[Any] = []
            for x in arrays:
                if x is None or not x.size:
                    buffers.append(None)
                    continue
                # Intel's runtime copies read-only buffers, unless they are aligned to 128 bytes
                access = cl.mem_flags.READ_WRITE if x.flags.writeable else cl.mem_flags.READ_ONLY
                flags = access | cl.mem_flags.USE_HOST_PTR
                buffers.append(cl.Buffer(context, flags, hostbuf=x))
            self(buffers)
            # only a mapped buffer is certain to hold what kernels wrote
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

    def memory(self, elements: int, itemsize: int | None = None) -> Memory:
        """Temporary memory, by default for elements of the result."""
        itemsize = itemsize or self.result.itemsize
        check_memory(self.device, {"a temporary matrix": elements}, True, itemsize)
        self._temporaries.append(elements * itemsize)
        self.size_bytes += self._temporaries[-1]
        return Slot(len(ARGUMENTS) + len(self._temporaries) - 1)

    def new(self, like: Matrix) -> Matrix:
        """The matrix in temporary memory."""
        return like._replace(buffer=self.memory(like.room))

    def launch(self, name: str, bound: Bound) -> None:
        self.steps.append((name, Launch(bound)))

    def _support(
        self,
        file: str,
        name: str,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...],
        *args: Any,
    ) -> None:
        """Launch a kernel of ``kernels/support``."""
        macros = {"ELEMENT": "ushort"} if file == "pad.cl" and self.dtype.itemsize == 2 else {}
        text, function = sources.read(f"support/{file}"), file.removesuffix(".cl")
        built = build(self.device, self.queue.context, file, text, macros, function)
        self.launch(name, Bound(built, global_size, local_size, args))

    def zeros(self, buffer: Memory, size_bytes: int) -> None:
        """Fill the beginning of a buffer with zeros."""

        def fill(queue: cl.CommandQueue, memory: Sequence[Any]) -> cl.Event:
            x = _resolved(buffer, memory)
            return cl.enqueue_fill_buffer(queue, x, np.array(0, np.int16), 0, size_bytes)

        self.steps.append(("fill", fill))

    def copy(self, source: Memory, to: Memory, offset: int, elements: int) -> None:
        """Copy elements of the result from a buffer to this offset of another one."""
        size_bytes, offset_bytes = (self.result.itemsize * number for number in (elements, offset))

        def copied(queue: cl.CommandQueue, memory: Sequence[Any]) -> cl.Event:
            x, y = _resolved(source, memory), _resolved(to, memory)
            return cl.enqueue_copy(queue, y, x, dst_offset=offset_bytes, byte_count=size_bytes)

        self.steps.append(("copy", copied))

    def scale(self, beta: float | complex, before: Matrix, c: Matrix) -> None:
        """C = beta C0, of the result's type: a product without steps of k."""
        if not c.by_columns:
            c, before = c.T, before.T
        empty = Problem.compact(c.rows, c.cols, 0, c.buffer, c.buffer)
        problem = empty._replace(c=c, alpha=0.0, beta=beta, before=before)
        letter = letter_of(self.dtype, self.result)
        self.gemm(problem, tiles.by_rule(self.device, letter, problem.sizes))

    def transpose(self, x: Matrix, made: Matrix) -> Matrix:
        """The transpose of a column-major matrix, in memory from the start of its buffer on."""
        tile, columns = TRANSPOSE
        size = round_up(x.rows, tile), tiles_over(made.across, tile) * columns
        arguments = x.rows, x.cols, x.across, x.offset, x.buffer, made.across, made.buffer
        self._support("transpose.cl", "transpose", size, TRANSPOSE, *arguments)
        return made

    def pad(self, x: Matrix, made: Matrix, name: str = "pad") -> Matrix:
        """As much of `x` as fits, in the corner of a compact matrix, with zeros around it."""
        rows, cols = min(x.rows, made.rows), min(x.cols, made.cols)
        group, group_columns, each = PAD
        size = round_up(made.rows, group), round_up(tiles_over(made.cols, each), group_columns)
        arguments = rows, cols, x.across, x.offset, x.buffer, made.rows, made.cols, made.buffer
        self._support("pad.cl", name, size, (group, group_columns), *arguments)
        return made

    def axpby(
        self, alpha: float | complex, x: Matrix, beta: float | complex, y: Matrix, out: Matrix
    ) -> None:
        """out = alpha x + beta y, all compact; alpha and beta are numbers."""
        (group, each), elements = AXPBY, out.room
        size = (tiles_over(elements, group * each) * group,)
        arguments = elements, alpha, x.buffer, beta, y.buffer, out.buffer
        self._support("axpby.cl", "axpby", size, (group,), *arguments)

    def compact(self, x: Matrix) -> Matrix:
        """A column-major matrix without gaps with the elements of `x`."""
        if x.is_compact:
            return x
        made = self.new(Matrix.compact(x.rows, x.cols))
        return self.pad(x, made) if x.by_columns else self.transpose(x.T, made)

    def look_for_unsplittable(self, *matrices: Matrix) -> None:
        """Look for numbers that two TF32 numbers cannot represent (see ``range.cl``)."""
        if self._flag is None:
            self._flag = self.memory(1, itemsize=4)
            self.zeros(self._flag, 4)
        group, ahead = RANGE
        for x in (one.stored for one in matrices):
            size = round_up(x.rows, group), min(tiles_over(x.cols, ahead), RANGE_COLUMNS)
            arguments = x.rows, x.cols, x.across, x.offset, x.buffer, self._flag
            self._support("range.cl", "range", size, (group, 1), *arguments)

    def multiply(self, kernel: Kernel, problem: Problem, scratch: Memory = None) -> None:
        """C = A B with a kernel of the ladder, by the passes that `passes` lists; C is
        compact. If C does not consist of whole tiles, the kernel writes to `scratch`, or to new
        memory.
        """
        out = problem.c
        if kernel.turned:  # it stores the transpose of what it computes: C again
            problem = problem.turned
        planned = passes(kernel.spec, kernel.params, problem, self.device.features)
        b = problem.b.T if kernel.b_transposed else problem.b
        now = {"A": problem.a, "B": b, "C": out}
        names = {operand: x.name or "the result" for operand, x in now.items()}
        sizes = {names[operand]: x.rows * x.cols for operand, x in now.items()}
        sizes |= {f"{names[p.operand]} after '{p.kind}'": p.out.room for p in planned if p.out}
        check_memory(self.device, sizes, kernel.spec.wide)
        if kernel.spec.wide:
            check_indices(_within_a_tile(now, planned, kernel))
        for step in planned:
            x, made = now[step.operand], step.out
            if step.kind == "gemm":
                if made:
                    now["C"] = made._replace(buffer=scratch or self.memory(made.room))
                if kernel.workspace:
                    # no other plan may overwrite partial tiles before their fix-up
                    self._lock = kernel.sharing
                # with its fix-up
                m, n, k = map(round_up, problem.sizes, kernel.multiples)
                buffers = [now[name].buffer for name in "ABC"]
                for name, bound in kernel.bound(m, n, k, buffers, self.queue):
                    self.launch(name, bound)
            elif step.kind == "unpad":
                self.pad(x, out, "unpad")
            elif made:
                made = self.new(made)
                is_pad = step.kind == "pad"
                now[step.operand] = self.pad(x, made) if is_pad else self.transpose(x.T, made)

    def gemm(self, problem: Problem, tile: Params) -> None:
        """Launch a generated kernel with a tile (see `gemmlab.generate.tiles`), which may
        need aligned copies of float16 operands. C is column-major; A and B are not read if K is 0.
        """
        copies = self.dtype.itemsize == 2 and tile["UNIT"] and problem.batch is None
        if copies and min(problem.sizes) >= WORTH_A_COPY:
            problem = problem._replace(a=self._aligned(problem.a), b=self._aligned(problem.b))
        a, b = problem.layouts
        schedule = tiles.configure(
            letter_of(self.dtype, self.result),
            tile,
            problem.sizes,
            a,
            b,
            beta=problem.before is not None,
            batch=problem.batch is not None,
            submatrix=not problem.c.is_compact,
            wide=any(is_wide(x.span) for x in (problem.c, problem.before) if x),
        )
        self.generated(schedule, problem)

    def generated(self, s: Schedule, problem: Problem) -> None:
        """Launch the kernel of a schedule; for a batch as often as its matrices require."""
        check_indices({x.name: x.span for x in (problem.a, problem.b)})
        built = _compiled(s, self.device, self.queue.context)
        sizes, c, batch, before = problem.sizes, problem.c, problem.batch, problem.before
        axes = zip(sizes, s.tile, s.local_size, strict=False)
        items = [tiles_over(size, side) * count for size, side, count in axes]
        added: tuple[Any, ...] = ()
        if before:
            x = before.indexed
            added = *self._factor(problem.beta), x.buffer, x.offset, x.down, x.across
        last = *self.for_shares(s, sizes), c.buffer, *((c.offset, c.across) if s.submatrix else ())
        launches = batch.launches(MAX_BATCH) if batch else [(0, 0, 0, s.split_k)]
        for at_a, at_b, first, number in launches:
            a, b = problem.a.moved(at_a).stored.indexed, problem.b.moved(at_b).stored.indexed
            operands = a.buffer, a.offset, a.across, b.buffer, b.offset, b.across
            pairs = (first, *batch.steps) if batch else ()
            arguments = *sizes, *self._factor(problem.alpha), *operands, *added, *pairs, *last
            self.launch("gemm", Bound(built, (*items, number), (*s.local_size, 1), arguments))

    def _factor(self, number: float | complex) -> tuple[float, ...]:
        return (number.real, number.imag) if self.dtype.kind == "c" else (number.real,)

    def for_shares(self, s: Schedule, sizes: tuple[int, int, int]) -> tuple[Memory, ...]:
        """Memory for parts of tiles, and the plan's own counters, 0 between launches."""
        if s.split_k == 1:
            return ()
        tiles = prod(map(tiles_over, sizes, s.tile))
        counters = cl.Buffer(self.queue.context, cl.mem_flags.READ_WRITE, 4 * tiles)
        cl.enqueue_fill_buffer(self.queue, counters, np.array(0, np.int32), 0, 4 * tiles)
        return self.memory(tiles * s.split_k * prod(s.tile), s.element.sum_size), counters

    def _aligned(self, x: Matrix) -> Matrix:
        """A matrix for tensor cores, which copy by 4 bytes or more: one of 2 bytes per element with
        aligned columns, a copy where necessary.
        """
        stored = x.stored
        if not any(number % HALVES for number in (stored.rows, stored.across, stored.offset)):
            return x
        rows = round_up(stored.rows, HALVES)
        memory = self.memory(rows * stored.cols, 2)
        made = Matrix.compact(rows, stored.cols, memory, x.name)
        self.pad(stored, made)
        copy = made._replace(rows=stored.rows, conjugated=x.conjugated, padded=True)
        return copy if x.by_columns else copy.T


@cached(256)
def _compiled(s: Schedule, device: Device, context: cl.Context) -> Built:
    """The kernel of a schedule. Raises ParameterError if the device cannot run it, for lack of
    registers once it is compiled.
    """
    problems = s.problems(device.limits)
    if problems:
        raise ParameterError(f"{s.name}: " + "; ".join(problems))
    built = build(device, context, s.name, write(s), {})
    built.check_fits(s.name, s.work_items)
    return built


def _within_a_tile(
    matrices: dict[str, Matrix], planned: Sequence[Pass], kernel: Kernel
) -> dict[str, int]:
    """The elements between the first and the last step of k of a tile, by the operands that have
    one column for each step: production kernels count them with 32 bits.
    """
    made = {p.operand: p.out for p in planned if p.out}
    _, _, depth = kernel.spec.tiles(kernel.params)
    spans = {}
    for operand in "AB" if kernel.b_transposed else "A":
        x = made.get(operand, matrices[operand])
        spans[f"a tile of {matrices[operand].name}"] = min(depth, x.cols) * x.across
    return spans


def _resolved(buffer: Memory, memory: Sequence[Any]) -> Any:
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


def complete(*waits: Callable[[], object]) -> None:
    """Call each function, such as `queue.finish`, until it returns, however often it is
    interrupted: a second Ctrl-C has to wait as well.
    """
    for wait in waits:
        while True:
            try:
                wait()
                break
            except cl.Error:  # the device is lost, and does not write any more
                break
            except BaseException:  # the caller raises the first exception
                continue


@cached(8)
def _second_queue(queue: cl.CommandQueue) -> cl.CommandQueue:
    return cl.CommandQueue(queue.context, queue.device)


@cached(8)
def pool_of(queue: cl.CommandQueue) -> cl.tools.MemoryPool:
    """Memory that one call returns and the next one reuses: the queue's order separates them."""
    return cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))
