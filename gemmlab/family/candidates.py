"""The kernels that come into question for a product, so that a record can time them and `ranking` can rank them.

A candidate is a `selection.Choice`: a kernel of the catalog, or "family", and all its parameters. There are a few
dozen for a product, of which those that cannot be good are left out: tiles much larger than C, or far too small.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod

from ..catalog import NARROW, catalog
from ..catalog.production import PRODUCTION
from ..catalog.spec import tiles_over
from ..opencl.devices import Device
from . import tiles
from .selection import Choice, implied

#: The kernels of production by their keys in the catalog.
WARP_TILING, TENSOR_CORES, WARPGROUPS = (spec.number for spec in PRODUCTION[:3])

#: Tiles of warp tiling: the parameters named here, and the work-groups per compute unit that may share all tiles.
_NAMES = ("TSM", "TSN", "TSK", "WPTM", "WPTN", "WARPM", "STAGES", "BATCHES")
_WARP_TILES: tuple[tuple[tuple[int, ...], tuple[int, ...]], ...] = (
    ((256, 128, 8, 16, 8, 4, 3, 7), (1,)),
    ((128, 256, 8, 8, 16, 8, 3, 7), (1,)),
    ((128, 128, 8, 8, 8, 4, 3, 7), (1, 2)),
    ((128, 64, 16, 8, 8, 4, 3, 10), (2, 4)),
    ((64, 128, 16, 8, 8, 4, 3, 10), (2, 4)),
    ((128, 32, 16, 8, 4, 8, 3, 6), (2, 4)),
    ((32, 128, 16, 4, 8, 8, 3, 6), (2, 4)),
    ((64, 64, 16, 8, 4, 8, 3, 10), (1, 2, 4)),
    ((64, 64, 8, 8, 4, 8, 3, 7), ()),
    ((64, 32, 32, 4, 4, 8, 3, 6), (1, 2, 4)),
    ((32, 64, 32, 4, 4, 8, 3, 6), (1, 2, 4)),
    ((32, 32, 32, 4, 4, 8, 3, 6), (1, 2, 4)),
    ((128, 16, 32, 4, 4, 8, 2, 6), (1, 2, 4)),
    ((64, 16, 32, 4, 4, 8, 3, 6), (1, 2, 4)),
    ((32, 16, 32, 4, 4, 8, 3, 6), (1, 2, 4)),
    ((16, 128, 32, 4, 4, 4, 2, 6), (1, 2, 4)),
    ((16, 64, 32, 4, 4, 4, 3, 6), (1, 2, 4)),
    ((16, 32, 32, 4, 4, 4, 3, 6), (1, 2, 4)),
)
#: Tiles of the family: with local memory for small products, and without.
_FAMILY_TILES = (
    {"TSM": 16, "TSN": 16, "TSK": 16, "WPTM": 1, "WPTN": 1, "UNROLL": 16, "WIDTH": 1, "STAGES": 1},
    {"TSM": 32, "TSN": 32, "TSK": 16, "WPTM": 2, "WPTN": 2, "UNROLL": 16, "WIDTH": 4, "STAGES": 2},
    {"TSM": 64, "TSN": 64, "TSK": 16, "WPTM": 4, "WPTN": 4, "UNROLL": 4, "WIDTH": 4, "STAGES": 2},
    {"TSM": 64, "TSN": 8, "TSK": 1, "WPTM": 2, "WPTN": 1, "UNROLL": 1, "WIDTH": 2, "STAGES": 0},
)
#: Tiles of the two kernels for tensor cores.
_TENSOR_TILES = (
    {"TSM": 128, "TSN": 128, "TSK": 8, "WM": 64, "WN": 64},
    {"TSM": 128, "TSN": 64, "TSK": 16, "WM": 64, "WN": 32},
    {"TSM": 64, "TSN": 64, "TSK": 16, "WM": 32, "WN": 32},
    {"TSM": 64, "TSN": 32, "TSK": 32, "WM": 32, "WN": 32},
    {"TSM": 32, "TSN": 32, "TSK": 32, "WM": 32, "WN": 32},
)
_WARPGROUP_TILES = ({"TSK": 16, "STAGES": 3, "ORDER": 1}, {"TSK": 16, "STAGES": 3, "ORDER": 8})

#: Rows or columns of C that a narrow kernel may have.
_LINES = (1, 2, 4, 8, 16)
#: Rows or columns that edge strips sum at most.
_STRIP = 8
#: Tiles per compute unit from which a tile is too small, and from which it makes no difference to share them equally.
_MANY, _ENOUGH = 64, 24
#: Multiply-adds up to which the family's kernels come into question.
_SMALL = 2**30
#: Elements of A from which it may pay to copy it, so that its columns are aligned.
_WORTH_A_COPY = 2**16


def candidates(device: Device, sizes: tuple[int, int, int], precision: str = "float32") -> list[Choice]:
    """The kernels to consider for M, N, K of a column-major product whose operands lie as they are."""
    if precision != "float32":
        return [_choice(*found) for found in _tensor(device, sizes, precision)]
    return [
        _choice(*found) for found in (*_warp_tiling(device, sizes), *_narrow(device, sizes), *_family(device, sizes))
    ]


def _choice(kernel, params: dict[str, int]) -> Choice:
    return kernel, tuple(params.items())


def _warp_tiling(device: Device, sizes: tuple[int, int, int]) -> Iterator[tuple[int, dict[str, int]]]:
    spec, (m, n, k) = catalog[WARP_TILING], sizes
    for values, shares in _WARP_TILES:
        tile = dict(zip(_NAMES, values, strict=True))
        if not _suits(tile["TSM"], tile["TSN"], sizes, device.units):
            continue
        count, steps = tiles_over(m, tile["TSM"]) * tiles_over(n, tile["TSN"]), tiles_over(k, tile["TSK"])
        groups = [0, *(s * device.units for s in shares if 2 * s * device.units <= count * steps)]
        if count > _ENOUGH * device.units:
            groups = [0]
        widths = [4] if m % 4 == 0 else [1, 4] if m * k >= _WORTH_A_COPY else [1]
        splits = [0, _STRIP] if _strip(m, tile["TSM"]) or _strip(n, tile["TSN"]) else [0]
        for width, shared, split in product(widths, groups, splits):
            order = 16 if shared == device.units else 8
            params = {**tile, "WIDTH": width, "ORDER": order, "GROUPS": shared, "SPLIT": split, "TRANSPOSED": 0}
            full = spec.complete(params)
            if not spec.problems(full, device.limits):
                yield WARP_TILING, full


def _strip(size: int, side: int) -> bool:
    """Whether the last tiles would have a few rows or columns only."""
    return size > side and 0 < size % side <= _STRIP


def _suits(rows: int, cols: int, sizes: tuple[int, int, int], units: int) -> bool:
    """Whether a tile is not much larger than C, and not so small that there are far too many of them."""
    m, n, _ = sizes
    few = tiles_over(m, rows) * tiles_over(n, cols) <= _MANY * units
    return few and (rows < 2 * m or rows <= 32) and (cols < 2 * n or cols <= 32)


def _narrow(device: Device, sizes: tuple[int, int, int]) -> Iterator[tuple[str, dict[str, int]]]:
    m, n, k = sizes
    for rows, few, aligned in ((0, n, m), (1, m, k)):
        lines = next((count for count in _LINES if count >= few), None)
        if lines is None or (few > 4 and not rows and m <= n):
            continue
        depth = (512 if lines <= 4 else 256) if rows else (256 if lines <= 2 else 128)
        for wpt, width in product((1, 4) if rows else (1,), (4,) if aligned % 4 == 0 else (1,)):
            params = {"LINES": lines, "ROWS": rows, "TSK": depth, "WPT": wpt, "WIDTH": width, "GROUPS": 0}
            if NARROW.problems(params, device.limits):
                continue
            steps = prod(NARROW.tile_grid(m, n, params)) * tiles_over(k, depth)
            for groups in (0, *(s * device.units for s in (1, 2, 4, 8) if s * device.units <= steps)):
                yield "narrow", {**params, "GROUPS": groups}


def _family(device: Device, sizes: tuple[int, int, int]) -> Iterator[tuple[str, dict[str, int]]]:
    for tile in _FAMILY_TILES:
        suits = _suits(tile["TSM"], tile["TSN"], sizes, device.units) and tiles.covers(tile, sizes)
        if suits and prod(sizes) <= _SMALL and tiles.fits("s", tile, device):
            yield "family", dict(tile)


def _tensor(device: Device, sizes, precision: str) -> Iterator[tuple[int, dict[str, int]]]:
    for kernel, offered in ((TENSOR_CORES, _TENSOR_TILES), (WARPGROUPS, _WARPGROUP_TILES)):
        for tile in offered:
            params = catalog[kernel].complete({**tile, **implied(precision, kernel)})
            rows, cols, _ = catalog[kernel].tiles(params)
            fits = not catalog[kernel].problems(params, device.limits)
            if fits and _suits(rows, cols, sizes, device.units):
                yield kernel, params
