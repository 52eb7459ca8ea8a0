"""The ways to treat sizes that are no whole tiles, side by side: their rate, their launches, their extra memory."""

from __future__ import annotations

import json
import time

import numpy as np
import pyopencl.array as cla

from .. import check, model
from ..blas import products
from ..blas.problem import Problem, plan
from ..caches import cached
from ..catalog import catalog, sources
from ..family import selection
from ..opencl.devices import Device, find_device
from . import timing


def cost(
    kernel: int, params: dict[str, int], m: int, n: int, k: int, features: frozenset[str] = frozenset()
) -> tuple[int, int]:
    """Launches, and bytes of memory beside A, B and C, of one column-major product of compact matrices.

    On a device with such features; by default on one without any.
    """
    passes = plan(catalog[kernel], params, Problem.compact(m, n, k), features)
    return len(passes), 4 * sum(step.floats for step in passes)


def split(a, b, tile: tuple[int, int]) -> list[list]:
    """a b in up to four products: the bulk in whole tiles of the result, and what is left at its two edges.

    Args:
        a, b: ``pyopencl.array.Array``, m x k and k x n.
        tile: rows and columns of a tile of the result.

    Returns:
        The parts of the result, as `numpy.block` takes them once they are read.
    """
    m, n = (size // side * side for size, side in zip((a.shape[0], b.shape[1]), tile, strict=True))
    parts = []
    for rows in (slice(0, m), slice(m, None)):
        across = []
        for cols in (slice(0, n), slice(n, None)):
            if a[rows].shape[0] and b[:, cols].shape[1]:
                edges = "pad" if rows.start == cols.start == 0 else "guard"
                across.append(products.matmul(a[rows], b[:, cols], edges=edges))
        parts += [across] if across else []
    return parts


def _splitting(size: int, device: Device, repeats: int = 5) -> dict:
    """The rate of `split` by the clock on the wall, its parts and their copies included."""
    a, b = check.exact_inputs(size, size, size)
    number, settings = selection.choose(device, (size, size, size), "pad")
    tile = catalog[number].tiles(dict(settings))[1::-1]  # a row-major result is tiled the other way round
    x, y = (cla.to_device(device.queue, z) for z in (a, b))
    times = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        parts = split(x, y, tile)
        device.queue.finish()
        times.append(time.perf_counter() - start)
    right = check.exact(np.block([[part.get() for part in across] for across in parts]), a, b).ok
    return {"kernel": number, "ok": right, "gflops": model.gflops(size, size, size, sorted(times[1:])[repeats // 2])}


def compare(sizes: list[int], device: Device | int | str | None = None, repeats: int | None = None) -> dict:
    """Every strategy at every size (square): {strategy: {size: its kernel, "ok", "gflops", "launches", "bytes"}}.

    GFLOPS are of the whole pipeline, by the device's clock ("split": by the clock on the wall). The strategies take
    turns, three times, so that what else the machine does meets all of them; the median counts.
    """
    device, ways = find_device(device), ("pad", "guard", "shift", "auto")
    found: dict[str, dict] = {way: {} for way in ways}
    for size in sizes:
        turns: dict[str, list[timing.Result]] = {way: [] for way in ways}
        for way in ways * 3:
            number, settings = selection.choose(device, (size, size, size), way)
            turns[way].append(timing.measure(number, size, params=dict(settings), device=device, repeats=repeats))
        for way, results in turns.items():
            middle = sorted(results, key=lambda result: result.pipeline_gflops)[1]
            launches, more = cost(middle.kernel, middle.params, size, size, size, device.features)
            one = {"kernel": middle.kernel, "ok": all(r.ok for r in results), "gflops": middle.pipeline_gflops}
            found[way][size] = one | {"launches": launches, "bytes": more}
    found["split"] = {size: _splitting(size, device) for size in sizes}
    return found


@cached(1)
def recorded() -> dict[str, dict]:
    """The recorded comparisons in ``results/``, by title, with sizes as numbers."""
    found = {}
    for path in sorted(sources.folder("results").glob("edges_*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        found[data["title"]] = {way: {int(s): x for s, x in r.items()} for way, r in data["strategies"].items()}
    return found
