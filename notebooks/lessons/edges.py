"""Sizes that are not whole tiles, for chapters 12 to 14: what each strategy costs and reaches."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
import pyopencl.array as cla

from gemmlab import check, model
from gemmlab.bench import timing
from gemmlab.blas import products
from gemmlab.blas import split as split_up
from gemmlab.blas.passes import Session
from gemmlab.blas.problem import Layout, Problem, plan
from gemmlab.catalog import Key, catalog, sources
from gemmlab.family import choice, selection
from gemmlab.family.configuration import PRECISIONS
from gemmlab.family.split import Launch
from gemmlab.family.tiles import complete_tile
from gemmlab.family.written import check_double
from gemmlab.opencl.devices import Device, find_device

#: The strategies that one call of `matmul` has.
STRATEGIES = ("pad", "guard", "shift", "auto")
#: GFLOPS by size.
Rates = dict[int, float]


def cost(
    kernel: Key,
    params: dict[str, int],
    m: int,
    n: int,
    k: int,
    features: frozenset[str] = frozenset(),
) -> tuple[int, int]:
    """What a column-major product of compact matrices costs besides its arithmetic.

    Args:
        kernel: its number.
        params: all its parameters.
        m, n, k: sizes of the product.
        features: of the device (`Device.features`); by default none.

    Returns:
        The number of launches, and the bytes of memory needed in addition to A, B and C.
    """
    passes = plan(catalog[kernel], params, Problem.compact(m, n, k), features)
    return len(passes), 4 * sum(step.floats for step in passes)


def split(a: cla.Array, b: cla.Array, tile: tuple[int, int]) -> list[list[cla.Array]]:
    """The product a b as up to four products: one of whole tiles, and the edge strips.

    Args:
        a, b: float32 device arrays, m x k and k x n.
        tile: rows and columns of a tile of the result.

    Returns:
        The parts of the result in nested lists; `numpy.block` joins copies of them on the host.
    """
    m, n = a.shape[0] // tile[0] * tile[0], b.shape[1] // tile[1] * tile[1]
    parts = []
    for rows in (slice(0, m), slice(m, None)):
        strip = []
        for cols in (slice(0, n), slice(n, None)):
            if a[rows].shape[0] and b[:, cols].shape[1]:
                edges = "pad" if rows.start == cols.start == 0 else "guard"
                strip.append(products.matmul(a[rows], b[:, cols], edges=edges))
        if strip:
            parts.append(strip)
    return parts


def compare(
    sizes: list[int], device: Device | int | str | None = None, repeats: int | None = None
) -> dict[str, dict[int, dict[str, Any]]]:
    """Measure every strategy at every size; a recorder writes the result to ``results/``.

    The strategies alternate three times, and the median counts. GFLOPS are those of the whole
    pipeline on the device's clock, but for "split", which includes the host and its copies.

    Args:
        sizes: of square matrices.
        device: a Device, an index or part of a name; the preferred device by default.
        repeats: timed runs per measurement, as in `gemmlab.measure`.

    Returns:
        {strategy: {size: {"kernel", "ok", "gflops", "launches", "bytes"}}}; "split" has no launches
        and bytes.
    """
    device = find_device(device)
    measured: dict[str, dict] = {strategy: {} for strategy in STRATEGIES}
    for size in sizes:
        runs = defaultdict(list)
        for strategy in STRATEGIES * 3:
            kernel, settings = choice.choose(device, (size, size, size), strategy)
            result = timing.measure(
                kernel, size, params=dict(settings), device=device, repeats=repeats
            )
            runs[strategy].append(result)
        for strategy, results in runs.items():
            middle = sorted(results, key=lambda result: result.pipeline_gflops)[1]
            measured[strategy][size] = {
                "kernel": middle.kernel,
                "ok": all(result.ok for result in results),
                "gflops": middle.pipeline_gflops,
            }
            costs = cost(middle.kernel, middle.params, size, size, size, device.features)
            measured[strategy][size] |= dict(zip(("launches", "bytes"), costs, strict=True))
    measured["split"] = {size: _measure_split(size, device) for size in sizes}
    return measured


def _measure_split(size: int, device: Device, repeats: int = 5) -> dict[str, Any]:
    """The rate of `split` in wall-clock time, including copies of its parts of A and B."""
    a, b = check.exact_inputs(size, size, size)
    kernel, settings = selection.choose(device, (size, size, size), "pad")
    cols, rows = catalog[kernel].tiles(dict(settings))[:2]  # the kernel computes the transpose
    x, y = (cla.to_device(device.queue, matrix) for matrix in (a, b))
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        parts = split(x, y, (rows, cols))
        device.queue.finish()
        seconds.append(time.perf_counter() - start)
    c = np.block([[part.get() for part in strip] for strip in parts])
    rate = model.gflops(size, size, size, median(seconds[1:]))
    return {"kernel": kernel, "ok": check.exact(c, a, b).ok, "gflops": rate}


def recorded() -> dict[str, dict[str, dict[int, dict[str, Any]]]]:
    """The recorded comparisons in ``results/``, as `compare` returns them, by their titles."""
    records = {}
    for path in sorted(sources.folder("results").glob("edges_*.json")):
        record = json.loads(path.read_text(encoding="utf-8"))
        records[record["title"]] = {
            strategy: {int(size): result for size, result in results.items()}
            for strategy, results in record["strategies"].items()
        }
    return records


def _recorded_rates(title: str) -> dict[str, Rates]:
    return {strategy: {size: result["gflops"] for size, result in results.items()}
            for strategy, results in recorded()[title].items()}  # fmt: skip


def neighbourhoods(title: str = "NVIDIA H200", gap: int = 100) -> list[dict[str, Rates]]:
    """The recorded GFLOPS of every strategy in ranges of neighbouring sizes.

    Args:
        title: of the record (see `recorded`).
        gap: sizes that differ by more than this are in different ranges.

    Returns:
        {strategy: {size: GFLOPS}} of each range, the smallest sizes first.
    """
    strategies = _recorded_rates(title)
    sizes = sorted(strategies["pad"])
    starts = [i for i in range(1, len(sizes)) if sizes[i] - sizes[i - 1] > gap]
    return [
        {strategy: {size: rates[size] for size in sizes[start:end]}
         for strategy, rates in strategies.items()}
        for start, end in pairwise([0, *starts, len(sizes)])
    ]  # fmt: skip


def shares(low: int, high: int, title: str = "NVIDIA H200") -> dict[str, Rates]:
    """Rates as per cent of the best one from `low` to `high`: our strategies, and AutoGEMM.

    Each is compared with its own device. What is missing from 100 per cent is the price of a size
    that does not suit the tiles.

    Args:
        low, high: the first and the last size of square matrices.
        title: of our record (see `recorded`).

    Returns:
        {"AutoGEMM" or a strategy: {size: per cent}}, without those that have no such sizes.

    Source of AutoGEMM's rates: published with clBLAS 2.7.1 (``results/published_autogemm.json``).
    """
    path = sources.folder("results") / "published_autogemm.json"
    published = json.loads(path.read_text(encoding="utf-8"))["gflops"]
    theirs = {"AutoGEMM": {int(size): rate for size, rate in published.items()}}
    ours = _recorded_rates(title)
    return _percent_of_best(theirs, low, high) | _percent_of_best(ours, low, high)


def _percent_of_best(rates: Mapping[str, Rates], low: int, high: int) -> dict[str, Rates]:
    inside = {name: {size: rate for size, rate in by_size.items() if low <= size <= high}
              for name, by_size in rates.items()}  # fmt: skip
    best = max((rate for by_size in inside.values() for rate in by_size.values()), default=1.0)
    return {name: {size: 100 * rate / best for size, rate in by_size.items()}
            for name, by_size in inside.items() if by_size}  # fmt: skip


def launch_times(
    sizes: tuple[int, int, int],
    device: Device | int | str | None = None,
    params: Mapping[str, int] | None = None,
    precision: str = "s",
    repeats: int = 5,
) -> tuple[list[Launch], dict[str, float]]:
    """The launches of ``edges="split"`` for a column-major product, and the time of each.

    Args:
        sizes: m, n and k of the product of compact matrices.
        device: a Device, an index or part of a name; the preferred device by default.
        params: of the tile whose whole tiles are cut off; by default the rules choose.
        precision: "s", "d", "c" or "z".
        repeats: timed runs, after one to warm up.

    Returns:
        The launches, and the median milliseconds of each on the device's clock, by its edges.

    Raises:
        ParameterError: for parameters that the family does not have or the device cannot take.
        ValueError: if the device has no such precision.
    """
    device, dtype = find_device(device), PRECISIONS[precision].dtype
    check_double(precision, device)
    tile = None if params is None else complete_tile(params)
    problem, spent = Problem.compact(*sizes), defaultdict(list)
    with Session(device.timed_queue, device, dtype=dtype) as session:
        a, b = (session.upload(x) for x in check.exact_inputs(*sizes, dtype=dtype))
        out = session.new(Layout.compact(*sizes[:2]))
        for _ in range(repeats + 1):
            session.events.clear()
            one, zero = dtype.type(1), dtype.type(0)
            split_up.gemm(session, problem, (a, b), one, zero, None, out, tile)
            device.timed_queue.finish()
            for edges, event in session.events:
                spent[edges].append((event.profile.end - event.profile.start) * 1e-6)
    items = None if tile is None else tuple(tile.items())
    launches = split_up.selected(device, precision, sizes, items)
    return launches, {edges: median(times[1:]) for edges, times in spent.items()}
