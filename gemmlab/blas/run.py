"""Running a product: on device arrays, in the memory of NumPy arrays, or through copies of them.

A `Session` holds what all products on a queue share, plans among them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np

from ..caches import cached
from ..ladder import Key, find
from ..opencl import cl, cla
from ..opencl.build import WorkGroupError
from ..opencl.devices import Device
from ..opencl.launch import Kernel
from . import staging
from .arrays import is_writable, layout_on_device, layout_on_host, rows_of, to_readable
from .choose import check_support, choose
from .layout import ARGUMENTS, OUT, Layouts, check_apart
from .plan import Compile, Plan, build, check_memory
from .product import PLAIN, Operation, validate

#: Bytes that a pool of device memory may keep for the next call, in addition to twice what the last
#: call needed.
HELD = 64 * 2**20
#: Plans and kernels of a session.
PLANS, KERNELS = 512, 256
#: The arguments of a plan without slots for them.
NOTHING = (None,) * len(ARGUMENTS)

#: a, b, c and out; None for an absent one.
Arrays = tuple[Any, Any, Any, Any]
#: Events by the name of the command.
Events = list[tuple[str, cl.Event]]


class Session:
    """What products on one queue share: kernels, plans, device memory, and a lock.

    Commands of a plan are enqueued under the lock, because they follow each other: a kernel's
    arguments belong to one launch at a time, and no other plan may overwrite the partial tiles of a
    kernel before its fix-up.
    """

    def __init__(self, queue: cl.CommandQueue, device: Device):
        self.queue: cl.CommandQueue = queue
        self.device: Device = device
        #: Memory that a call returns and the next one reuses: the queue's order separates them.
        self.pool: cl.tools.MemoryPool = cl.tools.MemoryPool(cl.tools.ImmediateAllocator(queue))
        self.kernel: Compile = lru_cache(KERNELS)(partial(_compile, queue.context))
        #: The plan of an operation, see `_plan`.
        plan = partial(_plan, queue, device, self.kernel)
        self.plan: Callable[..., Plan] = lru_cache(PLANS)(plan)
        self._lock = threading.Lock()
        self._reader: cl.CommandQueue | None = None

    def run(self, plan: Plan, arguments: Sequence[Any] = NOTHING) -> Events:
        """Enqueue a plan's commands with the memory of a, b, c and out; return their events. If a
        matrix contains numbers that TF32 cannot represent, run the plan in float32 as well.
        """
        queue, pool = self.queue, self.pool
        memory = [*arguments, *map(pool.allocate, plan.temporaries)]
        with self._lock:
            events = [(name, enqueue(queue, memory)) for name, enqueue in plan.commands]
        most = HELD + 2 * plan.size_bytes
        if pool.managed_bytes > most and pool.managed_bytes - pool.active_bytes > most:
            pool.free_held()
        if not (plan.flag and plan.fallback):
            return events
        if self._is_set(memory[plan.flag.number], dict(events)["range"]):
            events += self.run(self.plan(*plan.fallback), arguments)
        return events

    def _is_set(self, flag: cl.Buffer, written: cl.Event) -> bool:
        """Return whether a flag is not 0, once an event has happened; other commands go on."""
        self.queue.flush()  # the other queue, which reads, waits for it; this one continues
        if self._reader is None:
            self._reader = cl.CommandQueue(self.queue.context, self.queue.device)
        value = np.empty(1, np.int32)
        cl.enqueue_copy(self._reader, value, flag, wait_for=[written])
        return bool(value[0])


@cached(8)
def session_of(queue: cl.CommandQueue, device: Device) -> Session:
    """Return the session of a queue."""
    return Session(queue, device)


def _compile(
    context: cl.Context,
    key: Key,
    params: tuple[tuple[str, int], ...],
    device: Device,
    swapped: bool,
) -> Kernel:
    return Kernel(find(key), dict(params), device, context, swapped=swapped)


def _plan(
    queue: cl.CommandQueue,
    device: Device,
    kernel: Compile,
    do: Operation,
    layouts: Layouts,
    in_place: bool,
) -> Plan:
    """Return the plan of an operation; see `matmul` for what it raises. A kernel that was chosen
    automatically may, once it is compiled, fit only smaller work-groups: then another one is
    chosen.
    """
    product = validate(do, layouts, in_place)
    check_support(do.options, product.dtype, device)
    itemsize = product.dtype.itemsize
    operands = zip("ab", layouts, strict=False) if do.alpha else ()
    sizes = {name: prod(x.shape) for name, x in operands if x is not None}
    sizes["the result"] = prod(product.shape) * do.result.itemsize // itemsize
    check_memory(device, sizes, True, itemsize)
    while True:
        choice = choose(product, device) if product.multiplies else None
        try:
            plan = build(product, choice, queue, device, kernel)
        except WorkGroupError as error:
            if do.options.params is not None:
                raise
            device = device.limited(error.limit)
        else:
            fallback = do._replace(options=PLAIN), layouts, in_place
            return replace(plan, fallback=fallback) if plan.flag else plan


# Device arrays


def run_on_device(session: Session, do: Operation, arrays: Arrays) -> cla.Array:
    """Enqueue the product of device arrays, without waiting for it."""
    queue, (a, b, c, out) = session.queue, arrays
    of = layout_on_device
    layouts = of(a), of(b), None if c is None else of(c), None if out is None else of(out)
    plan = session.plan(do, layouts, out is not None and out is c)
    wait_for_others(queue, *[x for x in arrays if x is not None])
    allocator, result = a.allocator or b.allocator, out
    if result is None:
        result = _prototype(queue, plan.shape, do.result).with_queue(queue)
        allocate = allocator or session.pool.allocate
        result.base_data = allocate(max(1, result.nbytes))
        result.allocator, result.events = allocator, []
    events = session.run(plan, [None if x is None else x.base_data for x in (a, b, c, result)])
    if events:
        result.events[:] = [events[-1][1]]  # all that came before has been waited for
    return result


@cached(64)
def _prototype(queue: cl.CommandQueue, shape: tuple[int, ...], dtype: np.dtype) -> cla.Array:
    """Return an array to copy, without memory: PyOpenCL needs 15 microseconds to make a new one,
    and one to copy it.
    """
    return cla.Array(
        queue, shape, dtype, data=cl.Buffer(queue.context, cl.mem_flags.READ_WRITE, dtype.itemsize)
    )


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


# NumPy arrays


def run_in_numpy(session: Session, do: Operation, arrays: Arrays) -> np.ndarray | np.generic:
    """Run the product of NumPy arrays: in their own memory on a CPU, otherwise through copies."""
    (a, b, c, out), on_cpu = arrays, session.device.kind == "CPU"
    target = out
    if target is not None and not is_writable(target, a, b):
        check_apart("out", target)
        target = np.empty(target.shape, target.dtype)
    of = layout_on_host
    layouts = of(a), of(b), None if c is None else of(c), None if target is None else of(target)
    plan = session.plan(do, layouts, on_cpu and target is not None and target is c)
    if target is None:
        target = np.empty(plan.shape, do.result)
    if plan.commands and on_cpu:
        _run_in_host_memory(
            session, plan, [None if x is None else to_readable(x) for x in (a, b, c, target)]
        )
    elif plan.commands:
        _run_through_copies(session, do, plan, (a, b, c, target))
    if out is None:
        return target if target.ndim else target[()]
    if target is not out:
        out[...] = target
    return out


def _run_in_host_memory(session: Session, plan: Plan, arrays: list[Any]) -> None:
    """Run a plan on the memory of NumPy arrays (see `arrays.to_readable`), and wait.

    By return or by any exception, the device has finished with that memory: a kernel continues to
    write after an exception, OpenCL does not keep the arrays alive, and Ctrl-C raises
    KeyboardInterrupt after any call.
    """
    out, queue, context = arrays[OUT.number], session.queue, session.queue.context
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
        session.run(plan, buffers)
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
        staging.complete(queue.finish)
        raise


def _run_through_copies(session: Session, do: Operation, plan: Plan, arrays: Arrays) -> None:
    """Copy the operands to the device, multiply, and copy the result back."""
    queue, allocate, (a, b, _, out) = session.queue, session.pool.allocate, arrays
    is_large = a.nbytes + b.nbytes + out.nbytes >= staging.WORTHWHILE
    pinned = staging.staging_for(session.device) if is_large else None
    if pinned and _allows_strips(do, arrays):
        pinned.compute(queue, _strips(session, do, a, b, out))
        return
    sizes = [0 if x is None else x.nbytes for x in arrays]
    buffers: list[Any] = [allocate(size) if size else None for size in sizes]
    operands = [(x, y) for x, y in zip(arrays[:3], buffers, strict=False) if y is not None]
    if pinned:
        copies = [(_as_matrix(x), buffer) for x, buffer in operands]
        launch = partial(session.run, plan, buffers)
        pinned.compute(queue, [staging.Strip(copies, launch, buffers[3], _as_matrix(out))])
        return
    for x, buffer in operands:
        cl.enqueue_copy(queue, buffer, to_readable(x))
    session.run(plan, buffers)
    cl.enqueue_copy(queue, out, buffers[3])


def _as_matrix(x: np.ndarray) -> np.ndarray:
    """Return all rows of an array, as one matrix."""
    rows = rows_of(x)
    return rows.reshape(-1, rows.shape[-1] if rows.ndim else 1)


def _allows_strips(do: Operation, arrays: Arrays) -> bool:
    """Return whether the first rows (or columns) may be finished before the last ones are read."""
    a, b, _, _ = arrays
    two = a.ndim == b.ndim == 2 and a.size > 0 and b.size > 0
    return two and do.alpha != 0 and do.beta == 0 and "C" not in (do.ta, do.tb)


def _strips(
    session: Session, do: Operation, a: np.ndarray, b: np.ndarray, out: np.ndarray
) -> list[staging.Strip]:
    """Return a product in strips of the longer side of the result; the other operand stays."""
    allocate = session.pool.allocate
    a = a if do.ta == "N" else a.T
    b = b if do.tb == "N" else b.T
    do = do._replace(ta="N", tb="N")
    across = out.shape[1] > out.shape[0]
    kept, moving = (a, b) if across else (b, a)
    operands = [(rows_of(kept), kept_buffer := allocate(kept.nbytes))]
    parts = []
    for part in staging.strips(max(out.shape)):
        index = (slice(None), part) if across else (part,)
        x, to = moving[index], out[index]
        buffer, result = allocate(x.nbytes), allocate(to.nbytes)
        pair, buffers = [kept, x], [kept_buffer, buffer]
        if not across:
            pair, buffers = pair[::-1], buffers[::-1]
        left, right, target = map(layout_on_host, (*pair, to))
        plan = session.plan(do, (left, right, None, target), False)
        launch = partial(session.run, plan, [*buffers, None, result])
        parts.append(staging.Strip([*operands, (rows_of(x), buffer)], launch, result, rows_of(to)))
        operands = []
    return parts
