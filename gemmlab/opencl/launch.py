"""Launch kernels on column-major device memory."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

from ..ladder import KernelSpec, Key, cuda, find, fixup, signature, sources
from .api import cl
from .build import Bound, BuildError, Built, build, options
from .devices import Device, find_device


class Kernel:
    """One kernel of the ladder, compiled for one device with one set of parameters.

    Attributes:
        source: the OpenCL C text; of a production kernel only what its parameters need. Without
            `opencl`, kernels 19 and "warpgroups" give NaN on Hopper unless TENSOR is 0: only
            gemmlab reveals their hidden instructions.
        options: the build options, parameters among them.
        params: all parameters.
        local_size: work-items of a work-group.
        multiples: what M, N and K must be multiples of.
        b_transposed: whether it expects B as N x K instead of K x N.
        workspace: floats of memory for partial tiles, 0 if it shares no tiles.
        swapped: whether it stores the transpose of C, N x M.
        path: which of the kernel's paths runs here: "plain", or the device's features that are
            switched on.
        opencl: the `pyopencl.Kernel`.
        build_seconds: how long compiling took, in seconds (almost 0 if it was cached on disk).
    """

    spec: KernelSpec
    device: Device
    context: cl.Context
    swapped: bool
    params: dict[str, int]
    local_size: tuple[int, int]
    multiples: tuple[int, int, int]
    b_transposed: bool
    workspace: int
    options: tuple[str, ...]
    path: str
    source: str
    opencl: cl.Kernel
    build_seconds: float

    def __init__(
        self,
        spec: KernelSpec,
        params: Mapping[str, int] | None,
        device: Device,
        context: cl.Context,
        text: str | None = None,
        swapped: bool = False,
    ):
        self.spec, self.device, self.context, self.swapped = spec, device, context, swapped
        self.params = spec.validate(params, device.limits)
        self.local_size = spec.local_size(self.params)
        self.multiples = spec.multiples(self.params)
        self.b_transposed = spec.wants_transposed(self.params)
        self.workspace = spec.workspace(self.params)
        self.options = options(self.params)
        self.path = spec.path(self.params, device.features) if text is None else "of your own"
        self.source = text if text is not None else spec.text(self.params, device.features, swapped)
        self._title = f"kernel {spec.number} ({spec.file})"
        self._built = build(device, context, self._title, self.source, self.params)
        if text is not None:
            problem = signature.problem(self._built.parameters, spec.takes_workspace)
            if problem:
                raise ValueError(f"{self._title}: {problem}")
        self._fixup: Built | None = None
        if spec.needs_fixup(self.params, device.features):
            text, defined = sources.read(fixup.FILE), fixup.parameters(spec, self.params)
            self._fixup = build(device, context, "fixup.cl", text, defined, "fixup")
        self._pieces: cl.Buffer | None = None
        self.opencl = self._built.kernel
        self.build_seconds = self._built.seconds
        self._check_compiled()

    def _check_compiled(self) -> None:
        """Reject other work-groups than this kernel's, and those that are too large for it."""
        spec, device = self.spec, self.device
        size = cl.kernel_work_group_info.COMPILE_WORK_GROUP_SIZE
        required: Any = self.opencl.get_work_group_info(size, device.cl)
        if any(required) and [*required] != [*self.local_size, 1, 1][:3]:
            there, here = (" x ".join(map(str, x)) for x in (required[:2], self.local_size))
            message = (
                f"gemm requires work-groups of {there} instead of {here}, those of kernel {self}"
            )
            raise BuildError(
                self._title, f"{message}: does the text set one of these?", self.source
            )
        self._built.check_fits(f"kernel {spec.number}", prod(self.local_size))

    @property
    def cuda(self) -> str:
        """The kernel with these parameters as CUDA C++; ValueError if there is no translation."""
        return cuda.translate(self.spec, self.params)

    def global_size(self, m: int, n: int, k: int, names: str = "MNK") -> tuple[int, int]:
        """Return work-items of the launch for M, N, K. Raise ValueError for sizes that the kernel
        does not support; `names` are those of the sizes, a letter each.
        """
        self.spec.check_sizes(m, n, k, self.params, names)
        for index, size in enumerate((m, n, k)):
            if size > np.iinfo(self._built.types[index]).max:
                parameter = self._built.parameters[index]
                raise ValueError(f"{size} is beyond the range of gemm's parameter `{parameter}`")
        return self.spec.global_size(m, n, self.params)

    def bound(
        self, m: int, n: int, k: int, buffers: Sequence[Any], queue: cl.CommandQueue
    ) -> list[tuple[str, Bound]]:
        """Return what computes C = A B, by name: "gemm", and "fix-up" where needed. Nothing
        else may be launched between them on this queue, which runs in order and is always the same.

        `m`, `n`, `k` are multiples of `multiples`. The buffers hold column-major float32: A is
        M x K, B is K x N (N x K if `b_transposed`), C is M x N. The columns of A and of B are
        ``spec.leading_dimensions`` floats apart.
        """
        size = self.global_size(m, n, k)
        pieces = self._workspace_on(queue) if self.workspace else None
        arguments = m, n, k, *buffers, *([pieces] if self.spec.takes_workspace else ())
        launches = [("gemm", Bound(self._built, size, self.local_size, arguments))]
        if self._fixup is not None:
            size, scalars = fixup.launch(self.spec, m, n, k, self.params)
            sums = *scalars, pieces, buffers[2]
            launches.append(("fix-up", Bound(self._fixup, size, fixup.LOCAL_SIZE, sums)))
        return launches

    def batch(
        self,
        m: int,
        n: int,
        k: int,
        number: int,
        shared: tuple[bool, bool],
        buffers: Sequence[Any],
    ) -> Bound:
        """Return what launches so many products of adjacent matrices; see `batched`."""
        text = batched(self.source, shared)
        built = build(self.device, self.context, self._title, text, self.params)
        arguments = m, n, k, *buffers, *([None] if self.spec.takes_workspace else ())
        size = *self.global_size(m, n, k), number
        return Bound(built, size, (*self.local_size, 1), arguments)

    def _workspace_on(self, queue: cl.CommandQueue) -> cl.Buffer:
        """Return the memory for partial tiles, made at the first launch."""
        if self._pieces is None:
            size_bytes = 4 * self.workspace
            self._pieces = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, size_bytes)
            if self._fixup is None:  # the counters at its end start at zero
                cl.enqueue_fill_buffer(queue, self._pieces, np.array(0, np.int32), 0, size_bytes)
        return self._pieces

    def __str__(self) -> str:
        return f"{self.spec.number} with " + ", ".join(f"{k}={v}" for k, v in self.params.items())

    def __repr__(self) -> str:
        return f"<gemmlab kernel {self} on {self.device}>"


#: Begins the kernel's body: A, B and C become those of the work-group's own product.
_NEXT = """
    {name} = ({space}void*)(({space}float*){name} + (size_t)get_group_id(2)*{elements});"""


def batched(text: str, shared: tuple[bool, bool]) -> str:
    """Return a kernel's text for products whose matrices are adjacent; the third dimension of a
    launch counts them. `shared` says whether all products share A, and B.
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


def kernel(
    number: Key,
    params: Mapping[str, int] | None = None,
    device: Device | int | str | None = None,
) -> Kernel:
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
