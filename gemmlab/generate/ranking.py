"""How long each candidate would take, on paper: a few constants per kernel, fitted to a record of a
device.

A kernel is launched as G work-groups, each of which does s steps of k (see `Work`). A compute unit
holds up to R of them at a time, so that they come in rounds. A step of one work-group takes
`latency` seconds as long as it is alone; with q of them on a unit the unit's arithmetic is shared,
and a step takes q times `share` seconds, if that is more. Beginning a tile and storing it takes
`tile` seconds. Memory is a second bound: nothing is faster than reading A and B and writing C once
at the memory's bandwidth. Where work-groups share tiles, adding up the parts takes `cut` seconds,
and `part` seconds for each further part of a tile. Every launch besides takes its own time.

Published models of this kind are Stream-K's (Osama et al., 2023), which has four constants per chip
and kernel: the start, the sharing of a tile, the steps and the parts; and those of AMD's Origami
and NVIDIA's nvMatmulHeuristics, which multiply waves by the larger one of arithmetic and memory
time.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import ceil
from typing import NamedTuple

from ..caches import cached
from ..catalog import find
from ..catalog.spec import round_up, tiles_over
from .selection import Choice

#: Floats of registers and bytes of local memory of a compute unit, and its work-items: NVIDIA's
#: since 2012, all but the local memory, of which newer ones have more.
_REGISTERS, _LOCAL, _ITEMS = 65536, 220 * 1024, 2048
#: Registers of a work-item beside its accumulators and operands: addresses and counters.
_OTHER_REGISTERS = 40
#: What is the same for every candidate of a text: parameters that only say how work is shared, and
#: whether the last steps of k have a loop of their own; that is done only where it is quicker, and
#: the model counts a whole tile.
SHARING = ("GROUPS", "ORDER", "SPLIT", "LAST", "TAIL")


#: See `sharing`.
Shared = tuple[float, int, int]


class Work(NamedTuple):
    """What a candidate does at M, N, K, before any constant of a device.

    Attributes:
        groups: work-groups.
        resident: work-groups that a compute unit holds at a time.
        steps: steps of k that a work-group does at most.
        tiles: tiles that a work-group begins at most, one after another.
        parts: work-groups that share a tile at most, 1 if none is shared.
        strip: steps of k of a work-item that sums elements of an edge strip; 0 without strips.
        read: bytes of A and B, which are read at least once.
        written: bytes of C.
        launches: launches beside the kernel itself, such as padding.
        copied: the bytes that each of them reads and writes.
    """

    groups: int
    resident: int
    steps: int
    tiles: int
    parts: int
    strip: int
    read: int
    written: int
    launches: int
    copied: int


class Constants(NamedTuple):
    """The constants of a text on a device, in seconds (see the top of this page)."""

    start: float
    tile: float
    latency: float
    share: float
    cut: float
    part: float


class Chip(NamedTuple):
    """The constants of a device that all texts share, in seconds: per byte read and written, per
    launch, and per step of an edge strip.
    """

    read: float
    write: float
    launch: float
    strip: float
    units: int


def seconds(work: Work, own: Constants, chip: Chip) -> float:
    """How long a candidate takes."""
    full, rest = divmod(work.groups, work.resident * chip.units)
    busy = full * max(own.latency, work.resident * own.share)
    if rest:
        busy += max(own.latency, ceil(rest / chip.units) * own.share)
    rounds = full + (rest > 0)
    time = rounds * work.tiles * own.tile + max(
        work.steps * busy, work.read * chip.read + work.written * chip.write
    )
    if work.parts > 1:
        time += own.cut + (work.parts - 1) * own.part
    if work.strip:
        time = max(time, work.strip * chip.strip)
    return own.start + time + work.launches * chip.launch + work.copied * (chip.read + chip.write)


@cached(4096)
def text_of(choice: Choice) -> tuple:
    """What has constants of its own: the kernel and its parameters but those of sharing."""
    kernel, params = choice
    return kernel, tuple((name, value) for name, value in params if name not in SHARING)


def sharing(choice: Choice, units: int) -> Shared:
    """How the work is shared: work-groups per compute unit, to a quarter (0 for one per tile),
    SPLIT, and LAST.
    """
    p = dict(choice[1])
    return round(4 * p.get("GROUPS", 0) / units) / 4, p.get("SPLIT", 0), p.get("LAST", 1)


def work(choice: Choice, sizes: tuple[int, int, int]) -> Work:
    """What a candidate does for M, N, K of a column-major product."""
    return _worker(choice)(sizes)


@cached(4096)
def _worker(choice: Choice) -> Callable[[tuple[int, int, int]], Work]:
    """A function of the sizes; what follows from the parameters alone is worked out once."""
    kernel, pairs = choice
    spec, p = find(kernel), dict(pairs)
    items, _ = spec.local_size(p)
    resident, aligned = _resident(p, items, spec.local_memory(p)), spec.alignment(p)
    tile, shared, strip = spec.tiles(p), p.get("GROUPS", 0), p.get("SPLIT", 0)
    fixup = int(bool(shared) and not p.get("LAST", 1))
    return partial(
        _work, tile, shared, strip, items, resident, aligned, spec.wants_transposed(p), fixup
    )


def _work(  # noqa: PLR0913
    tile,
    shared: int,
    strip: int,
    items: int,
    resident: int,
    aligned,
    transposed: bool,
    fixup: int,
    sizes,
):
    (rows, cols, depth), (m, n, k) = tile, sizes
    down, across = (max(1, tiles_over(size - strip, side)) for size, side in ((m, rows), (n, cols)))
    count, per_tile = down * across, tiles_over(k, depth)
    groups, steps, begun, parts = count, per_tile, 1, 1
    if shared:
        groups, steps = shared, tiles_over(count * per_tile, shared)
        begun = tiles_over(steps, per_tile)
        parts = 1 if count % groups == 0 else min(per_tile, 1 + tiles_over(groups, count))
    launches, copied = fixup * (parts > 1), 0
    if transposed and n > 1 and k > 1 or round_up(k, aligned[1]) != k:
        launches, copied = launches + 1, 4 * k * n
    if round_up(m, aligned[0]) != m:
        launches, copied = launches + 1, copied + 4 * k * m
    stripped = (m > down * rows or n > across * cols) * tiles_over(
        k, items // 8 if n > across * cols else 32
    )
    return Work(
        groups,
        resident,
        steps,
        begun,
        parts,
        stripped,
        4 * (m + n) * k,
        4 * m * n,
        launches,
        copied,
    )


def _resident(p: dict[str, int], items: int, local: int) -> int:
    """Work-groups that a compute unit holds, as far as that can be told without the compiler."""
    down = p.get("WPTM") or p.get("WM", 8) // 8
    across = p.get("WPTN") or p.get("WN", 32) // 4
    registers = min(255, down * across + 2 * (down + across) + _OTHER_REGISTERS)
    return max(
        1, min(_REGISTERS // (registers * items), _LOCAL // (local + 1024), _ITEMS // items, 32)
    )
