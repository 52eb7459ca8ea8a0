"""Ceilings: the most that each resource of a chip lets a kernel reach, as a share of its peak.

A ceiling is a ratio of two times: how long the multiply-adds of the product take at the peak, and
how long the resource needs for what the kernel demands of it. Demands are counted (`costs`), rates
are a chip's (`Chip`). The roofline has two such ceilings, of Williams, Waterman and Patterson
(2009); here every resource has one.

A ceiling is a bound and no prediction: where several resources are busy at the same time, or where
warps wait for each other, a kernel stays below all of them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..ladder import Key, find
from ..ladder.spec import positive, round_up, tiles_over
from .chip import H200, Chip, occupancy
from .costs import Costs, Phase, costs
from .traffic import least_bytes

SECTOR_BYTES = 32


@dataclass(frozen=True)
class Ceiling:
    """What one resource allows.

    Where only bounds are known, the truth is between `low`, for which nothing is reused or
    overlapped on the way to the resource, and `share`; elsewhere both are the same.
    """

    resource: str  # such as "local memory"
    share: float  # of the chip's arithmetic peak that it allows at most, 0 to 1
    low: float
    sentence: str  # why
    #: What a picture of the flow needs: bytes, and turns or loads per multiply-add.
    inputs: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class _Launch:
    """What the ceilings of one product follow from."""

    costs: Costs
    chip: Chip
    sizes: tuple[int, int, int]
    steps: int  # of k, padding included
    groups: int
    resident: int  # work-groups on a multiprocessor at the same time
    equal: bool  # whether the work-groups share all tiles equally, as in Stream-K

    def total(self, name: str) -> float:
        """A count of `costs.Phase` over all work-groups."""
        return self.groups * self.costs.total(name, self.steps)

    def share(self, cycles: float) -> float:
        """The share of the peak if the product takes at least so many cycles."""
        ideal = math.prod(self.sizes) / (self.chip.units * self.chip.lanes)
        return min(1.0, ideal / cycles) if cycles else 1.0

    def per_operation(self, moved: float) -> str:
        return f"{moved / (2 * math.prod(self.sizes)):.2g}"


def ceilings(
    kernel: Key,
    params: Mapping[str, int] | None = None,
    chip: Chip = H200,
    size: int | tuple[int, int, int] = 4096,
    *,
    registers: int | None = None,
    fewest: bool = False,
    source: str | None = None,
) -> list[Ceiling]:
    """What each resource of a chip lets a kernel reach at most, the lowest ceiling first.

    The sizes are M = N = K, or (M, N, K), of the column-major product. The compiler gave each
    work-item so many `registers`; by default the fewest possible, one per element of C that it
    computes. `fewest` and `source` are those of `costs`.

    Raises ValueError for sizes below 1, a kernel on tensor cores, or a text that cannot be
    simulated; ParameterError for parameters that the kernel refuses; TypeError for what is no
    `Chip`.
    """
    if not isinstance(chip, Chip):
        wanted = "chip must be a gemmlab.model.Chip, such as model.H200"
        raise TypeError(f"{wanted}, not {type(chip).__name__}: {chip!r}")
    sizes = (size,) * 3 if not isinstance(size, tuple) else size
    m, n, k = (positive(name, side) for name, side in zip("mnk", sizes, strict=True))
    spec = find(kernel)
    full = spec.validate(params)
    cost = costs(spec.number, full, source, chip.bank_bytes, fewest)
    rows, cols, depth = cost.tile
    groups = math.prod(spec.tile_grid(m, n, full))
    pads = spec.multiples(full)[2] > 1  # a kernel that guards its last tile may do fewer steps
    if registers is None:
        registers = max(1, min(chip.registers_per_item, rows * cols // cost.work_items))
    fits = min(occupancy(chip, cost.work_items, registers, cost.local_memory).values())
    resident = max(1, min(fits, tiles_over(groups, chip.units)))
    equal = full.get("GROUPS", 0) > 0
    steps = round_up(k, depth) if pads else k
    x = _Launch(cost, chip, (m, n, k), steps, groups, resident, equal)
    kinds = (_arithmetic, _issue, _local, _path, _l2, _global, _latency, _groups)
    every = [ceiling(x) for ceiling in kinds]
    return sorted((c for c in every if c is not None), key=lambda ceiling: ceiling.share)


def percent(share: float) -> str:
    """A share in words: "22 %", and "2.3 %" below ten."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def named(resource: str) -> str:
    """A resource inside a sentence; caches have an article."""
    return f"the {resource}" if "cache" in resource else resource


def _subject(resource: str) -> str:
    """A resource at the beginning of a sentence."""
    return named(resource)[0].upper() + named(resource)[1:]


def _arithmetic(x: _Launch) -> Ceiling:
    """Missing lanes of warps, and padding, multiply for nothing."""
    instructions = x.total("arithmetic")
    share = x.share(instructions * x.chip.warp / (x.chip.units * x.chip.lanes))
    used = math.prod(x.sizes) / (instructions * x.chip.warp)
    why = "each does work"
    if used <= 0.9995:
        why = f"{percent(used)} of the lanes do work that ends up in C"
    sentence = f"The multiply-add units allow {percent(share)} of the peak: {why}."
    return Ceiling("multiply-adds", share, share, sentence)


def _issue(x: _Launch) -> Ceiling:
    """Every instruction takes an issue slot; only some of them multiply and add."""
    arithmetic, accesses = x.total("arithmetic"), x.total("loads")
    instructions = arithmetic + accesses + x.total("barriers")
    share = x.share(instructions / (x.chip.units * x.chip.issued))
    loads = accesses / arithmetic
    sentence = (
        f"Instruction issue allows {percent(share)} of the peak: {loads:.3g} loads and stores per "
        f"multiply-add take slots too, of {x.chip.issued:g} per cycle (address arithmetic and "
        "jumps are not counted)."
    )
    inputs = {"loads and stores per multiply-add": loads}
    return Ceiling("instruction issue", share, share, sentence, inputs)


