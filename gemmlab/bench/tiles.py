"""Find the tiles of ``results/family.json``: which of them multiplies fastest, for a precision and a size.

Brute force over a space that the device's limits cut down, as AutoGEMM's profiler goes about it. Every tile is checked
before it is timed, and what is timed is what users call: `gemm` on device arrays, by the clock on the wall.
"""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import date
from functools import partial
from math import isqrt, prod
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
import pyopencl.array as cla

from .. import check
from ..blas import products
from ..caches import cached
from ..catalog import ParameterError
from ..family import selection, tiles
from ..family.configuration import PRECISIONS, UNITS
from ..family.pace import Pace, beginning
from ..family.tiles import Lying, complete_tile, configure
from ..family.written import written
from ..opencl.devices import Device, devices
from .children import Children

Tile = dict[str, int]

#: What the space is made of on a GPU: work-items of a group, micro-tiles, depths, stages.
SPACE = (
    ((16, 16), (8, 16), (16, 8), (8, 8)),
    ((2, 2), (4, 2), (4, 4), (8, 4), (4, 8), (6, 6), (8, 8)),
    (8, 16),
    (1, 2),
)
#: And on a processor: work-items of a group, vectors of rows and columns of a micro-tile, numbers in a vector.
DIRECT_SPACE = (
    ((1, 1), (4, 1), (16, 1), (4, 4), (1, 8)),
    ((1, 4), (1, 6), (1, 8), (1, 12), (2, 4), (2, 6)),
    (4, 8, 16),
)

#: Blocks of warps that were the fastest on an H200 at some size, or that `pace` finds the quickest for some of many
#: random shapes: TSM, TSN, WPTM, WPTN, TSK and STAGES. Those of float64 and complex128 are for tensor cores.
WARPS = {
    "s": (),
    "d": (
        (128, 128, 4, 8, 8, 3),
        (128, 64, 8, 8, 8, 4),
        (64, 128, 4, 8, 8, 4),
        (64, 128, 8, 4, 8, 4),
        (64, 64, 4, 8, 8, 6),
        (64, 64, 4, 8, 16, 3),
        (128, 32, 8, 4, 8, 4),
        (32, 128, 4, 8, 8, 4),
        (64, 32, 4, 4, 8, 8),
        (32, 32, 4, 4, 16, 6),
        (16, 64, 2, 8, 16, 4),
        (32, 16, 2, 4, 16, 6),
        (16, 16, 2, 2, 16, 6),
    ),
    "c": (
        (128, 128, 8, 8, 8, 2),
        (64, 128, 8, 4, 8, 3),
        (64, 64, 8, 8, 8, 5),
        (64, 64, 8, 4, 8, 4),
        (64, 64, 8, 4, 16, 2),
        (32, 128, 4, 8, 8, 4),
        (64, 32, 8, 4, 8, 4),
        (32, 32, 4, 4, 16, 4),
        (128, 16, 8, 4, 8, 4),
        (16, 64, 2, 8, 8, 6),
        (64, 16, 4, 4, 16, 4),
        (16, 32, 2, 4, 16, 4),
        (16, 16, 2, 2, 16, 4),
    ),
    "z": (
        (64, 64, 2, 8, 8, 3),
        (64, 64, 4, 8, 8, 3),
        (32, 64, 2, 4, 8, 4),
        (64, 32, 4, 4, 8, 4),
        (32, 32, 4, 4, 8, 6),
        (64, 16, 2, 4, 8, 4),
        (16, 64, 2, 4, 8, 4),
        (32, 16, 2, 4, 8, 6),
        (16, 32, 2, 4, 8, 6),
        (16, 16, 2, 2, 8, 6),
    ),
}

#: Steps of k of the products that show a tile's pace, work-groups per compute unit where many share it, and seconds of
#: timing each product.
_STEPS, _MANY, _SECONDS = (1024, 4096), 16, 0.05

#: Registers of 32 bits that accumulators take on a GPU: with more a work-item has none left for anything else, and
#: with less it loads more than it multiplies.
REGISTERS = range(32, 129)

