"""The second launch of Stream-K: support/fixup.cl adds up the parts of tiles that several
work-groups have shared. Its last arguments are the memory for partial tiles, and C.
"""

from __future__ import annotations

from math import prod

from .header import Params
from .spec import KernelSpec, tiles_over

FILE = "support/fixup.cl"
LOCAL_SIZE = 256, 1
#: Elements of a tile that a work-item adds up.
_ELEMENTS = 4


def parameters(spec: KernelSpec, p: Params) -> dict[str, int]:
    """Return the parameters that it is compiled with, for a kernel and its parameters."""
    return {**p, **dict(zip(("TSM", "TSN", "TSK"), spec.tiles(p), strict=True))}


def launch(
    spec: KernelSpec, m: int, n: int, k: int, p: Params
) -> tuple[tuple[int, int], tuple[int, ...]]:
    """Return the work-items of its launch, and its first arguments."""
    rows, cols, _ = spec.tiles(p)
    tiles = prod(spec.tile_grid(m, n, p))
    cuts = max(1, p["GROUPS"] - 1)
    # a work-group per tile or per cut, whichever are fewer
    items, _ = LOCAL_SIZE
    size = items * min(tiles, cuts), tiles_over(rows * cols, _ELEMENTS * items)
    return size, (m, n, k, p["GROUPS"], int(tiles <= cuts))
