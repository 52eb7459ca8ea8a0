"""The ways to treat sizes that are not whole tiles, side by side: rate, launches, and extra memory."""

from __future__ import annotations

import json
import time
from collections import defaultdict
from itertools import pairwise

import numpy as np
import pyopencl.array as cla

from .. import check, model
from ..blas import products
from ..blas import split as split_up
from ..blas.passes import Session
from ..blas.problem import Layout, Problem, plan
from ..caches import cached
from ..catalog import Key, catalog, sources
from ..catalog.spec import Params
from ..family import choice, selection
from ..family.configuration import PRECISIONS
from ..family.split import Launch
from ..family.tiles import complete_tile
from ..family.written import check_double
from ..opencl.devices import Device, find_device
from . import timing


def cost(
    kernel: Key, params: dict[str, int], m: int, n: int, k: int, features: frozenset[str] = frozenset()
) -> tuple[int, int]:
    """What one column-major product of compact matrices costs besides its arithmetic.

    Args:
        kernel: its number.
        params: all its parameters.
        m, n, k: sizes of the product.
        features: those of the device (`Device.features`); by default none.

    Returns:
        The number of launches, and the bytes of workspace: memory needed in addition to A, B and C.
    """
    passes = plan(catalog[kernel], params, Problem.compact(m, n, k), features)
    return len(passes), 4 * sum(step.floats for step in passes)


def split(a, b, tile: tuple[int, int]) -> list[list]:
    """The product a b computed as up to four products: one of whole tiles, and those of the edge strips.

    Args:
        a, b: ``pyopencl.array.Array`` of float32, m x k and k x n.
        tile: rows and columns of a tile of the result.

    Returns:
        The parts of the result in nested lists; `numpy.block` joins them after they have been copied to the host.
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
    """The rate of `split` by the host's clock, including the copies of its parts of A and B."""
    a, b = check.exact_inputs(size, size, size)
    number, settings = selection.choose(device, (size, size, size), "pad")
    tile = catalog[number].tiles(dict(settings))[1::-1]  # exchanged for a row-major result
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
    """Measure every strategy for edges at every size.

    The strategies take turns, three times, so that other load on the machine affects all of them alike; the median
    counts. GFLOPS are those of the whole pipeline by the device's clock, but for "split" by the host's clock.

    Args:
        sizes: of square matrices.
        device: a Device, an index or part of a name; the preferred device by default.
        repeats: timed runs per measurement, as in `gemmlab.measure`.

    Returns:
        {strategy: {size: {"kernel", "ok", "gflops", "launches", "bytes"}}}; "split" has no launches and bytes.
    """
    device, ways = find_device(device), ("pad", "guard", "shift", "auto")
    found: dict[str, dict] = {way: {} for way in ways}
    for size in sizes:
        turns: dict[str, list[timing.Result]] = {way: [] for way in ways}
        for way in ways * 3:
            number, settings = choice.choose(device, (size, size, size), way)
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
    """The recorded comparisons in ``results/``: {title: {strategy: {size: as in `compare`}}}."""
    found = {}
    for path in sorted(sources.folder("results").glob("edges_*.json")):
        data = json.loads(path.read_text(encoding="utf-8"))
        found[data["title"]] = {way: {int(s): x for s, x in r.items()} for way, r in data["strategies"].items()}
    return found


def neighbourhoods(title: str = "NVIDIA H200", apart: int = 100) -> list[dict[str, dict[int, float]]]:
    """The recorded rates of every strategy, cut where two sizes that follow each other lie far apart.

    Args:
        title: of the record in ``results/`` (see `recorded`).
        apart: sizes that differ by more than this are no neighbours.

    Returns:
        For each neighbourhood, the one of the smallest sizes first, {strategy: {size: GFLOPS}}.
    """
    ways = recorded()[title]
    sizes = sorted(ways["pad"])
    starts = [0, *(i for i in range(1, len(sizes)) if sizes[i] - sizes[i - 1] > apart), len(sizes)]
    return [
        {way: {size: rates[size]["gflops"] for size in sizes[start:end]} for way, rates in ways.items()}
        for start, end in pairwise(starts)
    ]


def shares(low: int, high: int, title: str = "NVIDIA H200") -> dict[str, dict[int, float]]:
    """What sizes cost: every rate as per cent of the best one from `low` to `high`, ours beside AutoGEMM's.

    Both comparisons are within one device. What is missing from 100 per cent is the price of a size that does not
    suit the tiles, whatever was done about it.

    Args:
        low, high: the first and the last size of square matrices.
        title: of the record in ``results/`` (see `recorded`).

    Returns:
        {"AutoGEMM" or a strategy of `compare`: {size: per cent}}; what has no such sizes is left out.

    Source of AutoGEMM's rates: those published with clBLAS 2.7.1 (``results/published_autogemm.json``).
    """
    data = json.loads((sources.folder("results") / "published_autogemm.json").read_text(encoding="utf-8"))
    published = {"AutoGEMM": {int(size): rate for size, rate in data["gflops"].items()}}
    own = {way: {size: r["gflops"] for size, r in rates.items()} for way, rates in recorded()[title].items()}
    return _of_the_best(published, low, high) | _of_the_best(own, low, high)


def _of_the_best(rates: dict[str, dict[int, float]], low: int, high: int) -> dict[str, dict[int, float]]:
    """Rates by name and size as per cent of the best of them all."""
    within = {name: {s: rate for s, rate in by_size.items() if low <= s <= high} for name, by_size in rates.items()}
    best = max((rate for by_size in within.values() for rate in by_size.values()), default=1.0)
    return {name: {s: 100 * rate / best for s, rate in by_size.items()} for name, by_size in within.items() if by_size}


def launch_times(
    m: int,
    n: int,
    k: int,
    device: Device | int | str | None = None,
    precision: str = "s",
    params: Params | None = None,
    repeats: int = 5,
) -> tuple[list[Launch], dict[str, float]]:
    """The launches of ``edges="split"`` for a column-major product of compact matrices, and the time of each.

    Args:
        m, n, k: sizes of the product.
        device: a Device, an index or part of a name; the preferred device by default.
        precision: "s", "d", "c" or "z".
        params: of the tile whose whole tiles are cut off; by default the rules choose.
        repeats: timed runs, after one to warm up.

    Returns:
        The launches, and for each, by its edges, the median in milliseconds by the device's clock.

    Raises:
        ParameterError: for parameters that the family does not have or the device cannot take.
        ValueError: if the device has no such precision.
    """
    device, dtype = find_device(device), PRECISIONS[precision].dtype
    check_double(precision, device)
    tile = None if params is None else complete_tile(params)
    problem, spent = Problem.compact(m, n, k), defaultdict(list)
    with Session(device.timed_queue, device, dtype=dtype) as session:
        a, b = (session.upload(x) for x in check.exact_inputs(m, n, k, dtype=dtype))
        out = session.new(Layout.compact(m, n))
        for _ in range(repeats + 1):
            session.events.clear()
            split_up.gemm(session, problem, (a, b), dtype.type(1), dtype.type(0), None, out, tile)
            device.timed_queue.finish()
            for edges, event in session.events:
                spent[edges].append((event.profile.end - event.profile.start) * 1e-6)
    launches = split_up.selected(device, precision, (m, n, k), None if tile is None else tuple(tile.items()))
    return launches, {edges: float(np.median(times[1:])) for edges, times in spent.items()}
