"""Products on CPUs: A is packed into panels, then multiplied (see
``kernels/production/packed.cl``).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..ladder import sources
from ..ladder.spec import round_up, tiles_over
from ..opencl.build import Bound, Built, build
from ..opencl.devices import Device
from .plan import Plan
from .problem import Matrix, Problem, check_indices

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
    """The sizes of packed.cl's blocks."""

    dtype: np.dtype  # of the sums, float32 or float64
    width: int  # elements per vector
    #: Steps of k in a block (KC): six columns of B take 6 kB of the L1 cache, 12 kB in float64.
    depth: int = 256

    @classmethod
    def of(cls, device: Device, dtype: np.dtype) -> Blocks:
        """Those for a device: vectors as wide as its registers, if its compiler takes them."""
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

    def steps_per_part(self, height: int, k: int) -> int:
        """Steps of k whose panels of `height` rows fit `PANEL_BYTES`: whole blocks."""
        blocks = max(1, PANEL_BYTES // (height * self.depth * self.dtype.itemsize))
        parts = tiles_over(k, blocks * self.depth)
        return round_up(tiles_over(k, parts), self.depth) if parts > 1 else k

    def shares(self, m: int, n: int, units: int) -> tuple[int, int]:
        """Rows and columns of C per work-item, whose block of A stays in the L2 cache."""
        block = max(1, BLOCK_BYTES // (self.depth * self.dtype.itemsize * self.rows)) * self.rows
        rows = round_up(tiles_over(m, tiles_over(m, block)), self.rows)
        items_per_row = tiles_over(PER_UNIT * units, tiles_over(m, rows))
        return rows, round_up(tiles_over(n, items_per_row), COLUMNS)


def gemm(plan: Plan, problem: Problem) -> None:
    """A product of real numbers, no size 0; A, B and C0 of any layout, C column-major and compact.

    float16 is converted to float32, and the result back.
    """
    m, n, k = problem.sizes
    check_indices({x.name: x.span for x in (problem.a, problem.b)})
    a, b, out = problem.a.indexed, problem.b.indexed, problem.c.buffer
    before = problem.before and problem.before.indexed
    if plan.dtype == np.float16:
        a, b = _floats(plan, a), _floats(plan, b)
    if plan.result == np.float16:
        out = plan.memory(m * n, FLOAT_BYTES)
        before = before and _floats(plan, before)
    blocks = Blocks.of(plan.device, plan.dtype)
    macros = blocks.macros(before is not None)
    pack, multiply = (_compiled(plan, FILE, name, macros) for name in ("pack", "gemm"))
    height = round_up(m, blocks.rows)
    part = blocks.steps_per_part(height, k)
    panels = plan.memory(height * part, blocks.dtype.itemsize)
    rows, columns = blocks.shares(m, n, plan.device.units)
    groups = tiles_over(m, rows), tiles_over(n, columns)
    for k0 in range(0, k, part):
        steps = min(part, k - k0)
        size = height // blocks.rows, tiles_over(steps, blocks.depth)
        from_a = a.buffer, a.offset + k0 * a.across, a.down, a.across
        from_b = b.buffer, b.offset + k0 * b.down, b.across, b.down
        added: tuple[Any, ...] = ()
        if before:
            added = problem.beta, before.buffer, before.offset, before.down, before.across
        plan.launch("pack", Bound(pack, size, (1, 1), (m, steps, *from_a, panels)))
        sizes = m, n, steps, rows, columns
        arguments = *sizes, problem.alpha, panels, *from_b, *added, int(k0 == 0), out
        plan.launch("gemm", Bound(multiply, groups, (1, 1), arguments))
    if plan.result == np.float16:
        to_half = _compiled(plan, HALF_FILE, "to_half", {})
        arguments = m * n, out, problem.c.buffer
        plan.launch("to_half", Bound(to_half, (tiles_over(m * n, CHUNK), 1), (1, 1), arguments))


def _floats(plan: Plan, x: Matrix) -> Matrix:
    """Launch the conversion of a float16 matrix: its elements as float32, without gaps."""
    stored = x if x.down == 1 else x.T
    made = Matrix.compact(stored.rows, stored.cols)
    made = made._replace(buffer=plan.memory(made.room, FLOAT_BYTES))
    arguments = stored.rows, x.buffer, x.offset, 1, stored.across, made.buffer
    from_half = _compiled(plan, HALF_FILE, "from_half", {})
    groups = stored.cols, tiles_over(stored.rows, CHUNK)
    plan.launch("from_half", Bound(from_half, groups, (1, 1), arguments))
    return made if x.down == 1 else made.T


def _compiled(plan: Plan, file: str, name: str, macros: dict[str, int | str]) -> Built:
    """A kernel of a file."""
    text = sources.read(file)
    return build(plan.device, plan.queue.context, file, text, macros, name, FLAGS)
