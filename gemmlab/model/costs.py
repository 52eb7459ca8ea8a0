"""What a work-group of a kernel costs, counted by running its text, as every ceiling needs it.

Two small runs of one work-group, over k and over 2 k steps, give what each step costs and what is
left over for the beginning and the end. From these follow the costs of any size.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import lcm
from typing import Any

import numpy as np

from clscope import count
from clscope.wave import WARP, Entry

from ..caches import cached
from ..ladder import Key, find
from ..ladder.spec import round_up
from ..simulation import simulate

#: Most bytes that a work-item loads or stores with one instruction.
LOAD_BYTES = 16
#: Of the L1 cache: bytes of a line, and lines served in one turn if they need different banks.
LINE_BYTES, LINES = 128, 4
#: Distance between columns, in floats, of the products that ceilings are mostly computed for.
SIZE = 4096


@dataclass(frozen=True)
class Phase:
    """What the warps of one work-group do between two barriers."""

    # Instructions of whole warps; half a warp needs as many:
    arithmetic: float = 0  # multiply-adds
    loads: float = 0  # also stores, to local or global memory, of up to 16 bytes per work-item
    barriers: float = 0
    local_turns: float = 0  # of the banks of local memory
    global_turns: float = 0  # of the L1 cache (see `line_turns`)
    sectors: float = 0  # of 32 bytes, of global memory, that warps touch
    fetches: bool = False  # whether anything is loaded from global memory


@dataclass(frozen=True)
class Costs:
    """The costs of one work-group of a kernel, for any K."""

    steps: int  # of k, in the shorter run
    short: tuple[Phase, ...]  # its phases
    long: tuple[Phase, ...]  # those of the other run, of twice as many steps
    tile: tuple[int, int, int]  # rows and columns of C per work-group, and steps of k per tile
    work_items: int
    local_memory: int  # bytes

    def total(self, name: str, k: float) -> float:
        """A count of `Phase`, of a whole work-group that takes k steps."""
        short = sum(getattr(phase, name) for phase in self.short)
        long = sum(getattr(phase, name) for phase in self.long)
        return short + (long - short) * (k - self.steps) / self.steps


def costs(
    kernel: Key,
    params: Mapping[str, int] | None = None,
    source: str | None = None,
    bank_bytes: int = 4,
    fewest: bool = False,
) -> Costs:
    """Count what a work-group costs; kernel, params and source are those of `gemmlab.simulate`.

    With `fewest`, accesses of local memory are as few as a compiler and the hardware could make:
    neighbouring loads merged (`clscope.count.merged`), every word delivered once per access.
    Otherwise each load of the text is one load, served as `local_turns` describes. Raises
    ValueError for a kernel on tensor cores, and where `simulate` does.
    """
    spec = find(kernel)
    if spec.tensor:
        raise ValueError(
            f"kernel {spec.number} multiplies on tensor cores, whose ceilings are not modelled"
        )
    full = spec.validate(params)
    return _costs(spec.number, tuple(full.items()), source, bank_bytes, fewest)


@cached(256)
def _costs(
    kernel: Key,
    items: tuple[tuple[str, int], ...],
    source: str | None,
    bank_bytes: int,
    fewest: bool,
) -> Costs:
    spec, params = find(kernel), dict(items)
    if "GROUPS" in params:
        params["GROUPS"] = 0  # one work-group per tile: sharing does not change what a step costs
    rows, cols, depth = spec.tiles(params)
    # Columns are whole cache lines apart, as in large matrices, and every stage has enough steps.
    m, n = (round_up(64, lcm(side, WARP)) for side in (rows, cols))
    columns = 1 if spec.wants_transposed(params) else WARP
    steps = round_up(depth * (params.get("STAGES", 0) + 1), lcm(depth, columns))
    aligned = all(round_up(SIZE, side) % WARP == 0 for side in (rows, cols, depth))
    phases = []
    for k in (steps, 2 * steps):
        run = simulate(kernel, m, n, k, params, source, groups=[(0, 0)])
        if run.stop:
            raise ValueError(
                f"the kernel's costs cannot be counted, because it stopped: {run.stop}"
            )
        log = count.merged(run.log) if fewest else run.log
        phases.append(_phases(log, bank_bytes, fewest, aligned))
    across, down = spec.local_size(params)
    memory = spec.local_memory(params)
    return Costs(steps, phases[0], phases[1], (rows, cols, depth), across * down, memory)


def _phases(
    log: Iterable[Entry], bank_bytes: int, fewest: bool, aligned: bool
) -> tuple[Phase, ...]:
    """The phases of a run; `aligned`: whether columns are whole cache lines apart."""
    sites: dict[int, dict[tuple[Any, ...], list[Entry]]] = {}
    for e in log:
        phase = e.phase if isinstance(e.phase, int) else int(e.phase.max())
        sites.setdefault(phase, {}).setdefault((e.site.number, id(e.memory)), []).append(e)
    return tuple(
        _phase(entries.values(), bank_bytes, fewest, aligned)
        for _, entries in sorted(sites.items())
    )


def _phase(sites: Iterable[list[Entry]], bank_bytes: int, fewest: bool, aligned: bool) -> Phase:
    sums, fetches = Counter[str](), False
    for entries in sites:
        site, memory = entries[0].site, entries[0].memory
        size = site.scalar.size * site.width
        accessed = count.rows(entries, site.scalar.size if memory else 0)
        accessed = accessed[(accessed >= 0).any(1)]
        warps = len(accessed)
        if site.kind == "multiply-add":
            sums["arithmetic"] += warps * site.width
        elif site.kind == "barrier":
            sums["barriers"] += warps
        elif memory is not None:
            sums["loads"] += warps * -(-size // LOAD_BYTES)
            if memory.space == "local":
                turns = count.fewest_turns if fewest else local_turns
                sums["local_turns"] += turns(accessed, size, bank_bytes)
            else:
                parts = 1 if fewest else _halves(size)
                sums["global_turns"] += line_turns(accessed, size, parts, aligned)
                sums["sectors"] += count.transactions(accessed, size)
                fetches |= not site.stores
    return Phase(**sums, fetches=fetches)


def _halves(size: int) -> int:
    """In how many parts a warp's access is served: whole, or half a warp for each 16 bytes."""
    return 1 if size <= 4 else 2 * -(-size // LOAD_BYTES)


def local_turns(accessed: np.ndarray, size: int, bank_bytes: int = 4) -> int:
    """Turns of local memory for accesses of warps.

    Single floats are served for the whole warp. Wider ones are served for half a warp; but if each
    lane wants the same as its neighbour (lane 0 as 1, 2 as 3 ...; or 0 as 2, 1 as 3 ...), again for
    the whole warp. This was measured on an H200, with 8 patterns of lanes and 3 widths ("loads" in
    `results/nvidia_h200_ceilings.json`). Banks of 8 bytes, as the K40m has them, are counted as its
    documents describe (`clscope.count.turns`).

    Args:
        accessed: the first byte of each lane (-1: none), a row per warp.
        size: bytes per lane.
        bank_bytes: width of a bank, 4 or 8.
    """
    if size <= 4 or bank_bytes != 4:
        return count.turns(accessed, size, bank_bytes)
    lanes = np.arange(WARP)
    shared = [(accessed == accessed[:, lanes ^ step]).all(1) for step in (1, 2)]
    whole = shared[0] | shared[1]
    halves = accessed[~whole].reshape(-1, WARP // 2)
    return count.fewest_turns(accessed[whole], size) + count.fewest_turns(halves, size)


def line_turns(accessed: np.ndarray, size: int, parts: int, aligned: bool) -> int:
    """Turns of the L1 cache for accesses of warps, each served in so many parts.

    Four lines are served in one turn if the lanes' words in them are in different banks; words of
    one bank follow each other. On an H200 2, 4, 8 lines took 1.1, 1.4, 2.4 times as long as one,
    but in one bank as many times as there were lines (`results/nvidia_h200_experiments.json`).

    Args:
        accessed, size: as in `local_turns`.
        parts: see `_halves`.
        aligned: whether columns are whole lines apart, so that `accessed` tells the bank of each
            word; otherwise they are taken to be in different ones.
    """
    parts = min(WARP, parts)
    accessed = accessed.reshape(len(accessed) * parts, WARP // parts)[:, :, None]
    ends = accessed + np.array([0, size - 1])
    lines = np.where(accessed >= 0, ends // LINE_BYTES, -1).reshape(len(accessed), -1)
    floats = accessed + np.arange(0, size, min(size, 4))
    words = np.where(accessed >= 0, floats // 4, -1).reshape(len(accessed), -1)
    by_lines = -(-_different(lines) // LINES)
    by_words = count.most_of_a_bank(words) if aligned else -(-_different(words) // count.BANKS)
    return int(np.maximum(by_lines, by_words).sum())


def _different(table: np.ndarray) -> np.ndarray:
    """How many different numbers, except -1, each row holds."""
    ordered = np.sort(table, 1)
    new = (ordered[:, 1:] != ordered[:, :-1]) & (ordered[:, 1:] >= 0)
    return new.sum(1) + (ordered[:, 0] >= 0)
