"""Find the rows of the table behind `kernel="auto"`, on any device."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from datetime import date
from multiprocessing import get_context
from pathlib import Path

import pyopencl as cl

from . import auto, bench, launch, live, rivals
from .catalog import catalog
from .device import Device


def home(size, edges: str, precision: str = "float32") -> str:
    """The list that a row found at this size belongs to."""
    if precision != "float32":
        return precision
    return auto.WHOLE if edges == "auto" and all(s % 4 == 0 for s in auto.dimensions(size)) else auto.EDGES[edges]


def candidates(edges: str, precision: str = "float32") -> list[int]:
    """The kernels that a search for this list of rows goes through: those of the strategy, or all for "auto"."""
    tensor = precision != "float32"
    return [number for number, spec in catalog.items() if edges in ("auto", spec.edges) and spec.tensor == tensor]


def search(
    device: Device,
    size,
    run: Callable,
    per_kernel: int = 8,
    say: Callable = print,
    edges: str = "pad",
    among: Iterable[int] = (),
    ahead: Callable = lambda settings: None,
    precision: str = "float32",
    starts: Iterable[dict[str, int]] = (),
    steps: int = 100,
) -> dict:
    """The fastest right kernel, whole pipeline: a sample of every kernel, then the best ones step by step.

    Args:
        size: that of a cube, or M, N and K of the column-major product.
        edges: the strategy whose kernels to try, or "auto" for all.
        run: called with (kernel, params); returns the pipeline's GFLOPS, 0 for what is wrong or fails.
        per_kernel: how many parameter sets of each kernel to try at first.
        among: only these kernels (all by default).
        ahead: called with a list of (kernel, params) that will be run next, to compile them side by side.
        precision: the precision whose kernels to try.
        starts: parameters to begin with as well, for the kernels that have all of them.
        steps: how often at most one of the best moves on.
    """
    seen: dict[tuple, float] = {}

    def rate(number: int, params: dict[str, int]) -> float:
        key = (number, *params.items())
        if key not in seen:
            seen[key] = run(number, params)
        return seen[key]

    known = auto.choose(device, auto.dimensions(size), edges, precision)  # what is found must be better than that
    best = (rate(known[0], dict(known[1])), *known)
    best_of_each = []
    smallest = min(auto.dimensions(size))
    for number in (n for n in candidates(edges, precision) if not among or n in among):
        spec = catalog[number]
        offers = [spec.fit(device.limits), *spec.sample(device.limits, per_kernel, seed=smallest)]
        rows = (row for lists in auto.table().values() for found in lists.values() for row in found)
        offers += [row["params"] for row in rows if row["kernel"] == number]
        offers += [spec.complete(p) for p in starts if set(p) <= set(spec.defaults)]
        offers = [{**p, **auto.fixed(precision, number)} for p in offers]
        legal = [p for p in offers if not spec.problems(p, device.limits) and max(spec.least(p)[:2]) <= smallest * 8]
        if not legal:
            continue
        ahead([(number, p) for p in legal])
        tried = sorted(((rate(number, p), number, tuple(p.items())) for p in legal), reverse=True)
        best_of_each += tried[:2]
        say(f"  kernel {number}: {tried[0][0]:,.1f} GFLOPS")
    for start in sorted(best_of_each, reverse=True)[:2]:
        for _ in range(steps):
            value, number, items = start
            spec, params = catalog[number], dict(items)
            kept = auto.fixed(precision, number)
            free = [p for p in spec.params if p.name not in kept]
            moves = [(p.name, v) for p in free for v in _neighbours(p.choices, params[p.name])]
            near = [spec.settle({**params, name: v}, name, device.limits)[0] for name, v in moves]
            near = [s for s in near if not spec.problems(s, device.limits) and kept.items() <= s.items()]
            ahead([(number, s) for s in near])
            tried = [(rate(number, s), number, tuple(s.items())) for s in near]
            if not tried or max(tried)[0] <= 1.02 * value:
                break
            start = max(tried)
        best = max(best, start)
    say(f"  best: kernel {best[1]} {dict(best[2])}, {best[0]:,.1f} GFLOPS of {len(seen)} tried")
    size = size if isinstance(size, int) else list(size)
    found = {"kernel": best[1], "params": dict(best[2]), "gflops": round(best[0], 1)}
    return {"size": size, **found, "units": device.units}


def _neighbours(choices: tuple[int, ...], value: int) -> list[int]:
    below, above = [c for c in choices if c < value], [c for c in choices if c > value]
    return below[-1:] + above[:1]


def fill(
    file: str | Path,
    sizes: Iterable,
    device: Device,
    command: str,
    *,
    tries: int = 6,
    among: Iterable[int] = (),
    edges: str = "pad",
    precision: str = "float32",
    starts: Iterable[dict[str, int]] = (),
    steps: int = 100,
    calls: bool = False,
) -> None:
    """Search at each size, and put what is found into the table in `file` at once; its other rows stay.

    Args:
        command: what was typed, for the record.
        tries, among, edges, precision, starts, steps: as in `search`.
        calls: rate whole calls one after another, checked if they are ahead of all before; otherwise every trial is
            checked, and runs in a child process that is not let run for long.
    """

    def run(kernel: int, params: dict[str, int]) -> float:
        nonlocal ahead_of
        m, n, k = auto.dimensions(size)
        if not calls:
            outcome = live.trial(kernel, m, n, k, params=params, device=device, repeats=5, most_seconds=4.0)
            return outcome.result.pipeline_gflops if outcome.ok else 0.0
        with suppress(RuntimeError, ValueError, MemoryError, cl.Error):  # what does not fit is no candidate
            (rate,) = rivals.ours(m, n, k, device, kernel, params, precision, rounds=1)
            if rate <= ahead_of:
                return rate
            if bench.measure(kernel, m, n, k, params=params, device=device, repeats=1).ok:
                ahead_of = rate
                return rate
        return 0.0

    def ahead(settings: list) -> None:
        """A GPU's compiler runs on one core; what it makes is kept on disk for the trials."""
        if device.kind == "GPU":
            with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
                list(pool.map(_build, settings, [device.index] * len(settings)))

    for size in sizes:
        ahead_of = 0.0
        print(f"{' x '.join(map(str, auto.dimensions(size)))} on {device}:")
        row = search(device, size, run, tries, print, edges, among, ahead, precision, starts, steps)
        _add(Path(file), device, command, row, home(size, edges, precision))


def _add(path: Path, device: Device, command: str, row: dict, name: str) -> None:
    """Into the file at once: a search may take long, and somebody may lose patience."""
    known = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    entry = known.setdefault(auto.kind(device), {})
    entry |= {"device": str(device), "date": date.today().isoformat()}
    entry["commands"] = [*(c for c in entry.get("commands", []) if c != command), command]
    others = [old for old in entry.get(name, []) if old["size"] != row["size"]]
    entry[name] = sorted([*others, row], key=lambda row: (isinstance(row["size"], list), row["size"]))
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def _build(setting: tuple, index: int) -> None:
    with suppress(RuntimeError, ValueError):  # the trial will say so
        launch.kernel(*setting, index)
