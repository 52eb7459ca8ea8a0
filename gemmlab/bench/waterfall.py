"""The recorded waterfall: the steps past the tutorial's end, each with its idea and without, in one run on an H200."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

from ..caches import cached
from ..catalog import Key, in_order, sources


@dataclass(frozen=True)
class Way:
    """One way to multiply, as ``docs/experiments/waterfall.py`` recorded it.

    Attributes:
        title: such as "16 asynchronous copies", or "cuBLAS SGEMM".
        kernel: what ran, None for a library.
        params: all its parameters.
        gflops: of the median launch, in 10^9 floating-point operations per second.
        least, most: those of the slowest and of the fastest launch.
        registers, spilled: registers of a work-item, and bytes that did not fit into them; None where nobody told.
    """

    title: str
    kernel: Key | None
    params: Mapping[str, int]
    gflops: float
    least: float
    most: float
    registers: int | None = None
    spilled: int | None = None

    def __str__(self) -> str:
        return f"{self.title}: {self.gflops:,.0f} GFLOPS ({self.least:,.0f} to {self.most:,.0f})"


@cached(1)
def ways() -> dict[str, Way]:
    """Every recorded way by its title, in the order of the record; those that could not be compiled are left out."""
    path = sources.folder("results") / "nvidia_h200_waterfall.json"
    found = json.loads(path.read_text(encoding="utf-8"))["ways"]
    facts = ("gflops", "least", "most", "registers", "spilled")
    return {
        title: Way(title, way.get("kernel"), way.get("params", {}), *(way.get(fact) for fact in facts))
        for title, way in found.items()
        if "gflops" in way
    }


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
