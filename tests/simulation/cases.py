"""Kernels with settings small enough to simulate in a moment, and edits of their texts."""

from __future__ import annotations

import re

import texts
from microscope.harness import line_of

from gemmlab import catalog
from gemmlab.ladder.sources import read

__all__ = ["SMALL", "THIN", "WARPS", "edited", "line_of", "product", "text"]

WARPS = {"TSM": 32, "TSN": 32, "TSK": 8, "WPTM": 4, "WPTN": 4, "WARPM": 8}

#: Small tiles for the kernels of the ladder.
SMALL = {number: texts.SMALL[number] for number in range(1, 14)}

#: Sizes and parameters for products with a few columns, or rows: several tiles, and edges. None is
#: shared (GROUPS), since the order that an atomic counter gives to work-groups is none that the
#: simulator knows.
THIN = (
    ((141, 3, 50), {"LINES": 5, "TSK": 16, "WPT": 2, "WIDTH": 1}),
    ((260, 2, 40), {"LINES": 2, "TSK": 16, "WPT": 2}),
    ((260, 5, 70), {"LINES": 4, "TSK": 32}),
    ((3, 21, 150), {"LINES": 2, "ROWS": 1, "TSK": 64, "WIDTH": 1, "WPT": 2}),
    ((3, 17, 300), {"LINES": 2, "ROWS": 1, "TSK": 128}),
)


def text(number: int) -> str:
    return read(catalog[number].file)


def edited(source: str, old: str, new: str, which: int = 0) -> str:
    """The text with the occurrence number `which` of `old` replaced; it must be there."""
    places = [m.start() for m in re.finditer(re.escape(old), source)]
    assert len(places) > which, f"{old!r} is not there {which + 1} times"
    at = places[which]
    return source[:at] + new + source[at + len(old) :]


def product(body: str, before: str = "", size: str = "8, 8") -> str:
    """A product's kernel with this body; m and n are the work-item's row and column."""
    return f"""{before}
__kernel __attribute__((reqd_work_group_size({size}, 1)))
void gemm(const int M, const int N, const int K,
          const __global float* A, const __global float* B, __global float* C)
{{
    const int m = get_global_id(0);
    const int n = get_global_id(1);
    const int tm = get_local_id(0);
    const int tn = get_local_id(1);
{body}
}}
"""
