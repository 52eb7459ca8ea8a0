"""Products on CPUs: A is packed into panels, then multiplied (see `gemmlab.family.packed`)."""

from __future__ import annotations

import numpy as np

from ..catalog.spec import round_up, tiles_over
from ..family.configuration import letter_of
from ..family.packed import Packed, write, write_packing
from ..family.written import View
from ..opencl.build import Bound, build
from ..opencl.devices import Device
from .plan import Builder
from .problem import Problem

#: Relaxations that the compiler may make: a*b + c in one instruction, rounded once. `fma` would ask for the same, but
#: is a function call on some runtimes.
FLAGS = ("-cl-mad-enable",)
#: Bytes of the panels of a product, unless one block of steps of k takes more.
PANEL_BYTES = 8 * 2**20
#: Work-items per compute unit: with more of them each unit gets an even share.
PER_UNIT = 8


def kernel_for(device: Device, dtype: np.dtype, beta: bool = False) -> Packed:
    """The packed kernel for a device: float32 or float64, with or without beta C0."""
    return Packed.for_device(letter_of(dtype), 4 * device.cl.native_vector_width_float, device.limits, beta)


def gemm(builder: Builder, problem: Problem, a: View, b: View, alpha, beta, before: View | None, out: View) -> None:
    """C = alpha A B + beta C0, column-major, of any layout.

    Args:
        builder: of the type of the elements.
        problem: the sizes, all positive.
        a, b, out: the matrices; of A rows or steps of k are adjacent.
        before: C0, or None where beta is 0. C0 may be C itself.
    """
    device, context, (m, n, k) = builder.device, builder.queue.context, problem[:3]
    c = kernel_for(device, builder.dtype, before is not None)
    pack = build(device, context, f"pack of {c.name}", write_packing(c), {}, "pack")
    multiply = build(device, context, c.name, write(c), {}, flags=FLAGS)
    height = round_up(m, c.rows)
    part = steps_per_part(c, height, k)
    panels = builder.memory(height * part)
    rows, columns = shares(c, m, n, device.units)
    groups = tiles_over(m, rows), tiles_over(n, columns)
    for k0 in range(0, k, part):
        steps = min(part, k - k0)
        size = height // c.rows, tiles_over(steps, c.depth)
        from_a = a.buffer, a.offset + k0 * a.across, a.down, a.across
        from_b = b.buffer, b.offset + k0 * b.down, b.across, b.down
        added = (beta, before.buffer, *before[1:]) if before is not None else ()
        builder.launch("pack", Bound(pack, size, (1, 1), (m, steps, *from_a, panels)))
        arguments = m, n, steps, rows, columns, alpha, panels, *from_b, *added, int(k0 == 0), *out
        builder.launch("gemm", Bound(multiply, groups, (1, 1), arguments))


def steps_per_part(c: Packed, height: int, k: int) -> int:
    """Steps of k whose panels fit `PANEL_BYTES`: whole blocks, at least one, shared evenly among the parts of the sum.

    Args:
        height: rows of A, rounded up to whole panels.
        k: all steps.
    """
    size = 4 if c.precision == "s" else 8
    blocks = max(1, PANEL_BYTES // (height * c.depth * size))
    parts = tiles_over(k, blocks * c.depth)
    return round_up(tiles_over(k, parts), c.depth) if parts > 1 else k


def shares(c: Packed, m: int, n: int, units: int) -> tuple[int, int]:
    """Rows and columns of C per work-item: a block of A that stays in the L2 cache, and an even share of columns."""
    rows = round_up(tiles_over(m, tiles_over(m, c.block)), c.rows)
    items_per_row = tiles_over(PER_UNIT * units, tiles_over(m, rows))
    return rows, round_up(tiles_over(n, items_per_row), c.columns)
