"""Results of measurements: what a result contains, and the recorded ones in ``results/``."""

from __future__ import annotations

import json
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np

from .. import files, model
from ..caches import cached
from ..ladder import Key, catalog, sources
from ..opencl import cl
from ..version import __version__


@dataclass(frozen=True)
class Result:
    """One checked and timed product.

    Attributes:
        kernel, params, m, n, k: the kernel, all its parameters, and the sizes of the product.
        ok: whether the exact check passed and nothing outside C was written.
        verdict: the outcome in words.
        error, bound: largest absolute error on uniform data in [-1, 1), and the bound on it at that
            element.
        kernel_ms: milliseconds of the bare kernel: median, least and most of all timed runs.
        pipeline_ms: the same for all passes of a call (pad, transpose, kernel, unpad), without
            copies from and to the host.
        passes_ms: median milliseconds of each pass.
        repeats: how many timed runs there were.
        build_seconds: compile time, also that of the first launch; it is not included in any run
            time.
        path: which of the kernel's paths ran: "plain", or the features of the device that it used.
        device: facts about the device.
        when: the date, ISO 8601.
        first_wrong: row and column of the first element that the exact check found wrong, if any.
    """

    kernel: Key
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
    first_wrong: tuple[int, int] | None = None

    @property
    def gflops(self) -> float:
        """2 m n k / median kernel time, in 10^9 floating-point operations per second."""
        return model.gflops(self.m, self.n, self.k, self.kernel_ms[0] * 1e-3)

    @property
    def pipeline_gflops(self) -> float:
        """The same for the whole pipeline: 2 m n k / median time of all passes."""
        return model.gflops(self.m, self.n, self.k, self.pipeline_ms[0] * 1e-3)

    def __str__(self) -> str:
        settings = " ".join(f"{k}={v}" for k, v in self.params.items())
        low, high = _range(self)
        path = "" if self.path == "plain" else f"{self.path}: "
        return (
            f"kernel {self.kernel} ({settings}), {self.m} x {self.n} x {self.k}, "
            f"{self.device['device']}: {self.verdict}; {path}{self.gflops:,.1f} GFLOPS ({low:,.1f} "
            f"to {high:,.1f}, {self.repeats} runs), whole pipeline {self.pipeline_gflops:,.1f}; "
            f"compiled in {self.build_seconds:.2f} s"
        )


def pooled(results: Sequence[Result]) -> Result:
    """Several results of the same settings as one: the median of their medians, the least and the
    most of all runs.
    """

    def together(times: Sequence[tuple[float, float, float]]) -> tuple[float, float, float]:
        medians, least, most = zip(*times, strict=True)
        return statistics.median(medians), min(least), max(most)

    return replace(
        results[0],
        ok=all(result.ok for result in results),
        kernel_ms=together([result.kernel_ms for result in results]),
        pipeline_ms=together([result.pipeline_ms for result in results]),
        repeats=sum(result.repeats for result in results),
    )


def distinguish(results: Mapping[str, Result]) -> str:
    """Measured rates with their spread, and whether the best and the worst of them differ.

    They do if even the fastest run of the worst is slower than the median run of the best. Slow
    runs say little: whatever else the machine does makes a run slower, and hardly anything faster.

    Args:
        results: at least one, by what sets it apart from the others, such as "WPT 4".
    """
    ranges = {name: _range(result) for name, result in results.items()}
    wide = max(map(len, results))
    lines = [
        f"{name:{wide}} {result.gflops:9,.1f} GFLOPS ({ranges[name][0]:,.1f} to "
        f"{ranges[name][1]:,.1f})"
        for name, result in results.items()
    ]
    if len(results) > 1:
        worst, *_, best = sorted(results, key=lambda name: results[name].gflops)
        if ranges[worst][1] < results[best].gflops:
            faster = (
                f"{best} is {results[best].gflops / results[worst].gflops:.2f} times as fast as "
                f"{worst}"
            )
            lines.append(f"{faster}: its median lies above the other's fastest run.")
        else:
            reached = f"the fastest run of {worst} reaches the median of {best}"
            lines.append(f"There is no difference that can be measured here: {reached}.")
    return "\n".join(lines)


def _range(result: Result) -> tuple[float, float]:
    """GFLOPS of the slowest and of the fastest run."""
    _, least, most = result.kernel_ms
    low, high = (model.gflops(result.m, result.n, result.k, ms * 1e-3) for ms in (most, least))
    return low, high


def entry(result: Result) -> dict[str, Any]:
    """A result as it is recorded: its fields but `first_wrong`, and the GFLOPS that follow."""
    facts = asdict(result)
    del facts["first_wrong"]
    return facts | {"gflops": result.gflops, "pipeline_gflops": result.pipeline_gflops}


def origin(command: str) -> dict[str, Any]:
    """What a record says about how it was made: command, date, versions."""
    versions = {"gemmlab": __version__, "pyopencl": cl.VERSION_TEXT, "numpy": np.__version__}
    versions["python"] = platform.python_version()
    return {"command": command, "date": date.today().isoformat(), "versions": versions}


def write(path: str | Path, data: dict[str, Any]) -> None:
    """Write JSON, in one step, with a line for each row of a table, so that versions can be
    compared.
    """
    files.replace(path, _json(data) + "\n")


def _json(value: Any, margin: str = "") -> str:
    inner = margin + " "
    if isinstance(value, dict) and value:
        lines = [f"{inner}{json.dumps(str(key))}: {_json(x, inner)}" for key, x in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{margin}}}"
    if isinstance(value, list) and any(isinstance(row, dict | list) for row in value):
        lines = [inner + json.dumps(row, separators=(",", ":")) for row in value]
        return "[\n" + ",\n".join(lines) + f"\n{margin}]"
    return json.dumps(value)


@cached(32)
def read(name: str) -> dict[str, Any]:
    """A file of ``results/`` by its name without the suffix, such as "nvidia_h200_chapters"."""
    return json.loads((sources.folder("results") / f"{name}.json").read_text(encoding="utf-8"))


@cached(1)
def recorded() -> list[dict[str, Any]]:
    """The records of kernels in ``results/``, which have "title" and "results"."""
    names = sorted(path.stem for path in sources.folder("results").glob("*.json"))
    found = [read(name) for name in names if not name.startswith("landscape_")]
    return [file for file in found if "results" in file]


def ladders(
    kernels: Iterable[Key] = tuple(catalog), only: tuple[str, ...] = ("",)
) -> dict[str, dict[Key, float]]:
    """The best recorded GFLOPS of these kernels, {title of the record: {kernel: GFLOPS}}; the
    fastest device comes first.

    A kernel that was not recorded by itself gets its best result where "auto" selected it, with M
    up to 4096. Records whose title contains no word of `only` are left out.
    """
    found: dict[str, dict[Key, float]] = {}
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
    """Recorded GFLOPS of other libraries by name, measured in the same run as ours, at M = N = K =
    size; `title` is part of the title of the record.
    """
    together = [file for file in recorded() if "side_by_side" in file and title in file["title"]]
    return {
        yard["name"]: yard["gflops"]
        for file in together
        for yard in file["yardsticks"]
        if (yard["m"], yard["n"], yard["k"]) == (size,) * 3
    }
