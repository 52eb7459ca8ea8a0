"""Find the rows of the table behind `kernel="auto"`, on any device."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date
from functools import partial
from math import inf
from pathlib import Path
from typing import Any

import pyopencl as cl

from ..catalog import KernelSpec, Key, catalog
from ..family import selection
from ..opencl import launch
from ..opencl.devices import Device
from . import libraries, timing
from .children import Children

#: A kernel's number and all of its parameters.
Setting = tuple[Key, dict[str, int]]


@dataclass(frozen=True)
class Rate:
    """What a setting reached: GFLOPS of the whole call, or 0 and why it does not count."""

    gflops: float
    problem: str = ""


#: Rates a setting at M, N, K of the column-major product.
Rater = Callable[[Setting, tuple[int, int, int]], Rate]


@dataclass
class Search:
    """A search for the fastest right kernel: a sample of every kernel first, then the best ones step by step.

    Attributes:
        device: where.
        rate: rates one setting.
        edges: the strategy whose kernels to try, or "auto" for all.
        precision: the precision whose kernels to try.
        among: only these kernels (all by default).
        tries: how many parameter sets of each kernel to begin with.
        starts: parameters to begin with as well, for the kernels that have all of them.
        steps: how often at most one of the best moves on to a neighbour.
        ahead: called with the settings that will be rated next, to compile them side by side.
        say: called with each line of progress.
    """

    device: Device
    rate: Rater
    edges: str = "pad"
    precision: str = "float32"
    among: Sequence[int] = ()
    tries: int = 8
    starts: Sequence[dict[str, int]] = ()
    steps: int = 100
    ahead: Callable[[list[Setting]], None] = lambda settings: None
    say: Callable[[str], Any] = print
    _seen: dict[tuple, Rate] = field(default_factory=dict)

    def best(self, size) -> dict:
        """The row of the table for a size: that of a cube, or M, N and K of the column-major product."""
        self._seen.clear()
        sizes = selection.dimensions(size)
        number, params = selection.choose(self.device, sizes, self.edges, self.precision)
        leaders = [self._rated((number, dict(params)), sizes)]  # what is found must be better than what is known
        for kernel in candidates(self.edges, self.precision):
            if not self.among or kernel in self.among:
                leaders += self._first_tries(catalog[kernel], sizes)
        for leader in sorted(leaders, key=_gflops, reverse=True)[:2]:
            leaders.append(self._climb(leader, sizes))
        gflops, (number, found) = max(leaders, key=_gflops)
        self.say(f"  best: kernel {number} {found}, {gflops:,.1f} GFLOPS of {len(self._seen)} tried")
        row = {"size": size if isinstance(size, int) else list(size), "kernel": number, "params": found}
        return {**row, "gflops": round(gflops, 1), "units": self.device.units}

    def _rated(self, setting: Setting, sizes: tuple[int, int, int]) -> tuple[float, Setting]:
        number, params = setting
        key = (number, *params.items())
        if key not in self._seen:
            self._seen[key] = self.rate(setting, sizes)
            if self._seen[key].problem:
                self.say(f"  kernel {number} {params} does not count: {self._seen[key].problem.splitlines()[0]}")
        return self._seen[key].gflops, setting

    def _first_tries(self, spec: KernelSpec, sizes: tuple[int, int, int]) -> list[tuple[float, Setting]]:
        """The two best of a kernel's sample, its known rows, and the given starts."""
        limits, smallest = self.device.limits, min(sizes)
        offers = [spec.fit(limits), *spec.sample(limits, self.tries, seed=smallest)]
        rows = (row for lists in selection.table().values() for found in lists.values() for row in found)
        offers += [row["params"] for row in rows if row["kernel"] == spec.number]
        offers += [spec.complete(p) for p in self.starts if set(p) <= set(spec.defaults)]
        offers = [{**p, **selection.implied(self.precision, spec.number)} for p in offers]
        legal = [(spec.number, p) for p in offers if not spec.problems(p, limits)]
        legal = [(n, p) for n, p in legal if max(spec.minimum_sizes(p)[:2]) <= 8 * smallest]
        if not legal:
            return []
        self.ahead(legal)
        tried = sorted((self._rated(setting, sizes) for setting in legal), key=_gflops, reverse=True)
        self.say(f"  kernel {spec.number}: {tried[0][0]:,.1f} GFLOPS")
        return tried[:2]

    def _climb(self, start: tuple[float, Setting], sizes: tuple[int, int, int]) -> tuple[float, Setting]:
        """From a setting to its best neighbour, as long as that is at least 2 % faster."""
        for _ in range(self.steps):
            near = self._neighbours(start[1])
            self.ahead(near)
            best = max((self._rated(setting, sizes) for setting in near), key=_gflops, default=(-inf, start[1]))
            if best[0] <= 1.02 * start[0]:
                break
            start = best
        return start

    def _neighbours(self, setting: Setting) -> list[Setting]:
        """Legal settings one step of one parameter away; others move along where rules ask for it."""
        number, params = setting
        spec, limits = catalog[number], self.device.limits
        kept = selection.implied(self.precision, number)
        near = []
        for p in spec.params:
            below, above = ([c for c in p.choices if (c - params[p.name]) * way > 0] for way in (-1, 1))
            for value in (*below[-1:], *above[:1]) if p.name not in kept else ():
                moved, _ = spec.nearest_legal({**params, p.name: value}, p.name, limits)
                if not spec.problems(moved, limits) and kept.items() <= moved.items():
                    near.append((number, moved))
        return near


