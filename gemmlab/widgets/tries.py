"""What the reader has tried with an explorer, kept for the next day in a file of the reader's."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from .. import files
from ..ladder import sources
from ..measurement.comparison import Interval

#: Tries that are kept of each explorer, and those that are shown.
KEPT, SHOWN = 60, 24


@dataclass(frozen=True)
class Try:
    """Parameters and sizes, the GFLOPS, whether it was right, and why nothing was timed."""

    settings: dict[str, int]
    rate: Interval | None
    right: bool
    problem: str = ""

    def __str__(self) -> str:
        settings = ", ".join(f"{name} {value}" for name, value in self.settings.items())
        return f"{settings}: {self.outcome}"

    @property
    def outcome(self) -> str:
        if self.rate is None:
            return self.problem
        return f"{between(*self.rate[::2])} GFLOPS" if self.right else "wrong"


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


def best(tries: list[Try]) -> Try | None:
    """The right try with the highest median, which is what the map shows."""
    right = [one for one in tries if one.right and one.rate]
    return max(right, key=lambda one: one.rate[1] if one.rate else 0.0, default=None)


def _file() -> Path:
    return sources.own_folder() / "explorers.json"


def load(name: str) -> list[Try]:
    """The tries of an explorer on earlier days; none if the file is missing or unreadable."""
    with suppress(OSError, ValueError, TypeError, KeyError):
        found = files.load_json(_file(), dict)[name]
        return [
            Try(**one | {"settings": {**one["settings"]}, "rate": one["rate"] and (*one["rate"],)})
            for one in found
        ]
    return []


def save(name: str, tries: list[Try]) -> None:
    """Keep the last tries; where nothing can be written, nothing is kept."""
    mine = {name: [asdict(one) for one in tries[-KEPT:]]}
    with suppress(OSError):
        files.change_json(_file(), dict, lambda every: {**every, **mine})
