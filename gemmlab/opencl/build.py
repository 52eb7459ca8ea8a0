"""Compile a kernel's text once, explain compiler errors, and add instructions that OpenCL C does
not have.
"""

from __future__ import annotations

import math
import re
import threading
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from ..caches import cached
from ..ladder import ParameterError
from ..ladder.signature import Parameter
from .api import cl
from .devices import Device

#: Build options of every kernel: plain OpenCL C 1.2, and no relaxed arithmetic.
OPTIONS = ("-cl-std=CL1.2",)
#: Runtimes cache what they have compiled. PyOpenCL's cache would be a second one, whose lock may
#: block for a minute; and of a cached binary Intel's runtime cannot report the types of arguments.
_NO_CACHE: Any = False
#: Characters of each line of a message: a compiler may repeat a megabyte of the source.
LONGEST_LINE = 300
#: Makes the compiler keep the types of arguments.
_ARGUMENT_TYPES = "-cl-kernel-arg-info"
#: OpenCL C's scalar types.
_SCALARS = {
    "char": np.int8,
    "uchar": np.uint8,
    "short": np.int16,
    "ushort": np.uint16,
    "int": np.int32,
    "uint": np.uint32,
    "long": np.int64,
    "ulong": np.uint64,
    "half": np.float16,
    "float": np.float32,
    "double": np.float64,
}
#: Address spaces, as `Parameter` names them.
_SPACES = {
    getattr(cl.kernel_arg_address_qualifier, name.upper()): name
    for name in ("global", "constant", "local", "private")
}


class BuildError(RuntimeError):
    """The compiler rejected a kernel. `log` is its whole output; the message shows the lines that
    it names.
    """

    __module__ = "gemmlab"

    def __init__(self, title: str, log: str, source: str):
        super().__init__(title, log, source)  # all of it, so that it can be sent to another process
        self.log = log
        self._words = f"{title} does not compile:\n{_explain(log, source)}"

    def __str__(self) -> str:
        return self._words


class WorkGroupError(ParameterError):
    """A kernel as compiled fits only work-groups of up to `limit` work-items, for lack of registers
    or local memory.
    """

    def __init__(self, message: str, limit: int):
        super().__init__(message, limit)  # both, so that it can be sent to another process
        self.message: str = message
        self.limit: int = limit

    def __str__(self) -> str:
        return self.message


class Built:
    """One compiled OpenCL kernel. A lock makes setting its arguments and launching it a single
    step.

    `types` are those of the scalar arguments, None for the others; `seconds` says how long
    compiling took; `work_group_limit` is that of work-items in a work-group, and `local_memory`
    what a work-group takes of it, in bytes.
    """

    def __init__(
        self, program: cl.Program, kernel: cl.Kernel, described: cl.Kernel, device: Device
    ):
        self.program: cl.Program = program
        self.kernel: cl.Kernel = kernel
        self.seconds: float = 0.0
        self.types: list[Any] = [_type(described, index) for index in range(kernel.num_args)]
        kernel.set_scalar_arg_dtypes(self.types)
        info = cl.kernel_work_group_info
        self.local_memory: int = kernel.get_work_group_info(info.LOCAL_MEM_SIZE, device.cl)
        self.work_group_limit: int = kernel.get_work_group_info(info.WORK_GROUP_SIZE, device.cl)
        if "nvidia" in device.features:
            # NVIDIA reports 256 for every kernel, even for one that it compiled for a required 32 x
            # 32
            required = kernel.get_work_group_info(info.COMPILE_WORK_GROUP_SIZE, device.cl)
            self.work_group_limit = max(self.work_group_limit, math.prod(required))
        self._lock, self._device, self._described = threading.Lock(), device, described

    @property
    def parameters(self) -> list[Parameter]:
        """The kernel's parameters."""
        return [_parameter(self._described, *pair) for pair in enumerate(self.types)]

    def check_fits(self, title: str, items: int) -> None:
        """Reject work-groups of so many work-items, or with so much local memory, that they are too
        large.

        Compilers for GPUs refuse too much local memory themselves, and NVIDIA's driver reports more
        than a kernel declares; runtimes for CPUs fail at the launch.
        """
        limits = self._device.limits
        if self._device.kind == "CPU" and self.local_memory > limits.local_memory:
            raise ParameterError(
                f"{title}: as compiled it uses {self.local_memory:,} bytes of local memory, but "
                f"{limits.name} allows {limits.local_memory:,} per work-group"
            )
        if items > self.work_group_limit:
            raise WorkGroupError(
                f"{title}: as compiled for {self._device.name} it fits work-groups of at most "
                f"{self.work_group_limit} work-items (registers or local memory run out), but its "
                f"parameters ask for {items}",
                self.work_group_limit,
            )

    def __call__(
        self,
        queue: cl.CommandQueue,
        global_size: tuple[int, ...],
        local_size: tuple[int, ...],
        *args: Any,
    ) -> cl.Event:
        with self._lock:
            return self.kernel(queue, global_size, local_size, *args)


class Bound(NamedTuple):
    """A kernel with its sizes and its arguments: what a queue is given."""

    built: Built
    global_size: tuple[int, ...]
    local_size: tuple[int, ...]
    args: tuple[Any, ...]  # numbers, buffers, and what stands for buffers in a plan

    def __call__(self, queue: cl.CommandQueue) -> cl.Event:
        return self.built(queue, self.global_size, self.local_size, *self.args)


