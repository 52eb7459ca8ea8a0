"""Ceiling, measured rate, gap: why a kernel is as fast as it is, in words, and what is not known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..catalog import Key
from .ceilings import Ceiling, ceilings, named, percent
from .chip import H200, K40M, Chip

#: What is known of gaps of more than a quarter of the ceiling: by chip, the kernels, and what was found.
KNOWN: dict[str, tuple[tuple[tuple[int, ...], str], ...]] = {
    H200.name: (
        (
            (4,),
            "The machine code keeps the vectors of the text, so it asks for no more than is counted; why the rate "
            "stays below is unknown.",
        ),
        (
            (11,),
            "If every access of a warp went to the L2 cache, that would allow 40 %. How many of them the L1 cache "
            "answers is unknown.",
        ),
    ),
    K40M.name: (
        (
            (1,),
            "Without any help from caches, global memory would allow a little less than what was measured, so most "
            "accesses probably go there; what this chip's L2 cache delivers, its documents do not say.",
        ),
        (
            (6, 7, 8, 9, 10),
            "On a sister chip (GK104) the schedulers are a limit, too: Lai and Seznec (CGO 2013) put the bound on "
            "such kernels at 58 %, and reached 45 % in assembly. But the vendor's library reaches 61 % on this chip; "
            "what the rest of the gap is made of is unknown.",
        ),
    ),
}


@dataclass(frozen=True)
class Explanation:
    """A measured rate beside the ceilings of its kernel.

    Attributes:
        kernel, params, chip: what ran, and on what.
        measured: in GFLOPS.
        ceilings: the lowest first.
        fewest: whether they count merged loads (see `costs`), because the rate is above those of the text as it is.
    """

    kernel: Key
    params: Mapping[str, int] | None
    chip: Chip
    measured: float
    ceilings: tuple[Ceiling, ...]
    fewest: bool

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
        """What is missing to the lowest ceiling, as a share of that ceiling; negative if the rate is above it."""
        return 1 - self.share / self.roof.share

    @property
    def why(self) -> list[str]:
        """What is known of the gap, or that it is unknown, in sentences; none if there is little to explain."""
        if self.gap < -0.005:
            return ["A rate above its ceiling: the rate, or a number of the chip, is wrong."]
        found = ["The compiler must have merged neighbouring loads."] if self.fewest else []
        near = [c.resource for c in self.ceilings[1:] if c.share < min(0.95, 1.25 * self.roof.share)]
        if near and self.gap > 0.25:  # where one resource decides, records lie closer to its ceiling than that
            found.append(f"{' and '.join([self.roof.resource, *near])} are in demand at the same time; what a chip "
                         "reaches then, a bound on each of them does not say.")  # fmt: skip
        if self.gap > 0.25:
            found += [words for kernels, words in KNOWN.get(self.chip.name, ()) if self.kernel in kernels]
        if self.gap > 0.5 and not found:
            found.append("Why it stays so far below is unknown.")
        return [sentence[0].upper() + sentence[1:] for sentence in found]

    def __str__(self) -> str:
        merged = ", neighbouring loads merged," if self.fewest else ""
        allow = "allow" if self.roof.resource in ("multiply-adds", "work-groups") else "allows"
        roof = f"{named(self.roof.resource)}{merged} {allow} {percent(self.roof.share)}"
        words = f"{roof}, measured {percent(self.share)}"
        return " ".join([f"Kernel {self.kernel} on {self.chip.name}: {words} of the peak.", *self.why])


def explain(
    kernel: Key,
    params: Mapping[str, int] | None = None,
    chip: Chip = H200,
    measured: float = 0.0,
    m: int = 4096,
    n: int | None = None,
    k: int | None = None,
    **options,
) -> Explanation:
    """Put a measured rate beside the ceilings of its kernel, and say in words how far it is from the lowest, and why.

    A rate above a ceiling of local memory shows that the compiled code is not the text: its compiler has merged loads
    of neighbouring floats. The ceilings are then those for the fewest accesses that the text needs.

    Args:
        kernel, params, chip, m, n, k: as in `ceilings`; so are the options `registers` and `source`.
        measured: the rate, in GFLOPS.

    Raises:
        ValueError: if measured is not above 0, and where `ceilings` raises it.
    """
    if not measured > 0:
        raise ValueError(f"measured must be a rate in GFLOPS above 0, not {measured!r}")
    found = ceilings(kernel, params, chip, m, n, k, **options)
    fewest = measured > found[0].share * chip.gflops
    if fewest:
        found = ceilings(kernel, params, chip, m, n, k, fewest=True, **options)
    return Explanation(kernel, params, chip, measured, tuple(found), fewest)
