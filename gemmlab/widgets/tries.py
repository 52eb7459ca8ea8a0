"""What the reader has tried with an explorer, kept for the next day in a file of the reader's."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from csv import DictWriter
from dataclasses import asdict, dataclass
from hashlib import sha256
from io import StringIO
from math import log
from pathlib import Path
from typing import Any

from .. import files
from ..ladder import sources
from ..measurement.comparison import Interval

#: Tries that are kept of each explorer, and those that are shown.
KEPT, SHOWN = 60, 24
#: Lines below the mark of a try.
LINES = 2


@dataclass(frozen=True)
class Try:
    """Parameters and sizes, the GFLOPS, whether it was right, why nothing was timed, and the code
    of a cell.
    """

    settings: dict[str, int]
    rate: Interval | None
    right: bool
    problem: str = ""
    code: str = ""

    def describe(self, before: Try | None = None) -> str:
        """Return settings, outcome, and the change since the try before: "TS 32, WPT 4,
        M = N = K = 64: wrong; WPT 8 → 4".
        """
        params = [f"{n} {value}" for n, value in self.settings.items() if n not in {*"MNK"}]
        changed = moved(before.settings, self.settings) if before else ""
        about = f"{', '.join([*params, sizes(self.settings)])}: {self.outcome}"
        return f"{about}; {changed}" if changed else about

    def labels(self, before: Try | None = None) -> list[str]:
        """Return the lines below its mark, what is new since the try before: ["WPT 4"]."""
        new = changes(before.settings if before else {}, self.settings)
        is_edited = before is not None and before.code != self.code
        return [*["code"] * is_edited, *(f"{name} {value}" for name, value in new.items())][:LINES]

    @property
    def record(self) -> dict[str, Any]:
        """The try as a row of a table: the settings, and GFLOPS where it was right."""
        low, median, high = self.rate if self.rate and self.right else (None, None, None)
        return {
            **self.settings,
            "gflops": median,
            "low": low,
            "high": high,
            "right": self.right,
            "problem": self.problem,
        }

    def same_product(self, other: Try) -> bool:
        """Whether M, N and K are the same."""
        return all(self.settings[size] == other.settings[size] for size in "MNK")

    @property
    def outcome(self) -> str:
        if self.rate is None:
            return self.problem
        return f"{between(*self.rate[::2])} GFLOPS" if self.right else "wrong"


def changes(before: Mapping[str, int], now: Mapping[str, int]) -> dict[str, int]:
    """What differs from earlier settings; N and K are left out where they follow M."""
    changed = {name: value for name, value in now.items() if value != before.get(name)}
    if {*"MNK"} <= {*changed} and len({changed[size] for size in "MNK"}) == 1:
        del changed["N"], changed["K"]
    return changed


def moved(before: Mapping[str, int], now: Mapping[str, int]) -> str:
    """What differs between two settings: "TS 32 → 16, WPT 8 → 4"."""
    return ", ".join(f"{name} {before[name]} → {v}" for name, v in changes(before, now).items())


def sizes(values: Mapping[str, int]) -> str:
    """ "M = N = K = 256", in which no line ends, or "M = 100, N = 64, K = 64"."""
    own = {size: values[size] for size in "MNK"}
    if len({*own.values()}) == 1:
        return f"M = N = K = {own['M']:,}".replace(" ", "\u00a0")
    return ", ".join(f"{size}\u00a0=\u00a0{value:,}" for size, value in own.items())


def place(rate: float, low: float, high: float) -> float:
    """Where a rate is on a logarithmic scale, from 0 at `low` to 1 at `high`."""
    return min(1.0, max(0.0, log(rate / low) / log(high / low)))


def digits(value: float) -> str:
    """Three digits, never with an exponent: "0.852", "7.62", "1,234"."""
    if value >= 100:
        return f"{value:,.0f}"
    if value >= 10:
        return f"{value:.1f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3f}" if value >= 0.01 else f"{value:.2g}"


def between(low: float, high: float) -> str:
    """An interval: "7.62–8.10"; one number where both read the same."""
    first, last = digits(low), digits(high)
    return first if first == last else f"{first}–{last}"


def csv(tries: Sequence[Try]) -> str:
    """Return the tries as comma-separated values, with a line of names."""
    rows = [tried.record for tried in tries]
    text = StringIO(newline="")
    writer = DictWriter(text, list(rows[0]) if rows else [])
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def best(tries: Sequence[Try]) -> Try | None:
    """The right try with the highest median, which is what the map shows."""
    right = [one for one in tries if one.right and one.rate]
    return max(right, key=lambda one: one.rate[1] if one.rate else 0.0, default=None)


def before(tries: Sequence[Try]) -> Try | None:
    """Return the last right try before the newest, of the same product in another way."""
    newest = tries[-1]
    for tried in reversed(tries[:-1]):
        other = (tried.settings, tried.code) != (newest.settings, newest.code)
        if other and tried.right and tried.rate and tried.same_product(newest):
            return tried
    return None


def _file(name: str) -> Path:
    """Return a file for each explorer, since their codes take hundreds of kilobytes."""
    return sources.own_folder() / "tries" / f"{sha256(name.encode()).hexdigest()[:16]}.json"


def load(name: str) -> list[Try]:
    """The tries of an explorer on earlier days; none if the file is missing or unreadable."""
    with suppress(OSError, ValueError, TypeError, KeyError, IndexError):
        stored = files.load_json(_file(name), dict)
        codes = stored["codes"]
        return [
            Try(
                {**row["settings"]},
                row["rate"] and (*row["rate"],),
                row["right"],
                row["problem"],
                codes[row["code"]],
            )
            for row in stored["tries"]
        ]
    return []


def save(name: str, tries: Sequence[Try]) -> None:
    """Keep the last tries, each code once; where nothing can be written, nothing is kept."""
    kept = tries[-KEPT:]
    codes = list(dict.fromkeys(tried.code for tried in kept))
    rows = [{**asdict(tried), "code": codes.index(tried.code)} for tried in kept]
    with suppress(OSError):
        _file(name).parent.mkdir(parents=True, exist_ok=True)
        files.replace(_file(name), json.dumps({"name": name, "codes": codes, "tries": rows}))
