"""Ceiling, measured rate, gap: why a kernel is as fast as it is, in words, and what is unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..ladder import Key
from .ceilings import Ceiling, ceilings, named, percent
from .chip import H200, K40M, Chip

#: What explains gaps of more than a quarter of the ceiling: by chip, the kernels and a sentence.
REASONS: dict[str, tuple[tuple[tuple[int, ...], str], ...]] = {
    H200.name: (
        (
            (4,),
            "The chip's counters show 1.4 turns of local memory per multiply-add, more than this "
            "model counts, and its path 99 % busy: local memory is the limit, at 18 % of the peak.",
        ),
        (
            (11,),
            "The chip's counters show that the L1 cache answers four accesses of five, and that "
            "three of four resident warps wait for the others.",
        ),
    ),
    K40M.name: (
        (
            (1,),
            "Without any help from caches, global memory would allow a little less than what was "
            "measured, so most accesses probably go there; what this chip's L2 cache delivers, its "
            "documents do not say.",
        ),
        (
            (6, 7, 8, 9, 10),
            "On a sister chip (GK104) the schedulers are a limit, too: Lai and Seznec (CGO 2013) "
            "put the bound on such kernels at 58 %, and reached 45 % in assembly. But the vendor's "
            "library reaches 61 % on this chip; what the rest of the gap is made of is unknown.",
        ),
    ),
}


@dataclass(frozen=True)
class Explanation:
    """A measured rate and the ceilings of its kernel."""

    kernel: Key
    params: Mapping[str, int] | None
    chip: Chip
    measured: float  # in GFLOPS
    ceilings: tuple[Ceiling, ...]  # the lowest first
    fewest: bool  # they count merged loads, because the rate is above those of the text as it is

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
            reasons = REASONS.get(self.chip.name, ())
            sentences += [sentence for kernels, sentence in reasons if self.kernel in kernels]
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
    **options: Any,
) -> Explanation:
    """Compare a measured rate, in GFLOPS, with the ceilings of its kernel; arguments are those of
    `ceilings`.

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
    return Explanation(kernel, params, chip, measured, tuple(allowed), fewest)
