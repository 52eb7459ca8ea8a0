"""Ceilings: the most that each resource of a chip lets a kernel reach, as a share of the chip's arithmetic peak.

Every ceiling is a ratio of two times: how long the multiply-adds of the product take at the peak, and how long the
resource needs for what the kernel asks of it. The demands are counted (`costs`), the rates are a chip's (`Chip`). The
roofline has two such ceilings; here are as many as there are resources. The idea that a kernel is at best as fast as
its slowest resource allows is that of Williams, Waterman and Patterson's roofline and its later ceilings (2009).

A ceiling is a bound and no prediction: where several resources are asked for at their full rate at once, or where
warps wait for each other, a kernel stays below all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from ..catalog import Key, find
from ..catalog.spec import positive, round_up, tiles_over
from ..simt.machine import WARP
from .chip import H200, Chip, occupancy
from .costs import Costs, Phase, costs
from .traffic import least_bytes

SECTOR_BYTES = 32


@dataclass(frozen=True)
class Ceiling:
    """What one resource allows.

    Attributes:
        resource: such as "local memory".
        share: of the chip's arithmetic peak that it allows at most, 0 to 1.
        low: the share if nothing is reused or overlapped on the way to the resource, where only bounds are known: the
            truth lies between low and share. Elsewhere the same as share.
        sentence: why, in words.
        inputs: the numbers in the formula, by name.
    """

    resource: str
    share: float
    low: float
    sentence: str
    inputs: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.sentence


@dataclass(frozen=True)
class _Launch:
    """All that the ceilings of one product follow from."""

    costs: Costs
    chip: Chip
    sizes: tuple[int, int, int]
    steps: int  # of k, padding included
    groups: int
    resident: int  # work-groups on a multiprocessor at once
    equal: bool  # whether the work-groups share all tiles equally, as Stream-K's do

    @property
    def ideal_cycles(self) -> float:
        """Cycles that the product's multiply-adds take at the peak."""
        return math.prod(self.sizes) / (self.chip.units * self.chip.lanes)

    def total(self, name: str) -> float:
        """A count of `costs.Phase` over all work-groups."""
        return self.groups * self.costs.total(name, self.steps)

    def share(self, cycles: float) -> float:
        """The share of the peak if the product takes at least so many cycles."""
        return min(1.0, self.ideal_cycles / cycles) if cycles else 1.0


def ceilings(
    kernel: Key,
    params: Mapping[str, int] | None = None,
    chip: Chip = H200,
    m: int = 4096,
    n: int | None = None,
    k: int | None = None,
    *,
    registers: int | None = None,
    fewest: bool = False,
    source: str | None = None,
) -> list[Ceiling]:
    """What each resource of a chip lets a kernel reach at most, the lowest ceiling first.

    Args:
        kernel: its number; params: its parameters, the defaults where they are missing.
        chip: `H200`, `H100`, `K40M`, a `Chip` of your own, or what `measured` makes of the reader's device.
        m, n, k: sizes of the column-major product; n and k default to m.
        registers: that the compiler gave each work-item; None for the fewest that are possible, one per element of C
            that it computes.
        fewest: count as few accesses of local memory as a compiler could make of the text (see `costs`).
        source: another text to count in the kernel's place.

    Raises:
        ValueError: for sizes below 1, a kernel on tensor cores, or a text that the simulation cannot run.
        ParameterError: for parameters that the kernel refuses.
        TypeError: if chip is no `Chip`.
    """
    launch = _launch(kernel, params, chip, (m, m if n is None else n, m if k is None else k), registers, fewest, source)
    makers: tuple[Callable[[_Launch], Ceiling | None], ...] = (
        _vectors if chip.width else _arithmetic, _issue, *(_CACHES if chip.width else _PATHS), _l2, _global, _latency,
        _groups)  # fmt: skip
    found = [ceiling for make in makers if (ceiling := make(launch)) is not None]
    return sorted(found, key=lambda ceiling: ceiling.share)


