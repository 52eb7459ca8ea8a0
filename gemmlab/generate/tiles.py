"""Which tile a generated kernel has for a problem, and the schedule that follows from it.

Where the table has constants of tiles for the kind of device, the model of `choice` predicts how
long each takes, and the fastest one is chosen. Other devices use the tile that a rule gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf
from typing import TYPE_CHECKING, Any, NamedTuple

from ..caches import cached
from ..ladder import ParameterError
from ..ladder.spec import Params, complete, tiles_over
from .candidates import Constants, FittedChip, Sizes, Work, kind_of, model, seconds, section
from .elements import ELEMENTS, widest_vector
from .schedule import UNITS, Operand, Schedule

if TYPE_CHECKING:
    from ..opencl.devices import Device
#: The parameters of a tile, with the names of the ladder. WIDTH is the number of elements that a
#: load takes at most, STAGES that of buffers in local memory, and SHARES that of work-groups per
#: tile. UNIT says what computes a block of C (see `UNITS`).
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
#: Registers of 32 bits for a work-item's accumulators, by the rule for GPUs: of 255, as many again
#: hold operands and addresses, and two work-groups of 256 still share a multiprocessor.
ACCUMULATORS = 64
#: Micro-tiles that the rule tries, the largest first.
MICRO_TILES = ((8, 8), (8, 4), (4, 4), (4, 2), (2, 2), (2, 1), (1, 1))
#: Bytes of a GPU's widest load.
LOAD_BYTES = 16
#: Bytes of the widest vector of a CPU, which uses several instructions where it has smaller ones.
VECTOR_BYTES = 64
#: Steps of k of each work-group that shares a tile, at least.
LEAST_STEPS = 64
#: Work-groups per compute unit that leave no need to share: a share costs memory and its time.
ENOUGH_GROUPS = 8


class OperandLayout(NamedTuple):
    """How a generated kernel reads an operand."""

    operation: str  # "N", "T", "C" or "R": what is done to the matrix in memory
    offset: int  # elements before its first one
    ld: int  # elements from one column to the next
    padded: bool = False  # zeros fill its columns up to `ld`, and loads may reach them


class RankedTile(NamedTuple):
    """A tile, and the seconds that a product takes with it; inf for a tile of the rule."""

    tile: dict[str, int]
    seconds: float


def configure(
    precision: str,
    params: Params,
    sizes: Sizes,
    a: OperandLayout,
    b: OperandLayout,
    **flags: bool,
) -> Schedule:
    """Return the schedule of a tile (all of `DEFAULTS`) for M, N, K of a column-major product, with
    guards only where these need them, and loads as wide as memory allows. `flags` are beta, batch,
    submatrix and wide, as in `Schedule`. Raise ParameterError for parameters that contradict each
    other.
    """
    m, n, k = sizes
    rows, columns = m % params["TSM"] > 0, n % params["TSN"] > 0
    direct = params["STAGES"] == 0
    if direct and not covers(params, sizes):
        raise ParameterError(
            f"STAGES=0 moves the last micro-tiles back into the result, which at {n} x {m} is "
            f"smaller than one of {params['WPTN']} x {params['WPTM']}; STAGES=1 supports any size"
        )
    plain = Schedule(
        precision,
        a.operation,
        b.operation,
        tile=(params["TSM"], params["TSN"]),
        micro_tile=(params["WPTM"], params["WPTN"]),
        depth=params["TSK"],
        unroll=params["UNROLL"],
        load_widths=(params["WIDTH"] if direct else 1, 1),
        stages=params["STAGES"],
        edges=("both" if columns else "rows") if rows else ("columns" if columns else "none"),
        tail=not direct and (k % params["TSK"] > 0 or k == 0),
        unit=UNITS[params["UNIT"]],
        split_k=1 if flags.get("batch") else params["SHARES"],
        **flags,
    )
    if direct:
        return plain
    widths = (
        _widest(plain, plain.a, a, k if plain.a.k_contiguous else m, params["WIDTH"]),
        _widest(plain, plain.b, b, k if plain.b.k_contiguous else n, params["WIDTH"]),
    )
    together = m % plain.widest_store == 0 and not (plain.beta or plain.submatrix)
    return replace(plain, load_widths=widths, store_width=plain.widest_store if together else 1)


def _widest(plain: Schedule, operand: Operand, layout: OperandLayout, run: int, most: int) -> int:
    """Return the widest load, a power of two, that stays inside the matrix and aligned."""
    width, run = 1, layout.ld if layout.padded else run
    while (
        2 * width <= most
        and all(number % (2 * width) == 0 for number in (layout.offset, layout.ld, run))
        and not list(plain.load_conflicts(operand, 2 * width))
    ):
        width *= 2
    return width


def complete_tile(params: Params | None) -> dict[str, int]:
    """Return `params` over `DEFAULTS`; errors as `complete` of the catalog, also for unknown
    units.
    """
    tile = complete("kernel 'family'", DEFAULTS, params)
    if tile["UNIT"] not in range(len(UNITS)):
        raise ParameterError(f"UNIT must be from 0 to 3, not {tile['UNIT']}")
    for name in ("TSM", "TSN", "TSK"):
        if tile[name] < 1:
            raise ParameterError(f"{name} must be at least 1, not {tile[name]}")
    return tile


#: For strips narrower than a micro-tile of a kernel without local memory, which cannot guard them.
NARROW = complete_tile({"TSM": 16, "TSN": 16, "TSK": 8, "WPTM": 2, "WPTN": 2})


class Launch(NamedTuple):
    """A rectangle of C, and what computes it."""

    row: int  # its first row
    column: int  # its first column
    rows: int
    columns: int
    tile: Params  # all parameters
    edges: str  # where its last tiles end outside: "none", "rows", "columns" or "both"


def cut(sizes: Sizes, tile: Params) -> list[Launch]:
    """Return C as up to four launches: whole tiles, the row edge, the column edge and the corner.
    Each has a kernel that guards only the edges it needs.

    The idea is that of D. Tanner, AutoGEMM, documentation of clBLAS, 2015. There a loop that is not
    unrolled follows where the depth does not divide K; here kernels are guarded along k.
    """
    m, n, _ = sizes
    whole_m, whole_n = m // tile["TSM"] * tile["TSM"], n // tile["TSN"] * tile["TSN"]
    rectangles = [
        (0, 0, whole_m, whole_n, "none"),
        (whole_m, 0, m - whole_m, whole_n, "rows"),
        (0, whole_n, whole_m, n - whole_n, "columns"),
        (whole_m, whole_n, m - whole_m, n - whole_n, "both"),
    ]
    return [
        Launch(i, j, rows, columns, tile if covers(tile, (rows, columns)) else NARROW, edges)
        for i, j, rows, columns, edges in rectangles
        if rows and columns
    ]


def generated_work(tile: Params, sizes: Sizes, sum_size: int = 0, number: int = 1) -> Work:
    """Return what a generated kernel does for M, N, K, or for `number` such products of a batch.

    Work-groups that share a tile write and read partial sums, of `sum_size` bytes per element. The
    bytes of A, B and C are left out: the constants come from products where these did not matter.
    """
    shares = tile["SHARES"]
    groups = _count(tile, sizes) * number * shares
    steps = tiles_over(tiles_over(sizes[2], tile["TSK"]), shares)
    parts = groups * tile["TSM"] * tile["TSN"] * sum_size if shares > 1 else 0
    return Work(groups, steps, parts=shares, copied=parts)


@cached(8)
def constants(device: Device, precision: str) -> list[tuple[dict[str, int], Constants]]:
    """Return the tiles whose constants the table has, of those that the device supports."""
    recorded = section(kind_of(device.platform, device.kind), "tiles").get("constants", {})
    fitted = [
        (complete_tile(tile), Constants._make([*(1e-9 * v for v in own), resident]))
        for tile, own, resident in recorded.get(precision, [])
    ]
    return [(tile, own) for tile, own in fitted if fits(precision, tile, device)]


def ranked(
    fitted: Iterable[tuple[Params, Constants]],
    sizes: Sizes,
    chip: FittedChip,
    sum_size: int = 0,
    number: int = 1,
) -> list[RankedTile]:
    """Return tiles, each with every number of work-groups that may share it, the fastest first. See
    `generated_work` for `sum_size` and `number`.
    """
    order = []
    for tile, own in fitted:
        most = min(sizes[2] // LEAST_STEPS, ENOUGH_GROUPS * chip.units // _count(tile, sizes))
        for shares in range(1, 1 + (max(1, most) if number == 1 else 1)):
            shared = {**tile, "SHARES": shares}
            spent = seconds(generated_work(shared, sizes, sum_size, number), own, chip)
            order.append(RankedTile(shared, spent))
    return sorted(order, key=lambda one: one.seconds)


def tile_for(device: Device, precision: str, sizes: Sizes, number: int = 1) -> RankedTile:
    """Return the tile for a precision and M, N, K of the column-major product, or for a batch of
    products; ParameterError if the device supports none at all.
    """
    fitted, of_device = constants(device, precision), model(device)
    if fitted and of_device:
        return ranked(fitted, sizes, of_device.chip, ELEMENTS[precision].sum_size, number)[0]
    return RankedTile(by_rule(device, precision, sizes, number), inf)


def covers(tile: Params, sizes: tuple[int, ...]) -> bool:
    """Return whether C is as large as a micro-tile, if the tile needs that."""
    return tile["STAGES"] > 0 or (sizes[0] >= tile["WPTM"] and sizes[1] >= tile["WPTN"])


def fits(precision: str, tile: Params, device: Device) -> bool:
    """Return whether the device supports the tile in its most demanding form: both operands
    contiguous along k, loads as wide as may be; and for kernels of warps, whether they are fast
    there.
    """
    whole = tile["TSM"], tile["TSN"], tile["TSK"]
    a, b = OperandLayout("T", 0, 16), OperandLayout("N", 0, 16)
    schedule = configure(precision, tile, whole, a, b, beta=True)
    return {schedule.feature} <= {"", *device.features} and not schedule.problems(device.limits)


def by_rule(device: Device, precision: str, sizes: Sizes, number: int = 1) -> dict[str, int]:
    """Return a tile for a device that was not measured; ParameterError if it supports none at all.

    On a CPU, whose local memory is ordinary memory, a work-item computes a vector of rows and 8
    columns (4 of complex numbers, which need two sums). On a GPU, and for products smaller than
    that, micro-tiles of `_staged` are halved until every compute unit has a tile, the tiles fit
    into local memory, and at least half of what they cover is inside the result.
    """
    direct = _direct(precision, device)
    if device.kind != "GPU" and covers(direct, sizes):
        return direct
    for tile in _staged(precision, device):
        if not fits(precision, tile, device):
            continue
        count = _count(tile, sizes)
        mostly_inside = count * tile["TSM"] * tile["TSN"] <= 2 * sizes[0] * sizes[1]
        if tile["WPTM"] * tile["WPTN"] == 1 or count * number >= device.units and mostly_inside:
            return tile
    raise ParameterError(
        f"no generated kernel is small enough for {device}: its limits are {device.limits}"
    )


def _direct(precision: str, device: Device) -> dict[str, int]:
    element = ELEMENTS[precision]
    most = VECTOR_BYTES * element.components // element.sum_size
    numbers = min(widest_vector(precision, device.limits), most)
    width, columns = numbers // element.components, 8 // element.components
    tile: dict[str, Any] = {"TSM": 4 * width, "TSN": columns, "TSK": 1, "WPTM": width}
    return DEFAULTS | tile | {"WPTN": columns, "UNROLL": 1, "WIDTH": width, "STAGES": 0}


def _staged(precision: str, device: Device) -> Iterator[dict[str, int]]:
    """Yield tiles of 16 x 16 work-items, or 8 x 8, or 4 x 4, with ever smaller micro-tiles."""
    size, is_gpu = ELEMENTS[precision].sum_size, device.kind == "GPU"
    most = device.limits.work_group
    side = 8 if most >= 64 else 4
    if is_gpu and most >= 256:
        side = 16
    for rows, columns in MICRO_TILES:
        if (is_gpu or rows <= 4) and rows * columns * size // 4 <= ACCUMULATORS:
            yield DEFAULTS | {
                "TSM": side * rows,
                "TSN": side * columns,
                "TSK": 16 if size == 4 or columns == 1 else 8,
                "WPTM": rows,
                "WPTN": columns,
                "WIDTH": max(1, LOAD_BYTES // size) if is_gpu else 1,
                "STAGES": 2 if is_gpu else 1,
            }


def _count(tile: Params, sizes: Sizes) -> int:
    """Return tiles that cover C."""
    return tiles_over(sizes[0], tile["TSM"]) * tiles_over(sizes[1], tile["TSN"])
