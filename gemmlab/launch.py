"""Build kernels once, keep them, and launch them on column-major device memory."""

from __future__ import annotations

import math
import re
import threading
import time
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyopencl as cl

from . import sources
from .catalog import KernelSpec, ParameterError, find
from .device import Device, find_device

#: Build options of every kernel. Kernels are plain OpenCL C 1.2, and exact: no relaxed arithmetic.
OPTIONS = ("-cl-std=CL1.2",)

INDEX_LIMIT = 2**31


class BuildError(RuntimeError):
    """The compiler refused a kernel. `log` is all it said; the message shows the lines it points at."""

    def __init__(self, title: str, log: str, source: str):
        self.log = log
        super().__init__(f"{title} does not compile:\n{_explain(log, source)}")


class Built:
    """One compiled OpenCL kernel with the lock that makes setting arguments and launching one step."""

    def __init__(self, kernel: cl.Kernel, device: Device, seconds: float):
        self.kernel = kernel
        self.seconds = seconds
        info = cl.kernel_work_group_info
        self.work_group_limit = kernel.get_work_group_info(info.WORK_GROUP_SIZE, device.cl)
        if "nvidia" in device.features:
            # NVIDIA says 256 of every kernel, even of one that it compiled for a required 32 x 32
            required = kernel.get_work_group_info(info.COMPILE_WORK_GROUP_SIZE, device.cl)
            self.work_group_limit = max(self.work_group_limit, math.prod(required))
        self._lock = threading.Lock()

    def __call__(self, queue: cl.CommandQueue, global_size, local_size, *args) -> cl.Event:
        with self._lock:
            return self.kernel(queue, global_size, local_size, *args)


def build(device: Device, context: cl.Context, title: str, text: str, params: dict[str, int], name="gemm") -> Built:
    """Compile kernel `name` of `text` with `params` as macros, or return the one built before.

    Raises:
        BuildError: with the compiler's words beside the lines they are about.
    """
    return _build(device, context, title, text, options(params), name)


def options(params: dict[str, int]) -> tuple[str, ...]:
    """The build options that set a kernel's parameters."""
    return (*OPTIONS, *(f"-D{name}={value}" for name, value in params.items()))


@lru_cache(maxsize=256)
def _build(device: Device, context: cl.Context, title: str, text: str, flags: tuple[str, ...], name: str) -> Built:
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cl.CompilerWarning)  # NVIDIA talks even when all is well
        try:
            program = cl.Program(context, text).build(list(flags), devices=[device.cl])
        except cl.Error as error:
            log = str(error)
            saved = re.search(r"\(source saved as (.+)\)", log)
            if saved:  # PyOpenCL leaves a copy of the source behind; the message below shows the lines
                Path(saved[1]).unlink(missing_ok=True)
            raise BuildError(title, log, text) from None
        if "warpgroups" in device.features and HIDDEN in text:
            ptx = program.get_info(cl.program_info.BINARIES)[0].decode(errors="replace")
            program = cl.Program(context, [device.cl], [for_hopper(ptx).encode()]).build()
        try:
            kernel = cl.Kernel(program, name)
        except cl.Error:
            raise BuildError(title, f"it has no kernel named {name}", text) from None
    _declare(kernel, text, name)
    return Built(kernel, device, time.perf_counter() - start)


#: What hides instructions that OpenCL's compiler does not know: to it they are comments.
HIDDEN = "//@ "


def for_hopper(ptx: str) -> str:
    """A program's PTX (what NVIDIA's OpenCL gives as its binary) with its hidden instructions, for Hopper alone."""
    ptx = ptx[: ptx.rindex("}") + 1].replace(HIDDEN, "")
    return re.sub(r"^\.target sm_90\b", ".target sm_90a", ptx, count=1, flags=re.M)


def _declare(kernel: cl.Kernel, text: str, name: str) -> None:
    """Tell PyOpenCL the types of the scalar arguments, read from the kernel's own signature."""
    signature = re.search(rf"\b{name}\s*\(([^)]*)\)\s*{{", re.sub(r"//.*", "", text))
    types = {"int": np.int32, "long": np.int64, "float": np.float32}
    if signature is None:
        return
    arguments = signature[1].split(",")
    kernel.set_scalar_arg_dtypes(
        [None if "*" in a else next((types[w] for w in a.split() if w in types), None) for a in arguments]
    )


