"""Products on CPUs: A is packed into panels, then multiplied (see
``kernels/production/packed.cl``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..catalog import sources
from ..catalog.spec import round_up, tiles_over
from ..opencl.build import Bound, Built, build
from ..opencl.devices import Device
from .plan import Builder, Product, View, view

FILE = "production/packed.cl"
HALF_FILE = "support/half.cl"
#: Elements that a work-item of `HALF_FILE` converts at most.
CHUNK = 4096
FLOAT_BYTES = 4
#: Relaxations that the compiler may make: a*b + c in one instruction, rounded once. `fma` would ask
#: for the same, but is a function call on some runtimes.
FLAGS = ("-cl-mad-enable",)
#: Columns of the block in registers (NR).
COLUMNS = 6
#: Bytes of a block of A: half of an L2 cache of 512 kB. (OpenCL reports the size of one cache,
#: without saying which.)
BLOCK_BYTES = 256 * 1024
#: Bytes of the panels of a product, unless one block of steps of k takes more.
PANEL_BYTES = 8 * 2**20
#: Work-items per compute unit: with more of them each unit gets an even share.
PER_UNIT = 8


class Blocks(NamedTuple):
    """The sizes of packed.cl's blocks, from the width of the device's vectors and from its caches.

    Attributes:
        dtype: of the sums, float32 or float64.
        width: elements per vector.
        depth: steps of k in a block (KC). Six columns of B then take 6 kB of the L1 cache, 12 kB in
            float64.
    """

    dtype: np.dtype
    width: int
    depth: int = 256

    @classmethod
    def of(cls, device: Device, dtype: np.dtype) -> Blocks:
        """Those for a device and elements: vectors as wide as its registers, if its compiler takes
        them.
        """
        dtype = np.result_type(dtype, np.float32)
        vector_bytes = 4 * min(device.cl.native_vector_width_float, device.limits.vector)
        return cls(dtype, max(2, vector_bytes // dtype.itemsize))

    @property
    def rows(self) -> int:
        """Rows of a panel of A, and of the block in registers (MR)."""
        return 2 * self.width

    def macros(self, beta: bool) -> dict[str, int | str]:
        """The values of the kernel's macros."""
        real = "float" if self.dtype.itemsize == 4 else "double"
        return {"REAL": real, "WIDTH": self.width, "KC": self.depth, "BETA": int(beta)}

    def kernel(self, builder: Builder, name: str, beta: bool = False) -> Built:
        """The kernel "pack" or "gemm", compiled."""
        device, context, macros = builder.device, builder.queue.context, self.macros(beta)
        return build(device, context, "packed.cl", sources.read(FILE), macros, name, FLAGS)

    def steps_per_part(self, height: int, k: int) -> int:
        """Steps of k whose panels fit `PANEL_BYTES`: whole blocks, at least one, shared evenly by
        the parts of the sum.

        Args:
            height: rows of A, rounded up to whole panels.
            k: all steps.
        """
        blocks = max(1, PANEL_BYTES // (height * self.depth * self.dtype.itemsize))
        parts = tiles_over(k, blocks * self.depth)
        return round_up(tiles_over(k, parts), self.depth) if parts > 1 else k

    def shares(self, m: int, n: int, units: int) -> tuple[int, int]:
        """Rows and columns of C per work-item: a block of A that stays in the L2 cache, an even
        share of columns.
        """
        block = max(1, BLOCK_BYTES // (self.depth * self.dtype.itemsize * self.rows)) * self.rows
        rows = round_up(tiles_over(m, tiles_over(m, block)), self.rows)
        items_per_row = tiles_over(PER_UNIT * units, tiles_over(m, rows))
        return rows, round_up(tiles_over(n, items_per_row), COLUMNS)


def gemm(builder: Builder, product: Product) -> None:
    """C = alpha A B + beta C0, column-major; A, B and C0 of any layout, C compact.

    float16 is converted to float32, and the result back.

    Args:
        builder: of the type of the elements, real ones.
        product: all sizes positive; C0 may be C itself.
    """
    problem, before = product.problem, view(*product.before) if product.before else None
    m, n, k = problem[:3]
    a, b = view(product.a, problem.a), view(product.b, problem.b)
    out = product.out.buffer
    if builder.dtype == np.float16:
        a, b = _floats(builder, a, m, k), _floats(builder, b, k, n)
    if builder.result == np.float16:
        out = builder.memory(m * n, FLOAT_BYTES)
        before = before and _floats(builder, before, m, n)
    blocks = Blocks.of(builder.device, builder.dtype)
    pack, multiply = (
        blocks.kernel(builder, "pack"),
        blocks.kernel(builder, "gemm", before is not None),
    )
    height = round_up(m, blocks.rows)
    part = blocks.steps_per_part(height, k)
    panels = builder.memory(height * part, blocks.dtype.itemsize)
    rows, columns = blocks.shares(m, n, builder.device.units)
    groups = tiles_over(m, rows), tiles_over(n, columns)
    for k0 in range(0, k, part):
        steps = min(part, k - k0)
        size = height // blocks.rows, tiles_over(steps, blocks.depth)
        from_a = a.buffer, a.offset + k0 * a.across, a.down, a.across
        from_b = b.buffer, b.offset + k0 * b.down, b.across, b.down
        added = (product.beta, *before) if before is not None else ()
        builder.launch("pack", Bound(pack, size, (1, 1), (m, steps, *from_a, panels)))
        sizes = m, n, steps, rows, columns
        arguments = *sizes, product.alpha, panels, *from_b, *added, int(k0 == 0), out
        builder.launch("gemm", Bound(multiply, groups, (1, 1), arguments))
    if builder.result == np.float16:
        converted = tiles_over(m * n, CHUNK), 1
        arguments = m * n, out, product.out.buffer
        builder.launch(
            "to_half", Bound(_conversion(builder, "to_half"), converted, (1, 1), arguments)
        )


def _floats(builder: Builder, x: View, rows: int, columns: int) -> View:
    """Launch the conversion of a float16 matrix: its elements as float32, without gaps."""
    step, line, length, lines = x.down, x.across, rows, columns
    if x.down != 1:
        step, line, length, lines = line, step, lines, length
    to = builder.memory(rows * columns, FLOAT_BYTES)
    groups = lines, tiles_over(length, CHUNK)
    arguments = length, x.buffer, x.offset, step, line, to
    builder.launch("from_half", Bound(_conversion(builder, "from_half"), groups, (1, 1), arguments))
    return View(to, 0, 1, length) if x.down == 1 else View(to, 0, length, 1)


def _conversion(builder: Builder, name: str) -> Built:
    """The kernel "from_half" or "to_half", compiled."""
    text = sources.read(HALF_FILE)
    return build(builder.device, builder.queue.context, "half.cl", text, {}, name, FLAGS)
