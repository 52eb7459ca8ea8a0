"""What a worker does with a pair of blocks: multiply them on its device, and add what others
multiplied.

A CPU multiplies NumPy arrays in place. For a GPU, blocks are copied, and
there the product stays until the sum over k is complete. The copies go through a queue of their own
and the kernels are not waited for, so that the blocks of the next task travel while the device
still multiplies those of the last one.
"""

from __future__ import annotations

import operator
import threading
from collections import deque
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cla
from pyopencl.tools import ImmediateAllocator, MemoryPool

from ..blas.products import matmul
from ..caches import cached
from ..opencl.devices import Device, default_device

#: Products and sums that a device is given before the first of them is done: with more it would
#: need more memory, and be no faster.
AHEAD = 2

#: Dask's threads share the kernels of a process, and OpenCL sets a kernel's arguments one after the
#: other.
one_at_a_time = threading.RLock()
_under_way: deque[tuple[cl.Event, tuple]] = deque()


class BlockError(RuntimeError):
    """A pair of blocks could not be multiplied; the message says which, where, and why.

    A GPU is not waited for. If it fails in the middle of a product, one of the next
    two says so.
    """


class DeviceBlock:
    """A block in the memory of a worker's device. It travels to other workers as a NumPy array.

    Args:
        block: the block, on the device or still in the host's memory, from where it is copied when
            it is first used.
        stays: whether products of it stay on the device, too.
    """

    def __init__(self, block: np.ndarray | cla.Array, stays: bool):
        self._block, self.stays = block, stays
        self.shape, self.dtype, self.nbytes = block.shape, block.dtype, block.nbytes
        self.ndim = len(block.shape)

    @property
    def array(self) -> cla.Array:
        if isinstance(self._block, np.ndarray):
            self._block = _uploaded(self._block, default_device())
        return self._block

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        block = self._block if isinstance(self._block, np.ndarray) else _downloaded(self._block)
        return block if dtype is None else block.astype(dtype)

    def __add__(self, other: DeviceBlock) -> DeviceBlock:
        result = self.array + other.array
        _wait_for_earlier(result, self, other)
        return DeviceBlock(result, self.stays)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes  # what Dask takes it for

    def __reduce__(self):
        return DeviceBlock, (np.asarray(self), self.stays)


Block = Any  # a NumPy array or a DeviceBlock


def has_own_memory(device: Device) -> bool:
    """Whether blocks must be copied to the device; a processor reads them where they are."""
    return device.kind != "CPU"


@cached(8)
def _copies(device: Device) -> cl.CommandQueue:
    """The queue for copies, beside the one that computes."""
    return cl.CommandQueue(device.context, device.cl)


@cached(8)
def _memory(device: Device) -> MemoryPool:
    """Memory for copies, which is used again: some drivers wait for all that is under way when a
    buffer is released.
    """
    return MemoryPool(ImmediateAllocator(_copies(device)))


def _uploaded(x: np.ndarray, device: Device) -> cla.Array:
    """A copy on the device, complete when this returns, although what was asked of the device
    before may not be.

    Its memory may be written again as soon as the copy is forgotten, so that `_under_way` remembers
    it for long enough.
    """
    memory: Any = _memory(device)(max(1, x.nbytes))
    if x.size:
        cl.enqueue_copy(_copies(device), memory, np.ascontiguousarray(x))
    return cla.Array(device.queue, x.shape, x.dtype, data=memory)


def _downloaded(x: cla.Array) -> np.ndarray:
    """A copy in the host's memory; it waits for what computes the block, but not for what was asked
    for since then.
    """
    memory: Any = x.base_data
    host = np.empty(x.shape, x.dtype)
    if x.size:
        cl.enqueue_copy(
            _copies(default_device()), host, memory, src_offset=x.offset, wait_for=x.events
        )
    return host


def on_device(x: Block) -> Block:
    """The block in the memory of this worker's device, where it stays; what a processor takes is
    not copied.
    """
    device = default_device()
    if not has_own_memory(device) or isinstance(x, DeviceBlock):
        return x
    with one_at_a_time:
        return DeviceBlock(_uploaded(x, device), stays=True)


def in_host(x: Block) -> np.ndarray:
    """The block as a NumPy array."""
    return np.asarray(x)


def product(x: Block, y: Block, place: tuple[int, ...], options: dict[str, Any]) -> Block:
    """The product of two blocks on this worker's device, by `gemmlab.matmul` with these options.

    Args:
        x, y: blocks of a and b.
        place: the block's number along each dimension of the result, where k is the last but one.
        options: keyword arguments of `gemmlab.matmul`.

    Returns:
        A NumPy array, or a DeviceBlock that is still being computed.

    Raises:
        BlockError: if that fails.
    """
    with one_at_a_time:
        return attempted(lambda: _product(x, y, options), place, x, y)


def _product(x: Block, y: Block, options: dict[str, Any]) -> Block:
    if not (
        has_own_memory(default_device()) or isinstance(x, DeviceBlock) or isinstance(y, DeviceBlock)
    ):
        return matmul(x, y, **options)
    stays = all(isinstance(z, DeviceBlock) and z.stays for z in (x, y))
    left, right = (z if isinstance(z, DeviceBlock) else DeviceBlock(z, stays) for z in (x, y))
    result = matmul(left.array, right.array, **options)
    _wait_for_earlier(result, left, right)
    return DeviceBlock(result, stays)


def _wait_for_earlier(result: cla.Array, *operands: DeviceBlock) -> None:
    """Let the device begin, and wait until no more than `AHEAD` results are under way, whose
    operands are kept.
    """
    default_device().queue.flush()
    if result.events:
        _under_way.append((result.events[-1], operands))
    while len(_under_way) > AHEAD:
        event, _ = _under_way.popleft()
        event.wait()


def _forget_done() -> None:
    """Give back the memory of operands whose results are there."""
    while (
        _under_way
        and _under_way[0][0].command_execution_status == cl.command_execution_status.COMPLETE
    ):
        _under_way.popleft()


def total(parts: list[Block] | Block, axis=None, keepdims=None) -> Block:
    """The sum of products; Dask's names of arguments are those of any reduction."""
    with one_at_a_time:
        return reduce(operator.add, parts) if isinstance(parts, list) else parts


def finished(parts: list[Block] | Block, axis=None, keepdims=None) -> Block:
    """The last sum over k: a NumPy array again, unless the operands came from the device."""
    with one_at_a_time:
        sum_ = total(parts)
        if not isinstance(sum_, DeviceBlock) or sum_.stays:
            return sum_
        host = in_host(sum_)
        _forget_done()
        return host


def attempted(call: Callable[[], Any], place: tuple[int, ...], x, y) -> Any:
    """What the call gives; an error becomes one that names the block, the sizes and the device."""
    try:
        return call()
    except Exception as error:
        *before, step, column = place
        problem = BlockError(
            f"block {(*before, column)} of the product, step {step} along k ({_sizes(x)} times "
            f"{_sizes(y)}), on {_device_name()}: {type(error).__name__}: {error}"
        )
    # out here, since OpenCL's errors cannot travel, not even as the context of this one
    raise problem


def _device_name() -> str:
    try:
        return str(default_device())
    except Exception:  # a device that is lost can no longer say its name
        return "a device that is not there any more"


def _sizes(x) -> str:
    return " x ".join(map(str, x.shape))
