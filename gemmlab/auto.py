"""Which kernel `kernel="auto"` takes: a small table by kind of device and size, and the search that makes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache, lru_cache

from . import sources
from .catalog import catalog
from .device import Device

#: Kinds of devices with rows of their own in the table, and where the others look.
FALLBACK = {
    "nvidia": "gpu",
    "gpu": "nvidia",
    "intel on AMD": "intel",
    "pocl on AMD": "pocl",
    "pocl 3.0": "pocl",
    "intel": "cpu",
    "pocl": "cpu",
    "cpu": "pocl",
}


def kind(device: Device) -> str:
    """The device's kind in the table: "nvidia", "gpu" (others); a CPU's by its runtime, and whether it is AMD's."""
    platform = device.platform.lower()
    if device.kind == "GPU":
        return "nvidia" if "nvidia" in platform else "gpu"
    if "PoCL 3.0" in device.version:
        return "pocl 3.0"
    runtime = "intel" if "intel" in platform else "pocl" if "portable" in platform else "cpu"
    return f"{runtime} on AMD" if "amd" in device.name.lower() and runtime != "cpu" else runtime


#: The ways to treat sizes that are no whole tiles, and the list of the table's rows for each. For "auto" a list of
#: its own, found at such sizes among all kernels; where the sizes are whole tiles, "auto" takes the rows for "pad".
EDGES = {"pad": "rows", "guard": "guard", "shift": "shift", "auto": "awkward"}


@cache
def table() -> dict[str, dict[str, list[dict]]]:
    """``results/auto.json``: by kind and list, rows with "size", "kernel", "params" and the "gflops" once seen."""
    found = json.loads((sources.folder("results") / "auto.json").read_text(encoding="utf-8"))
    return {kind: {name: entry.get(name, []) for name in EDGES.values()} for kind, entry in found.items()}


def choose(device: Device, sizes: tuple[int, int, int], edges: str = "auto") -> tuple[int, tuple]:
    """The kernel number and parameters for M, N, K of the column-major product: the row nearest in scale.

    Raises:
        ValueError: if no kernel of that strategy serves these sizes; the message names one that does.
    """
    size = scale(*sizes)
    if edges == "auto":
        number, settings = _nearest(device, size, "rows", sizes)
        multiples = catalog[number].multiples(dict(settings))
        whole = all(s % multiple == 0 for s, multiple in zip(sizes, multiples, strict=True))
        return (number, settings) if whole else _nearest(device, size, "awkward", sizes) or (number, settings)
    chosen = _nearest(device, size, EDGES[edges], sizes)
    if chosen is None:
        raise ValueError(
            f"edges={edges!r} needs at least one tile, and no tile that {device} can take is as small as "
            f"{sizes[1]} rows of a and {sizes[0]} columns of b; edges='pad' and edges='guard' serve any size"
        )
    return chosen


#: What serves where the table has nothing: kernel 3 by padding, 12 by guards, 13 by shifts.
_OTHERWISE = {"rows": 3, "guard": 12, "shift": 13}


@lru_cache(maxsize=4096)
def _nearest(device: Device, size: float, name: str, sizes: tuple[int, int, int]) -> tuple[int, tuple] | None:
    known = table()
    lists = known.get(kind(device)) or known.get(FALLBACK[kind(device)]) or {}

    def serves(number: int, params: dict[str, int]) -> bool:
        spec = catalog[number]
        if spec.problems(params, device.limits):
            return False
        return spec.edges != "shift" or all(s >= t for s, t in zip(sizes, spec.least(params), strict=True))

    rows = [r for r in lists.get(name, []) if serves(r["kernel"], r["params"])]
    if rows:
        row = min(rows, key=lambda r: max(size / r["size"], r["size"] / size))
        return row["kernel"], tuple(row["params"].items())
    if name not in _OTHERWISE:
        return None
    spec = catalog[_OTHERWISE[name]]
    for params in (spec.fit(device.limits), *spec.offered(device.limits)):
        if serves(spec.number, params):
            return spec.number, tuple(params.items())
    return None


def scale(m: int, n: int, k: int) -> float:
    """The size that stands for m x n x k in the table, a power of two: the side of a cube as large."""
    return 2.0 ** round((m * n * k).bit_length() / 3)


def candidates(edges: str) -> list[int]:
    """The kernels that a search for this list of rows goes through: those of the strategy, or all for "auto"."""
    return [number for number, spec in catalog.items() if edges in ("auto", spec.edges)]


def search(
    device: Device, size: int, run: Callable, per_kernel: int = 8, say: Callable = print, edges: str = "pad"
) -> dict:
    """The fastest right kernel at size^3, whole pipeline: a sample of every kernel, then the best one step by step.

    Args:
        edges: the strategy whose kernels to try, or "auto" for all.
        run: called with (kernel, params); returns the pipeline's GFLOPS, 0 for what is wrong or fails.
        per_kernel: how many parameter sets of each kernel to try at first.
    """
    seen: dict[tuple, float] = {}

    def rate(number: int, params: dict[str, int]) -> float:
        key = (number, *params.items())
        if key not in seen:
            seen[key] = run(number, params)
        return seen[key]

    starts = []
    for number in candidates(edges):
        spec = catalog[number]
        offers = [spec.fit(device.limits), *spec.sample(device.limits, per_kernel, seed=size)]
        known = (row for lists in table().values() for rows in lists.values() for row in rows)
        offers += [row["params"] for row in known if row["kernel"] == number]
        legal = [p for p in offers if not spec.problems(p, device.limits) and max(spec.least(p)[:2]) <= size * 8]
        starts.append(max((rate(number, p), number, tuple(p.items())) for p in legal))
        say(f"  kernel {number}: {starts[-1][0]:,.1f} GFLOPS")
    best = (0.0, 0, ())
    for start in sorted(starts, reverse=True)[:2]:
        while True:
            value, number, items = start
            spec, params = catalog[number], dict(items)
            moves = [(p.name, v) for p in spec.params for v in _neighbours(p.choices, params[p.name])]
            steps = [spec.settle({**params, name: v}, name, device.limits)[0] for name, v in moves]
            tried = [(rate(number, s), number, tuple(s.items())) for s in steps if not spec.problems(s, device.limits)]
            if not tried or max(tried)[0] <= 1.02 * value:
                break
            start = max(tried)
        best = max(best, start)
    say(f"  best: kernel {best[1]} {dict(best[2])}, {best[0]:,.1f} GFLOPS of {len(seen)} tried")
    return {"size": size, "kernel": best[1], "params": dict(best[2]), "gflops": round(best[0], 1)}


def _neighbours(choices: tuple[int, ...], value: int) -> list[int]:
    below, above = [c for c in choices if c < value], [c for c in choices if c > value]
    return below[-1:] + above[:1]