def _explain(log: str, source: str) -> str:
    """Each error of a build log with the lines of the kernel around it."""
    lines = source.splitlines()
    shown, seen = [], set()
    # clang and NVIDIA say "FILE:LINE:COLUMN: error: WORDS", PoCL "error: FILE:LINE:COLUMN: WORDS"
    for place in re.finditer(r"(error: )?[^\s:]*:(\d+):\d+: (?:fatal )?(error: )?([^\n]*)", log):
        number, message = int(place[2]), place[4]
        if not (place[1] or place[3]):
            continue
        if (number, message) in seen or not 1 <= number <= len(lines):
            continue
        seen.add((number, message))
        near = range(max(1, number - 2), min(len(lines), number + 2) + 1)
        excerpt = "\n".join(f"  {'>' if i == number else ' '} {i:4d} | {lines[i - 1]}" for i in near)
        shown.append(f"line {number}: {message}\n{excerpt}")
    return "\n".join(shown[:5]) or log.strip()[:2000]


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
        pieces: floats of memory that it takes beside A, B and C, for tiles which several work-groups share.
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
        title = f"kernel {spec.number} ({spec.file})"
        self.source = sources.read(spec.file) if text is None else text
        self._built = build(device, context, title, self.source, self.params)
        self._least = spec.least(self.params)
        self.plan = lru_cache(maxsize=64)(self._planned)
        self._join = None
        if self.pieces:
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
        return self.plan(m, n, k)[0]

    def _planned(self, m: int, n: int, k: int) -> tuple[tuple[int, int], int, int]:
        """The work-items of the launch, and the strides of A and B; remembered, for Python needs 50 us for them."""
        for name, size, multiple, smallest in zip("MNK", (m, n, k), self.multiples, self._least, strict=True):
            if size < 1 or size % multiple:
                raise ValueError(f"{name}={size} is not a positive multiple of {multiple}, as kernel {self} needs")
            if size < smallest:
                raise ValueError(
                    f"{name}={size} is less than the {smallest} of a tile, as kernel {self} needs: "
                    "edges='pad' and edges='guard' serve any size"
                )
        return self.spec.global_size(m, n, self.params), *self.spec.strides(m, n, k, self.params)

    def strides(self, m: int, n: int, k: int) -> tuple[int, int]:
        """Floats from one column to the next: of A, and of B as the kernel wants it. C has no gaps."""
        return self.plan(m, n, k)[1:]

    def __call__(self, m: int, n: int, k: int, a, b, c, queue: cl.CommandQueue | None = None) -> cl.Event:
        """Launch C = A B without any copy; return the last event.

        Args:
            m, n, k: sizes, multiples of `multiples`.
            a: M x K, column-major float32 (a ``pyopencl.array.Array``, or a ``pyopencl.Buffer``), columns
                ``strides(m, n, k)[0]`` floats apart.
            b: K x N likewise; N x K if `b_transposed`.
            c: M x N likewise, overwritten.
            queue: where to launch; the device's own queue by default.
        """
        return self.passes(m, n, k, a, b, c, queue)[-1][1]

    def passes(self, m: int, n: int, k: int, a, b, c, queue: cl.CommandQueue | None = None):
        """The same; return the events of all that was launched by name: "gemm", and "join" if tiles are shared."""
        size, lda, ldb = self.plan(m, n, k)
        elements = lda * k, ldb * (k if self.b_transposed else n), m * n
        buffers = [self._buffer(*given) for given in zip("abc", (a, b, c), elements, strict=True)]
        queue = queue or self.device.queue
        if not self.spec.pieces:
            return [("gemm", self._built(queue, size, self.local_size, m, n, k, *buffers))]
        if not self.pieces:
            return [("gemm", self._built(queue, size, self.local_size, m, n, k, *buffers, None))]
        rows, cols, _ = self.spec.tiles(self.params)
        groups = size[0] // self.local_size[0]
        cuts = 256 * max(1, groups - 1), -(-rows * cols // (4 * 256))
        with self._sharing:  # another thread's launch in between would overwrite the pieces
            if queue not in self._pieces:
                if len(self._pieces) == 8:  # more queues than anybody uses at once
                    self._pieces.clear()
                self._pieces[queue] = cl.Buffer(self.context, cl.mem_flags.READ_WRITE, 4 * self.pieces)
            pieces = self._pieces[queue]
            gemm = self._built(queue, size, self.local_size, m, n, k, *buffers, pieces)
            join = self._join(queue, cuts, (256, 1), m, n, k, groups, pieces, buffers[2])
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
