"""A kernel of the family, compiled for a device, and launched."""

from __future__ import annotations

import threading
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl

from ..caches import cached
from ..catalog import ParameterError
from ..catalog.spec import tiles_over
from ..opencl.build import Bound, build
from ..opencl.devices import Device
from .configuration import PRECISIONS, Configuration
from .writer import write


class View(NamedTuple):
    """A matrix in a buffer: its first element, and how far apart rows and columns lie, all counted in elements."""

    buffer: Any  # a pyopencl.MemoryObject
    offset: int
    down: int
    across: int


class Pairs(NamedTuple):
    """What one launch multiplies of a batch.

    Attributes:
        number: how many pairs of matrices.
        first: matrices of C before the first result.
        step_a, step_b: elements from one matrix to the next; 0 where all pairs share it.
    """

    number: int
    first: int
    step_a: int
    step_b: int


class Written:
    """The kernel of a configuration, compiled for one device.

    Attributes:
        configuration: what it does.
        text: the OpenCL C that `write` wrote.
        opencl: the `pyopencl.Kernel`.

    Raises:
        ParameterError: if the device cannot run it, before anything is built or, for want of registers, after.
        BuildError: if the compiler refuses it.
    """

    def __init__(self, configuration: Configuration, device: Device, context: cl.Context):
        check_double(configuration.precision, device)
        problems = configuration.problems(device.limits)
        if problems:
            raise ParameterError(f"{configuration.name}: " + "; ".join(problems))
        self.configuration, self.device = configuration, device
        self.text = write(configuration)
        self._built = build(device, context, configuration.name, self.text, {})
        self.opencl = self._built.kernel
        if configuration.items > self._built.work_group_limit:
            shape = " x ".join(map(str, configuration.local_size))
            raise ParameterError(
                f"{configuration.name}: as compiled for {device.name} it fits work-groups of at most "
                f"{self._built.work_group_limit} work-items, but it has {shape} = {configuration.items}"
            )

    def bound(
        self,
        sizes: tuple[int, int, int],
        alpha,
        a: View,
        b: View,
        beta,
        before,
        out,
        pairs: Pairs | None = None,
        workspace: tuple[Any, ...] = (),
    ) -> Bound:
        """What launches C = alpha op(A) op(B) + beta C0; everything is column-major.

        Args:
            sizes: m, n and k: C is m x n, and k products are added up for each element of it.
            alpha, beta: numbers of the kernel's precision.
            a, b: the operands as they lie, with `down` = 1.
            before: the `View` of C0 if the configuration has beta, else None.
            out: the buffer of C, m x n without gaps; with `part` its `View`, with `down` = 1. C0 may be the same
                memory, element by element.
            pairs: if the configuration is for batches, how many pairs of matrices, and where they lie.
            workspace: what `workspace` gives.
        """
        c, (m, n, k) = self.configuration, sizes
        local: tuple[int, ...] = c.local_size
        items = tuple(tiles_over(size, side) * count for size, side, count in zip((m, n), c.tile, local, strict=True))
        added = (*_parts(c, beta), *before) if before is not None else ()
        if pairs is not None:
            added = (*added, *pairs[1:])
            items, local = (*items, pairs.number), (*local, 1)
        if c.shares > 1:
            items, local = (*items, c.shares), (*local, 1)
        operands = (a.buffer, a.offset, a.across, b.buffer, b.offset, b.across)
        result = (out.buffer, out.offset, out.across) if c.part else (out,)
        return Bound(self._built, items, local, (m, n, k, *_parts(c, alpha), *operands, *added, *workspace, *result))

    def workspace(self, sizes: tuple[int, int, int], queue: cl.CommandQueue) -> tuple[Any, ...]:
        """Memory for partial tiles and for their counters, if work-groups share tiles; for launches on this queue."""
        c, tiles = self.configuration, prod(map(tiles_over, sizes, self.configuration.tile))
        if c.shares == 1:
            return ()
        return workspace_of(queue).of(tiles * c.shares * prod(c.tile) * PRECISIONS[c.precision].size, 4 * tiles)

    def __repr__(self) -> str:
        return f"<gemmlab kernel {self.configuration.name} on {self.device}>"


class Workspace:
    """What the launches on a queue, which follow each other, use in turn: partial tiles, and counters that are 0."""

    def __init__(self, queue: cl.CommandQueue):
        self._queue = queue
        self._pieces: cl.Buffer | None = None
        self._counters: cl.Buffer | None = None
        self._lock = threading.Lock()

    def of(self, pieces_bytes: int, counters_bytes: int) -> tuple[cl.Buffer, cl.Buffer]:
        """Both, at least as large; what grows is made anew, and lives on in launches that use the old one."""
        with self._lock:
            if self._pieces is None or self._pieces.size < pieces_bytes:
                self._pieces = cl.Buffer(self._queue.context, cl.mem_flags.READ_WRITE, pieces_bytes)
            if self._counters is None or self._counters.size < counters_bytes:
                self._counters = cl.Buffer(self._queue.context, cl.mem_flags.READ_WRITE, counters_bytes)
                cl.enqueue_fill_buffer(self._queue, self._counters, np.int32(0), 0, counters_bytes)
            return self._pieces, self._counters


@cached(8)
def workspace_of(queue: cl.CommandQueue) -> Workspace:
    """The workspace of a queue; remembered."""
    return Workspace(queue)


def _parts(c: Configuration, number) -> tuple[float, ...]:
    """A number as the kernel takes it: itself, or its real and its imaginary part."""
    return (number.real, number.imag) if c.parts == 2 else (number,)


def check_double(precision: str, device: Device) -> None:
    """Refuse a precision that the device's arithmetic does not have, in words."""
    if PRECISIONS[precision].real == "double" and "double" not in device.features:
        has, instead = (np.dtype(PRECISIONS[p].dtype) for p in (precision, {"d": "s", "z": "c"}[precision]))
        raise ValueError(f"{has} needs arithmetic in double precision, and {device} has none; {instead} runs there")


@cached(256)
def written(configuration: Configuration, device: Device, context: cl.Context) -> Written:
    """The compiled kernel of a configuration; remembered."""
    return Written(configuration, device, context)
