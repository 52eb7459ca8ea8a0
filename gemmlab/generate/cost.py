"""How long a kernel takes, on paper: a few constants per kernel, fitted to measurements.

A kernel is launched as G work-groups, each of which does s steps of k (see `Work`). A compute unit
holds R of them (`resident`), so they run in rounds. Those of the first round are spread evenly;
later ones go to the unit that is free first, which may take more than its share. A step of one
work-group takes `latency` seconds at least; q of them on a unit share its arithmetic, which takes q
times `share` seconds. The larger of the two
hides most of the other, but not all: where they are equal, a step takes 15 % longer (a 5-norm; it
ranks the recorded candidates better than 3 to 8 and than the maximum). Beginning a tile and storing
it takes `tile` seconds. Memory is a second bound: nothing is faster than reading A and B and
writing C once. Where work-groups share tiles, adding up the parts takes `cut` seconds, and `part`
seconds for each further part of a tile. Other launches take time, too.

Published models of this kind are Stream-K's (Osama et al., 2023), with four constants per chip and
kernel (the start, the sharing of a tile, the steps, the parts), AMD's Origami and NVIDIA's
nvMatmulHeuristics, which multiply rounds by the larger of arithmetic and memory time.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from ..catalog import find
from ..catalog.spec import Params, round_up, tiles_over
from .table import Choice, Sizes


class Work(NamedTuple):
    """What a kernel does at M, N, K, before any constant of a device.

    Attributes:
        groups: work-groups.
        steps: steps of k of a work-group, at most.
        tiles: tiles that a work-group begins, at most.
        parts: work-groups that share a tile, at most.
        read: bytes of A and B.
        written: bytes of C.
        launches: launches besides the kernel itself, such as padding.
        copied: bytes that are read and written besides: by each of them, and as parts of tiles.
    """

    groups: int
    steps: int
    tiles: int = 1
    parts: int = 1
    read: int = 0
    written: int = 0
    launches: int = 0
    copied: int = 0


class Constants(NamedTuple):
    """The constants of a text on a device, in seconds: see the top of this page. `resident` is the
    number of work-groups that a compute unit holds at the same time.
    """

    start: float
    tile: float
    latency: float
    share: float
    cut: float
    part: float
    resident: int


class Chip(NamedTuple):
    """What all texts share: seconds per byte read and written, and per launch; compute units."""

    read: float
    write: float
    launch: float
    units: int


def seconds(work: Work, own: Constants, chip: Chip) -> float:
    """How long a kernel takes."""
    full, rest = divmod(work.groups, own.resident * chip.units)
    busy = full * _step(own, own.resident)
    if rest:
        each = rest / chip.units
        busy += _step(own, min(own.resident, 1 + each) if full else ceil(each))
    rounds = full + (rest > 0)
    memory = work.read * chip.read + work.written * chip.write
    time = rounds * work.tiles * own.tile + max(work.steps * busy, memory)
    if work.parts > 1:
        time += own.cut + (work.parts - 1) * own.part
    return own.start + time + work.launches * chip.launch + work.copied * (chip.read + chip.write)


def _step(own: Constants, groups: float) -> float:
    """Seconds of a step of so many work-groups on a unit."""
    return (own.latency**5 + (groups * own.share) ** 5) ** 0.2


def work(choice: Choice, sizes: Sizes) -> Work:
    """What a kernel of the catalog does for M, N, K of a column-major product."""
    (m, n, k), spec, p = sizes, find(choice[0]), dict(choice[1])
    rows, columns, depth = spec.tiles(p)
    count, per_tile = tiles_over(m, rows) * tiles_over(n, columns), tiles_over(k, depth)
    groups, steps, begun, parts = count, per_tile, 1, 1
    if p.get("GROUPS"):
        groups = p["GROUPS"]
        steps = tiles_over(count * per_tile, groups)
        begun = tiles_over(steps, per_tile)
        parts = 1 if count % groups == 0 else min(per_tile, 1 + tiles_over(groups, count))
    launches, copied, (align_a, align_b) = 0, 0, spec.alignment(p)
    if spec.wants_transposed(p) and n > 1 and k > 1 or round_up(k, align_b) != k:
        launches, copied = 1, 4 * k * n
    if round_up(m, align_a) != m:
        launches, copied = launches + 1, copied + 4 * k * m
    read, written = 4 * (m + n) * k, 4 * m * n
    return Work(groups, steps, begun, parts, read, written, launches, copied)


def generated_work(tile: Params, sizes: Sizes, sum_size: int = 0, number: int = 1) -> Work:
    """What a generated kernel does for M, N, K, or for so many products of a batch.

    Work-groups that share a tile write and read partial sums, of `sum_size` bytes per element. Its
    constants come from products in which memory did not matter.
    """
    shares = tile["SHARES"]
    tiles = tiles_over(sizes[0], tile["TSM"]) * tiles_over(sizes[1], tile["TSN"])
    groups = tiles * number * shares
    steps = tiles_over(tiles_over(sizes[2], tile["TSK"]), shares)
    parts = groups * tile["TSM"] * tile["TSN"] * sum_size if shares > 1 else 0
    return Work(groups, steps, parts=shares, copied=parts)