def _turns(x: _Launch, resource: str, turns: float) -> Ceiling | None:
    """A path that serves one access of a whole warp per turn."""
    if not turns:
        return None
    share = x.share(turns / (x.chip.units * x.chip.turns))
    per = turns / x.total("arithmetic")
    available = x.chip.turns / (x.chip.lanes / x.chip.warp)
    sentence = (
        f"{_subject(resource)} allows {percent(share)} of the peak: {per:.3g} turns per "
        f"multiply-add of a warp, where the chip has {available:.3g}."
    )
    inputs = {"turns": per, "turns that the chip has": available}
    return Ceiling(resource, share, share, sentence, inputs)


def _local(x: _Launch) -> Ceiling | None:
    """Local memory, or the L1 cache in the same memory for kernels without local memory."""
    local, cached = x.total("local_turns"), x.total("global_turns")
    if not x.chip.unified:
        return _turns(x, "local memory", local)
    return _turns(x, "local memory" if local else "L1 cache", local + cached)


def _path(x: _Launch) -> Ceiling | None:
    """Where the L1 cache is not local memory, loads from global memory have a separate path."""
    return None if x.chip.unified else _turns(x, "path to the caches", x.total("global_turns"))


def _l2(x: _Launch) -> Ceiling | None:
    """What multiprocessors fetch from the L2 cache.

    At most every sector that a warp touches; at least what the work-groups of a multiprocessor need
    if nothing is fetched twice, and their tiles form a square of C.
    """
    if not x.chip.l2_bytes:
        return None
    rows, cols, _ = x.costs.tile
    most = SECTOR_BYTES * x.total("sectors")
    square = 2 * math.sqrt(x.resident * rows * cols) * x.steps / x.resident
    least = min(most, 4 * x.groups * square)
    share, low = x.share(least / x.chip.l2_bytes), x.share(most / x.chip.l2_bytes)
    sentence = (
        f"The L2 cache allows {percent(share)} of the peak if no multiprocessor fetches anything "
        f"twice, and {percent(low)} if every access goes there: {x.per_operation(least)} to "
        f"{x.per_operation(most)} bytes per operation."
    )
    return Ceiling("L2 cache", share, low, sentence, {"least bytes": least})


def _global(x: _Launch) -> Ceiling:
    """Global memory moves at least each matrix once, at most every sector that a warp touches."""
    least, most = least_bytes(*x.sizes), SECTOR_BYTES * x.total("sectors")
    rate = x.chip.bandwidth / x.chip.ghz  # bytes per cycle
    share, low = x.share(least / rate), x.share(max(least, most) / rate)
    sentence = (
        f"Global memory allows {percent(share)} of the peak if the caches keep everything, and "
        f"{percent(low)} if they keep nothing: {x.per_operation(least)} to "
        f"{x.per_operation(most)} bytes per operation."
    )
    return Ceiling("global memory", share, low, sentence, {"least bytes": least})


def _latency(x: _Launch) -> Ceiling | None:
    """Little's law: throughput is what resident work-groups do, divided by how long each takes.

    Between two barriers a work-group takes at least as long as its busiest resource; where it loads
    from global memory it waits for the L2 cache at least once, while it computes if it does so
    between the same barriers. Without barriers the number of loads under way is unknown; with one
    step of k at a time `low` is reached.
    """
    if not x.chip.latency:
        return None
    c, warps = x.costs, tiles_over(x.costs.work_items, x.chip.warp)
    work = c.total("arithmetic", 2 * c.steps) - c.total("arithmetic", c.steps)
    busy = x.resident * work * x.chip.warp / x.chip.lanes
    where = f"at most {x.resident} work-groups of {warps} warps on a multiprocessor"
    if len(c.short) > 1:
        cycles = _fewest_cycles(c.long, x.chip) - _fewest_cycles(c.short, x.chip)
        share = low = min(1.0, busy / cycles)
        sentence = (
            f"Latency allows {percent(share)} of the peak: {where}, and one wait for the L2 cache "
            "per tile."
        )
    else:
        share, low = 1.0, min(1.0, busy / (c.steps * x.chip.latency))
        sentence = (
            f"Latency allows {percent(low)} of the peak if each step of k waits for the L2 cache, "
            f"with {where}; it is no limit if enough loads are under way, which the compiler and "
            "the L1 cache decide."
        )
    return Ceiling("latency", share, low, sentence)


def _fewest_cycles(phases: tuple[Phase, ...], chip: Chip) -> float:
    """The fewest cycles that a work-group takes if it has a multiprocessor for itself."""
    cycles = 0.0
    for p in phases:
        turns = p.local_turns + (p.global_turns if chip.unified else 0)
        issue = (p.arithmetic + p.loads + p.barriers) / chip.issued
        work = max(p.arithmetic * chip.warp / chip.lanes, turns / chip.turns, issue)
        wait = chip.latency if p.fetches else 0
        cycles += max(work, wait) if p.arithmetic else work + wait
    return cycles


def _groups(x: _Launch) -> Ceiling | None:
    """The multiprocessor with the most work-groups is done last."""
    if x.equal:
        return None
    most = tiles_over(x.groups, x.chip.units)
    share = x.groups / (most * x.chip.units)
    sentence = (
        f"Work-groups allow {percent(share)} of the peak: {x.groups:,} of them on {x.chip.units} "
        f"multiprocessors, of which the busiest has {most:,}."
    )
    return Ceiling("work-groups", share, share, sentence)