def build(
    device: Device,
    context: cl.Context,
    title: str,
    text: str,
    params: Mapping[str, int | str],
    name: str = "gemm",
    flags: tuple[str, ...] = (),
) -> Built:
    """Return kernel `name` of a text in OpenCL C, compiled once, with `params` as macros and more
    flags.

    Raise BuildError with this title if the compiler rejects it, TypeError if `text` is no string,
    and ValueError if it cannot be encoded.
    """
    if not isinstance(text, str):
        raise TypeError(f"source must be OpenCL C text, not {type(text).__name__}: {text!r}")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"source has a character that is none: {error}") from None
    start = time.perf_counter()
    macros = (*options(params), *flags)
    program, from_source = _program(device, context, title, text, macros)
    try:
        kernel, described = cl.Kernel(program, name), cl.Kernel(from_source, name)
    except cl.Error:
        raise BuildError(title, f"it has no kernel named {name}", text) from None
    built = Built(program, kernel, described, device)
    built.seconds = time.perf_counter() - start
    return built


def options(params: Mapping[str, int | str]) -> tuple[str, ...]:
    """Return the build options that set a kernel's parameters."""
    return (*OPTIONS, *(f"-D{name}={value}" for name, value in params.items()))


@cached(256)
def _program(
    device: Device, context: cl.Context, title: str, text: str, flags: tuple[str, ...]
) -> tuple[cl.Program, cl.Program]:
    """Return the compiled program, and the one that knows the types of its kernels' arguments."""
    with warnings.catch_warnings():
        # NVIDIA prints messages even when all is well
        warnings.simplefilter("ignore", cl.CompilerWarning)
        log = ""
        try:
            options = [*flags, _ARGUMENT_TYPES]
            program = cl.Program(context, text).build(
                options, devices=[device.cl], cache_dir=_NO_CACHE
            )
        except cl.Error as error:
            log = str(error)
        # not raised in the handler: PyOpenCL's error, its context, cannot be sent to a process
        if log:
            saved = re.search(r"\(source saved as (.+)\)", log)
            # PyOpenCL writes a copy of the source; the message below shows the lines instead
            if saved:
                Path(saved[1]).unlink(missing_ok=True)
            raise BuildError(title, log, text)
        if "warpgroups" in device.features and HIDDEN in text:
            ptx = program.get_info(cl.program_info.BINARIES)[0].decode(errors="replace")
            return cl.Program(context, [device.cl], [for_hopper(ptx).encode()]).build(), program
        return program, program


#: Hides instructions that OpenCL's compiler does not know: it reads them as comments.
HIDDEN = "//@ "


def for_hopper(ptx: str) -> str:
    """Return a program's PTX, for Hopper only, with the hidden instructions revealed."""
    ptx = ptx[: ptx.rindex("}") + 1].replace(HIDDEN, "")
    return re.sub(r"^\.target sm_90\b", ".target sm_90a", ptx, count=1, flags=re.M)


def _type(kernel: cl.Kernel, index: int) -> Any:
    """Return NumPy's type of a scalar argument; None for pointers and vectors."""
    name: Any = kernel.get_arg_info(index, cl.kernel_arg_info.TYPE_NAME)
    scalar = _SCALARS.get(name)
    space: Any = kernel.get_arg_info(index, cl.kernel_arg_info.ADDRESS_QUALIFIER)
    if scalar or space != cl.kernel_arg_address_qualifier.PRIVATE:
        return scalar
    for kind in (np.int32, np.int64, np.int16, np.int8):  # a type that the text names: by its size
        with suppress(cl.Error):
            kernel.set_arg(index, kind(0))
            return kind
    return None


def _parameter(kernel: cl.Kernel, index: int, scalar: Any) -> Parameter:
    """Return a parameter by the runtime's word; `scalar` is its `_type`."""
    info = cl.kernel_arg_info
    names = [kernel.get_arg_info(index, what) for what in (info.NAME, info.TYPE_NAME)]
    name, written = map(str, names)
    if scalar and written not in _SCALARS:  # a name that the text defines
        written = next(name for name, kind in _SCALARS.items() if kind is scalar)
    space: Any = kernel.get_arg_info(index, info.ADDRESS_QUALIFIER)
    return Parameter(name, written, _SPACES[space])


def _explain(log: str, source: str) -> str:
    """Return each error of a build log with the lines of the kernel around it."""
    lines = source.splitlines()
    shown, seen = [], set()
    # clang and NVIDIA say "FILE:LINE:COLUMN: error: WORDS", PoCL "error: FILE:LINE:COLUMN: WORDS"
    for match in re.finditer(
        r"(error: )?[^\s:]*:(\d+):\d+(?: <[^>]*>)?: (?:fatal )?(error: )?([^\n]*)", log
    ):
        number, message = int(match[2]), match[4]
        is_error = match[1] or match[3]
        if not is_error or (number, message) in seen or not 1 <= number <= len(lines):
            continue
        seen.add((number, message))
        around = range(max(1, number - 2), min(len(lines), number + 2) + 1)
        excerpt = "\n".join(
            f"  {'>' if i == number else ' '} {i:4d} | {lines[i - 1]}" for i in around
        )
        shown.append(f"line {number}: {message}\n{excerpt}")
    message = "\n".join(shown[:5]) or log.strip()[:2000]
    return "\n".join(line[:LONGEST_LINE] for line in message.splitlines())
