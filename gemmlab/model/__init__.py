"""Performance on paper: operations and bytes, roofline, ceilings, banks, occupancy.

No device is needed: a chip is a few numbers (`K40M`, `H200`). What a kernel needs is counted by
running its text (`costs`); `ceilings` and `explain` compare both.
"""

from .banks import stride_turns, turns
from .ceilings import Ceiling, ceilings, percent
from .chip import (
    H200,
    K40M,
    Chip,
    occupancy,
    occupancy_shares,
)
from .costs import Costs, costs
from .explain import Explanation, explain
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
    "Explanation",
    "H200",
    "K40M",
    "Peaks",
    "ceilings",
    "costs",
    "explain",
    "flops",
    "gflops",
    "intensity",
    "least_bytes",
    "loads",
    "occupancy",
    "occupancy_shares",
    "percent",
    "requested_bytes",
    "ridge",
    "roofline",
    "stride_turns",
    "tile_intensity",
    "turns",
]
