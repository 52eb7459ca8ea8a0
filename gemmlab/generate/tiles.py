"""Which tile the family takes for a problem, and the schedule that follows from it.

What was measured comes first: ``results/family.json`` has, by kind of device and precision, the
pace of some tiles, from which follows which is the quickest for a product (see `pace`). Without it,
there are rows of a size and its tiles, the fastest first. As in AutoGEMM the first tile that
divides M, N and K is taken; where none does, AutoGEMM launches up to four kernels, and we launch
the fastest tile with guards. Devices without rows follow a rule.
"""

from __future__ import annotations

import json
from dataclasses import replace
from math import prod
from typing import NamedTuple

from ..caches import cached
from ..catalog import ParameterError, sources
from ..catalog.spec import Params, complete, tiles_over
from ..opencl.devices import Device
from .pace import Pace, quickest
from .precision import PRECISIONS, widest_vector
from .schedule import UNITS, Operand, Schedule
from .selection import FALLBACK, dimensions, distance, kind

#: The parameters of a tile by the ladder's names, and beside them WIDTH, the most elements in a
#: load from global memory; STAGES, the buffers in local memory; and UNIT, who computes a block of
#: C: 0 for a work-item, 1 for a warp, 2 for a warp with tensor cores (see `UNITS`). With STAGES =
#: 0, TSK and UNROLL are 1; for warps UNROLL is TSK, and SHARES work-groups may share a tile, which
#: those of a batch never do.
DEFAULTS = {
    "TSM": 64,
    "TSN": 64,
    "TSK": 8,
    "WPTM": 4,
    "WPTN": 4,
    "UNROLL": 4,
    "WIDTH": 1,
    "STAGES": 1,
    "UNIT": 0,
    "SHARES": 1,
}

#: Registers of 32 bits that the rule for GPUs spends on a work-item's accumulators. Of the 255 that
#: a work-item may have, as many again hold operands and addresses; and two work-groups of 256 still
#: share a multiprocessor.
_ACCUMULATORS = 64
_LOAD_BYTES = 16  # the widest load of a GPU
# the widest vector of a processor, which takes several instructions where it has smaller ones
_VECTOR_BYTES = 64


#: Features of a device for which kernels of warps are written: asynchronous copies came with the
#: tensor cores for TF32, larger instructions for float64 with warpgroups.
_NEEDS = {"warps": "tensor", "tensor": "warpgroups"}

#: Doublings of M, N and K together up to which a row serves smaller products: a quarter of each,
#: say.
_NEAR = 6

#: Steps of k that a share has at least, since keeping sums and adding them up costs time; shares at
#: most, which one work-group has to add up; and work-items that keep a compute unit busy. All
#: measured on an H200.
_SHARE, _MOST_SHARES, _ITEMS = 128, 16, 256


class OperandLayout(NamedTuple):
    """How an operand lies in memory.

    Attributes:
        operation: "N", "T", "C" or "R": what is done to the matrix in memory.
        offset: elements before its first one.
        ld: elements from one column to the next.
    """

    operation: str
    offset: int
    ld: int


def configure(  # noqa: PLR0913
    precision: str,
    params: Params,
    sizes: tuple[int, int, int],
    a: OperandLayout,
    b: OperandLayout,
    beta: bool,
    batch: bool = False,
    part: bool = False,
) -> Schedule:
    """The schedule of a tile for a problem: guards where M, N, K leave tiles, and loads as wide as
    they may be.

    Args:
        precision: "s", "d", "c" or "z".
        params: all of `DEFAULTS`.
        sizes: M, N and K of the column-major product.
        a, b: the operands.
        beta: whether beta C0 is added.
        batch: whether it is for many pairs of matrices.
        part: whether C is a part of a larger matrix.

    Raises:
        ParameterError: if the parameters contradict each other.
    """
    m, n, k = sizes
    rows, columns = m % params["TSM"] > 0, n % params["TSN"] > 0
    direct = params["STAGES"] == 0
    if params["UNIT"] not in range(len(UNITS)):
        raise ParameterError(f"UNIT must be 0, 1 or 2, not {params['UNIT']}")
    if direct and (rows and m < params["WPTM"] or columns and n < params["WPTN"]):
        raise ParameterError(
            f"STAGES=0 moves the last micro-tiles back into the result, which at {n} x {m} is "
            f"smaller than one of {params['WPTN']} x {params['WPTM']}; STAGES=1 serves any size"
        )
    plain = Schedule(
        precision,
        a.operation,
        b.operation,
        beta,
        tile=(params["TSM"], params["TSN"]),
        micro_tile=(params["WPTM"], params["WPTN"]),
        depth=params["TSK"],
        unroll=params["UNROLL"],
        load_widths=(params["WIDTH"] if direct else 1, 1),
        stages=params["STAGES"],
        edges=("both" if columns else "rows") if rows else ("columns" if columns else "none"),
        tail=not direct and (k % params["TSK"] > 0 or k == 0),
        batch=batch,
        submatrix=part,
        unit=UNITS[params["UNIT"]],
        split_k=1 if batch else params["SHARES"],
    )
    if direct:
        return plain
    widths = (
        _widest(plain, plain.a, a, k if plain.a.k_contiguous else m, params["WIDTH"]),
        _widest(plain, plain.b, b, k if plain.b.k_contiguous else n, params["WIDTH"]),
    )
    together = plain.unit == "warps" and m % plain.fragment == 0 and not (beta or part)
    return replace(plain, load_widths=widths, store_width=plain.fragment if together else 1)


