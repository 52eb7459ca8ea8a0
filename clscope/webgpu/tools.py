"""Memory pools; the browser keeps one itself."""

from __future__ import annotations

from .memory import Buffer
from .queue import CommandQueue, mem_flags


class ImmediateAllocator:
    def __init__(self, queue: CommandQueue):
        self.queue = queue

    def __call__(self, size: int) -> Buffer:
        return Buffer(self.queue.context, mem_flags.READ_WRITE, max(1, size))


class MemoryPool:
    managed_bytes = active_bytes = 0

    def __init__(self, allocator: ImmediateAllocator):
        self.allocate = allocator

    def free_held(self) -> None:
        """Do nothing: nothing is held."""
