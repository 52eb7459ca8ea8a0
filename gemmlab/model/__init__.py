"""Performance on paper: operations and bytes, roofline, ceilings, banks, occupancy, time lines, divergence, formats.

No device is needed: a chip is a few numbers (`K40M`, `H100`, `H200`), which can also be measured (`gemmlab.peaks`,
`measured`). What a kernel asks of it is counted by running its text (`costs`); `ceilings` and `explain` compare both.
"""

from .banks import stride_turns, turns
from .ceilings import Ceiling, ceilings, percent
from .chip import H100, H200, K40M, Chip, Multiprocessor, measured, multiprocessor, occupancy, occupancy_shares
from .costs import Costs, costs
from .criteria import Criterion, criteria, operations_needed, smallest_partner
from .explain import Explanation, explain
from .schedule import Span, idle, ordered, pieces, shifts, timeline
from .traffic import (
    Peaks,
    flops,
    gflops,
    intensity,
    least_bytes,
    loads,
    requested_bytes,
    ridge,
    roofline,
    tile_intensity,
)

__all__ = [
    "Ceiling",
    "Chip",
    "Costs",
    "Criterion",
    "Explanation",
    "H100",
    "H200",
    "K40M",
    "Multiprocessor",
    "Peaks",
    "Span",
    "ceilings",
    "costs",
    "criteria",
    "explain",
    "flops",
    "gflops",
    "idle",
    "intensity",
    "least_bytes",
    "loads",
    "measured",
    "multiprocessor",
    "occupancy",
    "occupancy_shares",
    "operations_needed",
    "ordered",
    "percent",
    "pieces",
    "requested_bytes",
    "ridge",
    "roofline",
    "shifts",
    "smallest_partner",
    "stride_turns",
    "tile_intensity",
    "timeline",
    "turns",
]