def _gflops(rated: tuple[float, Setting]) -> float:
    return rated[0]


def candidates(edges: str, precision: str = "float32") -> list[Key]:
    """The kernels that a search for this list of rows goes through: those of the strategy, or all for "auto"."""
    tensor = precision != "float32"
    return [number for number, spec in catalog.items() if edges in ("auto", spec.edges) and spec.tensor == tensor]


def list_of(size, edges: str, precision: str = "float32") -> str:
    """The list of the table that a row found at this size belongs to."""
    if precision != "float32":
        return precision
    whole = all(s % 4 == 0 for s in selection.dimensions(size))
    return selection.WHOLE if edges == "auto" and whole else selection.EDGES[edges]


def by_trials(trial: Callable[..., Any], device: Device) -> Rater:
    """Every setting is checked and timed by `trial` (`gemmlab.trial`), which stops what takes too long."""

    def rate(setting: Setting, sizes: tuple[int, int, int]) -> Rate:
        number, params = setting
        outcome = trial(number, *sizes, params=params, device=device, repeats=5, most_seconds=4.0)
        return Rate(outcome.result.pipeline_gflops) if outcome.ok else Rate(0.0, outcome.verdict)

    return rate


class ByCalls:
    """Whole calls, one after another by the clock on the wall: quicker, but nothing stops what takes too long.

    A setting is checked only if it is ahead of all before at its size.
    """

    def __init__(self, device: Device, precision: str):
        self.device, self.precision = device, precision
        self._ahead: dict[tuple[int, int, int], float] = {}

    def __call__(self, setting: Setting, sizes: tuple[int, int, int]) -> Rate:
        number, params = setting
        try:
            (gflops,) = libraries.ours(*sizes, self.device, number, params, self.precision, rounds=1)
            if gflops > self._ahead.get(sizes, 0.0):
                result = timing.measure(number, *sizes, params=params, device=self.device, repeats=1)
                if not result.ok:
                    return Rate(0.0, result.verdict)
                self._ahead[sizes] = gflops
            return Rate(gflops)
        except (RuntimeError, ValueError, MemoryError, cl.Error) as error:  # what does not fit is no candidate
            return Rate(0.0, str(error))


def compile_ahead(device: Device, settings: list[Setting]) -> None:
    """Compile side by side on a GPU, whose compiler runs on one core; what it makes is kept on disk."""
    if device.kind == "GPU":
        with Children() as pool:
            list(pool.map(partial(_compile, device.index), settings))


def _compile(index: int, setting: Setting) -> None:
    with suppress(RuntimeError, ValueError):  # the rating will say why
        launch.kernel(*setting, index)


def fill(file: str | Path, sizes: Iterable, search: Search, command: str) -> None:
    """Search at each size, and put what is found into the table in `file` at once; its other rows stay.

    Args:
        command: what was typed, for the record.
    """
    _table(Path(file))  # before a long search, whose result would have no place
    for size in sizes:
        search.say(f"{' x '.join(map(str, selection.dimensions(size)))} on {search.device}:")
        row = search.best(size)
        _add(Path(file), search.device, command, row, list_of(size, search.edges, search.precision))


def _table(path: Path) -> dict[str, dict]:
    """The table in a file, or an empty one where there is none. Raises ValueError for a file of something else."""
    if not path.exists():
        return {}
    with suppress(ValueError):
        found = json.loads(path.read_text(encoding="utf-8"))
        if isinstance(found, dict):
            return found
    raise ValueError(f"{path} is there but is no table like results/auto.json; name another file, or remove this one")


def _add(path: Path, device: Device, command: str, row: dict, name: str) -> None:
    """Into the file at once: a search may take long, and somebody may lose patience."""
    known = _table(path)
    entry = known.setdefault(selection.kind(device), {})
    entry |= {"device": str(device), "date": date.today().isoformat()}
    entry["commands"] = [*(c for c in entry.get("commands", []) if c != command), command]
    others = [old for old in entry.get(name, []) if old["size"] != row["size"]]
    entry[name] = sorted([*others, row], key=lambda row: (isinstance(row["size"], list), row["size"]))
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")