def _widest(plain: Schedule, operand: Operand, layout: OperandLayout, run: int, most: int) -> int:
    """The widest load, a power of two, that divides all that it must: no load may leave the matrix
    or lie askew.
    """
    width = 1
    while (
        2 * width <= most
        and all(number % (2 * width) == 0 for number in (layout.offset, layout.ld, run))
        and not list(plain.load_conflicts(operand, 2 * width))
    ):
        width *= 2
    return width


def complete_tile(params: Params | None) -> dict[str, int]:
    """`params` over `DEFAULTS`. Raises ParameterError for unknown names, TypeError for wrong
    types.
    """
    return complete("the family", DEFAULTS, params)


@cached(1)
def table() -> dict[str, dict[str, list[dict]]]:
    """``results/family.json``: by kind and precision, rows with "size" and "tiles", the fastest
    first; {} without it.

    A size is that of a cube, or M, N and K of the column-major product.
    """
    return {
        kind: {
            letter: [_complete_row(row) for row in entry.get(letter, [])] for letter in PRECISIONS
        }
        for kind, entry in _file().items()
    }


@cached(1)
def _file() -> dict[str, dict]:
    file = sources.folder("results") / "family.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}


def _complete_row(row: dict) -> dict:
    """A row whose tiles have all parameters."""
    fallback = {"fallback": complete_tile(row["fallback"])} if "fallback" in row else {}
    return {**row, "tiles": [complete_tile(tile) for tile in row["tiles"]], **fallback}


def rows_for(device: Device, precision: str) -> list[dict]:
    """The table's rows for a kind of device and a precision; those of a similar kind, where it has
    none.
    """
    known = table().get(kind(device)) or table().get(FALLBACK[kind(device)]) or {}
    return known.get(precision, [])


@cached(8)
def paces(device: Device, precision: str) -> list[Pace]:
    """The tiles whose pace is known for this kind of device, if the device takes them."""
    return [
        pace for pace in known_paces(kind(device), precision) if fits(precision, pace.tile, device)
    ]


def known_paces(kind: str, precision: str) -> list[Pace]:
    """The tiles whose pace the table has for a kind of device, such as "nvidia"."""
    found = _file().get(kind, {}).get("paces", {}).get(precision, [])
    return [Pace(complete_tile(pace["tile"]), pace["alone"], pace["shared"]) for pace in found]


@cached(4096)
def choose(
    device: Device, precision: str, sizes: tuple[int, int, int], number: int = 1
) -> dict[str, int]:
    """The tile for a precision and M, N, K of the column-major product: by paces, of the nearest
    row, or by the rule.

    Args:
        number: products of a batch.

    Raises:
        ParameterError: if the device can take no tile at all.
    """
    if paces(device, precision):
        return quickest(
            paces(device, precision), PRECISIONS[precision].size, sizes, device.units, number
        )
    rows = sorted(rows_for(device, precision), key=lambda row: distance(row["size"], sizes))
    for row in rows:
        if distance(row["size"], sizes) > _NEAR and prod(sizes) < prod(dimensions(row["size"])):
            break  # a large product's tiles would leave most of the device idle
        tiles = [
            tile for tile in row["tiles"] if fits(precision, tile, device) and _covers(tile, sizes)
        ]
        if tiles:
            tile = next((tile for tile in tiles if divides(tile, sizes)), tiles[0])
            return (
                tile
                if tile["SHARES"] > 1 or number > 1
                else {**tile, "SHARES": shares(tile, sizes, device)}
            )
    return by_rule(device, precision, sizes, number)


