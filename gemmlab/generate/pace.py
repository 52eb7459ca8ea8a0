"""How long a product would take with a tile, from two measured figures of the tile, so that the
quickest can be chosen.

A work-group does its steps of k, each as deep as the tile. With a compute unit for itself a step
takes `alone` microseconds, mostly waiting. Several work-groups on one unit wait at the same time,
until the unit has no time left: then each of their steps takes it `shared` microseconds. Where
work-groups share tiles (see `shares`), the last one of a tile adds up what all of them have.
`ranking` does the same, with more constants, for the kernels of production; the models that were
published are named there.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

from ..catalog.spec import Params, tiles_over

#: Microseconds of a launch with its first loads, and more for each 1024 bytes of a tile of C that
#: it stores; of adding up shares, and more for each share, and for each 1024 bytes of one. All
#: measured on an H200.
_START, _STORE, _CUT, _SHARE, _ADD = 2.5, 0.04, 1.0, 0.15, 0.009
#: Shares of a tile at most; steps of k that each of them has at least; and work-groups per unit up
#: to which tiles are shared, since keeping the shares takes memory, and its time.
_MOST, _LEAST, _GROUPS = 64, 64, 8


class Pace(NamedTuple):
    """A tile, and what a step of its depth takes a work-group on a device.

    Attributes:
        tile: the parameters, as in `tiles.DEFAULTS`.
        alone: microseconds, with a compute unit for itself.
        shared: microseconds of the unit's time, where many work-groups share it.
    """

    tile: dict[str, int]
    alone: float
    shared: float


def microseconds(
    pace: Pace,
    size_bytes: int,
    sizes: tuple[int, int, int],
    units: int,
    number: int = 1,
    shares: int = 1,
) -> float:
    """How long a product takes.

    Args:
        size_bytes: of an element.
        sizes: M, N and K of the column-major product.
        units: compute units of the device.
        number: products of a batch.
        shares: work-groups that share each tile of C.
    """
    tile, (m, n, k) = pace.tile, sizes
    groups = tiles_over(m, tile["TSM"]) * tiles_over(n, tile["TSN"]) * number * shares
    steps, stored = tiles_over(tiles_over(k, tile["TSK"]), shares), _kilobytes(tile, size_bytes)
    time = beginning(tile, size_bytes) + steps * max(pace.alone, ceil(groups / units) * pace.shared)
    return time + (_CUT + shares * (_SHARE + _ADD * stored) if shares > 1 else 0.0)


def beginning(tile: Params, size_bytes: int) -> float:
    """Microseconds that a product takes beside its steps of k."""
    return _START + _STORE * _kilobytes(tile, size_bytes)


def _kilobytes(tile: Params, size_bytes: int) -> float:
    return tile["TSM"] * tile["TSN"] * size_bytes / 1024


def quickest(
    paces: Iterable[Pace], size_bytes: int, sizes: tuple[int, int, int], units: int, number: int = 1
) -> dict[str, int]:
    """The tile, with its SHARES, that takes the least time. The products of a batch share no
    tiles.
    """
    ways = ((pace, shares) for pace in paces for shares in _shares(pace.tile, sizes, units, number))
    pace, shares = min(
        ways, key=lambda way: microseconds(way[0], size_bytes, sizes, units, number, way[1])
    )
    return {**pace.tile, "SHARES": shares}


def _shares(tile: Params, sizes: tuple[int, int, int], units: int, number: int) -> range:
    """In how many shares a tile may be computed."""
    tiles = tiles_over(sizes[0], tile["TSM"]) * tiles_over(sizes[1], tile["TSN"])
    return range(
        1, 2 if number > 1 else max(1, min(_MOST, sizes[2] // _LEAST, _GROUPS * units // tiles)) + 1
    )
