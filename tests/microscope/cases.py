"""Kernels with settings small enough to simulate in a moment, and edits of their texts."""

from __future__ import annotations

import re

import numpy as np
import texts

from gemmlab import catalog
from gemmlab.ladder.sources import read

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


def line_of(source: str, part: str, which: int = 0) -> int:
    """The number of the line in which `part` stands."""
    return [i for i, line in enumerate(source.split("\n"), 1) if part in line][which]


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


def on_device(device, source: str, name: str, sizes, local, args, *options: str) -> list:
    """The arguments of a kernel after a launch on a real device; arrays are copied."""
    import pyopencl as cl

    flags = cl.mem_flags.READ_WRITE | cl.mem_flags.COPY_HOST_PTR
    after = [a.copy() if isinstance(a, np.ndarray) else a for a in args]
    arrays = {
        at: cl.Buffer(device.context, flags, hostbuf=a)
        for at, a in enumerate(after)
        if isinstance(a, np.ndarray)
    }
    program = cl.Program(device.context, source).build(options=["-cl-std=CL1.2", *options])
    given = [arrays.get(at, a) for at, a in enumerate(after)]
    cl.Kernel(program, name)(device.queue, sizes, local, *given)
    for at, buffer in arrays.items():
        cl.enqueue_copy(device.queue, after[at], buffer)
    return after
