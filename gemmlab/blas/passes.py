"""The passes over matrices on a device that make up one product: transpose, pad, multiply, unpad, axpby."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
from pyopencl.tools import ImmediateAllocator, MemoryPool

from ..caches import cached
from ..catalog import sources
from ..catalog.spec import round_up, tiles_over
from ..family import Configuration, tiles
from ..family.configuration import letter_of
from ..family.tiles import Lying
from ..family.written import View, written
from ..opencl.build import Bound, Built, build
from ..opencl.devices import Device
from ..opencl.launch import INDEX_LIMIT, Kernel, whole
from .operands import by_columns
from .problem import Batch, Layout, Operand, Pass, Problem, plan
from .repeat import Recording
from .results import Result

_MOVED = 32, 8, 4  # PX, PY and PE of pad.cl
_TURNED = 32, 8  # TT and TR of transpose.cl
_LINE = 64  # WG of range.cl
_ADDED = 128, 4  # WG and EACH of axpby.cl
_AHEAD, _COLUMNS = 8, 512  # AHEAD of range.cl, and columns of its work-items at most
_COMPLETE = cl.command_execution_status.COMPLETE

#: Bytes that a pool of device memory may hold back for the next call, beside twice what the last call needed.
HELD = 64 * 2**20


class Matrix(NamedTuple):
    """A column-major matrix on a device."""

    buffer: Any  # a pyopencl.MemoryObject
    layout: Layout


class Session:
    """The device side of one call: a queue, and the passes over matrices, each event recorded by name.

    A `recording` keeps what is launched, and the memory that is made for it, so that a call like this one can repeat
    it. It is given up where there are other commands besides, or where the launches depend on the elements.

    Elements are of type `dtype`; the supporting kernels and the ladder's take float32 alone, the family takes all.

    Memory comes from `allocate`, a function of the number of bytes. By default that is a pool that the calls on a
    queue share, since fresh memory can take longer than a small product, and some drivers let it wait for the
    products before; the pool is trimmed when the session is closed (see `HELD`). With ``pooled=False`` each matrix
    is a buffer of its own.
    """

    def __init__(self, queue: cl.CommandQueue, device: Device, pooled: bool = True, dtype=np.float32, allocate=None):
        self.queue, self.device, self.dtype = queue, device, np.dtype(dtype)
        self.events: list[tuple[str, cl.Event]] = []
        self.recording: Recording | None = None
        self._bytes = 0
        self._pool = pool_of(queue) if pooled and allocate is None else None
        self.allocate = allocate or self._pool or partial(cl.Buffer, queue.context, cl.mem_flags.READ_WRITE)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *exception) -> None:
        if self._pool:
            trim(self._pool, self._bytes)

    def launch(self, name: str, bound: Bound) -> None:
        """Launch a kernel; its event gets this name."""
        self.events.append((name, bound(self.queue)))
        if self.recording:
            self.recording.launches.append(bound)

    def _launch(self, file: str, name: str, global_size, local_size, *args) -> None:
        helper = _helper(self.device, self.queue.context, f"support/{file}", name)
        self.launch(name, Bound(helper, global_size, local_size, args))

    def new(self, layout: Layout) -> Matrix:
        return Matrix(self.memory(layout.room), layout)

    def memory(self, elements: int) -> Any:
        size_bytes = self.dtype.itemsize * elements
        made = self.allocate(size_bytes)
        self._bytes += size_bytes
        if self.recording:
            self.recording.made.append((made, size_bytes))
        return made

    def part(self, buffer: Any, elements: int) -> tuple[Any, int]:
        """The rest of a buffer from an element on, and how many were cut off: none where no sub-buffer may begin."""
        start = self.dtype.itemsize * elements
        if start % (self.device.cl.mem_base_addr_align // 8) or not isinstance(buffer, cl.MemoryObjectHolder):
            return buffer, 0
        self.recording = None
        with suppress(cl.Error):  # the user's buffer may be a part already
            whole: Any = cl.Buffer.from_int_ptr(buffer.int_ptr)
            return whole.get_sub_region(start, buffer.size - start), elements
        return buffer, 0

    def upload(self, x: np.ndarray) -> Any:
        """A NumPy array without gaps, as `operands.form` says."""
        buffer = self.memory(x.size)
        cl.enqueue_copy(self.queue, buffer, x.swapaxes(-1, -2) if by_columns(x) else np.ascontiguousarray(x))
        return buffer

    def download(self, buffer: Any, out: np.ndarray) -> None:
        """A buffer into a NumPy array that lies as `operands.form` says, through a copy if it has gaps."""
        turned = out.swapaxes(-1, -2) if by_columns(out) else out
        host = turned if turned.flags.c_contiguous else np.empty(out.shape, out.dtype)
        cl.enqueue_copy(self.queue, host, buffer)
        if host is not turned:
            out[...] = host

    def zeroes(self, buffer: Any, elements: int) -> None:
        """Fill a buffer with zeroes."""
        nothing, self.recording = np.zeros(1, self.dtype), None
        self.events.append(("fill", cl.enqueue_fill_buffer(self.queue, buffer, nothing, 0, nothing.nbytes * elements)))

    def copy(self, x: Matrix, out: Matrix) -> None:
        """A matrix into another, wherever both lie."""
        each, (rows, cols) = self.dtype.itemsize, x.layout[:2]
        self.recording = None
        (column, top), (to_column, to_top) = (divmod(layout.offset, layout.ld) for layout in (x.layout, out.layout))
        copied = cl.enqueue_copy(
            self.queue,
            out.buffer,
            x.buffer,
            src_origin=(each * top, column, 0),
            dst_origin=(each * to_top, to_column, 0),
            region=(each * rows, cols, 1),
            src_pitches=(each * x.layout.ld,),
            dst_pitches=(each * out.layout.ld,),
        )
        self.events.append(("copy", copied))

    def transpose(self, x: Matrix, out: Layout) -> Matrix:
        made, y = self.new(out), x.layout
        (tile, columns), args = _TURNED, (y.rows, y.cols, y.ld, y.offset, x.buffer, out.ld, made.buffer)
        size = round_up(y.rows, tile), tiles_over(out.ld, tile) * columns
        self._launch("transpose.cl", "transpose", size, _TURNED, *args)
        return made

    def pad(self, x: Matrix, out: Layout) -> Matrix:
        """`x` as the corner of a compact matrix of that layout, zeroes elsewhere."""
        return self._into_corner("pad", x, self.new(out), x.layout.rows, x.layout.cols)

    def unpad(self, x: Matrix, out: Matrix) -> Matrix:
        """The corner of a larger matrix."""
        return self._into_corner("unpad", x, out, out.layout.rows, out.layout.cols)

    def _into_corner(self, name: str, x: Matrix, out: Matrix, rows: int, cols: int) -> Matrix:
        """Copy rows x cols elements of `x` into `out`, with zeroes around them; one kernel for both, compiled once."""
        y, z = x.layout, out.layout
        args = rows, cols, y.ld, y.offset, x.buffer, z.rows, z.cols, out.buffer
        helper = _helper(self.device, self.queue.context, "support/pad.cl", "pad")
        self.launch(name, Bound(helper, _moving(z), _MOVED[:2], args))
        return out

    def axpby(self, alpha: float, x: Matrix, beta: float, y: Matrix, out: Matrix) -> Matrix:
        """out = alpha x + beta y, all compact."""
        size = out.layout.room
        args = size, alpha, x.buffer, beta, y.buffer, out.buffer
        group, each = _ADDED
        self._launch("axpby.cl", "axpby", (tiles_over(size, group * each) * group,), (group,), *args)
        return out

    def compact(self, x: Matrix) -> Matrix:
        return x if x.layout.is_compact else self.pad(x, Layout.compact(x.layout.rows, x.layout.cols))

    def has_unsplittable(self, *matrices: Matrix) -> bool:
        """Whether any holds a number that two TF32 numbers cannot stand for (see ``range.cl``); waits for it."""
        return self.look_for_unsplittable(*matrices)()

    def look_for_unsplittable(self, *matrices: Matrix) -> Callable[[], bool]:
        """Enqueue what `has_unsplittable` needs; the function returned waits for its answer.

        The answer comes by a queue of its own, so that the device goes on meanwhile with what this one has been given.
        """
        found, self.recording = self.memory(1), None
        cl.enqueue_fill_buffer(self.queue, found, np.int32(0), 0, 4)
        for buffer, x in matrices:
            size = round_up(x.rows, _LINE), min(tiles_over(x.cols, _AHEAD), _COLUMNS)
            self._launch("range.cl", "range", size, (_LINE, 1), x.rows, x.cols, x.ld, x.offset, buffer, found)
        _, looked = self.events[-1]

        def answer() -> bool:
            said = np.empty(1, np.int32)
            self.queue.flush()  # another queue waits for it
            cl.enqueue_copy(_queue_beside(self.queue), said, found, wait_for=[looked])
            return bool(said[0])

        return answer

    def multiply(self, kernel: Kernel, problem: Problem, a, b, out: Matrix, scratch=None) -> Matrix:
        """C = A B, by the passes that `plan` lists.

        Args:
            a, b: the buffers of the operands, which lie as `problem` says.
            out: M x N, compact; overwritten.
            scratch: where the kernel writes whole tiles if C does not consist of them; new memory by default.
        """
        passes = planned(kernel, problem)
        if kernel.turned:
            problem, a, b = problem.turned, b, a
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
                buffers = [now[name].buffer for name in "ABC"]
                with kernel.sharing:
                    for name, bound in kernel.bound(*sizes, buffers, self.queue):  # with its fix-up
                        self.launch(name, bound)
            elif step.kind == "fix-up":
                self.recording = None  # it reads what no other product may have overwritten since
            elif step.kind == "unpad":
                self.unpad(now["C"], out)
        return out

    def gemm(
        self, problem: Problem, buffers, alpha, beta, before, out: Matrix, params=None, batch: Batch | None = None
    ) -> Matrix:
        """C = alpha A B + beta C0 in one launch, by a kernel of the family.

        Args:
            buffers: those of A and B, which lie as `problem` says; not read where K is 0.
            alpha, beta: numbers of the session's type.
            before: the buffer of C0 and how it lies (an `Operand`), or None where beta is 0. C0 may be C itself.
            out: M x N, compact; overwritten.
            params: all parameters of the tile (see `gemmlab.family.tiles`); those that suit the sizes by default.
            batch: several products instead of one; their results follow each other in `out`.
        """
        sizes, lying = problem[:3], (problem.a.lying, problem.b.lying)
        letter, given = letter_of(self.dtype), None if params is None else tuple(params.items())
        ways = batch.aligned(*lying) if batch else lying
        number = batch.number * len(batch.starts) if batch else 0
        configuration = _configured(self.device, letter, given, sizes, *ways, before is not None, number)
        kernel = written(configuration, self.device, self.queue.context)
        added = view(*before) if before else None
        workspace = kernel.workspace(sizes, self.queue)
        for (at_a, at_b), pairs in batch.launches() if batch else [((0, 0), None)]:
            a, b = (
                View(buffer, x.offset + at, 1, x.ld) for buffer, x, at in zip(buffers, lying, (at_a, at_b), strict=True)
            )
            self.launch("gemm", kernel.bound(sizes, alpha, a, b, beta, added, out.buffer, pairs, workspace))
        return out


def view(buffer: Any, operand: Operand) -> View:
    """A matrix as it lies, by rows or by columns."""
    operation, offset, ld = operand.lying
    return View(buffer, offset, 1, ld) if operation == "N" else View(buffer, offset, ld, 1)


@cached(1024)
def _configured(device: Device, letter: str, params, sizes, a: Lying, b: Lying, beta, number: int) -> Configuration:
    """The configuration for a problem, or for a batch of this number; remembered, since small products would wait."""
    tile = tiles.choose(device, letter, sizes, max(1, number)) if params is None else dict(params)
    return tiles.configure(letter, tile, sizes, a, b, beta, number > 0)


def placed(buffer: Any, operand: Operand, transposed: bool = False) -> Matrix:
    """An operand in its buffer, read as it is if it can be, or rather as its transpose."""
    layout = (operand.transposed or operand.plain) if transposed else (operand.plain or operand.transposed)
    assert layout is not None, "an operand can be read in at least one way"
    return Matrix(buffer, layout)


def _made(step: Pass) -> Layout:
    assert step.out is not None
    return step.out


@cached(1024)
def planned(kernel: Kernel, problem: Problem) -> list[Pass]:
    """`plan` for a compiled kernel; remembered, since small products would wait for it."""
    return plan(kernel.spec, kernel.params, problem.turned if kernel.turned else problem, kernel.device.features)


def check_memory(device: Device, sizes: dict[str, int], wide: bool = False, each: int = 4) -> None:
    """Refuse matrices that the device's memory cannot hold, or 32-bit indices unless `wide`.

    Args:
        sizes: elements by the matrix's name, of `each` bytes.
    """
    for name, elements in sizes.items():
        if elements >= INDEX_LIMIT and not wide:
            raise ValueError(
                f"{name} has {elements:,} elements; kernels of the ladder index with 32 bits, below {INDEX_LIMIT:,}"
            )
    for name, elements in sizes.items():
        if each * elements > device.largest:
            raise MemoryError(f"{name} needs {each * elements:,} bytes; {device} allows {device.largest:,} per buffer")
    total = each * sum(sizes.values())
    if total > device.memory:
        raise MemoryError(f"the matrices need {total:,} bytes; {device} has {device.memory:,}")


def wait_for_others(queue: cl.CommandQueue, *arrays: cla.Array) -> None:
    """Have the queue wait for what other queues still do to these arrays; its own commands follow each other anyway.

    Events that have happened are struck off the arrays' lists, so that later calls need not ask the driver again.
    """
    awaited = []
    for x in arrays:
        if isinstance(x, Result) and x.is_ready_for(queue):
            continue
        for event in tuple(x.events):
            if event.command_execution_status == _COMPLETE:
                with suppress(ValueError):  # another thread was first
                    x.events.remove(event)
            elif event.command_queue != queue:
                awaited.append(event)
    if awaited:
        cl.enqueue_barrier(queue, awaited)


def _moving(out: Layout) -> tuple[int, int]:
    """Work-items of a launch of pad.cl for a result of that layout."""
    rows, columns, each = _MOVED
    return round_up(out.rows, rows), round_up(tiles_over(out.cols, each), columns)


@cached(64)
def _helper(device: Device, context: cl.Context, file: str, name: str) -> Built:
    return build(device, context, file, sources.read(file), {}, name)


@cached(8)
def _queue_beside(queue: cl.CommandQueue) -> cl.CommandQueue:
    """A second queue of the same device, for what need not wait for the first."""
    return cl.CommandQueue(queue.context, queue.device)


@cached(8)
def pool_of(queue: cl.CommandQueue) -> MemoryPool:
    """What one call gives back the next one takes; the order of the queue keeps them apart."""
    return MemoryPool(ImmediateAllocator(queue))


def trim(pool: MemoryPool, size_bytes: int) -> None:
    """Give memory back to the device, if a pool holds more than `HELD` and twice the bytes of the last call."""
    most = HELD + 2 * size_bytes
    if pool.managed_bytes > most and pool.managed_bytes - pool.active_bytes > most:
        pool.free_held()
