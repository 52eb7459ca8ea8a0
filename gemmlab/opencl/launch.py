"""Launch kernels on column-major device memory."""

from __future__ import annotations

import re
import threading
from math import prod
from typing import Any, NamedTuple

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from ..catalog import KernelSpec, Key, find, sources
from ..catalog.spec import round_up, tiles_over
from .build import Bound, BuildError, Built, WorkGroupError, build, options
from .devices import Device, find_device, in_order

INDEX_LIMIT = 2**31
_FIXUP = 256, 1  # work-group of fixup.cl; each work-item adds up 4 elements of a tile


class Launch(NamedTuple):
    """All that a launch of a kernel for M, N, K needs.

    Attributes:
        global_size: its work-items.
        lda, ldb: leading dimensions of A, and of B as the kernel expects it, in floats.
        fixup_size: work-items of `fixup.cl`, (0, 0) where it is not needed.
        by_tile: 1 if `fixup.cl` has one work-group per tile, 0 if it has one per cut.
    """

    global_size: tuple[int, int]
    lda: int
    ldb: int
    fixup_size: tuple[int, int]
    by_tile: int


class Kernel:
    """One kernel of the ladder, compiled for one device with one set of parameters.

    Attributes:
        source: the OpenCL C text; of a production kernel only what its parameters need.
        options: the build options, parameters among them.
        params: all parameters.
        local_size: work-items of a work-group.
        multiples: what M, N and K must be multiples of.
        b_transposed: whether it expects B as N x K instead of K x N.
        workspace: floats of memory for partial tiles, 0 if it shares no tiles.
        turned: whether it stores the transpose of C, N x M.
        path: which of the kernel's paths runs here: "plain", or the device's features that are
            switched on.
        opencl: the `pyopencl.Kernel`.
        build_seconds: how long compiling took, in seconds (almost 0 if it was cached on disk).
    """

    def __init__(
        self,
        spec: KernelSpec,
        params,
        device: Device,
        context: cl.Context,
        text: str | None = None,
        turned=False,
    ):
        self.spec, self.device, self.context, self.turned = spec, device, context, turned
        self.params = spec.validate(params, device.limits)
        self.local_size = spec.local_size(self.params)
        self.multiples = spec.multiples(self.params)
        self.b_transposed = spec.wants_transposed(self.params)
        self.workspace = spec.workspace(self.params)
        self.options = options(self.params)
        self.path = spec.path(self.params, device.features) if text is None else "of your own"
        self.source = text if text is not None else spec.text(self.params, device.features, turned)
        self._title = f"kernel {spec.number} ({spec.file})"
        self._built = build(device, context, self._title, self.source, self.params)
        self._fixup: Built | None = None
        if spec.needs_fixup(self.params, device.features):
            tile = dict(zip(("TSM", "TSN", "TSK"), spec.tiles(self.params), strict=True))
            text = sources.read("support/fixup.cl")
            self._fixup = build(device, context, "fixup.cl", text, {**self.params, **tile}, "fixup")
        self._workspaces: dict[cl.CommandQueue, cl.Buffer] = {}
        self.sharing = threading.Lock()  # no launch may overwrite partial tiles before their fix-up
        self.opencl = self._built.kernel
        self.build_seconds = self._built.seconds
        self._check_compiled()

    def _check_compiled(self) -> None:
        """Reject a text that is not this kernel, and work-groups that are too large for it."""
        spec, device = self.spec, self.device
        wanted = ["M", "N", "K", "A", "B", "C"] + ["pieces"] * spec.takes_workspace
        if self.opencl.num_args != len(wanted):
            raise BuildError(
                self._title,
                f"gemm has {self.opencl.num_args} arguments instead of {len(wanted)}: "
                f"{', '.join(wanted)}",
                self.source,
            )
        size = cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE
        required: Any = self.opencl.get_work_group_info(size, device.cl)
        if any(required) and [*required] != [*self.local_size, 1, 1][:3]:
            wanted_size, size_here = (
                " x ".join(map(str, shape)) for shape in (required[:2], self.local_size)
            )
            shown = ", ".join(f"{name}={value}" for name, value in self.params.items())
            raise BuildError(
                self._title,
                f"gemm requires work-groups of {wanted_size}, but is launched with {size_here}, "
                f"for {shown}; does the text set one of these itself?",
                self.source,
            )
        limit = self._built.work_group_limit
        if prod(self.local_size) > limit:
            shape = " x ".join(map(str, self.local_size))
            raise WorkGroupError(
                f"kernel {spec.number}: as compiled for {device.name} it fits work-groups of at "
                f"most {limit} work-items (registers or local memory run out), but its parameters "
                f"ask for {shape} = {prod(self.local_size)}",
                limit,
            )

    def global_size(self, m: int, n: int, k: int) -> tuple[int, int]:
        """Work-items of the launch for M, N, K. Raises ValueError for sizes that the kernel does
        not support.
        """
        return self.launch(m, n, k).global_size

    def launch(self, m: int, n: int, k: int) -> Launch:
        """See `Launch`."""
        minimum = self.spec.minimum_sizes(self.params)
        for name, size, multiple, smallest in zip(
            "MNK", (m, n, k), self.multiples, minimum, strict=True
        ):
            if size < 1 or size % multiple:
                raise ValueError(
                    f"{name}={size} is not a positive multiple of {multiple}, as kernel {self} "
                    "needs"
                )
            if size < smallest:
                raise ValueError(
                    f"{name}={size} is less than the {smallest} of a tile, as kernel {self} needs: "
                    "edges='pad' and edges='guard' support any size"
                )
        lda, ldb = self.spec.leading_dimensions(m, n, k, self.params)
        items = self.spec.global_size(m, n, self.params)
        return Launch(items, lda, ldb, *self._fixup_launch(m, n))

    def _fixup_launch(self, m: int, n: int) -> tuple[tuple[int, int], int]:
        """Work-items of `fixup.cl`, and whether it has one work-group per tile rather than one per
        cut.
        """
        if self._fixup is None:
            return (0, 0), 0
        rows, cols, _ = self.spec.tiles(self.params)
        tiles, cuts = (
            prod(self.spec.tile_grid(m, n, self.params)),
            max(1, self.params["GROUPS"] - 1),
        )
        items, _ = _FIXUP
        return (items * min(tiles, cuts), tiles_over(rows * cols, 4 * items)), int(tiles <= cuts)

    def __call__(
        self, m: int, n: int, k: int, a, b, c, queue: cl.CommandQueue | None = None
    ) -> cl.Event:
        """Launch C = A B without any copy; return the last event.

        Args:
            m, n, k: sizes, multiples of `multiples`.
            a: M x K, column-major float32 (a ``pyopencl.array.Array``, or a ``pyopencl.Buffer``),
                columns ``launch(m, n, k).lda`` floats apart.
            b: K x N likewise; N x K if `b_transposed`.
            c: M x N likewise, overwritten.
            queue: where to launch, one that runs in order; the device's own by default.
        """
        return self.passes(m, n, k, a, b, c, queue)[-1][1]

    def passes(self, m: int, n: int, k: int, a, b, c, queue: cl.CommandQueue | None = None):
        """The same; return the events of all that was launched by name: "gemm", and "fix-up" where
        needed.
        """
        launch = self.launch(m, n, k)
        elements = launch.lda * k, launch.ldb * (k if self.b_transposed else n), m * n
        buffers = [self._buffer(*given) for given in zip("abc", (a, b, c), elements, strict=True)]
        queue = in_order(queue) if queue else self.device.queue
        with self.sharing:
            return [(name, bound(queue)) for name, bound in self.bound(m, n, k, buffers, queue)]

    def bound(
        self, m: int, n: int, k: int, buffers, queue: cl.CommandQueue
    ) -> list[tuple[str, Bound]]:
        """What `passes` launches, by name; hold `sharing` until everything is launched."""
        launch = self.launch(m, n, k)
        pieces = self._workspace_of(queue) if self.workspace else None
        arguments = m, n, k, *buffers, *([pieces] if self.spec.takes_workspace else ())
        launches = [("gemm", Bound(self._built, launch.global_size, self.local_size, arguments))]
        if self._fixup is not None:
            sums = m, n, k, self.params["GROUPS"], launch.by_tile, pieces, buffers[2]
            launches.append(("fix-up", Bound(self._fixup, launch.fixup_size, _FIXUP, sums)))
        return launches

    def batch(
        self, m: int, n: int, k: int, number: int, shared: tuple[bool, bool], buffers
    ) -> Bound:
        """What launches so many products, whose matrices are adjacent, by a kernel without a
        workspace.

        Args:
            m, n, k: sizes of each product, multiples of `multiples`.
            number: of products; the third dimension of the launch counts them.
            shared: whether all products share A, and B.
            buffers: those of A, B and C.
        """
        launch, text = self.launch(m, n, k), batched(self.source, shared)
        built = build(self.device, self.context, self._title, text, self.params)
        arguments = m, n, k, *buffers, *([None] if self.spec.takes_workspace else ())
        return Bound(built, (*launch.global_size, number), (*self.local_size, 1), arguments)

    def _workspace_of(self, queue: cl.CommandQueue) -> cl.Buffer:
        """The memory for partial tiles of the launches on a queue, made at the first one."""
        if queue not in self._workspaces:
            if len(self._workspaces) == 8:  # more queues than anybody uses at once
                self._workspaces.clear()
            made = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, 4 * self.workspace)
            if self._fixup is None:  # the counters at its end start at zero
                cl.enqueue_fill_buffer(queue, made, np.int32(0), 0, 4 * self.workspace)
            self._workspaces[queue] = made
        return self._workspaces[queue]

    def _buffer(self, name: str, array: Any, elements: int) -> cl.MemoryObjectHolder:
        """The memory of an operand, if it is what the launch needs."""
        if elements >= INDEX_LIMIT and not self.spec.wide:
            raise ValueError(
                f"{name} has {elements:,} elements; kernels index with 32 bits, below "
                f"{INDEX_LIMIT:,}"
            )
        if isinstance(array, cla.Array):
            if (array.dtype, array.flags.forc, array.context) != (np.float32, True, self.context):
                raise ValueError(
                    f"{name} must be a contiguous float32 array in the kernel's context, not "
                    f"{array.dtype} with the strides {array.strides}"
                )
            array = array.data
        if not isinstance(array, cl.MemoryObjectHolder):
            raise TypeError(f"{name} must be a device array or buffer, not {type(array).__name__}")
        if array.size < 4 * elements:
            raise ValueError(
                f"{name} has {array.size:,} bytes, but {elements:,} float32 elements are needed"
            )
        return array

    def __str__(self) -> str:
        return f"{self.spec.number} with " + ", ".join(f"{k}={v}" for k, v in self.params.items())

    def __repr__(self) -> str:
        return f"<gemmlab kernel {self} on {self.device}>"


