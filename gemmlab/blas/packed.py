"""Block sizes of the kernel for CPUs, which packs A: see ``kernels/production/packed.cl``."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..ladder.spec import round_up, tiles_over
from ..opencl.devices import Device

FILE = "production/packed.cl"
HALF_FILE = "support/half.cl"
#: Elements that a work-item of `HALF_FILE` converts at most.
CHUNK = 4096
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
        """Return the sizes for a device: vectors as wide as its registers and compiler allow."""
        dtype = np.result_type(dtype, np.float32)
        vector_bytes = 4 * min(device.cl.native_vector_width_float, device.limits.vector)
        return cls(dtype, max(2, vector_bytes // dtype.itemsize))

    @property
    def rows(self) -> int:
        """Rows of a panel of A, and of the block in registers (MR)."""
        return 2 * self.width

    def macros(self, beta: bool) -> dict[str, int | str]:
        """Return the values of the kernel's macros."""
        real = "float" if self.dtype.itemsize == 4 else "double"
        return {"REAL": real, "WIDTH": self.width, "KC": self.depth, "BETA": int(beta)}

    def steps_per_part(self, height: int, k: int) -> int:
        """Return the steps of k whose panels of `height` rows fit `PANEL_BYTES`: whole blocks."""
        blocks = max(1, PANEL_BYTES // (height * self.depth * self.dtype.itemsize))
        parts = tiles_over(k, blocks * self.depth)
        return round_up(tiles_over(k, parts), self.depth) if parts > 1 else k

    def shares(self, m: int, n: int, units: int) -> tuple[int, int]:
        """Return rows and columns of C per work-item, whose block of A stays in the L2 cache."""
        block = max(1, BLOCK_BYTES // (self.depth * self.dtype.itemsize * self.rows)) * self.rows
        rows = round_up(tiles_over(m, tiles_over(m, block)), self.rows)
        items_per_row = tiles_over(PER_UNIT * units, tiles_over(m, rows))
        return rows, round_up(tiles_over(n, items_per_row), COLUMNS)
