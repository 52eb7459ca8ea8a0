"""Ceiling, measured rate, gap: why a kernel is as fast as it is, in words, and what is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..ladder import Key
from .ceilings import Ceiling, ceilings, named, percent
from .chip import H200, Chip


@dataclass(frozen=True)
class Explanation:
    """A measured rate and the ceilings of its kernel."""

    kernel: Key
    params: Mapping[str, int] | None
    chip: Chip
    measured: float  # in GFLOPS
    ceilings: tuple[Ceiling, ...]  # the lowest first
    fewest: bool  # they count merged loads, because the rate is above those of the text as it is
    reasons: tuple[str, ...] = ()  # what explains a gap of more than a quarter of the ceiling

    @property
    def roof(self) -> Ceiling:
        """The lowest ceiling."""
        return self.ceilings[0]

    @property
    def share(self) -> float:
        """The measured rate as a share of the chip's arithmetic peak."""
        return self.measured / self.chip.gflops

    @property
    def gap(self) -> float:
        """What is missing to the lowest ceiling, as a share of it; negative above it."""
        return 1 - self.share / self.roof.share

    @property
    def why(self) -> list[str]:
        """What explains the gap, in sentences; none if there is little to explain."""
        if self.gap < -0.005:
            return ["A rate above its ceiling: the rate, or a number of the chip, is wrong."]
        sentences = ["The compiler must have merged neighbouring loads."] if self.fewest else []
        if self.gap > 0.25:  # where one resource decides, recorded rates are closer to its ceiling
            limit = min(0.95, 1.25 * self.roof.share)
            close = [c.resource for c in self.ceilings[1:] if c.share < limit]
            if close:
                words = " and ".join([self.roof.resource, *close])
                sentences.append(
                    f"{words[0].upper()}{words[1:]} each allow less than {limit:.0%}; a bound on "
                    "each does not tell what is reachable when they compete."
                )
            sentences += self.reasons
        if self.gap > 0.5 and not sentences:
            sentences.append("Why it stays so far below is unknown.")
        return sentences

    def __str__(self) -> str:
        merged = ", neighbouring loads merged," if self.fewest else ""
        verb = "allow" if self.roof.resource in ("multiply-adds", "work-groups") else "allows"
        roof = f"{named(self.roof.resource)}{merged} {verb} {percent(self.roof.share)}"
        words = f"{roof}, measured {percent(self.share)} of the peak."
        return " ".join([f"Kernel {self.kernel} on {self.chip.name}: {words}", *self.why])


def explain(
    kernel: Key,
    params: Mapping[str, int] | None = None,
    chip: Chip = H200,
    measured: float = 0.0,
    size: int | tuple[int, int, int] = 4096,
    *,
    reasons: tuple[str, ...] = (),
    **options: Any,
) -> Explanation:
    """Compare a measured rate, in GFLOPS, with the ceilings of its kernel; arguments are those of
    `ceilings`. The `reasons` explain a large gap.

    A rate above a ceiling of local memory shows that the compiler has merged loads of neighbouring
    floats. The ceilings are then those for the fewest accesses that the text needs. Raises
    ValueError for a rate that is not above 0, and where `ceilings` does.
    """
    if not measured > 0:
        raise ValueError(f"measured must be a rate in GFLOPS above 0, not {measured!r}")
    allowed = ceilings(kernel, params, chip, size, **options)
    fewest = measured > allowed[0].share * chip.gflops
    if fewest:
        allowed = ceilings(kernel, params, chip, size, fewest=True, **options)
    return Explanation(kernel, params, chip, measured, tuple(allowed), fewest, reasons)
