"""Which kernel `kernel="auto"` takes: a small table by kind of device and size, and the search that makes it."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache

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


@cache
def table() -> dict[str, list[dict]]:
    """``results/auto.json``: by kind, rows with "size", "kernel", "params" and the "gflops" that the search saw."""
    rows = json.loads((sources.folder("results") / "auto.json").read_text(encoding="utf-8"))
    return {name: entry["rows"] for name, entry in rows.items()}


@cache
def choose(device: Device, size: float) -> tuple[int, tuple[tuple[str, int], ...]]:
    """The kernel number and parameters for products of about size^3 multiply-adds: the row nearest in scale."""
    known = table()
    rows = known.get(kind(device)) or known.get(FALLBACK[kind(device)]) or []
    legal = [r for r in rows if not catalog[r["kernel"]].problems(r["params"], device.limits)]
    if not legal:
        return 3, tuple(catalog[3].fit(device.limits).items())
    row = min(legal, key=lambda r: max(size / r["size"], r["size"] / size))
    return row["kernel"], tuple(row["params"].items())


def scale(m: int, n: int, k: int) -> float:
    """The size that stands for m x n x k in the table, a power of two: the side of a cube as large."""
    return 2.0 ** round((m * n * k).bit_length() / 3)


def search(device: Device, size: int, run: Callable, per_kernel: int = 8, say: Callable = print) -> dict:
    """The fastest right kernel at size^3, whole pipeline: a sample of every kernel, then the best one step by step.

    Args:
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
    for number, spec in catalog.items():
        offers = [spec.fit(device.limits), *spec.sample(device.limits, per_kernel, seed=size)]
        offers += [r["params"] for rows in table().values() for r in rows if r["kernel"] == number]
        legal = [p for p in offers if not spec.problems(p, device.limits)]
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
