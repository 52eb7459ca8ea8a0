"""What a measurement yields, and what is recorded in ``results/``: one row per figure.

A file in ``results/`` is a list of sessions. A session states what its rows share (title, device,
driver, date, command), and holds them in tables. A table, too, states what its rows share, and has
a column for each other field; names in capitals are parameters of the kernel:

    {"kernel": 3, "m": 4096, "n": 4096, "k": 4096, "metric": "GFLOPS",
     "columns": ["TS", "WPT", "median"], "rows": [[32, 8, 20830], [32, 4, 17830]]}

`rows` finds rows, `append` adds some.
"""

from __future__ import annotations

import json
import platform
import statistics
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from itertools import chain
from math import inf, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from .. import files, model
from ..caches import cached
from ..ladder import Key, sources
from ..opencl import cl
from ..opencl.devices import Device
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
        results: by what sets each apart from the others, such as "WPT 4".
    """
    if not results:
        return "nothing was measured here"
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
    _, low, high = _rates(result, result.kernel_ms)
    return low, high


def _rates(result: Result, times: tuple[float, float, float]) -> tuple[float, float, float]:
    """GFLOPS in the median, of the slowest and of the fastest run, of milliseconds."""
    median, least, most = times
    rates = (model.gflops(result.m, result.n, result.k, ms * 1e-3) for ms in (median, most, least))
    return tuple(rates)  # type: ignore[return-value]


class Row(NamedTuple):
    """One recorded figure.

    Attributes:
        record: the name of the file, without its suffix.
        device, driver, date: where and when; `head` has more, such as title and command.
        metric: what was measured, such as "GFLOPS", "s", or "relative error".
        median, low, high: of `runs` runs; nan and 0 where unknown.
        values: of all runs, if they were recorded. The rounds of contenders are paired by position.
        kernel: a key of the catalog, or the name of a library, or "".
        params: of the kernel; those that are missing had their defaults.
        m, n, k: sizes of the product, if there was one.
        series: the rows of a record that belong together, such as "ladder".
        variant: what sets rows of the same kernel apart, such as a change of its text.
        precision: "float32", "tf32x3", "complex64" etc.
        registers, spilled: per work-item, and bytes that did not fit, where the compiler says so.
        code: the fingerprint of the kernel's code (see `landscape.fingerprint`).
        note: in words; of a "refused" setting and a "reason", which have no figure, all there is.
        head: what all rows of the session share.
    """

    record: str
    metric: str
    head: Mapping[str, Any]
    device: str
    driver: str = ""
    date: str = ""
    median: float = nan
    low: float = nan
    high: float = nan
    runs: int = 0
    values: Sequence[float] = ()
    kernel: Key = ""
    params: Mapping[str, int] = {}
    m: int = 0
    n: int = 0
    k: int = 0
    series: str = ""
    variant: str = ""
    precision: str = "float32"
    registers: int | None = None
    spilled: int | None = None
    code: str = ""
    note: str = ""

    @property
    def title(self) -> str:
        """A name of the device for readers."""
        return self.head.get("title", self.device)

    @property
    def size(self) -> int:
        """M = N = K; 0 if they differ."""
        return self.m if self.m == self.n == self.k else 0

    @property
    def gflops(self) -> float:
        """The median; ValueError if it is not a rate of multiply-adds."""
        if self.metric != "GFLOPS":
            raise ValueError(f"{self.metric} of {self.record} is not a rate in GFLOPS")
        return self.median

    def __str__(self) -> str:
        spread = f"{self.low:,.0f} to {self.high:,.0f}"
        return f"{self.variant}: {self.median:,.0f} {self.metric} ({spread})"


#: The types of a row's fields; parameters are whole numbers.
_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("median", "low", "high"), (int, float)),
    **dict.fromkeys(("runs", "m", "n", "k", "registers", "spilled"), (int,)),
    **dict.fromkeys(("metric", "device", "driver", "date", "series", "variant"), (str,)),
    **dict.fromkeys(("precision", "code", "note"), (str,)),
    "kernel": (int, str),
}
_FIGURES = {"median", "low", "high", "runs", "values", "registers", "spilled", "note"}
#: JSON files in ``results/`` that have no rows: what `generate.candidates` reads, and is fitted to.
_CHOICE = ("choice", "candidates")


#: What the rows of a table share, its session's fields included, and the session's other entries.
_Table = tuple[dict[str, Any], dict[str, Any]]


@cached(256)
def rows(**where: Any) -> tuple[Row, ...]:
    """The recorded rows with these values of their attributes and properties, in the order of the
    files' names: ``rows(record="nvidia_h200", kernel=6, size=4096, metric="GFLOPS")``. A file that
    contains anything else causes a warning.
    """
    paths = [path for path in _paths() if path.stem == where.get("record", path.stem)]
    found = (
        row
        for path in paths
        for table, head in _tables(path)
        if all(table.get(name, value) == value for name, value in where.items())
        for row in _rows(path.stem, table, head)
    )
    return tuple(
        row for row in found if all(getattr(row, name) == value for name, value in where.items())
    )


def variants(**where: Any) -> dict[str, Row]:
    """The `rows` by their variants; the first row of each counts."""
    first: dict[str, Row] = {}
    for row in rows(**where):
        first.setdefault(row.variant, row)
    return first


def _paths() -> list[Path]:
    """The files of records: those of the project, and landscapes in the user's own folder."""
    paths = sorted(sources.folder("results").glob("*.json"))
    with suppress(OSError):  # a user without a home
        paths += sorted(sources.own_folder().glob("landscape_*.json"))
    return [path for path in dict.fromkeys(paths) if not path.stem.endswith(_CHOICE)]