def shares(tile: Params, sizes: tuple[int, int, int], device: Device) -> int:
    """How many work-groups share each tile: as many as run at the same time, if each still has
    enough to do.
    """
    if not tile["UNIT"]:
        return 1
    items = tile["TSM"] // tile["WPTM"] * (tile["TSN"] // tile["WPTN"])
    at_once = device.units * max(1, _ITEMS // items)
    return max(1, min(at_once // _tiles(tile, sizes), sizes[2] // _SHARE, _MOST_SHARES))


def divides(tile: Params, sizes: tuple[int, int, int]) -> bool:
    """Whether M, N and K consist of whole tiles and steps."""
    return all(
        size % tile[name] == 0 for size, name in zip(sizes, ("TSM", "TSN", "TSK"), strict=True)
    )


def _covers(tile: Params, sizes: tuple[int, int, int]) -> bool:
    """Whether the product is as large as a micro-tile, if the tile needs that."""
    return tile["STAGES"] > 0 or (sizes[0] >= tile["WPTM"] and sizes[1] >= tile["WPTN"])


def fits(precision: str, tile: Params, device: Device) -> bool:
    """Whether the device takes it in its most demanding form: both operands filled along k, as wide
    as may be.

    Kernels of warps run everywhere, but are only fast where the device has what they are written
    for.
    """
    if tile["UNIT"] and _NEEDS[UNITS[tile["UNIT"]]] not in device.features:
        return False
    whole = tile["TSM"], tile["TSN"], tile["TSK"]
    askew = configure(
        precision, tile, whole, OperandLayout("T", 0, 16), OperandLayout("N", 0, 16), beta=True
    )
    return not askew.problems(device.limits)


def by_rule(
    device: Device, precision: str, sizes: tuple[int, int, int], number: int = 1
) -> dict[str, int]:
    """A tile for a device of which nothing is known.

    On a GPU 16 x 16 work-items share a work-group, or 8 x 8 if it takes no more; a micro-tile is as
    large as 64 registers hold, and is halved until every compute unit has a tile (of one of a
    batch's products), the tiles fit into local memory, and no more than half of what they cover
    lies outside of the result. A processor's local memory is ordinary memory: there a work-item
    takes a vector of rows, as wide as the compiler allows, and 8 columns (4 of complex numbers,
    which need two sums). Products smaller than this have a tile as on a GPU.

    Raises:
        ParameterError: if the device can take no tile at all.
    """
    if device.kind != "GPU":
        tile = _for_a_processor(precision, device)
        if _covers(tile, sizes):
            return tile
    size = PRECISIONS[precision].size
    micro = (8, 8) if device.kind == "GPU" else (4, 4)
    while micro[0] * micro[1] * size // 4 > _ACCUMULATORS:
        micro = _halved(micro)
    while True:
        tile = _for_a_gpu(micro, precision, device)
        takes = fits(precision, tile, device)
        covered = _tiles(tile, sizes) * tile["TSM"] * tile["TSN"]
        if takes and (
            micro == (1, 1)
            or _tiles(tile, sizes) * number >= device.units
            and covered <= 2 * sizes[0] * sizes[1]
        ):
            return tile
        if micro == (1, 1):
            raise ParameterError(
                f"the family has no tile for {device}: its limits are {device.limits}"
            )
        micro = _halved(micro)


def _for_a_processor(precision: str, device: Device) -> dict[str, int]:
    size, components = PRECISIONS[precision].size, PRECISIONS[precision].components
    width = (
        min(widest_vector(precision, device.limits), _VECTOR_BYTES * components // size)
        // components
    )
    columns = 8 // components
    tile = {"TSM": 4 * width, "TSN": columns, "WPTM": width, "WPTN": columns}
    return tile | {"TSK": 1, "UNROLL": 1, "WIDTH": width, "STAGES": 0, "UNIT": 0, "SHARES": 1}


def _halved(micro: tuple[int, int]) -> tuple[int, int]:
    rows, columns = micro
    return (rows // 2, columns) if rows > columns else (rows, columns // 2)


def _tiles(tile: Params, sizes: tuple[int, int, int]) -> int:
    return tiles_over(sizes[0], tile["TSM"]) * tiles_over(sizes[1], tile["TSN"])


def _for_a_gpu(micro: tuple[int, int], precision: str, device: Device) -> dict[str, int]:
    size = PRECISIONS[precision].size
    side = 16 if device.kind == "GPU" and device.limits.work_group >= 256 else 8
    return {
        "TSM": side * micro[0],
        "TSN": side * micro[1],
        "TSK": 16 if size == 4 or 1 in micro else 8,
        "WPTM": micro[0],
        "WPTN": micro[1],
        "UNROLL": 4,
        "WIDTH": max(1, _LOAD_BYTES // size) if device.kind == "GPU" else 1,
        "STAGES": 2 if device.kind == "GPU" else 1,
        "UNIT": 0,
        "SHARES": 1,
    }
