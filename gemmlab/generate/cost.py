"""How long a kernel takes, on paper: a few constants per kernel, fitted to measurements.

A kernel is launched as G work-groups, each of which does s steps of k (see `Work`). A compute unit
holds R of them, so they run in rounds. A step of one work-group takes `latency` seconds while it is
alone; q of them on a unit share its arithmetic, and a step takes q times `share` seconds if that is
more. Beginning a tile and storing it takes `tile` seconds. Memory is a second bound: nothing is
faster than reading A and B and writing C once. Where work-groups share tiles, adding up the parts
takes `cut` seconds, and `part` seconds for each further part of a tile. Other launches take time,
too.

Published models of this kind are Stream-K's (Osama et al., 2023), with four constants per chip and
kernel (the start, the sharing of a tile, the steps, the parts), AMD's Origami and NVIDIA's
nvMatmulHeuristics, which multiply rounds by the larger of arithmetic and memory time.
"""

from __future__ import annotations

from math import ceil
from typing import NamedTuple

from ..caches import cached
from ..catalog import find
from ..catalog.spec import Params, round_up, tiles_over
from .table import Choice, Sizes

#: Registers of a compute unit, of 32 bits: NVIDIA's since 2012.
REGISTERS = 65536
#: Bytes of local memory of a compute unit.
LOCAL_BYTES = 220 * 1024
#: Work-items of a compute unit.
ITEMS = 2048
#: Registers of a work-item for addresses and counters, besides accumulators and operands.
OTHER_REGISTERS = 40
#: Parameters that do not change a text's constants: how work is shared, and whether the last steps
#: of k have a separate loop, which is used only where it is faster than the model assumes.
SHARING = ("GROUPS", "ORDER", "SPLIT", "LAST", "TAIL")

#: How the work of a text is shared: see `sharing`.
Shared = tuple[float, int]


class Work(NamedTuple):
    """What a kernel does at M, N, K, before any constant of a device.

    Attributes:
        groups: work-groups.
        resident: work-groups that a compute unit holds at the same time.
        steps: steps of k of a work-group, at most.
        tiles: tiles that a work-group begins, at most.
        parts: work-groups that share a tile, at most.
        strip: steps of k of a work-item that sums elements of an edge strip; 0 without strips.
        read: bytes of A and B.
        written: bytes of C.
        launches: launches besides the kernel itself, such as padding.
        copied: bytes that each of them reads and writes.
    """

    groups: int
    resident: int
    steps: int
    tiles: int = 1
    parts: int = 1
    strip: int = 0
    read: int = 0
    written: int = 0
    launches: int = 0
    copied: int = 0


class Constants(NamedTuple):
    """The constants of a text on a device, in seconds: see the top of this page."""

    start: float
    tile: float
    latency: float
    share: float
    cut: float
    part: float


class Chip(NamedTuple):
    """What all texts share, in seconds: per byte read and written, per launch, and per step of an
    edge strip; and the compute units.
    """

    read: float
    write: float
    launch: float
    strip: float
    units: int


class Text(NamedTuple):
    """What is compiled once, and what follows from its parameters.

    Attributes:
        rows, cols, depth: of a tile.
        items: work-items of a work-group.
        resident: work-groups that a compute unit holds at the same time.
        aligned: what the leading dimensions of A and B are rounded up to.
        transposed: whether B is read as N x K.
    """

    rows: int
    cols: int
    depth: int
    items: int
    resident: int
    aligned: tuple[int, int]
    transposed: bool


def seconds(work: Work, own: Constants, chip: Chip) -> float:
    """How long a kernel takes."""
    full, rest = divmod(work.groups, work.resident * chip.units)
    busy = full * max(own.latency, work.resident * own.share)
    if rest:
        busy += max(own.latency, ceil(rest / chip.units) * own.share)
    rounds = full + (rest > 0)
    memory = work.read * chip.read + work.written * chip.write
    time = rounds * work.tiles * own.tile + max(work.steps * busy, memory)
    if work.parts > 1:
        time += own.cut + (work.parts - 1) * own.part
    if work.strip:
        time = max(time, work.strip * chip.strip)
    return own.start + time + work.launches * chip.launch + work.copied * (chip.read + chip.write)


@cached(4096)
def text_of(choice: Choice) -> Choice:
    """What has constants: the kernel and its parameters except those of sharing."""
    kernel, params = choice
    return kernel, tuple((name, value) for name, value in params if name not in SHARING)


def sharing(choice: Choice, units: int) -> Shared:
    """Work-groups per compute unit, to a quarter (0 for one per tile), and SPLIT."""
    p = dict(choice[1])
    return round(4 * p.get("GROUPS", 0) / units) / 4, p.get("SPLIT", 0)


@cached(1024)
def described(text: Choice) -> Text:
    """What follows from the parameters of a text."""
    spec, p = find(text[0]), dict(text[1])
    items, _ = spec.local_size(p)
    down = p.get("WPTM") or p.get("WM", 8) // 8
    across = p.get("WPTN") or p.get("WN", 32) // 4
    registers = min(255, down * across + 2 * (down + across) + OTHER_REGISTERS)
    by_memory = LOCAL_BYTES // (spec.local_memory(p) + 1024)
    resident = min(REGISTERS // (registers * items), by_memory, ITEMS // items, 32)
    aligned, transposed = spec.alignment(p), spec.wants_transposed(p)
    return Text(*spec.tiles(p), items, max(1, resident), aligned, transposed)


def work(choice: Choice, sizes: Sizes) -> Work:
    """What a kernel of the catalog does for M, N, K of a column-major product."""
    (m, n, k), p, text = sizes, dict(choice[1]), described(text_of(choice))
    split, shared = p.get("SPLIT", 0), p.get("GROUPS", 0)
    down = max(1, tiles_over(m - split, text.rows))
    across = max(1, tiles_over(n - split, text.cols))
    count, per_tile = down * across, tiles_over(k, text.depth)
    groups, steps, begun, parts = count, per_tile, 1, 1
    if shared:
        groups, steps = shared, tiles_over(count * per_tile, shared)
        begun = tiles_over(steps, per_tile)
        parts = 1 if count % groups == 0 else min(per_tile, 1 + tiles_over(groups, count))
    launches, copied = int(shared > 0 and parts > 1 and not p.get("LAST", 1)), 0
    align_a, align_b = text.aligned
    if text.transposed and n > 1 and k > 1 or round_up(k, align_b) != k:
        launches, copied = launches + 1, 4 * k * n
    if round_up(m, align_a) != m:
        launches, copied = launches + 1, copied + 4 * k * m
    strip, columns_left = 0, n > across * text.cols
    if columns_left or m > down * text.rows:
        strip = tiles_over(k, text.items // 8 if columns_left else 32)
    read, written = 4 * (m + n) * k, 4 * m * n
    return Work(groups, text.resident, steps, begun, parts, strip, read, written, launches, copied)


def generated_work(tile: Params, sizes: Sizes, number: int = 1) -> Work:
    """What a generated kernel does for M, N, K, or for so many products of a batch.

    Its constants come from products in which work-groups filled the device, and memory did not
    matter.
    """
    shares = tile["SHARES"]
    tiles = tiles_over(sizes[0], tile["TSM"]) * tiles_over(sizes[1], tile["TSN"])
    groups = tiles * number * shares
    return Work(groups, groups, tiles_over(tiles_over(sizes[2], tile["TSK"]), shares), parts=shares)
