"""What a run costs, counted from its log: loads and stores, transactions, turns of the banks,
multiply-adds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .wave import WARP, Entry

SECTOR = 32  # bytes that global memory moves at least
BANKS = 32  # of local memory


@dataclass
class Counts:
    """What a line of the kernel, or all of it, has cost.

    Attributes:
        loads, stores: numbers that work-items loaded and stored, by the name of the array.
        transactions: sectors of 32 bytes that warps touched in global memory.
        turns: of local memory: how often its banks were asked; one turn per access of a warp if no
            two of its lanes want different words of one bank.
        multiply_adds: by all work-items.
        barriers: passed by work-groups.
    """

    loads: dict[str, int] = field(default_factory=dict)
    stores: dict[str, int] = field(default_factory=dict)
    transactions: int = 0
    turns: int = 0
    multiply_adds: int = 0
    barriers: int = 0

    def add(self, other: Counts) -> None:
        for name, value in vars(other).items():
            if isinstance(value, dict):
                mine = getattr(self, name)
                for array, count in value.items():
                    mine[array] = mine.get(array, 0) + count
            else:
                setattr(self, name, getattr(self, name) + value)


def by_line(log: Iterable[Entry]) -> dict[int, Counts]:
    """The cost of each line."""
    places: dict[tuple[Any, ...], list[Entry]] = {}
    for e in log:
        places.setdefault((e.site.number, id(e.memory), id(e.wave)), []).append(e)
    lines: dict[int, Counts] = {}
    for entries in places.values():
        lines.setdefault(entries[0].site.line, Counts()).add(cost(entries))
    return dict(sorted(lines.items()))


def total(lines: dict[int, Counts]) -> Counts:
    all_of_them = Counts()
    for counts in lines.values():
        all_of_them.add(counts)
    return all_of_them


def cost(entries: list[Entry]) -> Counts:
    """What one place in the text has cost a wave."""
    e = entries[0]
    site, wave = e.site, e.wave
    lanes = sum(wave.lanes if e.mask is None else int(np.count_nonzero(e.mask)) for e in entries)
    if site.kind == "multiply-add":
        return Counts(multiply_adds=lanes * site.width)
    if site.kind == "barrier":
        if wave.per == wave.machine.work_items:
            return Counts(barriers=lanes // wave.per)
        return Counts(barriers=len(entries) if wave.items[0] == 0 else 0)  # once for all warps
    if e.memory is None:
        return Counts()
    found = Counts()
    for kind, counted in (("load", found.loads), ("store", found.stores)):
        if site.kind in (kind, "atomic"):
            counted[e.memory.name] = lanes * site.width
    size = site.scalar.size
    asked = rows(entries, size)
    asked = asked[(asked >= 0).any(1)]
    if e.memory.space == "global":
        found.transactions = transactions(asked, size * site.width)
    elif e.memory.space == "local":
        found.turns = turns(asked, size * site.width)
    return found


def rows(entries: list[Entry], size: int = 0) -> np.ndarray:
    """A row of 32 lanes for each warp of each entry, -1 for those that take no part.

    The others have the first byte that they touch, if numbers have `size` bytes; without a size, 0.
    """
    wave = entries[0].wave
    table = np.zeros((len(entries), wave.lanes), np.int64)
    for row, e in zip(table, entries, strict=True):
        if size:
            np.multiply(e.at, size, out=row)
        if e.mask is not None:
            row[~e.mask] = -1
    groups = table.reshape(-1, wave.per)
    return np.pad(groups, ((0, 0), (0, -wave.per % WARP)), constant_values=-1).reshape(-1, WARP)


def transactions(asked: np.ndarray, size: int) -> int:
    """Sectors that warps touch: a row per warp of each lane's first byte (-1: none)."""
    return int(_first_of_each(_units(asked, [*range(0, size, SECTOR), size - 1], SECTOR))[1].sum())


def turns(asked: np.ndarray, size: int, bank_bytes: int = 4) -> int:
    """Turns that local memory needs: each serves one word of every bank, to all lanes that want it.

    A warp that asks for more than a word per lane is served in parts: 8 lanes at a time for vectors
    of 4 floats.
    """
    parts = min(WARP, max(1, size // bank_bytes))
    asked = asked.reshape(len(asked) * parts, WARP // parts)
    return int(
        most_of_a_bank(_units(asked, range(0, size, min(size, bank_bytes)), bank_bytes)).sum()
    )


def fewest_turns(asked: np.ndarray, size: int, bank_bytes: int = 4) -> int:
    """The turns for the same accesses if each word is delivered once to all lanes."""
    turns_of_all, most = 0, bank_bytes * WARP  # a bank cannot deliver more than one word per turn
    for first in range(0, size, most):
        offsets = range(first, min(size, first + most), min(size, bank_bytes))
        turns_of_all += int(most_of_a_bank(_units(asked, offsets, bank_bytes)).sum())
    return turns_of_all


def _units(asked: np.ndarray, offsets: Sequence[int], size: int) -> np.ndarray:
    """The aligned pieces of `size` bytes at these offsets from each lane's byte; -1: none."""
    pieces = np.where(asked[:, :, None] >= 0, (asked[:, :, None] + np.array(offsets)) // size, -1)
    return pieces.reshape(len(asked), -1) if len(asked) else np.empty((0, 1), np.int64)


def most_of_a_bank(words: np.ndarray) -> np.ndarray:
    """In each row (-1: none) the number of different words of the bank that is asked for most."""
    words, first = _first_of_each(words)
    row, column = np.nonzero(first)
    banks = row * BANKS + words[row, column] % BANKS
    # `bincount` takes indices of the platform's size, which has 32 bits in a browser
    wanted = np.bincount(banks.astype(np.intp), minlength=len(words) * BANKS)
    return wanted.reshape(-1, BANKS).max(1)


def merged(log: Iterable[Entry]) -> list[Entry]:
    """The log as it would be if the compiler made wide loads of narrow ones from local memory.

    Loads of one place in the text, between the same two barriers, of floats that lie side by side
    and begin at a multiple of 4 floats (or of 2) for every work-item, become one load. A compiler
    can do that where it has unrolled the loop around them and knows how the array is aligned;
    whether it does, only its output says.
    """
    result: list[Entry] = []
    places: dict[tuple[Any, ...], list[Entry]] = {}
    for e in log:
        loads = e.site.kind == "load" and e.memory is not None and e.memory.space == "local"
        if loads and e.site.width == 1 and e.mask is None and isinstance(e.phase, int):
            places.setdefault((e.site.number, id(e.memory), id(e.wave), e.phase), []).append(e)
        else:
            result.append(e)
    for entries in places.values():
        e = entries[0]
        at = np.array([np.broadcast_to(np.asarray(one.at), e.wave.lanes) for one in entries])
        for width in (4, 2):
            wide = np.unique(at // width, axis=0)
            if (at % width == at[:, :1] % width).all() and len(wide) < len(at):
                site = replace(e.site, number=-1 - e.site.number, width=width)
                entries = [e._replace(site=site, at=row * width) for row in wide]
                break
        result += entries
    return result


def _first_of_each(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each row sorted, and where a number (not -1) occurs for the first time."""
    table = np.sort(table, 1)
    first = np.ones(table.shape, bool)
    first[:, 1:] = table[:, 1:] != table[:, :-1]
    return table, first & (table >= 0)
