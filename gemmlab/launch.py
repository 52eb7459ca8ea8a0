"""Launch kernels on column-major device memory."""

from __future__ import annotations

import math
import threading
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pyopencl as cl

from . import sources
from .build import BuildError, Built, build, options
from .catalog import KernelSpec, ParameterError, find
from .device import Device, find_device

INDEX_LIMIT = 2**31
_OUT_OF_ORDER = cl.command_queue_properties.OUT_OF_ORDER_EXEC_MODE_ENABLE


def in_order(queue: cl.CommandQueue) -> cl.CommandQueue:
    """The queue, if it runs commands one after another, as the launches of one product need."""
    if queue.properties & _OUT_OF_ORDER:
        raise ValueError("the queue runs its commands out of order; a product's launches must follow each other")
    return queue


class Plan(NamedTuple):
    """What a kernel launches for M, N, K: itself, work-items, floats from column to column of A and B, `join.cl`."""

    built: Built
    size: tuple[int, int]
    lda: int
    ldb: int
    join_size: tuple[int, int]
    by_tile: int


class Kernel:
    """One kernel of the ladder, compiled for one device with one set of parameters.

    Attributes:
        source: the OpenCL C text.
        options: the build options, parameters among them.
        params: all parameters.
        local_size: work-items of a work-group.
        multiples: what M, N and K must be multiples of.
        b_transposed: whether it wants B as N x K instead of K x N.
        aligned: columns of A, and of B as it lies, begin at multiples of so many floats (see `strides`).
        pieces: floats of memory that it takes beside A, B and C, counters included, for tiles which groups share.
        path: which of the kernel's paths runs here: "plain", or the device's features that are switched on.
        opencl: the `pyopencl.Kernel`.
        build_seconds: how long compiling took (near zero if it was cached on disk).
    """

    def __init__(self, spec: KernelSpec, params, device: Device, context: cl.Context, text: str | None = None):
        self.spec, self.device, self.context = spec, device, context
        self.params = spec.validate(params, device.limits)
        self.local_size = spec.local(self.params)
        self.multiples = spec.multiples(self.params)
        self.b_transposed = spec.wants_transposed(self.params)
        self.aligned = tuple(spec.value(e, self.params) for e in spec.aligned)
        self.options = options(self.params)
        self.pieces = spec.value(spec.pieces, self.params) if spec.pieces else 0
        self.path = spec.path(self.params, device.features) if text is None else "of your own"
        self._title = title = f"kernel {spec.number} ({spec.file})"
        self.source = sources.read(spec.file) if text is None else text
        self._built = build(device, context, title, self.source, self.params)
        self._least = spec.least(self.params)
        self.plan = lru_cache(maxsize=64)(self._planned)
        self.whole = lru_cache(maxsize=64)(self._whole)
        self._join = None
        if spec.joins(self.params, device.features):
            self._join = build(device, context, "join.cl", sources.read("join.cl"), self.params, "join")
        self._pieces: dict[cl.CommandQueue, cl.Buffer] = {}
        self._sharing = threading.Lock()
        self.opencl = self._built.kernel
        wanted = ["M", "N", "K", "A", "B", "C"] + ["pieces"] * bool(spec.pieces)
        if self.opencl.num_args != len(wanted):
            said = f"gemm has {self.opencl.num_args} arguments instead of {len(wanted)}: {', '.join(wanted)}"
            raise BuildError(title, said, self.source)
        self.build_seconds = self._built.seconds
        items = self.local_size[0] * self.local_size[1]
        if items > self._built.work_group_limit:
            raise ParameterError(
                f"kernel {spec.number}: as compiled for {device.name} it fits work-groups of at most "
                f"{self._built.work_group_limit} work-items (registers or local memory run out), "
                f"but its parameters ask for {self.local_size[0]} x {self.local_size[1]} = {items}"
            )

    def global_size(self, m: int, n: int, k: int) -> tuple[int, int]:
        """Work-items of the launch for M, N, K. Raises ValueError for sizes that the kernel cannot take."""
        return self.plan(m, n, k).size

    def _whole(self, m: int, n: int, k: int) -> tuple[int, ...]:
        """M, N and K rounded up to `multiples`."""
        return tuple(-(-s // multiple) * multiple for s, multiple in zip((m, n, k), self.multiples, strict=True))

    def _planned(self, m: int, n: int, k: int) -> Plan:
        """What a launch for M, N, K needs; remembered, for Python takes 50 us for it."""
        for name, size, multiple, smallest in zip("MNK", (m, n, k), self.multiples, self._least, strict=True):
            if size < 1 or size % multiple:
                raise ValueError(f"{name}={size} is not a positive multiple of {multiple}, as kernel {self} needs")
            if size < smallest:
                raise ValueError(
                    f"{name}={size} is less than the {smallest} of a tile, as kernel {self} needs: "
                    "edges='pad' and edges='guard' serve any size"
                )
        lda, ldb = self.spec.strides(m, n, k, self.params)
        size = self.spec.global_size(m, n, self.params)
        return Plan(self._for(m, n), size, lda, ldb, *self._pieced(m, n))

    def _pieced(self, m: int, n: int) -> tuple[tuple[int, int], int]:
        """Work-items of `join.cl`, in work-groups of 256, and whether it goes by tiles or by cuts."""
        if self._join is None:
            return (0, 0), 0
        rows, cols, _ = self.spec.tiles(self.params)
        tiles, cuts = math.prod(self.spec.tiled(m, n, self.params)), max(1, self.params["GROUPS"] - 1)
        return (256 * min(tiles, cuts), -(-rows * cols // (4 * 256))), int(tiles <= cuts)

    def _for(self, m: int, n: int) -> Built:
        """The kernel, compiled for as many rows or columns as SPLIT leaves here: sums for more of them cost time."""
        count = max(self.spec.behind(m, n, self.params))
        if count in (0, self.params.get("SPLIT")):
            return self._built
        return build(self.device, self.context, self._title, self.source, {**self.params, "COUNT": count})

    def strides(self, m: int, n: int, k: int) -> tuple[int, int]:
        """Floats from one column to the next: of A, and of B as the kernel wants it. C has no gaps."""
        plan = self.plan(m, n, k)
        return plan.lda, plan.ldb

    def __call__(self, m: int, n: int, k: int, a, b, c, queue: cl.CommandQueue | None = None) -> cl.Event:
        """Launch C = A B without any copy; return the last event.

        Args:
            m, n, k: sizes, multiples of `multiples`.
            a: M x K, column-major float32 (a ``pyopencl.array.Array``, or a ``pyopencl.Buffer``), columns
                ``strides(m, n, k)[0]`` floats apart.
            b: K x N likewise; N x K if `b_transposed`.
            c: M x N likewise, overwritten.
            queue: where to launch, one that runs in order; the device's own by default.
        """
        return self.passes(m, n, k, a, b, c, queue)[-1][1]

    def passes(self, m: int, n: int, k: int, a, b, c, queue: cl.CommandQueue | None = None):
        """The same; return the events of all that was launched by name: "gemm", and "join" where needed."""
        lda, ldb = self.strides(m, n, k)
        elements = lda * k, ldb * (k if self.b_transposed else n), m * n
        buffers = [self._buffer(*given) for given in zip("abc", (a, b, c), elements, strict=True)]
        return self.enqueue(m, n, k, buffers, in_order(queue) if queue else self.device.queue)

    def enqueue(self, m: int, n: int, k: int, buffers, queue: cl.CommandQueue) -> list[tuple[str, cl.Event]]:
        """`passes` for those who know that the three buffers hold what the launch needs: asking takes a while."""
        plan = self.plan(m, n, k)
        kernel = plan.built
        if not self.spec.pieces:
            return [("gemm", kernel(queue, plan.size, self.local_size, m, n, k, *buffers))]
        if not self.pieces:
            return [("gemm", kernel(queue, plan.size, self.local_size, m, n, k, *buffers, None))]
        with self._sharing:  # another thread's launch in between would overwrite the pieces
            if queue not in self._pieces:
                if len(self._pieces) == 8:  # more queues than anybody uses at once
                    self._pieces.clear()
                self._pieces[queue] = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, 4 * self.pieces)
                if self._join is None:  # the counters behind the pieces
                    cl.enqueue_fill_buffer(queue, self._pieces[queue], np.int32(0), 0, 4 * self.pieces)
            pieces = self._pieces[queue]
            gemm = kernel(queue, plan.size, self.local_size, m, n, k, *buffers, pieces)
            if self._join is None:
                return [("gemm", gemm)]
            groups = self.params["GROUPS"]
            join = self._join(queue, plan.join_size, (256, 1), m, n, k, groups, plan.by_tile, pieces, buffers[2])
        return [("gemm", gemm), ("join", join)]

    def _buffer(self, name: str, array, elements: int) -> cl.MemoryObjectHolder:
        """The memory of an operand, if it is what the launch needs."""
        if elements >= INDEX_LIMIT and not self.spec.wide:
            raise ValueError(f"{name} has {elements:,} elements; kernels index with 32 bits, below {INDEX_LIMIT:,}")
        buffer = array
        if not isinstance(array, cl.MemoryObjectHolder):
            if hasattr(array, "dtype") and array.dtype != np.float32:
                raise TypeError(f"{name} must be float32, not {array.dtype}")
            if hasattr(array, "strides") and not array.flags.forc:
                raise ValueError(f"{name} has the strides {array.strides}; it must be contiguous")
            buffer = getattr(array, "data", array)
            if not isinstance(buffer, cl.MemoryObjectHolder):
                raise TypeError(f"{name} must be a device array or buffer, not {type(array).__name__}")
            if array.context != self.context:
                raise ValueError(f"{name} lives in another context than this kernel")
        if buffer.size < 4 * elements:
            raise ValueError(f"{name} holds {buffer.size:,} bytes, but {elements:,} float32 elements are needed")
        return buffer

    def __str__(self) -> str:
        return f"{self.spec.number} with " + ", ".join(f"{k}={v}" for k, v in self.params.items())

    def __repr__(self) -> str:
        return f"<gemmlab kernel {self} on {self.device}>"


def kernel(number: int, params: dict[str, int] | None = None, device=None) -> Kernel:
    """Compile kernel `number` for a device: source, options and launch sizes to take away.

    Args:
        number: as in ``gemmlab.catalog``.
        params: such as ``{"TS": 32, "WPT": 8}``; missing ones take their defaults.
        device: a Device, an index or part of a name; the preferred device by default.

    Raises:
        ValueError: for an unknown number.
        ParameterError: for parameters the kernel or the device cannot take, before anything is built.
        BuildError: if the compiler refuses it.
    """
    device = find_device(device)
    return Kernel(find(number), params, device, device.context)