KEPT = 4  # tiles in a row of the table
_FEW = 4  # that are compiled as fast as the processes to do so start
SIDES = ("TSM", "TSN", "TSK")  # of a tile, along M, N and K


def candidates(device: Device, letter: str) -> list[Tile]:
    """The tiles to try for a precision: legal on the device, none twice, the one of the rule first."""
    size, parts = PRECISIONS[letter].size, PRECISIONS[letter].components
    found = [tiles.by_rule(device, letter, (4096, 4096, 4096))]
    if device.kind == "GPU":
        found += warp_tiles(letter)
        for (down, across), (rows, columns), depth, stages in itertools.product(*SPACE):
            tile = {"TSM": down * rows, "TSN": across * columns, "TSK": depth, "WPTM": rows, "WPTN": columns,
                    "WIDTH": max(1, 16 // size), "STAGES": stages}  # fmt: skip
            if rows * columns * size // 4 in REGISTERS:
                found.append(complete_tile(tile))
    else:
        for (down, across), (vectors, columns), numbers in itertools.product(*DIRECT_SPACE):
            rows, width = max(1, vectors * numbers // parts), max(1, numbers // parts)
            tile = {"TSM": down * rows, "TSN": across * columns, "TSK": 1, "WPTM": rows, "WPTN": columns,
                    "UNROLL": 1, "WIDTH": width, "STAGES": 0}  # fmt: skip
            found.append(complete_tile(tile))
    return [tile for i, tile in enumerate(found) if tile not in found[:i] and takes(device, letter, tile)]


def warp_tiles(letter: str) -> list[Tile]:
    """The tiles of `WARPS` with all parameters."""
    names, width = ("TSM", "TSN", "WPTM", "WPTN", "TSK", "STAGES"), 16 // PRECISIONS[letter].size
    unit = "tensor" if PRECISIONS[letter].real == "double" else "warps"
    rest = {"WIDTH": width, "UNIT": UNITS.index(unit)}
    tiles = (dict(zip(names, numbers, strict=True)) for numbers in WARPS[letter])
    return [complete_tile({**tile, "UNROLL": tile["TSK"], **rest}) for tile in tiles]


def neighbours(tile: Tile) -> list[Tile]:
    """The same tile with its loop over k laid out otherwise; none for warps, which lay all of it out."""
    if tile["UNIT"]:
        return []
    others = (n for n in (1, 2, 4, 8, 16) if n != tile["UNROLL"] and tile["TSK"] % n == 0)
    return [{**tile, "UNROLL": n} for n in others]


def takes(device: Device, letter: str, tile: Tile) -> bool:
    """Whether the tile is legal, and within the device's limits."""
    whole = tile["TSM"], tile["TSN"], tile["TSK"]
    with suppress(ParameterError):
        return not configure(letter, tile, whole, Lying("T", 0, 16), Lying("N", 0, 16), True).problems(device.limits)
    return False


def checked(device: Device, letter: str, tile: Tile, sizes: tuple[int, int, int], trans=(0, 0), beta=False) -> bool:
    """Whether a small product that has the same edges is exact."""
    m, n, k = (
        2 * tile[side] + size % tile[side] for size, side in zip(sizes, SIDES, strict=True)
    )  # whole tiles, and what sticks out
    a, b = check.exact_inputs(n, m, k, dtype=PRECISIONS[letter].dtype)
    stored = (np.ascontiguousarray(_turned(x, how)) for x, how in zip((a, b), trans, strict=True))
    c = np.ones((n, m), a.dtype)
    left, right = stored
    options = {"kernel": "family", "params": tile, "device": device}
    got = products.gemm(1, left, right, int(beta), c, trans[0], trans[1], **options)
    return check.compare(got, a @ b + beta * c, 0.0).ok


def _turned(x: np.ndarray, how: int) -> np.ndarray:
    """The matrix that the operation, 0, 1 or 2, makes into x."""
    return x if how == 0 else x.T if how == 1 else x.conj().T


def rate(
    device: Device, letter: str, sizes: tuple[int, int, int], seconds: float = 0.1, trans=(0, 0), beta=False, **options
) -> float:
    """GFLOPS of a call on device arrays: 2 M N K, or for complex types 8 M N K, over its time.

    The plain product is `matmul`, which remembers the last calls, so that the host has less to do; others are `gemm`.

    Args:
        letter: "s", "d", "c" or "z".
        sizes: M, N and K of the column-major product: the row-major one is N x K by K x M.
        seconds: about how long to time.
        trans: 0, 1 or 2 for the operands of the row-major product.
        beta: whether a matrix is added, and overwritten.
        options: `kernel` and `params`.
    """
    queue, a, b, c = _operands(device, letter, sizes, trans, beta)

    def call() -> None:
        if beta or any(trans):
            products.gemm(1, a, b, int(beta), c, trans[0], trans[1], beta, **options)
        else:
            products.matmul(a, b, **options)

    def run(times: int) -> float:
        queue.finish()
        start = time.perf_counter()
        for _ in range(times):
            call()
        queue.finish()
        return (time.perf_counter() - start) / times

    run(1)  # to warm up
    times = max(1, min(50, int(seconds / 3 / run(1))))
    spent = sorted(run(times) for _ in range(3))[1]
    return (8 if PRECISIONS[letter].components == 2 else 2) * prod(sizes) / spent * 1e-9


@cached(2)
def _operands(device: Device, letter: str, sizes: tuple[int, int, int], trans: tuple[int, int], beta: bool):
    """A queue without profiling, which costs time, and random operands on it; kept, since many tiles share them.

    Their numbers are of a standard normal distribution, the same ones over and over: drawing them would take longer.
    """
    queue, (m, n, k) = cl.CommandQueue(device.context, device.cl), sizes
    numbers = check.random_inputs(256, 1, 256, kind="normal", dtype=PRECISIONS[letter].dtype)[0]
    shapes = (k, n) if trans[0] else (n, k), (m, k) if trans[1] else (k, m), (n, m)
    a, b, c = (np.resize(numbers, shape) for shape in shapes)
    return queue, cla.to_device(queue, a), cla.to_device(queue, b), cla.to_device(queue, c) if beta else None


def compile_ahead(device: Device, letter: str, sizes: tuple[int, int, int], found: Iterable[Tile]) -> None:
    """Compile side by side on a GPU, whose compiler runs on one core; what it makes is kept on disk."""
    found = list(found)
    if device.kind == "GPU" and len(found) > _FEW:
        with Children() as pool:
            list(pool.map(partial(_compile, device.index, letter, sizes), found))


def _compile(index: int, letter: str, sizes: tuple[int, int, int], tile: Tile) -> None:
    device = devices()[index]
    with suppress(RuntimeError, ValueError):  # rating it will say why
        a, b = Lying("N", 0, sizes[0]), Lying("N", 0, sizes[2])
        written(configure(letter, tile, sizes, a, b, False), device, device.context)


def best(
    device: Device, letter: str, sizes: tuple[int, int, int], found: Iterable[Tile], say: Callable[[str], Any] = print
) -> list[tuple[float, Tile]]:
    """Rate tiles that multiply exactly; the fastest come first."""
    rated = []
    for tile in found:
        try:
            if not checked(device, letter, tile, sizes):
                say(f"  {letter} {tile} does not count: it is not exact")
                continue
            rated.append((rate(device, letter, sizes, kernel="family", params=tile), tile))
        except (RuntimeError, ValueError, MemoryError, cl.Error) as error:  # what does not fit is no candidate
            say(f"  {letter} {tile} does not count: {str(error).splitlines()[0]}")
    return sorted(rated, key=_slower)


def fill(file: str | Path, sizes: Iterable, device: Device, letter: str, command: str, say=print) -> None:
    """Find the fastest tiles at each size, and put them into the table in `file` at once; its other rows stay.

    Args:
        sizes: numbers for cubes, or M, N and K.
        letter: "s", "d", "c" or "z".
        command: what was typed, for the record.
    """
    space = candidates(device, letter)
    for size in sizes:
        whole = selection.dimensions(size)
        say(f"{letter}gemm, {' x '.join(map(str, whole))} on {device}: {len(space)} tiles")
        compile_ahead(device, letter, whole, space)
        rated = best(device, letter, whole, space, say)
        more = [near for _, tile in rated[:2] for near in neighbours(tile) if takes(device, letter, near)]
        compile_ahead(device, letter, whole, more)
        rated = sorted(rated + best(device, letter, whole, more, say), key=_slower)
        if rated:
            say(f"  best: {rated[0][1]}, {rated[0][0]:,.1f} GFLOPS")
            add(Path(file), device, letter, size, rated, command)


def pace(device: Device, letter: str, tile: Tile) -> Pace:
    """The pace of a tile: of products with a work-group for each compute unit, or nearly, and with many of them."""
    size = PRECISIONS[letter].size
    down = isqrt(device.units)
    across, begin = device.units // down, beginning(tile, size)

    def spent(groups: int, steps: int) -> float:
        sizes = groups * down * tile["TSM"], across * tile["TSN"], steps
        flops = (8 if PRECISIONS[letter].components == 2 else 2) * prod(sizes)
        return 1e-3 * flops / rate(device, letter, sizes, _SECONDS, kernel="family", params=tile) - begin

    alone = sum(spent(1, steps) for steps in _STEPS) / (sum(_STEPS) / tile["TSK"])
    return Pace(tile, alone, spent(_MANY, _STEPS[0]) / (_MANY * _STEPS[0] / tile["TSK"]))


def add_paces(file: Path, device: Device, letter: str, found: Iterable[Tile], command: str) -> None:
    """Put the paces of tiles that multiply exactly into the table; rows of sizes stay."""
    known, entry = _table(file, device, command)
    right = (tile for tile in found if checked(device, letter, tile, (1000, 1000, 1000)))
    entry.setdefault("paces", {})[letter] = [
        {"tile": tile, "alone": round(alone, 4), "shared": round(shared, 4)}
        for tile, alone, shared in (pace(device, letter, tile) for tile in right)
    ]
    file.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def _table(file: Path, device: Device, command: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The table in a file, and in it the entry of the device's kind, which now names this device and command."""
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    entry = known.setdefault(selection.kind(device), {})
    entry |= device.facts() | {"date": date.today().isoformat()}
    entry["commands"] = [*(c for c in entry.get("commands", []) if c != command), command]
    return known, entry


def _slower(rated: tuple[float, Tile]) -> float:
    return -rated[0]


def add(
    file: Path,
    device: Device,
    letter: str,
    size,
    rated: list[tuple[float, Tile]],
    command: str,
    fallback: Tile | None = None,
) -> None:
    """A row of the table: the fastest tiles at a size, with what they reached, and perhaps the tile of a split.

    Not every device of a kind can run what is fastest: the fastest tile without warps is always among them.
    """
    known, entry = _table(file, device, command)
    row: dict[str, Any] = {"size": size if isinstance(size, int) else list(size)}
    others = [old for old in entry.get(letter, []) if old["size"] != row["size"]]
    before = [old for old in entry.get(letter, []) if old["size"] == row["size"]]
    measured = [*rated, *(pair for old in before for pair in zip(old["gflops"], old["tiles"], strict=True))]
    simple = [pair for pair in sorted(measured, key=_slower) if not complete_tile(pair[1])["UNIT"]][:1]
    kept = rated[:KEPT] if any(pair in rated[:KEPT] for pair in simple) else [*rated[: KEPT - 1], *simple]
    row["tiles"] = [tile for _, tile in kept]
    if fallback:
        row["fallback"] = fallback
    row["gflops"] = [round(gflops, 1) for gflops, _ in kept]
    entry[letter] = sorted([*others, row], key=lambda row: (isinstance(row["size"], list), row["size"]))
    file.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
