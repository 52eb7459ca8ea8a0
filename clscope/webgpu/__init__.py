"""PyOpenCL's names on the GPU of the browser in which Python runs (Pyodide).

    import clscope.webgpu as cl     # where the same program says `import pyopencl as cl` elsewhere
    import clscope.webgpu.array as cla

    (device,) = cl.get_platforms()[0].get_devices()
    context = cl.Context([device])
    queue = cl.CommandQueue(context)
    x = cla.to_device(queue, numbers)
    kernel = cl.Program(context, opencl_c).build().scale
    kernel(queue, (1024,), (64,), np.float32(2), x.data)

Kernels are OpenCL C: `clscope.wgsl` translates them. What WebGPU has no counterpart for raises
`Error` in a sentence, or is missing: images, samplers, events of the user, sub-groups, SVM. Copies
begin and end at multiples of four bytes. There is one device, and queues keep the order.
"""

from .memory import Buffer, MemoryMap, enqueue_copy, enqueue_fill_buffer, enqueue_map_buffer
from .program import CompilerWarning, Kernel, Program, enqueue_nd_range_kernel
from .queue import (
    CommandQueue,
    Context,
    Device,
    EndlessError,
    Error,
    Event,
    LogicError,
    Platform,
    RuntimeError,
    command_execution_status,
    command_queue_properties,
    device_type,
    enqueue_barrier,
    enqueue_marker,
    get_platforms,
    kernel_arg_address_qualifier,
    kernel_arg_info,
    kernel_info,
    kernel_work_group_info,
    map_flags,
    mem_flags,
    mem_info,
    program_info,
    wait_for_events,
)

VERSION_TEXT = "(its names, over WebGPU)"

__all__ = [
    "Buffer",
    "CommandQueue",
    "CompilerWarning",
    "Context",
    "Device",
    "EndlessError",
    "Error",
    "Event",
    "Kernel",
    "LogicError",
    "MemoryMap",
    "Platform",
    "Program",
    "RuntimeError",
    "VERSION_TEXT",
    "command_execution_status",
    "command_queue_properties",
    "device_type",
    "enqueue_barrier",
    "enqueue_copy",
    "enqueue_fill_buffer",
    "enqueue_map_buffer",
    "enqueue_marker",
    "enqueue_nd_range_kernel",
    "get_platforms",
    "kernel_arg_address_qualifier",
    "kernel_arg_info",
    "kernel_info",
    "kernel_work_group_info",
    "map_flags",
    "mem_flags",
    "mem_info",
    "program_info",
    "wait_for_events",
]