@cached(64)
def _tables(path: Path) -> list[_Table]:
    try:
        return _parse(path)
    except (OSError, ValueError) as error:  # explorers work without it
        warnings.warn(f"{path} is not a record: {error}", stacklevel=4)
        return []


def read(path: Path) -> list[Row]:
    """The rows of one file. Raises ValueError if it contains anything else."""
    return [row for table, head in _parse(path) for row in _rows(path.stem, table, head)]


def _parse(path: Path) -> list[_Table]:
    """The tables of a file. Raises ValueError if it contains anything else."""
    tables = []
    try:
        for head in files.load_json(path, list):
            shared = {"device": head["device"]}
            shared |= {name: head[name] for name in ("driver", "date") if name in head}
            for table in head.pop("tables"):
                _check({**shared, **table})
                tables.append(({**shared, **table}, head))
    except (TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{type(error).__name__}: {error}") from None
    return tables


def _rows(record: str, table: Mapping[str, Any], head: Mapping[str, Any]) -> Iterator[Row]:
    names = [name for name in (*table, *table["columns"]) if name.isupper()]
    for fields in _unpack(table):
        params = {name: fields.pop(name) for name in names}
        if values := fields.get("values"):
            fields |= {"median": statistics.median(values), "runs": len(values)}
            fields |= {"low": min(values), "high": max(values)}
        yield Row(record, head=head, params=params, **fields)


def _unpack(table: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The rows of a table, each with its own and the shared fields."""
    shared = {name: value for name, value in table.items() if name not in ("columns", "rows")}
    for values in table["rows"]:
        yield {**shared, **dict(zip(table["columns"], values, strict=True))}


def _check(table: Mapping[str, Any]) -> None:
    """Raise ValueError for a field of another type: somebody else's file may contain HTML."""
    shared = {name: [value] for name, value in table.items() if name not in ("columns", "rows")}
    own = dict(zip(table["columns"], zip(*table["rows"], strict=True), strict=True))
    if "metric" not in {**shared, **own}:
        raise ValueError("a row has no metric")
    for name, column in {**shared, **own}.items():
        for value in column:
            if not _fits(name, value):
                raise ValueError(f"{name}={value!r:.60} is not a field of a row")


def _fits(name: str, value: Any) -> bool:
    """Whether a field has its type, and a number is finite and not negative."""
    if name == "values":
        return isinstance(value, list) and all(_fits("median", x) for x in value)
    types = (int,) if name.isupper() else _TYPES.get(name, ())
    return type(value) in types and (type(value) is str or 0 <= value < inf)


def _pack(rows: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A table for all rows with the same fields and, if it has parameters, the same kernel."""
    alike: dict[object, list[Mapping[str, Any]]] = {}
    for row in rows:
        kernel = row["kernel"] if any(map(str.isupper, row)) else None
        alike.setdefault((frozenset(row), kernel), []).append(row)
    tables = []
    for some in alike.values():
        first = some[0]
        columns = [
            name
            for name in first
            if name in ("median", "values") or any(row[name] != first[name] for row in some)
        ]
        shared = {name: value for name, value in first.items() if name not in columns}
        values = [[row[name] for name in columns] for row in some]
        tables.append({**shared, "columns": columns, "rows": values})
    return tables


def append(path: str | Path, head: Mapping[str, Any], new: Iterable[Mapping[str, Any]]) -> None:
    """Add rows to a file, in one step; other processes wait meanwhile.

    They continue the file's last session if it has this head, and are a new one otherwise. A row
    replaces the one of that session from which it differs in figures only.

    Args:
        path: the file.
        head: what all rows share (see `session`).
        new: the fields of each row, which are those of `Row`; parameters are fields, too.

    Raises:
        ValueError: for a row with another field, or a value of another type; for a file that
            contains anything else.
        OSError: for a file that cannot be written.
    """
    with files.locked(path):
        sessions = files.load_json(path, list)
        last = sessions[-1] if sessions else {}
        if {name: value for name, value in last.items() if name != "tables"} == head:
            new = [*chain.from_iterable(map(_unpack, sessions.pop()["tables"])), *new]
        latest = {
            frozenset((name, value) for name, value in row.items() if name not in _FIGURES): row
            for row in new
        }
        tables = _pack(latest.values())
        for table in tables:
            _check(table)
        write(path, [*sessions, {**head, "tables": tables}])
    _tables.cache_clear()
    rows.cache_clear()


def session(device: Device, command: str, title: str | None = None) -> dict[str, Any]:
    """What the rows of a session share: title, device, driver, date, command, versions."""
    return {"title": title or device.name, **device.facts(), **origin(command)}


def origin(command: str) -> dict[str, Any]:
    """Today's date, the command, and the versions of what runs it."""
    versions = {"gemmlab": __version__, "pyopencl": cl.VERSION_TEXT, "numpy": np.__version__}
    versions["python"] = platform.python_version()
    return {"date": date.today().isoformat(), "command": command, "versions": versions}


def entries(result: Result, series: str) -> list[dict[str, Any]]:
    """The rows of a result: rates, passes, errors, and the time of compilation."""
    sizes = {"m": result.m, "n": result.n, "k": result.k}
    shared = {"series": series, "kernel": result.kernel, **result.params, **sizes}

    def rates(times: tuple[float, float, float]) -> dict[str, float]:
        values = dict(zip(("median", "low", "high"), _rates(result, times), strict=True))
        return {**values, "runs": result.repeats}

    found = [{"metric": "GFLOPS", **rates(result.kernel_ms), "note": result.path}]
    if len(result.passes_ms) > 1:
        found.append({"metric": "pipeline GFLOPS", **rates(result.pipeline_ms)})
        for name, ms in result.passes_ms.items():
            found.append({"metric": "ms", "variant": name, "median": ms})
    facts = {"error": result.error, "error bound": result.bound, "compile s": result.build_seconds}
    found += [{"metric": metric, "median": value} for metric, value in facts.items()]
    return [{**shared, **row} for row in found]


def write(path: str | Path, data: Any) -> None:
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
        lines = [
            inner
            + (_json(row, inner) if _is_table(row) else json.dumps(row, separators=(",", ":")))
            for row in value
        ]
        return "[\n" + ",\n".join(lines) + f"\n{margin}]"
    return json.dumps(value)


def _is_table(value: Any) -> bool:
    """Whether a value is a table, or a session."""
    return isinstance(value, dict) and ("tables" in value or "columns" in value)
