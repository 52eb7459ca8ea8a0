"""The kernels that come into question for a product, so that a record can time them and `ranking`
can rank them.

A candidate is a `selection.Choice`: the kernel and all its parameters. There are a few dozen for a
product; those that cannot be good are left out: tiles much larger than C, or far too small.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from math import prod
from typing import Any

from ..caches import cached
from ..catalog import NARROW, Key, Limits, catalog, find
from ..catalog.production import PRODUCTION
from ..catalog.spec import tiles_over
from ..opencl.devices import Device
from .selection import Choice, implied

#: The kernels of production by their keys in the catalog.
WARP_TILING, TENSOR_CORES, WARPGROUPS = (spec.number for spec in PRODUCTION[:3])

#: The kernels that may be chosen, by the names that records use.
KERNELS: dict[str, Any] = {
    "warp_tiling": WARP_TILING,
    "tensor_cores": TENSOR_CORES,
    "warpgroups": WARPGROUPS,
    "narrow": NARROW.number,
}

#: Tiles of warp tiling: the parameters named here, and the work-groups per compute unit that may
#: share all tiles.
_NAMES = ("TSM", "TSN", "TSK", "WPTM", "WPTN", "WARPM", "STAGES", "BATCHES")
_WARP_TILES: tuple[tuple[tuple[int, ...], tuple[float, ...]], ...] = (
    ((256, 128, 8, 16, 8, 4, 3, 7), (1,)),
    ((128, 256, 8, 8, 16, 8, 3, 7), (1,)),
    ((128, 128, 8, 8, 8, 4, 3, 7), (1, 2)),
    ((128, 64, 16, 8, 8, 4, 3, 10), (1, 2, 4)),
    ((64, 128, 16, 8, 8, 4, 3, 10), (1, 2, 4)),
    ((128, 32, 16, 8, 4, 8, 3, 6), (1, 2, 4)),
    ((32, 128, 16, 4, 8, 8, 3, 6), (1, 2, 4)),
    ((64, 64, 16, 8, 4, 8, 3, 10), (1 / 2, 1, 2, 4)),
    ((64, 64, 8, 8, 4, 8, 3, 7), ()),
    ((64, 32, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
    ((32, 64, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
    ((32, 32, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
    ((128, 16, 32, 4, 4, 8, 2, 6), (1 / 2, 1, 2)),
    ((64, 16, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2)),
    ((32, 16, 32, 4, 4, 8, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
    ((16, 128, 32, 4, 4, 4, 2, 6), (1 / 2, 1, 2)),
    ((16, 64, 32, 4, 4, 4, 3, 6), (1 / 4, 1 / 2, 1, 2)),
    ((16, 32, 32, 4, 4, 4, 3, 6), (1 / 4, 1 / 2, 1, 2, 4)),
)
#: The same for narrow products: work-groups per compute unit.
_NARROW_SHARES = (1 / 4, 1 / 2, 1, 2, 4, 8)
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
#: Steps of k from which their lines may wait in local memory in large portions.
_LONG = 2048
#: Rows or columns that edge strips sum at most, and elements of a tile from which they come into
#: question.
_STRIP, _LARGE = 8, 8192
#: Tiles per compute unit from which a tile is too small, and from which it makes no difference to
#: share them equally.
_MANY, _ENOUGH = 64, 24
#: Parts of a tile that are added up at most, and from which a separate launch (LAST = 0) may do
#: so faster.
_PARTS, _PARALLEL = 128, 8
#: The last steps of k may have a loop of their own (TAIL) instead of zeroes that fill up a tile:
#: how many times as long its steps take, and which part of all steps it must save. Smaller ones
#: would only be one more text to compile.
_SLOWER, _WORTH_A_LOOP = 1.5, 0.1
#: Elements of A from which it may pay to copy it, so that its columns are aligned.
_WORTH_A_COPY = 2**16


def candidates(
    device: Device, sizes: tuple[int, int, int], precision: str = "float32"
) -> list[Choice]:
    """The kernels to consider for M, N, K of a column-major product whose operands lie as they
    are.
    """
    if precision != "float32":
        return [_choice(*found) for found in _tensor(device, sizes, precision)]
    return [_choice(*found) for found in (*_warp_tiling(device, sizes), *_narrow(device, sizes))]


def _choice(kernel, params: dict[str, int]) -> Choice:
    return kernel, tuple(params.items())


def _warp_tiling(
    device: Device, sizes: tuple[int, int, int]
) -> Iterator[tuple[Key, dict[str, int]]]:
    m, n, k = sizes
    for values, shares in _WARP_TILES:
        tile = dict(zip(_NAMES, values, strict=True))
        if not _suits(tile["TSM"], tile["TSN"], sizes, device.units):
            continue
        count, steps = (
            tiles_over(m, tile["TSM"]) * tiles_over(n, tile["TSN"]),
            tiles_over(k, tile["TSK"]),
        )
        groups = _groups(shares, device.units, count, steps)
        widths = [4] if m % 4 == 0 else [1, 4] if m * k >= _WORTH_A_COPY and n >= 64 else [1]
        large = tile["TSM"] * tile["TSN"] >= _LARGE and k <= 2 * min(m, n)
        strip = large and (_strip(m, tile["TSM"]) or _strip(n, tile["TSN"]))
        splits = [0, _STRIP] if strip else [0]
        tail = int(count >= device.units and _saves(k, tile["TSK"]))
        for width, shared, split in product(widths, groups, splits):
            order = 16 if shared == device.units else 8
            params = {
                **tile,
                "WIDTH": width,
                "ORDER": order,
                "GROUPS": shared,
                "SPLIT": split,
                "TRANSPOSED": 0,
                "TAIL": tail,
            }
            full = _legal(WARP_TILING, tuple(params.items()), device.limits)
            if full:
                yield WARP_TILING, full
                if shared >= _PARALLEL * count and tile["WPTM"] * tile["WPTN"] > 32:
                    yield WARP_TILING, {**full, "LAST": 0}


def _strip(size: int, side: int) -> bool:
    """Whether the last tiles would have a few rows or columns only, beside so many that strips take
    little time.
    """
    return size > 4 * side and 0 < size % side <= _STRIP


def _saves(k: int, depth: int) -> bool:
    """Whether a separate loop for the last steps of k is worth it, instead of zeroes up to the
    depth of a tile.
    """
    rest = k % depth
    return rest > 0 and depth - _SLOWER * rest >= _WORTH_A_LOOP * k


def _suits(rows: int, cols: int, sizes: tuple[int, int, int], units: int) -> bool:
    """Whether a tile is not much larger than C, and not so small that there are far too many of
    them.
    """
    m, n, _ = sizes
    few = tiles_over(m, rows) * tiles_over(n, cols) <= _MANY * units
    return few and (rows < 2 * m or rows <= 32) and (cols < 2 * n or cols <= 32)


def _groups(shares: tuple[float, ...], units: int, tiles: int, steps: int) -> list[int]:
    """Work-groups that may share so many tiles of so many steps each; 0 for one per tile."""
    found = (
        {max(1, round(share * units)) for share in shares} if tiles <= _ENOUGH * units else set()
    )
    return [
        0,
        *sorted(g for g in found if g <= tiles * steps and g <= _PARTS * tiles and 8 * g >= tiles),
    ]


def _narrow(device: Device, sizes: tuple[int, int, int]) -> Iterator[tuple[str, dict[str, int]]]:
    """Kernels for few columns (ROWS = 0), whose long operand is A, or for few rows, whose long
    operand is B.
    """
    m, n, k = sizes
    for rows, few, side, aligned in ((0, n, m, m), (1, m, n, k)):
        lines = next((count for count in _LINES if count >= few), None)
        if lines is None or (few > 4 and side < few):
            continue
        width = 4 if aligned % 4 == 0 else 1
        depths = [128, 512 if lines <= 4 else 256] if rows else [64, 256]
        if lines <= 4 and k >= _LONG:
            depths.append(1024)
        for wpt, depth in product((1, 4) if rows else (1,), depths):
            given = {"LINES": lines, "ROWS": rows, "TSK": depth, "WPT": wpt, "WIDTH": width}
            params = _legal(NARROW.number, tuple(given.items()), device.limits)
            if not params or (depth > 128 and k <= depth // 2):
                continue
            count, steps = prod(NARROW.tile_grid(m, n, params)), tiles_over(k, depth)
            for groups in _groups(_NARROW_SHARES, device.units, count, steps):
                yield "narrow", {**params, "GROUPS": groups}


def _tensor(device: Device, sizes, precision: str) -> Iterator[tuple[Key, dict[str, int]]]:
    for kernel, offered in ((TENSOR_CORES, _TENSOR_TILES), (WARPGROUPS, _WARPGROUP_TILES)):
        for tile in offered:
            params = _legal(
                kernel, tuple({**tile, **implied(precision, kernel)}.items()), device.limits
            )
            if params and _suits(*catalog[kernel].tiles(params)[:2], sizes, device.units):
                yield kernel, params


@cached(1024)
def _legal(kernel, given: tuple[tuple[str, int], ...], limits: Limits) -> dict[str, int]:
    """All parameters of a kernel, or none if a device with such limits does not take them."""
    spec = find(kernel)
    full = spec.complete(dict(given))
    return {} if spec.problems(full, limits) else full
