"""Buffers and copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .queue import CommandQueue, Context, Error, Event, LogicError, mem_flags, mem_info

#: Bytes of a pattern that fill a buffer at a time.
PIECE = 1 << 20


class Buffer:
    """Memory of the GPU, or a part of another buffer's.

    With USE_HOST_PTR it is a copy of the host's memory, which `enqueue_map_buffer` brings up to
    date.
    """

    def __init__(self, context: Context, flags: int, size: int = 0, hostbuf: Any = None):
        self.context = context
        self.flags: int = flags
        self.size: int = size or hostbuf.nbytes
        self.offset: int = 0
        self.parent: Buffer | None = None
        self.host: np.ndarray | None = None
        self.handle: Any = context.gpu.create(self.size)
        if hostbuf is not None:
            context.gpu.write(self.handle, 0, _bytes_of(hostbuf))
            self.host = hostbuf if flags & mem_flags.USE_HOST_PTR else None

    def __getitem__(self, part: slice) -> Buffer:
        """Return the bytes of a slice as a buffer."""
        start, stop, _ = part.indices(self.size)
        return self.get_sub_region(start, stop - start)

    def get_sub_region(self, origin: int, size: int) -> Buffer:
        sub: Buffer = object.__new__(Buffer)
        sub.context, sub.flags, sub.size, sub.host = self.context, self.flags, size, None
        sub.offset, sub.parent, sub.handle = self.offset + origin, self.parent or self, self.handle
        return sub

    def get_info(self, what: int) -> Any:
        match what:
            case mem_info.FLAGS:
                return self.flags
            case mem_info.SIZE:
                return self.size
            case mem_info.ASSOCIATED_MEMOBJECT:
                return self.parent
            case mem_info.OFFSET:
                return self.offset
        raise LogicError(f"a buffer has no information {what}")

    def get_host_array(self, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        """Return the host's memory of a buffer with USE_HOST_PTR."""
        if self.host is None:
            raise LogicError("this buffer has no memory of the host")
        return self.host.reshape(-1).view(dtype)[: int(np.prod(shape))].reshape(shape)

    def release(self) -> None:
        """Free the memory."""
        if self.parent is None and self.handle is not None:
            self.context.gpu.destroy(self.handle)
            self.handle = None

    def __del__(self) -> None:
        if hasattr(self, "handle"):
            self.release()


class MemoryMap:
    """The host's memory of a buffer that is mapped; the base of the array that shows it."""

    def __init__(self, memory: np.ndarray):
        self.__array_interface__: dict[str, Any] = memory.__array_interface__
        self._memory = memory  # keeps it alive

    def release(self, queue: CommandQueue | None = None) -> None:
        """Unmap the buffer."""


def enqueue_copy(  # noqa: PLR0913
    queue: CommandQueue,
    dest: Any,
    src: Any,
    *,
    src_offset: int = 0,
    dst_offset: int = 0,
    byte_count: int | None = None,
    is_blocking: bool = True,
    wait_for: Sequence[Event] | None = None,
) -> Event:
    """Copy between buffers, or between a buffer and an array of NumPy."""
    match dest, src:
        case Buffer(), Buffer():
            size = byte_count or min(src.size - src_offset, dest.size - dst_offset)
            start, at = src.offset + src_offset, dest.offset + dst_offset
            if src.handle is dest.handle:
                raise Error("WebGPU does not copy within a buffer")
            _check_aligned(dest, dst_offset, size)
            queue.gpu.copy(src.handle, start, dest.handle, at, size)
        case Buffer(), _:
            data = _bytes_of(src)
            _check_aligned(dest, dst_offset, data.size)
            queue.gpu.write(dest.handle, dest.offset + dst_offset, data)
        case _:
            here = dest if dest.flags.forc else np.empty(dest.shape, dest.dtype)
            if here.size:
                queue.wait(queue.gpu.read, src.handle, src.offset + src_offset, _bytes_of(here))
            if here is not dest:
                dest[...] = here
    return Event(queue)


def enqueue_fill_buffer(
    queue: CommandQueue,
    mem: Buffer,
    pattern: np.ndarray | np.generic,
    offset: int,
    size: int,
    wait_for: Sequence[Event] | None = None,
) -> Event:
    """Fill `size` bytes with a pattern."""
    _check_aligned(mem, offset, size)
    piece = np.full(min(size, PIECE) // pattern.itemsize, pattern).view(np.uint8)
    for at in range(0, size, max(1, piece.size)):
        queue.gpu.write(mem.handle, mem.offset + offset + at, piece[: size - at])
    return Event(queue)


def enqueue_map_buffer(
    queue: CommandQueue,
    buf: Buffer,
    flags: int,
    offset: int,
    shape: tuple[int, ...],
    dtype: Any,
    is_blocking: bool = True,
) -> tuple[np.ndarray, Event]:
    """Bring the host's memory of a buffer up to date, and return it as an array."""
    host = buf.get_host_array(shape, dtype)
    event = enqueue_copy(queue, host, buf, src_offset=offset)
    return np.asarray(MemoryMap(host)), event


def _bytes_of(x: np.ndarray) -> np.ndarray:
    """Return the bytes of an array in the order of memory, without a copy if it has no gaps."""
    rows = x.T if x.flags.f_contiguous and not x.flags.c_contiguous else x
    return np.ascontiguousarray(rows).reshape(-1).view(np.uint8)


def _check_aligned(buffer: Buffer, at: int, size: int) -> None:
    """Reject what WebGPU cannot write: it writes whole words of 4 bytes."""
    if (buffer.offset + at) % 4 or (size % 4 and at + size < buffer.size):
        raise Error(f"WebGPU writes whole words of 4 bytes, not {size} bytes at byte {at}")
