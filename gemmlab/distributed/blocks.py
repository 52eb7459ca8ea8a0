"""What a worker does with a pair of blocks: it multiplies them on its device, and adds products.

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

#: PyOpenCL's sums set the arguments of a kernel that all threads of a worker share.
adding = threading.Lock()


class BlockError(RuntimeError):
    """A pair of blocks could not be multiplied; the message says which, where, and why."""


class DeviceBlock:
    """A block in the memory of a worker's device. It travels to other workers as a NumPy array, and
    is copied to their device when it is first used.
    """

    def __init__(self, block: np.ndarray | cla.Array):
        self._block = block
        self.shape, self.dtype, self.nbytes = block.shape, block.dtype, block.nbytes
        self.ndim = len(block.shape)

    @property
    def array(self) -> cla.Array:
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


def on_device(x: Block) -> Block:
    """The block in the memory of this worker's device; on a CPU the block itself."""
    if not has_own_memory(default_device()) or isinstance(x, DeviceBlock):
        return x
    block = DeviceBlock(x)
    _ = block.array  # copied now
    return block


def product(x: Block, y: Block, position: tuple[int, ...], options: dict[str, Any]) -> Block:
    """The product of two blocks on this worker's device: of two DeviceBlocks a DeviceBlock,
    otherwise a NumPy array. `position` is the block's number along each dimension of the result,
    where k is the last but one.
    """
    return attempted(partial(_product, x, y, options), position, x, y)


def _product(x: Block, y: Block, options: dict[str, Any]) -> Block:
    copied = [isinstance(z, DeviceBlock) for z in (x, y)]
    if not any(copied):
        return matmul(x, y, **options)
    left, right = (z if isinstance(z, DeviceBlock) else DeviceBlock(z) for z in (x, y))
    result = DeviceBlock(matmul(left.array, right.array, **options))
    result.array.finish()  # a worker has two threads, so that the device has work meanwhile
    return result if all(copied) else np.asarray(result)


def total(parts: list[Block] | Block, axis: Any = None, keepdims: Any = None) -> Block:
    """The sum of a list of products; the arguments are those of Dask's reductions."""
    return reduce(operator.add, parts) if isinstance(parts, list) else parts


def attempted(call: Callable[[], Any], position: tuple[int, ...], x: Block, y: Block) -> Any:
    """What the call returns; an error becomes one that names block, sizes and device."""
    try:
        return call()
    except Exception as error:
        *before, step, column = position
        sizes = " times ".join(" x ".join(map(str, z.shape)) for z in (x, y))
        problem = BlockError(
            f"block {(*before, column)} of the product, step {step} along k ({sizes}), on "
            f"{default_device()}: {type(error).__name__}: {error}"
        )
    # out here, since OpenCL's errors cannot travel, not even as the context of this one
    raise problem
