"""AutoGEMM's profiler: brute force over tiles and sizes. It writes the table that `gemmlab.family.split` reads.

At each size every tile is timed twice: where it divides the sizes, which ranks it among the tiles of the rule; and at
the size minus one, where C is cut into up to four launches, which finds the fallback tile. A tile whose products are
not exact does not count. Each pair of rates is written down at once, so that the same command goes on where it stopped.

Source: D. Tanner, AutoGEMM, documentation of clBLAS, 2015, sections III and IV.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyopencl as cl
from tqdm import tqdm

from .. import check
from ..blas import products
from ..family import selection
from ..family.configuration import PRECISIONS
from ..opencl.devices import Device
from . import tiles
from .tiles import Tile

#: GFLOPS of whole tiles, GFLOPS of the launches of a split, and "" or why neither counts.
Rates = tuple[float, float, str]


def profile(
    file: str | Path, sizes: Iterable, device: Device, letter: str, command: str, space: Sequence[Tile] | None = None
) -> None:
    """Find the tiles and the fallback of each size, and put them into the table in `file`; its other rows stay.

    Args:
        sizes: numbers for cubes, or M, N and K.
        letter: "s", "d", "c" or "z".
        command: what was typed, for the record.
        space: the tiles to try, with all parameters; by default `tiles.candidates`.
    """
    path, sizes = Path(file), list(sizes)
    notes, space = path.with_suffix(".partial.json"), space or tiles.candidates(device, letter)
    known = json.loads(notes.read_text(encoding="utf-8")) if notes.exists() else {}
    with tqdm(total=len(sizes) * len(space), unit="tile", disable=None) as bar:
        for size in sizes:
            rated = []
            for tile in space:
                key = " ".join(map(str, (device, letter, size, tile)))
                if key not in known:
                    known[key] = rates(device, letter, selection.dimensions(size), tile)
                    notes.write_text(json.dumps(known), encoding="utf-8")
                whole, cut, problem = known[key]
                if problem:
                    tqdm.write(f"  {letter} {tile} does not count: {problem}")
                else:
                    rated.append((whole, cut, tile))
                bar.update()
            if rated:
                fastest = sorted(((whole, tile) for whole, _, tile in rated), key=lambda pair: -pair[0])
                fallback = max(rated, key=lambda three: three[1])[2]
                tiles.add(path, device, letter, size, fastest, command, fallback)
    notes.unlink(missing_ok=True)


def rates(device: Device, letter: str, sizes: tuple[int, int, int], tile: Tile, seconds: float = 0.1) -> Rates:
    """The two rates of a tile at about M, N and K; zeros and a reason if it cannot run, or is not exact."""
    try:
        m, n, k = (max(1, size // tile[side]) * tile[side] for size, side in zip(sizes, tiles.SIDES, strict=True))
        whole, less = (m, n, k), (max(1, sizes[0] - 1), max(1, sizes[1] - 1), max(1, sizes[2] - 1))
        if not (tiles.checked(device, letter, tile, whole) and cut_exactly(device, letter, tile)):
            return 0.0, 0.0, "it is not exact"
        options: dict[str, Any] = {"kernel": "family", "params": tile}
        fast = tiles.rate(device, letter, whole, seconds, **options)
        cut = tiles.rate(device, letter, less, seconds, edges="split", **options)
        return fast, cut, ""
    except (RuntimeError, ValueError, MemoryError, cl.Error) as error:  # what does not fit is no candidate
        return 0.0, 0.0, str(error).splitlines()[0]


def cut_exactly(device: Device, letter: str, tile: Tile) -> bool:
    """Whether a small product of four launches is exact."""
    m, n, k = (2 * tile[side] - 1 for side in tiles.SIDES)
    a, b = check.exact_inputs(n, max(1, m), max(1, k), dtype=PRECISIONS[letter].dtype)
    got = products.matmul(a, b, kernel="family", params=tile, edges="split", device=device)
    return bool(np.array_equal(got, a @ b))


def kernel_tuner(device: Device, letter: str) -> tuple[dict[str, list[int]], list[str]]:
    """The space of tiles without warps for Kernel Tuner: `tune_params` and `restrictions` (they hold in Python).

    Args:
        device: whose limits hold.
        letter: "s", "d", "c" or "z".

    Returns:
        The values of each parameter of `gemmlab.family.tiles.DEFAULTS`, and the conditions of a legal tile.

    Source: B. van Werkhoven, Kernel Tuner, Future Generation Computer Systems 90, 2019.
    """
    found = [tile for tile in tiles.candidates(device, letter) if not tile["UNIT"]]
    size = PRECISIONS[letter].size
    values = {name: sorted({tile[name] for tile in found}) for name in found[0]}
    values["UNROLL"] = [n for n in (1, 2, 4, 8, 16) if n <= max(values["TSK"])]
    items = "((TSM//WPTM)*(TSN//WPTN))"
    conditions = ["TSM % WPTM == 0", "TSN % WPTN == 0", "TSK % UNROLL == 0", f"{items} <= {device.limits.work_group}"]
    if device.kind != "GPU":
        return values, [*conditions, "WPTM % WIDTH == 0"]
    padding = f"2*max(1, {128 // size}//TSK)"  # where operands are filled along k
    local = f"max(1, STAGES)*TSK*(TSM + TSN + {padding})*{size} <= {device.limits.local_memory}"
    return values, [*conditions, f"(TSM*TSK) % {items} == 0", f"(TSN*TSK) % {items} == 0", local]
