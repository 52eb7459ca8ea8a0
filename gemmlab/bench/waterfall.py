"""What an H200 reached past the tutorial's end: every step with its idea and without it, all in one run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from .. import model
from ..caches import cached
from ..catalog import Key, find, in_order, sources
from ..opencl.build import HIDDEN
from . import explained, landscape


@dataclass(frozen=True)
class Way:
    """One way to multiply, as ``tools/experiments.py`` recorded it.

    Attributes:
        title: such as "16 asynchronous copies", or "cuBLAS SGEMM".
        kernel: what ran, None for a library.
        params: all its parameters.
        gflops: of the median launch, in 10^9 floating-point operations per second.
        least, most: those of the slowest and of the fastest launch.
        registers, spilled: registers of a work-item, and bytes that did not fit into them; None where nobody told.
        errors: of products of normal numbers, relative to the product, by K; empty where they were not measured.
    """

    title: str
    kernel: Key | None
    params: Mapping[str, int]
    gflops: float
    least: float
    most: float
    registers: int | None = None
    spilled: int | None = None
    errors: Mapping[int, float] = field(default_factory=dict)

    @property
    def range(self) -> tuple[float, float, float]:
        """gflops, least and most, as `draw.plot.ranges` takes them."""
        return self.gflops, self.least, self.most

    def __str__(self) -> str:
        return f"{self.title}: {self.gflops:,.0f} GFLOPS ({self.least:,.0f} to {self.most:,.0f})"


def ways(record: str = "waterfall", experiment: str | None = None) -> dict[str, Way]:
    """Every recorded way by its title, in the order of the record; those that could not be compiled are left out.

    Args:
        record: "waterfall" for the steps from kernel 10 on, "warpgroups" for kernels 18 and 19 with parts of them off,
            "beyond" for kernels 15 to 17.
        experiment: of "beyond": "warps", "copies", "shares" or "order".
    """
    read = _read(record)
    facts = ("gflops", "least", "most", "registers", "spilled")
    found = {}
    for title, way in (read["experiments"][experiment] if experiment else read["ways"]).items():
        if "kernel" in way and HIDDEN in sources.read(find(way["kernel"]).file):
            way = {**way, "registers": None, "spilled": None}  # the compiler saw comments in place of instructions
        if "gflops" in way:
            errors = {int(k): error for k, error in way.get("errors", {}).items()}
            found[title] = Way(
                title,
                way.get("kernel"),
                way.get("params", {}),
                errors=errors,
                **{fact: way.get(fact) for fact in facts},
            )
    return found


def alone() -> dict[str, float]:
    """GFLOPS of the instructions of tensor cores by themselves, each at its best: "mma.sync" and "wgmma"."""
    best: dict[str, float] = {}
    for title, loop in _read("warpgroups")["loops"].items():
        name = title.partition(",")[0]
        best[name] = max(best.get(name, 0.0), loop.get("gflops", 0.0))
    return best


@cached(3)
def _read(record: str) -> dict[str, Any]:
    path = sources.folder("results") / f"nvidia_h200_{record}.json"
    return json.loads(path.read_text(encoding="utf-8"))


def steps() -> dict[Key, Way]:
    """Of each kernel the way with its idea, which the record has before those without."""
    found: dict[Key, Way] = {}
    for way in ways().values():
        if way.kernel is not None:
            found.setdefault(way.kernel, way)
    return {kernel: found[kernel] for kernel in in_order(found)}


def without(kernel: Key) -> list[Way]:
    """The ways of a kernel with its idea switched off, or another part of it."""
    return [way for way in ways().values() if way.kernel == kernel][1:]


@dataclass(frozen=True)
class Rung:
    """A kernel of the ladder as recorded at 4096: what it reached, what it cost, and which roof it lifted.

    Attributes:
        kernel, name: such as 3 and "work per thread".
        gflops: of the median run.
        lines: of code.
        local_memory: bytes per work-group.
        registers: of a work-item; None where nobody told.
        explained: the rate beside its ceilings; None for tensor cores, whose ceilings are not modelled.
    """

    kernel: Key
    name: str
    gflops: float
    lines: int
    local_memory: int
    registers: int | None
    explained: model.Explanation | None

    def lifted(self, before: Rung | None) -> str:
        """The roof of the rung before that is higher here, in words; "" if there is none."""
        if before is None or before.explained is None or self.explained is None:
            return ""
        roof, now = before.explained.roof, explained.lifted(before.explained, self.explained)
        return f"{roof.resource}: {model.percent(roof.share)} to {model.percent(now.share)}" if now else ""


@cached(1)
def rungs() -> dict[Key, Rung]:
    """Every numbered kernel by its number."""
    found: dict[Key, Rung] = {}
    past = steps()
    for why in explained.ladder("H200"):
        if isinstance(why.kernel, int):
            params = find(why.kernel).complete(why.params)
            there = past.get(why.kernel) or landscape.rate(why.kernel, params)
            found[why.kernel] = _rung(why.kernel, params, why.measured, there.registers if there else None, why)
    for kernel, way in past.items():
        if kernel not in found:
            found[kernel] = _rung(kernel, way.params, way.gflops, way.registers, None)
    return found


def _rung(kernel: Key, params: Mapping[str, int], gflops: float, registers: int | None, why) -> Rung:
    spec = find(kernel)
    lines = sources.code_lines(sources.read(spec.file))
    return Rung(kernel, spec.name, gflops, lines, spec.local_memory(params), registers, why)
