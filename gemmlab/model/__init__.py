"""Performance on paper: operations and bytes, roofline, banks, occupancy, time lines, divergence, number formats.

No device is needed: a chip is a few numbers (`K40M`, `H200`), which can also be measured (`gemmlab.peaks`).
"""

from .banks import stride_turns, turns
from .chip import H200, K40M, Multiprocessor, multiprocessor, occupancy, shares
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
    "H200",
    "K40M",
    "Multiprocessor",
    "Peaks",
    "Span",
    "flops",
    "gflops",
    "idle",
    "intensity",
    "least_bytes",
    "loads",
    "multiprocessor",
    "occupancy",
    "ordered",
    "pieces",
    "requested_bytes",
    "ridge",
    "roofline",
    "shares",
    "shifts",
    "stride_turns",
    "tile_intensity",
    "timeline",
    "turns",
]
