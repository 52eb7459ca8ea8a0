"""Findings as a compiler writes them, as JSON, and as SARIF."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote

from .version import __version__

if TYPE_CHECKING:
    from .api import Run
    from .text import TextError

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
Level = Literal["error", "warning", "note"]


@dataclass(frozen=True)
class Result:
    """A line of a report: a finding, a limit that ended the run ("warning"), or a note.

    `line` and `column` count from 1; they are 0 where it is about no line.
    """

    level: Level
    kind: str
    message: str
    line: int
    column: int
    macro: str


def of_run(run: Run) -> list[Result]:
    """Return the results of a run."""
    levels: list[tuple[Level, Any]] = [("error", finding) for finding in run.findings]
    levels += [("warning", run.unfinished)] if run.unfinished else []
    levels += [("note", note) for note in run.notes]
    return [Result(level, f.kind, f.message, f.line, f.column, f.macro) for level, f in levels]


def of_error(error: TextError) -> list[Result]:
    """Return the mistake of a text as the one result."""
    kind = error.kind if error.known else "unsupported"
    return [Result("error", kind, error.message, error.line, error.column, error.spot.macro)]


def lines(results: list[Result], path: Path, text: str) -> list[str]:
    """Return a message for each result, as compilers write them, with its line of the text."""
    source, written = text.split("\n"), []
    for result in results:
        where = f"{path}:{result.line}:{result.column}" if result.line else str(path)
        kind = result.kind if result.level == "error" else f"{result.level}: {result.kind}"
        macro = f" (in the macro {result.macro})" if result.macro else ""
        written.append(f"{where}: {kind}: {result.message}{macro}")
        if 0 < result.line <= len(source):
            line = source[result.line - 1].expandtabs(1)
            written += [f"    {line}", f"    {' ' * (result.column - 1)}^"]
    return written


def as_json(results: list[Result], path: Path, run: Run | None) -> dict[str, Any]:
    """Return results, and what a run has cost, for `json.dumps`."""
    found: dict[str, Any] = {"file": str(path), "results": [asdict(result) for result in results]}
    if run:
        found["counts"] = asdict(run.counts)
        found["lines"] = {line: asdict(counts) for line, counts in run.lines.items()}
    return found


def as_sarif(results: list[Result], path: Path) -> dict[str, Any]:
    """Return a log in the Static Analysis Results Interchange Format 2.1.0 (OASIS)."""
    uri = path.as_uri() if path.is_absolute() else quote(path.as_posix())
    kinds = list(dict.fromkeys(result.kind for result in results))

    def entry(result: Result) -> dict[str, Any]:
        region = {"startLine": max(1, result.line), "startColumn": max(1, result.column)}
        place = {"artifactLocation": {"uri": uri}, "region": region}
        return {
            "ruleId": _rule(result.kind),
            "ruleIndex": kinds.index(result.kind),
            "level": result.level,
            "message": {"text": result.message},
            "locations": [{"physicalLocation": place}],
        }

    rules = [{"id": _rule(k), "shortDescription": {"text": k.capitalize()}} for k in kinds]
    run = {
        "tool": {"driver": {"name": "clscope", "version": __version__, "rules": rules}},
        "columnKind": "unicodeCodePoints",
        "results": [entry(result) for result in results],
    }
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(kind: str) -> str:
    return kind.replace(" ", "-")
