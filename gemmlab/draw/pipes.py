"""A product as a flow of floats: from DRAM through the caches and registers to the multiply-adders.

Each pipe shows what the kernel demands per multiply-add, and how much of that the chip can deliver
at its peak rate. The fill is how busy the pipe is at the kernel's rate. The pipe with the least
room is the lowest of these ceilings.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..model import percent
from ..model.ceilings import Ceiling
from ..model.chip import Chip

BOXES = (
    ("DRAM", ""),
    ("L2", "cache"),
    ("L1 / local", "memory"),
    ("registers", ""),
    ("multiply-", "adders"),
)
SIZE = 4096  # M = N = K of the records


@dataclass(frozen=True)
class Pipe:
    """One step towards the multiply-adders.

    Attributes:
        need: floats, turns of the L1 cache or local memory, or instructions per multiply-add.
        width: as many as the chip delivers in the time of a multiply-add.
        unit: "floats", "turns" or "instr.".
    """

    need: float
    width: float
    unit: str = "floats"

    def busy(self, share: float) -> float:
        """How full the pipe is at this share of the peak, at most 1."""
        return min(1.0, share * self.need / self.width)


@dataclass(frozen=True)
class Flow:
    """A kernel's four pipes at a `share` of the chip's peak."""

    title: str
    pipes: tuple[Pipe, ...]
    share: float

    @property
    def tight(self) -> int:
        """The number of the pipe with the least room."""
        return max(range(len(self.pipes)), key=lambda i: self.pipes[i].need / self.pipes[i].width)

    @property
    def allowed(self) -> str:
        """The share of the peak that this pipe allows, in per cent."""
        pipe = self.pipes[self.tight]
        return percent(min(1.0, pipe.width / pipe.need))

    @property
    def demands(self) -> str:
        """What each pipe has to deliver, in words."""
        steps = "; ".join(
            f"{''.join(BOXES[i][0])} delivers {short(p.need)} {p.unit} per multiply-add, where the "
            f"chip has room for {short(p.width)}"
            for i, p in enumerate(self.pipes)
        )
        return (
            f"{self.title}: {steps}. The tightest pipe begins at {BOXES[self.tight][0]} and allows "
            f"{self.allowed} of the peak"
        )

    def __str__(self) -> str:
        return f"{self.demands}; measured {percent(self.share)}."


def flow(ceilings: Sequence[Ceiling], chip: Chip, share: float, title: str = "") -> Flow:
    """Return the pipes of a product at M = N = K = 4096 with these ceilings, at a share of the
    peak.
    """
    needs = {ceiling.resource: ceiling.inputs for ceiling in ceilings}
    terms = SIZE**3
    per_cycle = chip.units * chip.lanes  # multiply-adds of the whole chip
    turns = needs.get("local memory") or needs["L1 cache"]
    # lanes without a work-item, and padding, take turns and instructions as well
    useful = next((c.share for c in ceilings if c.resource == "multiply-adds"), 1.0)
    pipes = (
        Pipe(needs["global memory"]["least bytes"] / 4 / terms,
             chip.bandwidth / chip.ghz / 4 / per_cycle),
        Pipe(needs["L2 cache"]["least bytes"] / 4 / terms, chip.l2_bytes / 4 / per_cycle),
        Pipe(turns["turns"] / useful, turns["turns that the chip has"], "turns"),
        Pipe((1 + needs["instruction issue"]["loads and stores per multiply-add"]) / useful,
             chip.issued / (chip.lanes / chip.warp), "instr."),
    )  # fmt: skip
    return Flow(title, pipes, share)


def short(value: float) -> str:
    """One to three digits without an exponent: "1.25", "0.036", "0.0007"."""
    if not value:
        return "0"
    more = 2 if value >= 0.1 else 1 if value >= 0.001 else 0
    digits = max(0, more - math.floor(math.log10(value)))
    shown = f"{value:.{digits}f}"
    return shown.rstrip("0").rstrip(".") if "." in shown else shown
