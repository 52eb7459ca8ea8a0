"""Multiply a pair of blocks on the device of a worker, and add products.

Blocks are NumPy arrays, which `gemmlab.matmul` copies to a GPU and back. Only blocks that
`to_device` has copied stay in a GPU's memory, as do their products.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from ..blas.products import matmul
from ..opencl import cla
from ..opencl.devices import Device, default_device

#: Held while PyOpenCL adds: its sums set the arguments of a kernel that all threads share.
adding = threading.Lock()


class BlockError(RuntimeError):
    """A pair of blocks could not be multiplied; the message names the block, the device, and the
    reason.
    """


class DeviceBlock:
    """A block in the memory of a worker's device. It travels to other workers as a NumPy array, and
    is copied to their device when it is first used.
    """

    def __init__(self, block: np.ndarray | cla.Array):
        self._block = block
        self.shape: tuple[int, ...] = block.shape
        self.dtype: np.dtype = block.dtype
        self.nbytes: int = block.nbytes
        self.ndim: int = len(block.shape)

    @property
    def array(self) -> cla.Array:
        """The block on the device of this process."""
        if isinstance(self._block, np.ndarray):
            queue = default_device().queue
            self._block = cla.to_device(queue, np.ascontiguousarray(self._block))
        return self._block

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        block = self._block if isinstance(self._block, np.ndarray) else self._block.get()
        return block if dtype is None else block.astype(dtype)

    def __getitem__(self, part: Any) -> np.ndarray:  # where chunks do not match, Dask cuts blocks
        return np.asarray(self)[part]

    def __add__(self, other: DeviceBlock) -> DeviceBlock:
        with adding:
            return DeviceBlock(self.array + other.array)

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes  # what Dask counts

    def __reduce__(self) -> tuple[Any, ...]:
        return DeviceBlock, (np.asarray(self),)


Block = Any  # a NumPy array or a DeviceBlock


def has_own_memory(device: Device) -> bool:
    """Whether blocks must be copied to the device; a CPU reads NumPy arrays."""
    return device.kind != "CPU"


def copy_to_device(x: Block) -> Block:
    """Return the block in the memory of this worker's device; on a CPU the block itself."""
    if not has_own_memory(default_device()) or isinstance(x, DeviceBlock):
        return x
    block = DeviceBlock(x)
    _ = block.array  # copied now
    return block


def product(x: Block, y: Block, position: tuple[int, ...], options: dict[str, Any]) -> Block:
    """Multiply two blocks on this worker's device.

    Args:
        x, y: the blocks.
        position: the block's number along each dimension of the result; k is the last but one.
        options: of `gemmlab.matmul`.

    Returns:
        A DeviceBlock if both blocks are, otherwise a NumPy array.

    Raises:
        BlockError: if that fails.
    """
    return name_errors(partial(_multiply, x, y, options), position, x, y)


def _multiply(x: Block, y: Block, options: dict[str, Any]) -> Block:
    on_device = [isinstance(z, DeviceBlock) for z in (x, y)]
    if not any(on_device):
        return matmul(x, y, **options)
    left, right = (z if isinstance(z, DeviceBlock) else DeviceBlock(z) for z in (x, y))
    result = DeviceBlock(matmul(left.array, right.array, **options))
    result.array.finish()  # a worker has two threads, so that the device has work meanwhile
    return result if all(on_device) else np.asarray(result)


def total(parts: list[Block] | Block, axis: Any = None, keepdims: Any = None) -> Block:
    """Add a list of products; the arguments are those of Dask's reductions."""
    return reduce(operator.add, parts) if isinstance(parts, list) else parts


def name_errors(call: Callable[[], Any], position: tuple[int, ...], x: Block, y: Block) -> Any:
    """Return what the call returns; raise BlockError with block, sizes and device if it fails."""
    try:
        return call()
    except Exception as error:
        *before, step, column = position
        sizes = " times ".join(" x ".join(map(str, z.shape)) for z in (x, y))
        problem = BlockError(
            f"block {(*before, column)} of the product, step {step} along k ({sizes}), on "
            f"{default_device()}: {type(error).__name__}: {error}"
        )
    # here, because OpenCL's errors cannot be pickled, not even as the context of this one
    raise problem
