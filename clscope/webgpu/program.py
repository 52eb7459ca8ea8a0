"""Programs and kernels: OpenCL C, translated when it is built, and run."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from functools import cache
from math import prod
from typing import Any

import numpy as np

from ..parser import parse_with
from ..text import Preprocessor, TextError, explained
from ..tree import Function
from ..types import Pointer
from ..wgsl import Shader, Style, translate
from .memory import Buffer, enqueue_copy
from .queue import (
    CommandQueue,
    Context,
    Device,
    Error,
    Event,
    LogicError,
    RuntimeError,
    host_times,
    kernel_arg_address_qualifier,
    kernel_arg_info,
    kernel_work_group_info,
    mem_flags,
)

#: NumPy's types of a shader's scalars.
SCALARS = {"f32": np.float32, "i32": np.int32, "u32": np.uint32}
#: A GPU finishes what it has begun, so loops that may not end are counted.
STYLE = Style(counted=True)
#: Work-groups that a launch may have in each dimension.
MOST_GROUPS = 65535
Size = tuple[int, int, int]


class CompilerWarning(UserWarning):
    """What a compiler says although it has succeeded; this one does not."""


class Program:
    """A text in OpenCL C. After `build`, its kernels are attributes."""

    def __init__(self, context: Context, src: str):
        self.context = context
        self.source: str = src
        self.functions: dict[str, Function] = {}
        self._defines: dict[str, str] = {}

    def build(
        self,
        options: str | Sequence[str] = (),
        devices: Sequence[Device] | None = None,
        cache_dir: Any = None,
    ) -> Program:
        """Translate all kernels, and have the browser compile those that name a work-group.

        Raises:
            RuntimeError: with lines "<kernel>:LINE:COLUMN: error: ...".
        """
        words = options.split() if isinstance(options, str) else options
        named = re.findall(r"^-D ?(\w+)(?:=(.*))?$", "\n".join(words), re.MULTILINE)
        self._defines = {name: value or "1" for name, value in named}
        try:
            with explained(self.source):
                functions = parse_with(Preprocessor(self._defines), self.source).functions
            self.functions = {f.name: f for f in functions if f.kernel and f.body is not None}
            for name, function in self.functions.items():
                if function.size:
                    self.compile(name, _padded(function.size))
                else:
                    self.translate(name, (1, 1, 1))
        except TextError as error:
            through = f" (in the macro {error.spot.macro})" if error.spot.macro else ""
            place = f"{error.line}:{error.column}"
            raise RuntimeError(f"<kernel>:{place}: error: {error.message}{through}") from None
        return self

    @cache  # noqa: B019 (as long as the program)
    def translate(self, name: str, size: Size) -> Shader:
        """Return a kernel for work-groups of this size."""
        return translate(self.source, name, self._defines, STYLE, size)

    def compile(self, name: str, size: Size) -> Any:
        """Return the pipeline of a kernel for work-groups of this size."""
        return self._compile(name, size, self.context.gpu.opened)

    @cache  # noqa: B019
    def _compile(self, name: str, size: Size, opened: int) -> Any:
        try:
            return self.context.gpu.build(self.translate(name, size))
        except ValueError as error:
            if isinstance(error, TextError):
                raise
            line, _, words = str(error).removeprefix("line ").partition(": ")
            line, words = (line, words) if line.isdigit() else ("1", str(error))
            raise RuntimeError(f"<kernel>:{line}:1: error: {words}") from None

    def __getattr__(self, name: str) -> Kernel:
        if name.startswith("_") or name not in self.functions:
            raise AttributeError(name)
        return Kernel(self, name)

    def get_info(self, what: int) -> Any:
        raise Error("WebGPU does not show what its compiler makes of a program")


class Kernel:
    """A kernel of a program, with its arguments."""

    def __init__(self, program: Program, name: str):
        if name not in program.functions:
            raise LogicError(f"the program has no kernel {name}")
        self.program = program
        self.function_name: str = name
        self._function: Function = program.functions[name]
        self.num_args: int = len(self._function.params)
        self._kinds: list[Any] = [None] * self.num_args
        self._args: list[Any] = [None] * self.num_args

    def set_scalar_arg_dtypes(self, kinds: Sequence[Any]) -> None:
        """Convert scalar arguments of calls to these types; None for buffers."""
        self._kinds = list(kinds)

    def set_arg(self, index: int, arg: Any) -> None:
        is_pointer = isinstance(self._function.params[index].type, Pointer)
        if is_pointer != (arg is None or isinstance(arg, Buffer)):
            kind = "a buffer" if is_pointer else "a number"
            raise LogicError(f"argument {index} of {self.function_name} is {kind}")
        self._args[index] = arg

    def get_arg_info(self, index: int, what: int) -> Any:
        param = self._function.params[index]
        match what:
            case kernel_arg_info.NAME:
                return param.name
            case kernel_arg_info.TYPE_NAME:
                kind = param.type
                return f"{kind.to}*" if isinstance(kind, Pointer) else str(kind)
            case kernel_arg_info.ADDRESS_QUALIFIER:
                space = param.type.space if isinstance(param.type, Pointer) else "private"
                return kernel_arg_address_qualifier[space.upper()]
        raise LogicError(f"an argument has no information {what}")

    def get_work_group_info(self, what: int, device: Device) -> Any:
        size = _padded(self._function.size) if self._function.size else (0, 0, 0)
        match what:
            case kernel_work_group_info.WORK_GROUP_SIZE:
                return device.max_work_group_size
            case kernel_work_group_info.COMPILE_WORK_GROUP_SIZE:
                return list(size)
            case kernel_work_group_info.LOCAL_MEM_SIZE:
                least = size if prod(size) else (1, 1, 1)
                return self.program.translate(self.function_name, least).local_bytes
        raise LogicError(f"a kernel has no information {what}")

    def get_info(self, what: int) -> Any:
        return self.program

    def __call__(
        self,
        queue: CommandQueue,
        global_size: Sequence[int],
        local_size: Sequence[int],
        *args: Any,
        **options: Any,
    ) -> Event:
        for index, (value, kind) in enumerate(zip(args, self._kinds, strict=True)):
            is_number = kind is not None and not isinstance(value, Buffer)
            self.set_arg(index, kind(value) if is_number else value)
        return enqueue_nd_range_kernel(queue, self, global_size, local_size)

    def bind(self, shader: Shader) -> tuple[list[tuple[Any, int, int]], bytes, list[Buffer]]:
        """Return a shader's bindings and scalars, and the buffers that must live until the launch.

        WebGPU does not let a kernel read a buffer that it writes by another argument: then it reads
        a copy.
        """
        kinds, written = dict(shader.scalars), {b.name: b.written for b in shader.buffers}
        pairs = list(zip(self._function.params, self._args, strict=True))
        stored = {id(x.handle) for p, x in pairs if written.get(p.name) and x is not None}
        buffers: list[Buffer] = []
        scalars = b""
        for param, value in pairs:
            if param.name in kinds:
                scalars += np.asarray(value).astype(SCALARS[kinds[param.name]]).tobytes()
                continue
            context = self.program.context
            buffer = _nothing(context, context.gpu.opened) if value is None else value
            if id(buffer.handle) in stored and not written[param.name]:
                buffer = _copied(buffer)
            buffers.append(buffer)
        return [(b.handle, b.offset, b.size) for b in buffers], scalars, buffers


def enqueue_nd_range_kernel(
    queue: CommandQueue,
    kernel: Kernel,
    global_work_size: Sequence[int],
    local_work_size: Sequence[int],
    **options: Any,
) -> Event:
    """Launch a kernel with the arguments that it has."""
    items, local = _padded(global_work_size), _padded(local_work_size)
    required = kernel.get_work_group_info(
        kernel_work_group_info.COMPILE_WORK_GROUP_SIZE, queue.device
    )
    if prod(required) and tuple(required) != local:
        raise LogicError(f"work-groups of {local}; the kernel requires {tuple(required)}")
    if any(size % side for size, side in zip(items, local, strict=True)):
        raise LogicError(f"{items} work-items are no whole work-groups of {local}")
    groups = [size // side for size, side in zip(items, local, strict=True)]
    if max(groups) > MOST_GROUPS:
        raise LogicError(f"{max(groups)} work-groups in a dimension; WebGPU takes {MOST_GROUPS}")
    gpu, program, name = queue.gpu, kernel.program, kernel.function_name
    pipeline, shader = program.compile(name, local), program.translate(name, local)
    bindings, scalars, _ = kernel.bind(shader)
    if shader.watched:
        bindings.append(queue.watch())
    event = Event(queue)
    if not queue.is_timed or not gpu.most_timed:
        if queue.is_timed:
            gpu.finish()
        start = time.perf_counter()
        gpu.launch(pipeline, bindings, scalars, groups, timed=False)
        if queue.is_timed:  # without a clock of its own, by the host's
            gpu.finish()
            event.times = host_times(start)
        return event
    queue.make_room()
    gpu.launch(pipeline, bindings, scalars, groups, timed=True)
    queue.add_timed(event)
    return event


def _padded(size: Sequence[int]) -> Size:
    x, y, z = (*map(int, size), 1, 1)[:3]
    return x, y, z


@cache
def _nothing(context: Context, opened: int) -> Buffer:
    """Return what a kernel gets for an absent buffer."""
    return Buffer(context, mem_flags.READ_WRITE, 16)


def _copied(buffer: Buffer) -> Buffer:
    copy = Buffer(buffer.context, mem_flags.READ_WRITE, buffer.size)
    enqueue_copy(CommandQueue(buffer.context), copy, buffer)
    return copy
