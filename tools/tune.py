"""Measure the constants by which `gemm` chooses a tile of warps, and add them to a table.

    python tools/tune.py results/choice.json --letter d

A tile whose products are not exact never counts.
"""

from __future__ import annotations

import json
from datetime import date
from functools import cache, partial
from math import isqrt

import common
import numpy as np
import pyopencl as cl
import pyopencl.array as cla
from compare import operands
from scipy.optimize import least_squares

from gemmlab import check, files, matmul
from gemmlab.cli import device_option, output_file
from gemmlab.generate import candidates
from gemmlab.generate.candidates import Constants, FittedChip, Sizes, seconds
from gemmlab.generate.elements import ELEMENTS
from gemmlab.generate.tiles import complete_tile, fits, generated_work
from gemmlab.measurement import clock, records
from gemmlab.opencl.devices import Device, find_device

Tile = dict[str, int]

#: The precisions of generated kernels: float64, complex64, complex128 and float16.
LETTERS = ("d", "c", "z", "h")
#: Steps of k of the products that show a tile's constants: so many that the host's time does not
#: matter; and their work-groups per compute unit.
STEPS = 8192
LOADS = (1, 2, 3, 4, 5, 6, 8, 10, 12, 16)
#: Work-groups that a compute unit holds at the same time, at most.
MOST_RESIDENT = 16
#: An error of this size, as a logarithm, counts as large.
LARGE = 0.02
#: Seconds of a launch with its first loads. These five were measured on an H200.
START = 2.5e-6
#: Seconds to store 1024 bytes of a tile of C.
STORE = 4e-8
#: Seconds to share a tile.
CUT = 1e-6
#: Seconds for each work-group that shares it.
PART = 1.5e-7
#: Seconds to add 1024 bytes of each of them.
ADD = 9e-9


def with_constants(letter: str) -> list[Tile]:
    """The tiles of warps whose constants the table has for some kind of device."""
    return [
        complete_tile(tile)
        for kind in candidates.table()
        for tile, *_ in candidates.section(kind, "tiles").get("constants", {}).get(letter, [])
    ]


def is_exact(device: Device, letter: str, tile: Tile) -> bool:
    """Whether a small product that has edges is exact."""
    m, n, k = (2 * tile[side] + 8 for side in ("TSM", "TSN", "TSK"))
    a, b = check.exact_inputs(n, m, k, dtype=ELEMENTS[letter].dtype)
    c = matmul(a, b, kernel="family", params=tile, device=device)
    wide = np.result_type(a.dtype, np.float32)
    return bool(np.array_equal(c, (a.astype(wide) @ b.astype(wide)).astype(a.dtype)))


@cache
def numbers(device: Device, letter: str, elements: int) -> tuple[cla.Array, cl.CommandQueue]:
    """So many numbers on the device, on a queue without profiling, which takes time."""
    queue = cl.CommandQueue(device.context, device.cl)
    row, _ = operands(1, 1, elements, str(ELEMENTS[letter].dtype))
    return cla.to_device(queue, row[0]), queue


def call_seconds(device: Device, letter: str, tile: Tile, sizes: Sizes) -> float:
    """Seconds of `matmul` on device arrays at M, N and K of the column-major product."""
    m, n, k = sizes
    longest = max(each["TSM"] for each in [tile, *with_constants(letter)])
    most = LOADS[-1] * isqrt(device.units) * longest * STEPS
    both, queue = numbers(device, letter, most)
    a, b = both[: n * k].reshape(n, k), both[: k * m].reshape(k, m)
    return clock.call_seconds(partial(matmul, a, b, kernel="family", params=tile), queue.finish)


def constants(device: Device, letter: str, tile: Tile) -> Constants:
    """The constants of a tile that best explain products of whole tiles, with more and more
    work-groups for each compute unit. START, STORE and the others give those of storing and
    sharing, from the bytes of a tile of C.
    """
    down = isqrt(device.units)
    across = device.units // down
    kilobytes = tile["TSM"] * tile["TSN"] * ELEMENTS[letter].size / 1024
    part = PART + ADD * kilobytes * ELEMENTS[letter].sum_size / ELEMENTS[letter].size
    chip = FittedChip(0.0, 0.0, 0.0, device.units)
    sizes = [(load * down * tile["TSM"], across * tile["TSN"], STEPS) for load in LOADS]
    measured = np.log([call_seconds(device, letter, tile, each) for each in sizes])
    work = [generated_work(tile, each) for each in sizes]

    def made(logarithms: np.ndarray, resident: int) -> Constants:
        latency, share = np.exp(logarithms).tolist()
        return Constants(START + STORE * kilobytes, 0.0, latency, share, CUT + part, part, resident)

    def errors(logarithms: np.ndarray, resident: int) -> np.ndarray:
        own = made(logarithms, resident)
        return np.log([seconds(each, own, chip) for each in work]) - measured

    begin, limits, options = np.log([1e-6, 1e-6]), np.log([1e-9, 1e-3]), {"loss": "soft_l1"}
    fits = {
        resident: least_squares(
            errors, begin, args=(resident,), bounds=limits, f_scale=LARGE, **options
        )
        for resident in range(1, MOST_RESIDENT + 1)
    }
    best = min(fits, key=lambda resident: fits[resident].cost)
    return made(fits[best].x, best)


def main(arguments: list[str] | None = None) -> None:
    top = common.parser(__doc__)
    top.add_argument("file", type=output_file, help="the table to add to")
    words = "the precision: float64, complex64, complex128 or float16"
    top.add_argument("--letter", choices=LETTERS, required=True, help=words)
    words = """such as '{"TSM": 64, "TSN": 32}': a tile that the table does not have"""
    top.add_argument("--tile", type=json.loads, action="append", default=[], help=words)
    device_option(top)
    given = top.parse_args(arguments)
    table = files.load_json(given.file, dict)  # refuses what is no table before a long search
    device, letter = find_device(given.device), given.letter
    wanted = [*with_constants(letter), *map(complete_tile, given.tile)]
    tiles = [tile for tile in wanted if fits(letter, tile, device)]
    if not tiles:
        raise ValueError(f"{device} takes no tile of warps for --letter {letter}")
    kind = candidates.kind_of(device.platform, device.kind)
    entry = table.setdefault(kind, {}).setdefault("tiles", {})
    entry |= device.facts() | {"date": date.today().isoformat()}
    others = [line for line in entry.get("commands", []) if line != common.command()]
    entry["commands"] = [*others, common.command()]
    rows = entry.setdefault("constants", {}).setdefault(letter, [])
    for tile in tiles:
        rows[:] = [row for row in rows if complete_tile(row[0]) != tile]
        if is_exact(device, letter, tile):
            measured = constants(device, letter, tile)
            in_ns = [float(f"{1e9 * value:.5g}") for value in measured[:-1]]
            rows.append([tile, in_ns, measured.resident])
        records.write(given.file, table)


if __name__ == "__main__":
    common.run(main)
