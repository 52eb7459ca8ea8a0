"""A generated kernel, compiled for a device, and launched."""

from __future__ import annotations

from math import prod
from typing import Any, NamedTuple

import pyopencl as cl

from ..caches import cached
from ..catalog import ParameterError
from ..catalog.spec import tiles_over
from ..opencl.build import Bound, WorkGroupError, build
from ..opencl.devices import Device
from .schedule import Schedule
from .writer import write


class View(NamedTuple):
    """A matrix in a buffer; offset and strides count elements."""

    buffer: Any  # a pyopencl.MemoryObject
    offset: int  # its first element
    down: int  # from one row to the next
    across: int  # from one column to the next


class Pairs(NamedTuple):
    """What one launch multiplies of a batch."""

    number: int  # of pairs of matrices
    first: int  # matrices of C before the first result
    step_a: int  # elements from one A to the next; 0 if all pairs share it
    step_b: int  # the same for B


class Gemm(NamedTuple):
    """What one launch computes: C = alpha op(A) op(B) + beta C0, all column-major."""

    sizes: tuple[int, int, int]  # M, N and K
    alpha: Any  # a number of the kernel's precision
    a: View  # as stored, with `down` = 1
    b: View  # the same
    beta: Any  # like alpha
    before: View | None  # C0 if the schedule has beta; it may be the memory of C
    out: Any  # the buffer of C, contiguous; for a submatrix its `View`, with `down` = 1
    pairs: Pairs | None = None  # for a batch


class GeneratedKernel:
    """The kernel of a schedule, compiled for one device; `text` is its OpenCL C.

    Raises:
        ParameterError: if the device cannot run it; for lack of registers, after compiling it.
        BuildError: if the compiler refuses it.
    """

    def __init__(self, schedule: Schedule, device: Device, context: cl.Context):
        problems = schedule.problems(device.limits)
        if problems:
            raise ParameterError(f"{schedule.name}: " + "; ".join(problems))
        self.schedule = schedule
        self.device = device
        self.text = write(schedule)
        self._built = build(device, context, schedule.name, self.text, {})
        most = self._built.work_group_limit
        if schedule.work_items > most:
            raise WorkGroupError(
                f"{schedule.name}: its work-groups have {schedule.work_items} work-items, "
                f"but as compiled for {device.name} they may have at most {most}",
                most,
            )

    def bound(self, gemm: Gemm, workspace: tuple[Any, ...] = ()) -> Bound:
        """The launch that computes a product; for split-K with the memory that `workspace` says."""
        s = self.schedule
        axes = zip(gemm.sizes, s.tile, s.local_size, strict=False)
        items = [tiles_over(size, side) * count for size, side, count in axes]
        local = list(s.local_size)
        if gemm.pairs is not None or s.split_k > 1:  # the third dimension
            items.append(s.split_k if gemm.pairs is None else gemm.pairs.number)
            local.append(1)
        return Bound(self._built, tuple(items), tuple(local), self._arguments(gemm, workspace))

    def _arguments(self, gemm: Gemm, workspace: tuple[Any, ...]) -> tuple[Any, ...]:
        """The arguments in the order of `writer.signature`."""
        a, b, out = gemm.a, gemm.b, gemm.out
        arguments = [*gemm.sizes, *self._number(gemm.alpha)]
        arguments += [a.buffer, a.offset, a.across, b.buffer, b.offset, b.across]
        if gemm.before is not None:
            arguments += [*self._number(gemm.beta), *gemm.before]
        if gemm.pairs is not None:
            arguments += gemm.pairs[1:]
        arguments += workspace
        arguments += (out.buffer, out.offset, out.across) if self.schedule.submatrix else (out,)
        return tuple(arguments)

    def _number(self, number) -> tuple[float, ...]:
        complex_ = self.schedule.element.components == 2
        return (number.real, number.imag) if complex_ else (number,)

    def workspace(self, sizes: tuple[int, int, int]) -> tuple[int, int]:
        """Bytes of the partial tiles of split-K, and of its counters, which are 0 before and after
        each launch.
        """
        s = self.schedule
        tiles = prod(map(tiles_over, sizes, s.tile)) if s.split_k > 1 else 0
        return tiles * s.split_k * prod(s.tile) * s.element.sum_size, 4 * tiles

    def __repr__(self) -> str:
        return f"<gemmlab kernel {self.schedule.name} on {self.device}>"


@cached(256)
def written(schedule: Schedule, device: Device, context: cl.Context) -> GeneratedKernel:
    """The compiled kernel of a schedule; cached."""
    return GeneratedKernel(schedule, device, context)
