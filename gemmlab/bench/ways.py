"""Recorded experiments: ways to run a kernel, such as with its idea and without it, that took turns on one device.

The scripts in ``docs/experiments`` measure them: ``waterfall.py`` the steps from kernel 10 on, ``beyond.py`` what each
part of an idea is worth in kernels 15 to 17.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..caches import cached
from ..catalog import Key, sources


@dataclass(frozen=True)
class Way:
    """A recorded way.

    Attributes:
        kernel, params, size: what ran, with M = N = K; the kernel is None for a library.
        gflops, least, most: the median, the slowest and the fastest launch, fix-up included.
        registers, spilled: per work-item, and in bytes; None where the compiler does not tell.
        changed: whether one thing in the kernel's text was changed.
    """

    gflops: float
    least: float
    most: float
    kernel: Key | None = None
    params: Mapping[str, int] = field(default_factory=dict)
    size: int = 4096
    registers: int | None = None
    spilled: int | None = None
    changed: bool = False

    @property
    def range(self) -> tuple[float, float, float]:
        """gflops, least and most, as `draw.plot.ranges` takes them."""
        return self.gflops, self.least, self.most

    def __str__(self) -> str:
        return f"{self.gflops:8,.0f} GFLOPS ({self.least:,.0f} to {self.most:,.0f})"


def waterfall() -> dict[str, Way]:
    """The steps from kernel 10 on an H200, each with its idea and without it, and cuBLAS, by title."""
    return _ways(_read("nvidia_h200_waterfall.json")["ways"])


def experiment(name: str) -> dict[str, Way]:
    """One of the experiments behind chapters 15 to 17 on an H200: "warps", "copies", "shares" or "order".

    Raises:
        ValueError: for another name.
    """
    found = _read("nvidia_h200_beyond.json")["experiments"]
    if name not in found:
        raise ValueError(f"name must be one of {', '.join(found)}, not {name!r}")
    return _ways(found[name])


@cached(4)
def _read(file: str) -> dict:
    return json.loads((sources.folder("results") / file).read_text(encoding="utf-8"))


def _ways(found: Mapping[str, Mapping]) -> dict[str, Way]:
    """Those that ran and were right."""
    names = Way.__dataclass_fields__
    return {
        title: Way(**{name: value for name, value in facts.items() if name in names})
        for title, facts in found.items()
        if "gflops" in facts and facts.get("ok", True)
    }