#: Begins the kernel's body: A, B and C become those of the work-group's own product.
_NEXT = """
    {name} = ({space}void*)(({space}float*){name} + (size_t)get_group_id(2)*{elements});"""


def batched(text: str, shared: tuple[bool, bool]) -> str:
    """A kernel's text for products whose matrices are adjacent; the third dimension of a launch
    counts them.

    Args:
        text: of a kernel of the ladder.
        shared: whether all products share A, and B.
    """
    begin = re.search(r"__kernel[^{]*\bgemm\s*\([^{]*\{", text)
    assert begin, "every kernel of the ladder is named gemm"
    moved = [
        ("A", "const __global ", "M*K"),
        ("B", "const __global ", "K*N"),
        ("C", "__global ", "M*N"),
    ]
    moved = [each for each, still in zip(moved, (*shared, False), strict=True) if not still]
    lines = "".join(
        _NEXT.format(name=name, space=space, elements=elements) for name, space, elements in moved
    )
    return text[: begin.end()] + lines + text[begin.end() :]


def whole(m: int, n: int, k: int, multiples: tuple[int, int, int]) -> tuple[int, int, int]:
    """M, N and K rounded up to whole tiles."""
    return round_up(m, multiples[0]), round_up(n, multiples[1]), round_up(k, multiples[2])


def kernel(number: Key, params: dict[str, int] | None = None, device=None) -> Kernel:
    """Compile kernel `number` for a device, to use its source, options and launch sizes elsewhere.

    Args:
        number: as in ``gemmlab.catalog``.
        params: such as ``{"TS": 32, "WPT": 8}``; missing ones take their defaults.
        device: a Device, an index or part of a name; the preferred device by default.

    Raises:
        ValueError: for an unknown number.
        ParameterError: for parameters the kernel or the device cannot take, before anything is
            built.
        BuildError: if the compiler rejects it.
    """
    device = find_device(device)
    return Kernel(find(number), params, device, device.context)
