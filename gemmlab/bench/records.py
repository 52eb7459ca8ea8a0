"""Results of measurements: what one holds, and the recorded ones in ``results/``."""

from __future__ import annotations

import contextlib
import json
import platform
from dataclasses import asdict, dataclass, field
from datetime import date
from pathlib import Path

import numpy as np
import pyopencl as cl

from .. import model
from ..caches import cached
from ..catalog import catalog, sources
from ..version import __version__


@dataclass(frozen=True)
class Result:
    """One checked and timed product.

    Attributes:
        kernel, params, m, n, k: what ran.
        ok: whether the exact check passed and nothing outside C was written.
        verdict: the outcome in words.
        error, bound: largest absolute error on uniform data in [-1, 1), and what it may be there.
        kernel_ms: milliseconds of the bare kernel: median, least, most over `repeats` runs.
        pipeline_ms: the same for all passes of a call (pad, transpose, kernel, unpad), without host copies.
        passes_ms: median milliseconds of each pass.
        build_seconds: compile time, which is no part of any run time.
        path: which of the kernel's paths ran ("plain", or the features it used).
        device: facts about the device.
        when: the date, ISO 8601.
    """

    kernel: int
    params: dict[str, int]
    m: int
    n: int
    k: int
    ok: bool
    verdict: str
    error: float
    bound: float
    kernel_ms: tuple[float, float, float]
    pipeline_ms: tuple[float, float, float]
    passes_ms: dict[str, float]
    repeats: int
    build_seconds: float
    path: str
    device: dict[str, str | int]
    when: str = field(default_factory=lambda: date.today().isoformat())

    @property
    def gflops(self) -> float:
        """2 m n k / median kernel time, in 10^9 floating-point operations per second."""
        return model.gflops(self.m, self.n, self.k, self.kernel_ms[0] * 1e-3)

    @property
    def pipeline_gflops(self) -> float:
        """The same for the whole pipeline."""
        return model.gflops(self.m, self.n, self.k, self.pipeline_ms[0] * 1e-3)

    def __str__(self) -> str:
        settings = " ".join(f"{k}={v}" for k, v in self.params.items())
        low, high = (model.gflops(self.m, self.n, self.k, ms * 1e-3) for ms in (self.kernel_ms[2], self.kernel_ms[1]))
        path = "" if self.path == "plain" else f"{self.path}: "
        return (
            f"kernel {self.kernel} ({settings}), {self.m} x {self.n} x {self.k}, {self.device['device']}: "
            f"{self.verdict}; {path}{self.gflops:,.1f} GFLOPS ({low:,.1f} to {high:,.1f}, {self.repeats} runs), "
            f"whole pipeline {self.pipeline_gflops:,.1f}; compiled in {self.build_seconds:.2f} s"
        )


def entry(result: Result) -> dict:
    """A result as recorded: all its fields, and the rates that follow from them."""
    return asdict(result) | {"gflops": result.gflops, "pipeline_gflops": result.pipeline_gflops}


def origin(command: str) -> dict:
    """What a record says about how it was made: command, date, versions."""
    versions = {"gemmlab": __version__, "pyopencl": cl.VERSION_TEXT, "numpy": np.__version__}
    versions["python"] = platform.python_version()
    return {"command": command, "date": date.today().isoformat(), "versions": versions}


def write(path: str | Path, data: dict) -> None:
    """Write a record as JSON."""
    Path(path).write_text(json.dumps(data, indent=1) + "\n", encoding="utf-8")


def save(path: str | Path, results: list[Result], command: str, **more) -> None:
    """Write results as JSON, with the command and the versions that made them."""
    write(path, {**origin(command), **more, "results": [entry(r) for r in results]})


@cached(1)
def recorded() -> list[dict]:
    """Every recorded file in ``results/``: a dict with at least ``title`` and ``results``, each with a ``file``."""
    found = []
    with contextlib.suppress(FileNotFoundError):
        for path in sorted(sources.folder("results").glob("*.json")):
            found.append({"file": path.name, **json.loads(path.read_text(encoding="utf-8"))})
    return [file for file in found if "results" in file]  # auto.json is none


def ladders(kernels=tuple(catalog), only: tuple[str, ...] = ("",)) -> dict[str, dict[int, float]]:
    """The recorded GFLOPS of these kernels, the best of each, by the title of the record; the fastest device first.

    A kernel that has no results of its own is shown as "auto" took it, up to 4096. `only` keeps the titles that
    contain one of its words.
    """
    found: dict[str, dict[int, float]] = {}
    alone = {result["kernel"] for file in recorded() for result in file["results"]}
    for file in recorded():
        if not any(word in file["title"] for word in only):
            continue
        ladder = found.setdefault(file["title"], {})
        chosen = [r for r in file.get("auto", []) if r["kernel"] not in alone and r["m"] <= 4096]
        for result in [*file["results"], *chosen]:
            if result["kernel"] in kernels:
                ladder[result["kernel"]] = max(ladder.get(result["kernel"], 0.0), result["gflops"])
    return dict(sorted(found.items(), key=lambda item: -max(item[1].values(), default=0.0)))


def yardsticks(title: str = "", size: int = 4096) -> dict[str, float]:
    """Recorded GFLOPS of other libraries at that size, side by side with ours on the device of that title."""
    return {
        yard["name"]: yard["gflops"]
        for file in recorded()
        for yard in (file["yardsticks"] if "side_by_side" in file and title in file["title"] else ())
        if (yard["m"], yard["n"], yard["k"]) == (size,) * 3
    }
