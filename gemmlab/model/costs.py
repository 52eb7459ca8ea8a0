"""What a work-group of a kernel costs, counted by running its text: the numbers behind every ceiling.

Two small runs of one work-group, over k and over 2 k steps, give what each step costs and what is left over for the
beginning and the end. From these follow the costs of any size, without running it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import lcm

import numpy as np

from ..caches import cached
from ..catalog import Key, find
from ..catalog.spec import round_up
from ..simt import count, simulate
from ..simt.machine import WARP
from ..simt.watch import Entry

LOAD_BYTES = 16  # that a work-item loads or stores by one instruction at most
LINE_BYTES = 128  # of the L1 cache
LINES = 4  # of the L1 cache that are served in one turn, if they want different banks
SIZE = 4096  # of the products that ceilings are mostly asked for: how far apart their columns lie


@dataclass(frozen=True)
class Phase:
    """What the warps of one work-group do between two barriers.

    Attributes:
        multiply_adds: of all work-items.
        arithmetic: instructions of whole warps that multiply and add; a warp of which only half the lanes are there
            needs as many as a full one.
        loads: instructions of whole warps that load from or store to local or global memory, of up to 16 bytes per
            work-item.
        barriers: instructions of whole warps.
        local_turns: how often the banks of local memory are asked.
        global_turns: of the L1 cache (see `line_turns`); vectors are served for half a warp at a time, as it was
            measured on an H200.
        sectors: of 32 bytes, of global memory, that warps touch.
        bytes: that different lanes of a warp want of local and of global memory; what they share counts once.
        fetches: whether anything is loaded from global memory.
    """

    multiply_adds: float = 0
    arithmetic: float = 0
    loads: float = 0
    barriers: float = 0
    local_turns: float = 0
    global_turns: float = 0
    sectors: float = 0
    bytes: float = 0
    fetches: bool = False


#: The counts of a phase; all but the last field, which is none.
COUNTS = tuple(name for name in Phase.__dataclass_fields__ if name != "fetches")


@dataclass(frozen=True)
class Costs:
    """The costs of one work-group of a kernel, for any K.

    Attributes:
        steps: steps of k of the smaller run; the other has twice as many.
        short, long: the phases of both runs.
        tile: rows and columns of C that a work-group computes, and steps of k that it takes at once.
        work_items, local_memory: of a work-group; bytes.
    """

    steps: int
    short: tuple[Phase, ...]
    long: tuple[Phase, ...]
    tile: tuple[int, int, int]
    work_items: int
    local_memory: int

    def total(self, name: str, k: float) -> float:
        """A count of `Phase`, of a whole work-group that takes k steps."""
        short, long = (sum(getattr(p, name) for p in phases) for phases in (self.short, self.long))
        return short + (long - short) * (k - self.steps) / self.steps

    def per_multiply_add(self, name: str) -> float:
        """A count of `Phase` per multiply-add of a warp (of 32 work-items), far from the beginning and the end."""
        more = [self.total(what, 2 * self.steps) - self.total(what, self.steps) for what in (name, "multiply_adds")]
        return more[0] / (more[1] / WARP)


def costs(kernel: Key, params: Mapping[str, int] | None = None, source: str | None = None, bank_bytes: int = 4,
          fewest: bool = False) -> Costs:  # fmt: skip
    """Count what a work-group costs.

    Args:
        kernel, params, source: as in `gemmlab.simulate`.
        bank_bytes: width of a bank of local memory, 4 or 8.
        fewest: count as few accesses of local memory as a compiler and the hardware could make of the text:
            neighbouring loads merged (`simt.count.merged`), every word delivered once per access. Otherwise each load
            of the text is one load, which is served as `local_turns` says.

    Raises:
        ValueError: for a kernel that multiplies on tensor cores, and where `simulate` raises it.
    """
    spec = find(kernel)
    if spec.tensor:
        raise ValueError(f"kernel {spec.number} multiplies on tensor cores, whose ceilings are not modelled")
    full = spec.validate(params)
    return _costs(spec.number, tuple(full.items()), source, bank_bytes, fewest)


@cached(256)
def _costs(kernel: Key, items: tuple[tuple[str, int], ...], source: str | None, bank_bytes: int, fewest: bool) -> Costs:
    spec, params = find(kernel), dict(items)
    if "GROUPS" in params:
        params["GROUPS"] = 0  # one work-group per tile: how they share tiles does not change what a step costs
    rows, cols, depth = spec.tiles(params)
    # Columns lie whole lines of the cache apart, as in large matrices; and there are enough steps for every stage.
    m, n = (round_up(64, lcm(side, WARP)) for side in (rows, cols))
    columns = 1 if spec.wants_transposed(params) else WARP
    steps = round_up(depth * (params.get("STAGES", 0) + 1), lcm(depth, columns))
    runs = [simulate(kernel, m, n, k, params, source, groups=[(0, 0)]) for k in (steps, 2 * steps)]
    for run in runs:
        if run.stop:
            raise ValueError(f"the kernel's costs cannot be counted, because it stopped: {run.stop}")
    logs = [count.merged(run.log) if fewest else run.log for run in runs]
    aligned = all(round_up(SIZE, side) % WARP == 0 for side in (rows, cols, depth))
    short, long = (_phases(log, bank_bytes, fewest, aligned) for log in logs)
    across, down = spec.local_size(params)
    return Costs(steps, short, long, (rows, cols, depth), across * down, spec.local_memory(params))


def _phases(log: list[Entry], bank_bytes: int, fewest: bool, aligned: bool) -> tuple[Phase, ...]:
    """The phases of a run, in order; `aligned` says whether columns are whole lines of the L1 cache apart."""
    places: dict[int, dict[tuple, list[Entry]]] = {}
    for e in log:
        phase = e.phase if isinstance(e.phase, int) else int(e.phase.max())
        places.setdefault(phase, {}).setdefault((e.site.number, id(e.memory)), []).append(e)
    return tuple(_phase(entries, bank_bytes, fewest, aligned) for _, entries in sorted(places.items()))


def _phase(places: Mapping[tuple, list[Entry]], bank_bytes: int, fewest: bool, aligned: bool) -> Phase:
    sums: dict[str, float] = dict.fromkeys(COUNTS, 0)
    fetches = False
    for entries in places.values():
        e = entries[0]
        size = e.site.scalar.size * e.site.width
        asked = count.rows(entries, e.site.scalar.size if e.memory else 0)
        asked = asked[(asked >= 0).any(1)]
        warps = len(asked)
        if e.site.kind == "multiply-add":
            sums["multiply_adds"] += int((asked >= 0).sum()) * e.site.width
            sums["arithmetic"] += warps * e.site.width
        elif e.site.kind == "barrier":
            sums["barriers"] += warps
        elif e.memory is not None:
            sums["loads"] += warps * -(-size // LOAD_BYTES)
            sums["bytes"] += _different_bytes(asked, size)
            turns = count.fewest_turns if fewest else local_turns
            if e.memory.space == "local":
                sums["local_turns"] += turns(asked, size, bank_bytes)
            else:
                sums["global_turns"] += line_turns(asked, size, 1 if fewest else _halves(size), aligned)
                sums["sectors"] += count.transactions(asked, size)
                fetches |= not e.site.stores
    return Phase(**sums, fetches=fetches)


def _halves(size: int) -> int:
    """In how many parts a warp's access of `size` bytes per lane is served: a whole warp, or half a warp at a time."""
    return 1 if size <= 4 else 2 * -(-size // LOAD_BYTES)


def local_turns(asked: np.ndarray, size: int, bank_bytes: int = 4) -> int:
    """Turns of local memory for accesses of warps: `asked` has the first byte of each lane (-1: none), a row per warp.

    Single floats are served for the whole warp at once. Wider ones are served for half a warp at a time; but if each
    lane wants the same as its neighbour (lane 0 as 1, 2 as 3 ...; or 0 as 2, 1 as 3 ...), again for the whole warp.
    So it was measured on an H200, with 8 patterns of lanes and 3 widths (`tools/ceilings.py`, "loads").
    Banks of 8 bytes, as the K40m has them, are counted as their documents say (`simt.count.turns`).
    """
    if size <= 4 or bank_bytes != 4:
        return count.turns(asked, size, bank_bytes)
    lanes = np.arange(WARP)
    shared = [(asked == asked[:, lanes ^ step]).all(1) for step in (1, 2)]
    whole = shared[0] | shared[1]
    halves = asked[~whole].reshape(-1, WARP // 2)
    return count.fewest_turns(asked[whole], size) + count.fewest_turns(halves, size)


def line_turns(asked: np.ndarray, size: int, parts: int, aligned: bool) -> int:
    """Turns of the L1 cache for accesses of warps (as in `local_turns`), each served in so many parts.

    Four lines are served at once if what lanes want of them lies in different banks, and words of one bank one after
    the other: on an H200 2, 4, 8 lines took 1.1, 1.4, 2.4 times as long as one, but of one bank as many times as there
    were lines (`tools/ceilings.py`, "lines"). Where columns are whole lines apart (`aligned`), the places in
    `asked` say which bank each word lies in; elsewhere they lie in different ones, as far as is known.
    """
    parts = min(WARP, parts)
    asked = asked.reshape(len(asked) * parts, WARP // parts)
    wanted = asked[:, :, None] >= 0
    lines = np.where(wanted, (asked[:, :, None] + np.array([0, size - 1])) // LINE_BYTES, -1)
    by_lines = -(-_different(lines.reshape(len(asked), -1)) // LINES)
    words = np.where(wanted, (asked[:, :, None] + np.arange(0, size, min(size, 4))) // 4, -1).reshape(len(asked), -1)
    by_words = count.most_of_a_bank(words) if aligned else -(-_different(words) // count.BANKS)
    return int(np.maximum(by_lines, by_words).sum())


def _different(table: np.ndarray) -> np.ndarray:
    """How many different numbers (but -1) each row holds."""
    first = np.sort(table, 1)
    return ((first[:, 1:] != first[:, :-1]) & (first[:, 1:] >= 0)).sum(1) + (first[:, 0] >= 0)


def _different_bytes(asked: np.ndarray, size: int) -> int:
    """Bytes that the warps of `asked` want; what several lanes of a warp want counts once."""
    return size * int(_different(asked).sum())
