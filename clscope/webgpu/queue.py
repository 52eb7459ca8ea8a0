"""Platform, device, context, queue and events, and the numbers that OpenCL gives its options."""

from __future__ import annotations

import builtins
import time
from collections.abc import Callable, Sequence
from enum import IntEnum, IntFlag
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from .gpu import CLOCK_STEP, GPU, NoGPUError, gpu

#: WebGPU does not say how many compute units there are; programs keep so many busy.
UNITS = 16


class Error(Exception):
    """What the GPU, or its browser, refuses."""


class LogicError(Error):
    """A call that is wrong."""


class RuntimeError(Error, builtins.RuntimeError):
    """A build that failed, or a GPU that was lost."""


class EndlessError(RuntimeError):
    """A loop that was ended, because it went on and on; what the kernel stored is not valid."""


class mem_flags(IntFlag):
    READ_WRITE, WRITE_ONLY, READ_ONLY = 1, 2, 4
    USE_HOST_PTR, ALLOC_HOST_PTR, COPY_HOST_PTR = 8, 16, 32


class map_flags(IntFlag):
    READ, WRITE = 1, 2


class device_type(IntFlag):
    DEFAULT, CPU, GPU = 1, 2, 4


class command_queue_properties(IntFlag):
    OUT_OF_ORDER_EXEC_MODE_ENABLE, PROFILING_ENABLE = 1, 2


class command_execution_status(IntEnum):
    COMPLETE = 0


class kernel_work_group_info(IntEnum):
    WORK_GROUP_SIZE, COMPILE_WORK_GROUP_SIZE, LOCAL_MEM_SIZE = 0x11B0, 0x11B1, 0x11B2


class kernel_arg_info(IntEnum):
    ADDRESS_QUALIFIER, TYPE_NAME, NAME = 0x1196, 0x1198, 0x119A


class kernel_arg_address_qualifier(IntEnum):
    GLOBAL, LOCAL, CONSTANT, PRIVATE = 0x119B, 0x119C, 0x119D, 0x119E


class kernel_info(IntEnum):
    PROGRAM = 0x1194


class program_info(IntEnum):
    BINARIES = 0x1166


class mem_info(IntEnum):
    FLAGS, SIZE, ASSOCIATED_MEMOBJECT, OFFSET = 0x1101, 0x1102, 0x1107, 0x1108


class Platform:
    """WebGPU in this browser."""

    name, vendor, version = "WebGPU", "this browser", "WebGPU"

    def get_devices(self) -> list[Device]:
        """Return the browser's GPU. Raise Error, in a sentence, if it offers none to Python."""
        try:
            return [_device()]
        except NoGPUError as error:
            raise Error(str(error)) from None


_platform = Platform()


def get_platforms() -> list[Platform]:
    return [_platform]


class Device:
    """The browser's GPU, with the limits that WebGPU reports."""

    def __init__(self, opened: GPU):
        limits = opened.limits
        self.gpu = opened
        self.platform: Platform = _platform
        self.name: str = opened.name
        self.version, self.driver_version, self.extensions = "WebGPU", "", ""
        self.type: device_type = device_type.CPU if opened.is_cpu else device_type.GPU
        self.compiler_available = True
        self.max_compute_units: int = UNITS
        self.max_work_group_size: int = limits["maxComputeInvocationsPerWorkgroup"]
        sides = (limits[f"maxComputeWorkgroupSize{side}"] for side in "XY")
        self.max_work_item_sizes: list[int] = [*sides, 64]
        self.local_mem_size: int = limits["maxComputeWorkgroupStorageSize"]
        self.max_mem_alloc_size: int = limits["maxStorageBufferBindingSize"]
        self.global_mem_size: int = limits["maxBufferSize"]
        self.host_unified_memory = True  # no memory of the host can be pinned for transfers
        self.native_vector_width_float = 1
        self.profiling_timer_resolution: int = CLOCK_STEP


@cache
def _device() -> Device:
    return Device(gpu())


class Context:
    def __init__(self, devices: Sequence[Device]):
        self.devices: list[Device] = list(devices)
        self.gpu = self.devices[0].gpu


class Times(NamedTuple):
    """When a command began and ended, in nanoseconds."""

    start: int
    end: int


class CommandQueue:
    def __init__(self, context: Context, device: Device | None = None, properties: int = 0):
        self.context = context
        self.device: Device = device or context.devices[0]
        self.properties: int = properties
        self.gpu = context.gpu
        self._timed: list[Event] = []  # launches whose times have not been read
        self._watch: Any = None  # where launches since the last `check` report endless loops

    @property
    def is_timed(self) -> bool:
        return bool(self.properties & command_queue_properties.PROFILING_ENABLE)

    def finish(self) -> None:
        """Wait for all commands. Raise Error for what WebGPU has complained about meanwhile."""
        self.gpu.finish()
        self.check()

    def flush(self) -> None:
        """Do nothing: commands are submitted at once."""

    def watch(self) -> tuple[Any, int, int]:
        """Return the binding of a watched kernel's report, see `Shader`."""
        self._watch = self._watch or self.gpu.create(16)
        return self._watch, 0, 16

    def check(self) -> None:
        """Raise Error for what WebGPU has complained about, and for a loop that did not end."""
        watch, self._watch = self._watch, None
        if problem := self.gpu.problem():
            raise RuntimeError(problem)
        if watch:
            report = np.zeros(4, np.int32)
            self.wait(self.gpu.read, watch, 0, report.view(np.uint8))
            self.gpu.destroy(watch)
            if line := report[3]:
                raise EndlessError(f"line {line}: this loop did not end")

    def wait(self, read: Callable[..., Any], *arguments: Any) -> Any:
        """Return what the GPU is read for. Raise Error if it is lost, or has refused a command that
        this depends on.
        """
        try:
            answer = read(*arguments)
        except ValueError as error:
            self.check()
            raise RuntimeError(str(error)) from None
        self.check()
        return answer

    def add_timed(self, event: Event) -> None:
        """Note that a launch is timed."""
        self._timed.append(event)

    def make_room(self) -> None:
        """Read the times of launches if no more fit."""
        if len(self._timed) >= self.gpu.most_timed:
            self.read_times()

    def read_times(self) -> None:
        """Wait for the launches that are timed, and give their events the times."""
        opened = self.gpu.opened
        events, self._timed = [e for e in self._timed if e.opened == opened], []
        if events:
            times = self.wait(self.gpu.times)
            for event, start, end in zip(events, times[::2], times[1::2], strict=True):
                event.times = Times(start, end)


class Event:
    """A command that was submitted. A queue keeps the order, so later commands need not wait."""

    command_execution_status = command_execution_status.COMPLETE

    def __init__(self, queue: CommandQueue, times: Times | None = None):
        self.command_queue = queue
        self.times = times
        self.opened: int = queue.gpu.opened

    @property
    def profile(self) -> Times:
        """When a launch on a profiling queue began and ended; other commands take no time."""
        if self.times is None:
            self.command_queue.read_times()
        return self.times or Times(0, 0)

    def wait(self) -> None:
        self.command_queue.finish()


def wait_for_events(events: Sequence[Event]) -> None:
    if events:
        events[-1].wait()


def enqueue_barrier(queue: CommandQueue, wait_for: Sequence[Event] | None = None) -> Event:
    """Return an event; every command waits for those before it, on all queues."""
    return Event(queue)


enqueue_marker = enqueue_barrier


def host_times(start: float) -> Times:
    """Return the times of a command that began at `start` of time.perf_counter and has ended."""
    return Times(int(1e9 * start), int(1e9 * time.perf_counter()))
