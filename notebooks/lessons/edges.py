"""Sizes that are not whole tiles, for chapters 12 to 14: what each strategy costs and reaches."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from itertools import pairwise
from statistics import median
from typing import Any

import numpy as np
import pyopencl.array as cla

from gemmlab import check
from gemmlab.blas import products
from gemmlab.blas.plan import Builder, Product
from gemmlab.blas.problem import Layout, Problem, plan
from gemmlab.blas.request import Request
from gemmlab.blas.routes import Query, Split
from gemmlab.catalog import Key, catalog, sources
from gemmlab.generate.split import Launch
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


def recorded() -> dict[str, dict[str, dict[int, dict[str, Any]]]]:
    """The recorded comparisons in ``results/``, as ``tools/record.py edges`` wrote them, by their
    titles.
    """
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
    repeats: int = 5,
) -> tuple[list[Launch], dict[str, float]]:
    """The launches of ``edges="split"`` for a column-major float32 product, and their times.

    Args:
        sizes: m, n and k of the product of compact matrices.
        device: a Device, an index or part of a name; the preferred device by default.
        params: of the tile whose whole tiles are cut off; by default the rules choose.
        repeats: timed runs, after one to warm up.

    Returns:
        The launches, and the median milliseconds of each on the device's clock, by its edges.

    Raises:
        ParameterError: for parameters that the family does not have or the device cannot take.
    """
    device = find_device(device)
    builder = Builder(device.timed_queue, device)
    a, b = (cla.to_device(device.timed_queue, x.T) for x in check.exact_inputs(*sizes))
    out = builder.new(Layout.compact(*sizes[:2]))
    problem = Problem.compact(*sizes)
    product = Product(problem, a.base_data, b.base_data, 1.0, 0.0, None, out)
    request = Request.of("family", params and dict(params), "split", "float32")
    route = Split.of(Query(request, np.dtype(np.float32), problem, None, device))
    assert isinstance(route, Split)
    route.emit(builder, product)
    plan_of_launches, spent = builder.plan(), defaultdict(list)
    for _ in range(repeats + 1):
        events = plan_of_launches(device.timed_queue)
        device.timed_queue.finish()
        for edges, event in events:
            spent[edges].append((event.profile.end - event.profile.start) * 1e-6)
    return list(route.launches), {edges: median(times[1:]) for edges, times in spent.items()}
