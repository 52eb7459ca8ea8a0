"""A call like one before: its launches again, on other memory.

Working out which kernels to launch takes Python ten times as long as launching them, and most programs multiply
matrices of the same few shapes again and again. So the first call on arrays of certain forms leaves its launches
here. The next one sets those arguments that are buffers, and launches. It is the same for device arrays, and for
NumPy arrays on a processor.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import pyopencl as cl

from ..opencl.build import Bound
from ..opencl.enqueue import without_event


class Recording:
    """What a call launches, and the memory that it makes, with the number of bytes."""

    def __init__(self) -> None:
        self.launches: list[Bound] = []
        self.made: list[tuple[Any, int]] = []


class Repeat:
    """The launches of a product, with a gap for each buffer that differs from call to call.

    Args:
        recording: of the first call.
        given: its buffers: those of the operands and of the result. Buffers that are the same object share a gap, so
            that they have to be the same in later calls, too.
        blank: the attributes of an array like the result, but for its memory; for products of device arrays.
        quiet: whether launches without an event pay.

    Attributes:
        blank, quiet: as given.
        size_bytes: of all memory that a call makes.
        launches: a kernel with arguments of its own, its sizes, and the index and the gap of each buffer among them;
            last a function that launches it without an event.
        lock: to be held from setting a kernel's first argument until it is launched.
    """

    def __init__(
        self, recording: Recording, given: Sequence[Any], blank: dict[str, Any] | None = None, quiet: bool = False
    ):
        self.blank, self.quiet = blank or {}, quiet
        made = [(buffer, size_bytes) for buffer, size_bytes in recording.made if buffer is not given[-1]]
        gaps = [id(buffer) for buffer in (*given, *(buffer for buffer, _ in made))]
        self._temporaries = [size_bytes for _, size_bytes in made]
        self.size_bytes = sum(size_bytes for _, size_bytes in recording.made)
        self.lock = threading.Lock()  # a kernel's arguments belong to one launch at a time
        self.launches: list[tuple] = []
        self._kept = []
        for built, global_size, local_size, args in recording.launches:
            places = [(index, gaps.index(id(x))) for index, x in enumerate(args) if id(x) in gaps]
            self._kept += [x for x in args if id(x) not in gaps]  # OpenCL keeps no memory alive for an argument
            kernel = built.with_arguments(args)
            silent = without_event(kernel, global_size, local_size)
            self.launches.append((kernel, global_size, local_size, places, silent))

    def __call__(self, queue: cl.CommandQueue, given: Sequence[Any], allocate: Callable[[int], Any]) -> cl.Event:
        """Launch again, on these buffers; return the last event."""
        buffers = [*given, *map(allocate, self._temporaries)] if self._temporaries else given
        with self.lock:
            for kernel, global_size, local_size, places, _ in self.launches:
                for index, gap in places:
                    kernel.set_arg(index, buffers[gap])
                event = cl.enqueue_nd_range_kernel(queue, kernel, global_size, local_size)
        return event

    def quietly(self, queue: cl.CommandQueue, given: Sequence[Any], allocate: Callable[[int], Any]) -> None:
        """The same without any event."""
        buffers = [*given, *map(allocate, self._temporaries)] if self._temporaries else given
        with self.lock:
            for kernel, *_, places, launch in self.launches:
                for index, gap in places:
                    kernel.set_arg(index, buffers[gap])
                launch(queue)