def _launch(kernel, params, chip, sizes, registers, fewest, source) -> _Launch:
    if not isinstance(chip, Chip):
        raise TypeError(f"chip must be a gemmlab.model.Chip, such as model.H200, not {type(chip).__name__}: {chip!r}")
    m, n, k = (positive(name, size) for name, size in zip("mnk", sizes, strict=True))
    spec = find(kernel)
    full = spec.validate(params)
    cost = costs(spec.number, full, source, chip.bank_bytes, fewest)
    rows, cols, depth = cost.tile
    groups = math.prod(spec.tile_grid(m, n, full))
    steps = round_up(k, depth) if spec.multiples(full)[2] > 1 else k  # a kernel that guards its last tile may do less
    if registers is None:
        registers = max(1, min(chip.registers_per_item, rows * cols // cost.work_items))
    fits = min(occupancy(chip, cost.work_items, registers, cost.local_memory).values())
    resident = max(1, min(fits, tiles_over(groups, chip.units)))
    return _Launch(cost, chip, sizes, steps, groups, resident, full.get("GROUPS", 0) > 0)


def percent(share: float) -> str:
    """A share in words: "22 %", and "2.3 %" below ten."""
    return f"{100 * share:.0f} %" if share >= 0.0995 else f"{100 * share:.1f} %"


def _capital(words: str) -> str:
    return words[0].upper() + words[1:]


def _arithmetic(x: _Launch) -> Ceiling:
    """Warps in which lanes are missing, and padding, multiply for nothing."""
    instructions = x.total("arithmetic")
    share = x.share(instructions * x.chip.warp / (x.chip.units * x.chip.lanes))
    used = math.prod(x.sizes) / (instructions * x.chip.warp)
    why = "each does work" if used > 0.9995 else f"{percent(used)} of the lanes do work that ends up in C"
    sentence = f"The multiply-add units allow {percent(share)} of the peak: {why}."
    return Ceiling("multiply-adds", share, share, sentence, {"used lanes": used})


def _vectors(x: _Launch) -> Ceiling:
    """A processor's peak is reached in vectors; what its compiler does not put into vectors uses one lane of each."""
    low = 1 / x.chip.width
    sentence = (
        f"The multiply-add units allow 100 % of the peak in vectors of {x.chip.width} floats, "
        f"and {percent(low)} if the compiler uses none."
    )
    return Ceiling("multiply-adds", 1.0, low, sentence, {"floats per vector": x.chip.width})


def _issue(x: _Launch) -> Ceiling | None:
    """Every instruction takes a slot of a scheduler; only some of them multiply and add."""
    if not x.chip.issued:
        return None
    counted = {name: x.total(name) for name in ("arithmetic", "loads", "barriers")}
    share = x.share(sum(counted.values()) / (x.chip.units * x.chip.issued))
    loads = counted["loads"] / counted["arithmetic"]
    sentence = (
        f"Instruction issue allows {percent(share)} of the peak: {loads:.3g} loads and stores per multiply-add "
        f"take slots too, of {x.chip.issued:g} per cycle (address arithmetic and jumps are not counted)."
    )
    return Ceiling("instruction issue", share, share, sentence, {"loads and stores per multiply-add": loads})


def named(resource: str) -> str:
    """A resource inside a sentence: the caches and the path to them have an article, the others have none."""
    return f"the {resource}" if "cache" in resource else resource


def _turns(x: _Launch, resource: str, names: tuple[str, ...]) -> Ceiling | None:
    """A path that serves one access of a whole warp per turn."""
    turns, arithmetic = sum(x.total(name) for name in names), x.total("arithmetic")
    if not turns:
        return None
    share = x.share(turns / (x.chip.units * x.chip.turns))
    per, warps = turns / arithmetic, x.chip.lanes / x.chip.warp
    sentence = (
        f"{_capital(named(resource))} allows {percent(share)} of the peak: {per:.3g} turns per multiply-add of "
        f"a warp, where the chip has {x.chip.turns / warps:.3g}."
    )
    return Ceiling(resource, share, share, sentence, {"turns": per, "turns that the chip has": x.chip.turns / warps})


def _local(x: _Launch) -> Ceiling | None:
    if not x.chip.unified:
        return _turns(x, "local memory", ("local_turns",))
    if not x.total("local_turns"):
        return _turns(x, "L1 cache", ("global_turns",))
    return _turns(x, "local memory", ("local_turns", "global_turns"))


def _l1(x: _Launch) -> Ceiling | None:
    """Where the L1 cache is not local memory, loads from global memory have a path of their own."""
    return None if x.chip.unified else _turns(x, "path to the caches", ("global_turns",))


_PATHS = (_local, _l1)


def _cache(x: _Launch) -> Ceiling | None:
    """A processor keeps local memory and what was loaded last in its nearest cache."""
    if math.isinf(x.chip.turns):
        return None
    wanted = x.total("bytes")
    rate = 4 * WARP * x.chip.units * x.chip.turns  # bytes per cycle
    share, per = x.share(wanted / rate), wanted / x.total("multiply_adds")
    low = min(share, x.share(4 * WARP * x.total("loads") / rate))
    sentence = (
        f"The nearest cache allows {percent(share)} of the peak: {per:.3g} bytes per multiply-add, if "
        f"neighbouring work-items share what they load ({percent(low)} if each loads for itself)."
    )
    return Ceiling("nearest cache", share, low, sentence, {"bytes per multiply-add": per})


_CACHES = (_cache,)


def _l2(x: _Launch) -> Ceiling | None:
    """What multiprocessors fetch from the L2 cache: at most every sector that a warp asks for; at least what the
    work-groups of a multiprocessor need if nothing is fetched twice, and their tiles form a square of C."""
    if not x.chip.l2_bytes:
        return None
    name = "second cache" if x.chip.width else "L2 cache"
    rows, cols, _ = x.costs.tile
    most = SECTOR_BYTES * x.total("sectors")
    square = 2 * math.sqrt(x.resident * rows * cols) * x.steps / x.resident
    least = min(most, 4 * x.groups * square)
    share, low = x.share(least / x.chip.l2_bytes), x.share(most / x.chip.l2_bytes)
    flop = 2 * math.prod(x.sizes)
    sentence = (
        f"{_capital(named(name))} allows {percent(share)} of the peak if no {x.chip.unit} fetches anything twice, and "
        f"{percent(low)} if every access goes there: {least / flop:.2g} to {most / flop:.2g} bytes per operation."
    )
    return Ceiling(name, share, low, sentence, {"least bytes": least, "most bytes": most})


def _global(x: _Launch) -> Ceiling:
    """Global memory moves at least each matrix once, at most every sector that a warp asks for."""
    least, most = least_bytes(*x.sizes), SECTOR_BYTES * x.total("sectors")
    rate = x.chip.bandwidth / x.chip.ghz  # bytes per cycle
    share, low = x.share(least / rate), x.share(max(least, most) / rate)
    flop = 2 * math.prod(x.sizes)
    sentence = (
        f"Global memory allows {percent(share)} of the peak if the caches keep everything, and {percent(low)} if they "
        f"keep nothing: {least / flop:.2g} to {most / flop:.2g} bytes per operation."
    )
    return Ceiling("global memory", share, low, sentence, {"least bytes": least, "most bytes": most})


def _latency(x: _Launch) -> Ceiling | None:
    """Little's law: what is done at a time is what the resident work-groups do, divided by how long each takes.

    Between two barriers a work-group takes at least as long as its busiest resource; and where it loads from global
    memory it waits for the L2 cache at least once, beside its arithmetic if there is some between the same barriers.
    Without barriers nothing says how many loads are under way; with those of one step of k at a time `low` is reached.
    """
    if not x.chip.latency:
        return None
    c, warps = x.costs, tiles_over(x.costs.work_items, x.chip.warp)
    work = c.total("arithmetic", 2 * c.steps) - c.total("arithmetic", c.steps)
    busy = x.resident * work * x.chip.warp / x.chip.lanes
    where = f"at most {x.resident} work-groups of {warps} warps on a multiprocessor"
    if len(c.short) > 1:
        share = low = min(1.0, busy / (_alone(c.long, x.chip) - _alone(c.short, x.chip)))
        sentence = f"Latency allows {percent(share)} of the peak: {where}, and one wait for the L2 cache per tile."
    else:
        share, low = 1.0, min(1.0, busy / (c.steps * x.chip.latency))
        sentence = (
            f"Latency allows {percent(low)} of the peak if each step of k waits for the L2 cache, with {where}; it is "
            "no limit if enough loads are under way, which the compiler and the L1 cache decide."
        )
    return Ceiling("latency", share, low, sentence, {"work-groups": x.resident, "cycles": x.chip.latency})


def _alone(phases: tuple[Phase, ...], chip: Chip) -> float:
    """The fewest cycles that a work-group takes for these phases if it has a multiprocessor for itself."""
    cycles = 0.0
    for p in phases:
        turns = p.local_turns + (p.global_turns if chip.unified else 0)
        issue = (p.arithmetic + p.loads + p.barriers) / chip.issued if chip.issued else 0
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
        f"Work-groups allow {percent(share)} of the peak: {x.groups:,} of them on {x.chip.units} {x.chip.unit}s, "
        f"of which the busiest has {most:,}."
    )
    return Ceiling("work-groups", share, share, sentence, {"work-groups": x.groups})
